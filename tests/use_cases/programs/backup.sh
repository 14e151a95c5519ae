#!/bin/sh
# Copies what is in DIR/papers to DIR/backup: backup.sh careful|hasty DIR
set -eu
cd "$2"
if [ ! -d papers ]; then
  rm -rf papers.new
  mkdir papers.new
  echo "first page" >papers.new/one
  echo "second page" >papers.new/two
  mv papers.new papers
fi
[ ! -d backup ] || exit 0
case $1 in
careful)
  rm -rf backup.new
  cp -R papers backup.new
  mv backup.new backup
  ;;
hasty) # wrong: the folder is there before its files are, and the next run takes it for done
  cp -R papers backup
  ;;
esac
