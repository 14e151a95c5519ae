#!/bin/sh
# Exits with 0 where the backup in DIR is whole: verify.sh DIR
diff -r "$1/papers" "$1/backup"
