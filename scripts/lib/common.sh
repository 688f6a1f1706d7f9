# shellcheck shell=bash
# Sourced by every script: where things are, and how steps are announced.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build
logs=$build/log

# What set-up installs for this checkout alone comes first.
export PATH="$build/bin:$PATH"

# Package.swift takes swift-argument-parser from here where its repository is out of reach.
use_local_argument_parser() {
  if [[ -z ${SWIFT_ARGUMENT_PARSER_PATH:-} && -f $build/swift-argument-parser/Package.swift ]]; then
    export SWIFT_ARGUMENT_PARSER_PATH=$build/swift-argument-parser
  fi
}
use_local_argument_parser

# Swift keeps caches in the home folder, and stops where it cannot write there, as in a container without such a folder.
if [[ ! -w ${HOME:-~} ]]; then
  export HOME=$build/home
  mkdir -p "$HOME"
fi

say() { printf '%s\n' "$*"; }

stop() {
  printf '%s\n' "$*" >&2
  exit 1
}

# wrong_usage USAGE: the arguments are at fault.
wrong_usage() {
  printf '%s\n' "$*" >&2
  exit 2
}

# version_at_least HAVE WANT: compares dotted numbers, field by field.
version_at_least() {
  local IFS=. i
  # shellcheck disable=SC2206 # splitting at the dots is the point
  local have=($1) want=($2)
  for ((i = 0; i < ${#want[@]}; i++)); do
    local left=${have[i]:-0} right=${want[i]}
    left=${left%%[!0-9]*}
    if ((${left:-0} != right)); then
      ((${left:-0} > right))
      return
    fi
  done
}

# progress LABEL LOG COMMAND...: runs a command with its output in build/log/LOG.log.
# Prints a line while it takes longer than a second, and the log's end when it fails.
progress() {
  local label=$1 log=$logs/$2.log started=$SECONDS ticks=0 status=0 pid
  shift 2
  mkdir -p "$logs"
  # A process group of its own, so that an interrupt reaches all that the command started.
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  set +m
  # shellcheck disable=SC2064 # the process id of now
  trap "kill -- -$pid 2>/dev/null; exit 130" INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.1
    ticks=$((ticks + 1))
    # After one second, then every five.
    if ((ticks % 50 == 10)); then
      say "    $label: $((SECONDS - started)) s  $(tail -n 1 "$log" | tr -d '\r' | cut -c 1-80)"
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if ((status != 0)); then
    tail -n 40 "$log" >&2
    stop "$label failed (status $status). The whole log: $log"
  fi
  if ((ticks >= 10)); then say "    $label: done in $((SECONDS - started)) s"; fi
}
