#!/bin/sh
# Keeps a number in a file: saves.sh right|ignores|silent|forgets write|load DIR
#
# right: whatever fails ends it, with a message. ignores: goes on as if the write had been made. silent: ends without
# a word. forgets: starts anew where it cannot read what it has.
set -eu
cd "$3"
case $1-$2 in
right-write | forgets-write)
  for number in 1 2; do
    echo "$number" >state.new
    sync state.new
    mv state.new state
    sync .
    echo "ack $number" >>"$CRASHLAB_EVENTS"
  done
  ;;
ignores-write)
  for number in 1 2; do
    (echo "$number" >state) || true
    echo "ack $number" >>"$CRASHLAB_EVENTS"
  done
  ;;
silent-write)
  (echo 1 >state) 2>/dev/null || exit 1
  ;;
forgets-load)
  read -r number 2>/dev/null <state || echo 0 >state
  cat state
  ;;
*-load)
  number=0
  if [ -s state ]; then
    read -r number <state
  fi
  echo "$number"
  ;;
esac
