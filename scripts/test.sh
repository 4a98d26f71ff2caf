#!/usr/bin/env bash
# Builds everything and runs every test: all of it once, then the part without LibTorch under the
# address and undefined-behaviour sanitizers. Needs nothing but a clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--quick] [--filter REGEX] [--help]

  --quick          without the sanitizers
  --filter REGEX   only the tests whose name matches, as in ctest -R

The last line says "N passed, M failed" over both runs; a preset that does not build counts as one
failed test. Exit status: 0 when nothing failed, 1 when something did, 2 for a wrong call.
TEXT
}

quick=no filter=
while (($#)); do
  case $1 in
    --quick) quick=yes ;;
    --filter)
      if (($# < 2)); then usage >&2; exit 2; fi
      filter=$2
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'test.sh: unknown argument "%s"\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

logs=build/test-logs
mkdir -p "$logs"
passed=0 failed=0 problems=()

# Takes ctest's own summary line apart: "98% tests passed, 1 tests failed out of 50".
count_results() {
  local preset=$1 log=$2 line
  line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$log" | tail -n 1) || true
  if [[ $line =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
    if ((BASH_REMATCH[1] > 0)); then problems+=("$preset: ${BASH_REMATCH[1]} tests failed, see above and $log"); fi
  else
    failed=$((failed + 1))
    problems+=("$preset: ctest ran no tests, see $log")
  fi
}

test_preset() {
  local preset=$1 what=$2 log=$logs/$1.log selection=()
  heading "$what: configure and build (preset $preset)"
  if ! build_preset "$preset"; then
    failed=$((failed + 1))
    problems+=("$preset: the build failed")
    return
  fi
  if [[ -n $filter ]]; then selection=(-R "$filter"); fi
  heading "$what: tests (preset $preset)"
  ctest --preset "$preset" -j 3 --output-on-failure --no-tests=error "${selection[@]}" 2>&1 |
    tee "$log" || true
  count_results "$preset" "$log"
}

heading "set-up"
scripts/setup.sh --tests
# The Optunas that the tests of its protocol speak with.
scripts/setup-optuna.sh 5.0.0
scripts/setup-optuna.sh 4.5.0
test_preset full "everything"
if [[ $quick == no ]]; then test_preset asan "sanitizers, without LibTorch"; fi

heading "summary"
if ((${#problems[@]})); then printf '%s\n' "${problems[@]}"; fi
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
