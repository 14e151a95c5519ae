#!/bin/sh
# Whether a program still has what it acked: kept.sh load|check TMP PROGRAM...
#
# load   runs the program, which prints the number it has, and keeps that in TMP/found
# check  exits with 0 where that number is the last one acked, or the one after it, and with 1 where it is not;
#        where nothing has been loaded yet it loads first
#
# Only what sh has built in: this runs twice for every crash state.
set -eu
action=$1 found=$2/found
shift 2
if [ "$action" = load ]; then
  exec "$@" >"$found"
fi
[ -e "$found" ] || "$@" >"$found" || exit 2
last=0
while read -r line; do
  case $line in
  '{"ack": '*)
    last=${line#*: }
    last=${last%\}}
    ;;
  esac
done <"$CRASHLAB_EVENTS"
read -r number <"$found" || exit 2
if [ "$number" -eq "$last" ] || [ "$number" -eq $((last + 1)) ]; then
  exit 0
fi
echo "$last was acked, and $number is there"
exit 1
