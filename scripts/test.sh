#!/usr/bin/env bash
# Builds everything and runs every test: all of it once, then the part without LibTorch under the
# address and undefined-behaviour sanitizers, which is built while the first tests run, because most
# of them wait. Needs nothing but a clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--quick | --thorough] [--filter REGEX] [--help]

  --quick          without the sanitizers
  --thorough       also the thread sanitizer, and the linter
  --filter REGEX   only the tests whose name matches, as in ctest -R

The last line says "N passed, M failed" over both runs; a preset that does not build counts as one
failed test. Exit status: 0 when nothing failed, 1 when something did, 2 for a wrong call.
TEXT
}

quick=no thorough=no filter=
while (($#)); do
  case $1 in
    --quick) quick=yes ;;
    --thorough) thorough=yes ;;
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

# The rest is less urgent than tests, which have time limits.
build_in_turn() {
  local preset=$1
  if nice -n 10 bash -c 'source scripts/steps.sh; build_preset "$1"' _ "$preset" >"$logs/$preset-build.log" 2>&1; then return 0; fi
  tail -n 60 "$logs/$preset-build.log"
  failed=$((failed + 1))
  problems+=("$preset: the build failed, see $logs/$preset-build.log")
  return 1
}

# run_tests PRESET [OPTION...]: ctest, into a log. The longest first, also where none ran before.
run_tests() {
  local preset=$1 costs=build/$1/Testing/Temporary/CTestCostData.txt selection=()
  shift
  if [[ ! -e $costs ]]; then
    mkdir -p "$(dirname "$costs")"
    cp tests/costs.txt "$costs"
  fi
  if [[ -n $filter ]]; then selection=(-R "$filter"); fi
  ctest --preset "$preset" -j 4 --output-on-failure --no-tests=error "${selection[@]}" "$@" \
    >"$logs/$preset.log" 2>&1 || true
}

lint() {
  if scripts/lint.sh >"$logs/lint.log" 2>&1; then
    passed=$((passed + 1))
  else
    cat "$logs/lint.log"
    failed=$((failed + 1))
    problems+=("lint: see $logs/lint.log")
  fi
}

heading "set-up"
scripts/setup.sh --tests
# The Optunas that the tests of its protocol speak with.
scripts/setup-optuna.sh 5.0.0 4.5.0

heading "everything: build (preset ci)"
tested=no
if build_in_turn ci; then
  heading "everything: tests (preset ci)"
  run_tests ci &
  tests=$! tested=yes
fi
sanitized=no
if [[ $quick == no ]]; then
  heading "sanitizers, without LibTorch: build (preset asan)"
  if build_in_turn asan; then sanitized=yes; fi
fi
if [[ $tested == yes ]]; then
  wait "$tests" || true
  cat "$logs/ci.log"
  count_results ci "$logs/ci.log"
fi
if [[ $sanitized == yes ]]; then
  heading "sanitizers, without LibTorch: tests (preset asan)"
  run_tests asan
  cat "$logs/asan.log"
  count_results asan "$logs/asan.log"
fi
# Instrumented for threads: what several threads share. Not the programs that end-to-end tests
# start, and nothing with LibTorch, whose own threads are not instrumented.
if [[ $thorough == yes ]]; then
  heading "linter"
  lint
  heading "thread sanitizer: build and tests (preset tsan)"
  if build_in_turn tsan; then
    run_tests tsan -R '^test_|_test$'
    cat "$logs/tsan.log"
    count_results tsan "$logs/tsan.log"
  fi
fi

heading "summary"
if ((${#problems[@]})); then printf '%s\n' "${problems[@]}"; fi
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
