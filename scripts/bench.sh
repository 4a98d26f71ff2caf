#!/usr/bin/env bash
# Lists the benchmarks, or builds what one needs and runs it.
#
# A benchmark is one file tests/benchmarks/NAME.{py,sh,cc}. Its first lines (after a #!) say
#   # bench: NAME - what it measures, beside what
#   # builds: TARGET...           CMake targets it needs besides its own; the line may be missing
# with // for # in C++. Its last line of output is one JSON object with the figures. Executables
# are in $ESPALIER_BIN; a C++ benchmark is itself the target bench_NAME. Optimised build, where none is named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

FOLDER=tests/benchmarks
PRESET=release

usage() {
  cat <<'TEXT'
usage: scripts/bench.sh                  list the benchmarks
       scripts/bench.sh NAME [ARGUMENT...]  run one; its last line is one JSON object
       scripts/bench.sh NAME --smoke        run one as briefly as it can: its figures mean nothing

  ESPALIER_BIN=DIR   take the executables from there, and set up and build nothing
TEXT
}

# header KEY FILE: what the file's header says after "KEY:", or nothing.
header() { sed -n -E "1,10{/^(#|\/\/) $1:/{s@^(#|//) $1: *@@p;q}}" "$2"; }

benchmarks() {
  local file
  for file in "$FOLDER"/*.py "$FOLDER"/*.sh "$FOLDER"/*.cc; do
    if [[ -e $file && -n $(header bench "$file") ]]; then echo "$file"; fi
  done
}

list() {
  local file line
  while read -r file; do
    line=$(header bench "$file")
    printf '%-12s %s\n' "${line%% - *}" "${line#* - }"
  done < <(benchmarks) | sort
}

# Reads to the end: who writes to a reader that has left is told of it where SIGPIPE is ignored.
file_of() {
  local file found=""
  while read -r file; do
    if [[ $(basename "${file%.*}") == "$1" ]]; then found=$file; fi
  done < <(benchmarks)
  echo "$found"
}

case "${1:-}" in
  "") list; exit 0 ;;
  -h | --help) usage; list; exit 0 ;;
esac
name=$1
shift
file=$(file_of "$name")
if [[ -z $file ]]; then
  printf 'bench.sh: no benchmark "%s"; there are:\n' "$name" >&2
  list >&2
  exit 2
fi

read -r -a targets <<<"$(header builds "$file")"
bin=${ESPALIER_BIN:-$PWD/build/$PRESET/bin}
case $file in
  *.cc) targets+=("bench_$name") command=("$bin/bench_$name") ;;
  *.py) command=(python3 "$file") ;;
  *.sh) command=(bash "$file") ;;
esac
if [[ -z ${ESPALIER_BIN:-} ]]; then
  heading "set-up"
  scripts/setup.sh
  if ((${#targets[@]})); then
    heading "build: ${targets[*]}"
    build_preset "$PRESET" "${targets[@]}" || stop_with "the build failed, see above"
  fi
fi
heading "$(header bench "$file")"
export ESPALIER_BIN=$bin
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"${command[@]}" "$@" | tee "$output" || stop_with "$name failed, see above"
tail -n 1 "$output" |
  python3 -c 'import json, sys; sys.exit(not isinstance(json.loads(sys.stdin.read()), dict))' 2>/dev/null ||
  stop_with "the last line of $name is no JSON object"
