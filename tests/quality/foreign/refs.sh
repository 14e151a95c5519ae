#!/bin/sh
# Keeps a number as the message of the last commit of a git repository: refs.sh write|load DIR
set -eu
git() { command git -C "$directory" -c core.fsync=all -c core.fsyncMethod=fsync -c gc.auto=0 -c user.name=a -c user.email=a@b "$@"; }
directory=$2
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
case $1 in
write)
  git init --quiet --initial-branch=main
  parent=
  for number in 1 2; do
    blob=$(printf '%s' "$number" | git hash-object -w --stdin)
    tree=$(printf '100644 blob %s\tstate\n' "$blob" | git mktree)
    commit=$(git commit-tree ${parent:+-p $parent} -m "$number" "$tree")
    git update-ref refs/heads/main "$commit"
    parent=$commit
    echo "ack $number" >>"$CRASHLAB_EVENTS"
  done
  ;;
load)
  if ! git rev-parse --verify --quiet refs/heads/main >/dev/null 2>&1; then
    if [ -e "$directory/.git/refs/heads/main" ]; then
      echo "the branch is damaged" >&2
      exit 1
    fi
    echo 0
    exit
  fi
  git fsck --strict --no-dangling >&2
  git cat-file blob main:state
  echo
  ;;
esac
