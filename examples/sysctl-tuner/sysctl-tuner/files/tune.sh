#!/bin/sh
# Keeps the kernel parameters listed in $WANTED ("name=value" a line) as they are
# there. The value found before the first change is noted in $NOTES, on the host's
# /run: it outlives the pod, and is gone after a reboot, as the change itself is.
# A parameter that is no longer listed gets its noted value back; on TERM all do.
set -u

WANTED=${WANTED:-/etc/sysctl-tuner/params}
NOTES=${NOTES:-/run/sysctl-tuner}
PROC=${PROC:-/proc/sys}
SLEEP=${SLEEP:-60}

say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*"; }

# file NAME: the parameter's file. Names come from the cluster: no way out of $PROC.
file() {
  case $1 in
  '' | *[!a-z0-9_.-]* | .* | *. | *..*) return 1 ;;
  esac
  echo "$PROC/$(echo "$1" | tr . /)"
}

# current FILE: its value, blanks made one (some parameters hold several numbers).
current() { tr -s ' \t' ' ' <"$1"; }

put_back() {
  f=$(file "$1") || return 0
  old=$(cat "$NOTES/$1") || return 0
  if echo "$old" 2>/dev/null >"$f"; then
    rm -f "$NOTES/$1"
    say "$1 = $old (put back)"
  else
    say "$1: the kernel refuses the old value $old; it stays noted"
  fi
}

put_all_back() {
  for note in "$NOTES"/*; do
    [ -f "$note" ] && put_back "${note##*/}"
  done
}

tune() {
  for note in "$NOTES"/*; do
    [ -f "$note" ] || continue
    listed "${note##*/}" || put_back "${note##*/}"
  done
  while IFS='=' read -r name value; do
    [ -n "$name" ] || continue
    f=$(file "$name") || { complain "$name" "not a parameter's name"; continue; }
    [ -w "$f" ] || { complain "$name" "this kernel has no such parameter"; continue; }
    now=$(current "$f")
    [ "$now" = "$value" ] && continue
    [ -f "$NOTES/$name" ] || echo "$now" >"$NOTES/$name"
    if echo "$value" 2>/dev/null >"$f"; then
      say "$name = $value (was $now)"
    else
      complain "$name" "the kernel refuses the value $value"
    fi
  done <"$WANTED"
}

# listed NAME: is it still wanted?
listed() {
  while IFS='=' read -r name value; do
    [ "$name" = "$1" ] && return 0
  done <"$WANTED"
  return 1
}

# complain NAME TEXT: once for each pair, or the log would grow with every round.
complained=""
complain() {
  case $complained in
  *"|$1 $2|"*) return ;;
  esac
  complained="$complained|$1 $2|"
  say "$1: $2; skipped"
}

mkdir -p "$NOTES"
trap 'put_all_back; exit 0' TERM INT
while :; do
  tune
  sleep "$SLEEP" &
  wait $! # a signal ends wait, not sleep
done
