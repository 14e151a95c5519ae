#!/bin/sh
# Keeps a number as the message of the last commit of a git repository: refs.sh write|sync|load DIR
#
# sync is write with a sync of the file system after each update of the branch. The repository itself is made and
# synced first: git init promises nothing.
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
git() { command git -C "$directory" -c core.fsync=all -c core.fsyncMethod=fsync -c core.logAllRefUpdates=false \
  -c user.name=a -c user.email=a@b "$@"; }
action=$1 directory=$2
empty=4b825dc642cb6eb9a060e54bf8d69288fbee4904
case $action in
write | sync)
  git init --quiet --initial-branch=main --template=
  sync -f "$directory"
  parent=
  for number in 1 2; do
    commit=$(git commit-tree ${parent:+-p $parent} -m "$number" "$empty")
    git update-ref refs/heads/main "$commit"
    if [ "$action" = sync ]; then
      sync -f "$directory"
    fi
    parent=$commit
    echo "ack $number" >>"$CRASHLAB_EVENTS"
  done
  ;;
load)
  if [ -e "$directory/.git/refs/heads/main" ]; then
    git show --no-patch --format=%s refs/heads/main
  else
    echo 0
  fi
  ;;
esac
