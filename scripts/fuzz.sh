#!/usr/bin/env bash
# Makes up inputs with libFuzzer for what reads those of strangers, in tests/fuzz, and tells what it came to.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/fuzz.sh                          list the targets
       scripts/fuzz.sh TARGET... [OPTION...]    fuzz these, or `all`

  --runs N       at least so many inputs for each target; without it what docs/testing.md asks for. A target goes
                 on until its coverage has not grown in the last tenth of its runs
  --seconds N    but no longer than this for each target
  --jobs N       so many targets at a time (1)

  ESPALIER_BIN=DIR   take the programs from there, and set up and build nothing

Builds the preset `fuzz` with clang, libFuzzer and the address and undefined-behaviour sanitizers. What was found to
lead further stays in build/fuzz/corpus/TARGET, and an input that breaks something in build/fuzz/findings. The last line
is one JSON object with the figures. Exit status: 0 without findings, 1 with some, 2 for a wrong call.
TEXT
}

case "${1:-}" in
  "") exec /usr/bin/python3 -B tests/fuzz/run.py ;;
  -h | --help) usage; exit 0 ;;
esac
targets=$(/usr/bin/python3 -B tests/fuzz/run.py --targets "$@") || { usage >&2; exit 2; }
if [[ -z ${ESPALIER_BIN:-} ]]; then
  heading "set-up"
  scripts/setup.sh
  scripts/setup-fuzz.sh
  heading "build: ${targets//$'\n'/ }"
  mapfile -t programs < <(sed 's/^/fuzz_/' <<<"$targets")
  build_preset fuzz "${programs[@]}" || stop_with "the build failed, see above"
fi
heading "fuzzing"
exec /usr/bin/python3 -B tests/fuzz/run.py "$@"
