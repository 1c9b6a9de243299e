# shellcheck shell=bash
# Progress lines with the seconds since the start, and commands whose output matters only when they fail.

# Scripts that call each other share one clock.
export SETUP_CLOCK_START=${SETUP_CLOCK_START:-$(date +%s)}

step() { printf '[%3d s] %s\n' $(($(date +%s) - SETUP_CLOCK_START)) "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# quietly LOG COMMAND...: appends the output to LOG; shows its end if the command fails.
quietly() {
  local log=$1
  shift
  printf '\n$ %s\n' "$*" >> "$log"
  if ! "$@" >> "$log" 2>&1 < /dev/null; then
    tail -n 40 "$log" >&2
    fail "this failed: $* (all of its output: $log)"
  fi
}

# version_at_least HAVE WANTED
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }
