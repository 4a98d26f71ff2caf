#!/usr/bin/env bash
# Builds everything and runs every test once: those that need no LibTorch under the address and
# undefined-behaviour sanitizers, the others beside them, and the linter. What comes next is built
# while tests run, because most of them wait. Needs nothing but a clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--quick | --thorough] [--filter REGEX] [--help]

  --quick          every test once, without sanitizers and linter
  --thorough       also every test without sanitizers, the thread sanitizer, and every check of the
                   linter
  --filter REGEX   only the tests whose name matches, as in ctest -R

The last line says "N passed, M failed" over all runs; a preset that does not build counts as one
failed test, and so does the linter. Exit status: 0 when nothing failed, 1 when something did, 2 for
a wrong call.
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

# Whether the preset has a test that is asked for.
wanted() {
  if [[ -z $filter ]]; then return 0; fi
  cmake --preset "$1" >"$logs/$1-build.log" 2>&1 || return 0  # to be reported by the build
  ctest --preset "$1" -N -R "$filter" | grep -q '^Total Tests: [1-9]'
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

# run_tests PRESET: ctest, into a log. The longest first, also where none ran before.
run_tests() {
  local preset=$1 costs=build/$1/Testing/Temporary/CTestCostData.txt selection=()
  if [[ ! -e $costs ]]; then
    mkdir -p "$(dirname "$costs")"
    cp tests/costs.txt "$costs"
  fi
  if [[ -n $filter ]]; then selection=(-R "$filter"); fi
  ctest --preset "$preset" -j 3 --output-on-failure --no-tests=error "${selection[@]}" \
    >"$logs/$preset.log" 2>&1 || true
}

# report PRESET: what its tests said, and how many passed.
report() {
  cat "$logs/$1.log"
  count_results "$1" "$logs/$1.log"
}

# Takes what time the tests leave.
run_lint() {
  local options=()
  if [[ $thorough == yes ]]; then options=(--thorough); fi
  nice -n 19 scripts/lint.sh "${options[@]}" >"$logs/lint.log" 2>&1
}

# wait_for_lint PROCESS: what it said.
wait_for_lint() {
  if wait "$1"; then
    passed=$((passed + 1))
  else
    cat "$logs/lint.log"
    failed=$((failed + 1))
    problems+=("lint: see $logs/lint.log")
  fi
}

# What only tests need: the Optunas that the tests of its protocol speak with, AdaptDL's own tests, the
# libraries with integrations of ours, Ray, what makes wheels, Jupyter and what notebooks and terminals
# show by.
install_for_tests() {
  scripts/setup-optuna.sh 5.0.0 4.5.0 && scripts/setup-adaptdl.sh &&
    if [[ -x .deps/venv/bin/python3 ]]; then scripts/setup-integrations.sh && scripts/setup-ray.sh; fi &&
    scripts/setup-wheel.sh && scripts/setup-notebook.sh
}

# Ends the script if that has failed: most tests would fail for want of it.
wait_for_tests_set_up() {
  if [[ -z $set_up ]]; then return 0; fi
  if wait "$set_up"; then set_up=; return 0; fi
  cat "$logs/set-up.log"
  printf 'what the tests need could not be installed\n0 passed, 1 failed\n'
  exit 1
}

heading "set-up"
scripts/setup.sh --tests
# Mostly downloads, for which the compiler need not wait.
install_for_tests >"$logs/set-up.log" 2>&1 &
set_up=$!
# Too long to build for each run.
if kubernetes=$(scripts/setup-kubernetes.sh --where 2>/dev/null); then
  printf 'tests of the Kubernetes engine: on the real API server in %s\n' "$kubernetes"
else
  printf 'tests of the Kubernetes engine: on their small API server, without kubectl: %s\n' \
    'scripts/setup-kubernetes.sh makes the real ones'
fi

if [[ $quick == yes || $thorough == yes ]]; then
  heading "everything: build and tests (preset ci)"
  wait_for_tests_set_up  # which tests there are is seen where the preset is configured
  if wanted ci && build_in_turn ci; then run_tests ci; report ci; fi
fi
if [[ $quick == no ]]; then
  heading "sanitizers, without LibTorch: build (preset asan)"
  tests=
  if wanted asan && build_in_turn asan; then
    wait_for_tests_set_up
    heading "sanitizers, without LibTorch: tests (preset asan)"
    run_tests asan &
    tests=$!
  fi
  wait_for_tests_set_up  # as above, for the preset torch
  heading "with LibTorch: build (preset torch)"
  torch=no
  if wanted torch && build_in_turn torch; then torch=yes; fi
  lint=
  if [[ -z $filter ]]; then
    run_lint &
    lint=$!
  fi
  if [[ -n $tests ]]; then
    wait "$tests" || true
    report asan
  fi
  if [[ $torch == yes ]]; then
    heading "with LibTorch: tests (preset torch)"
    run_tests torch
    report torch
  fi
  if [[ -n $lint ]]; then
    heading "linter"
    wait_for_lint "$lint"
  fi
fi
# Instrumented for threads: what several threads share. Not the programs that end-to-end tests
# start (the preset names the tests by their label), nothing with LibTorch, whose own threads are not
# instrumented, and nothing with Debian's protobuf, whose messages have another layout then.
if [[ $thorough == yes ]]; then
  heading "thread sanitizer: build and tests (preset tsan)"
  if wanted tsan && build_in_turn tsan; then
    run_tests tsan
    report tsan
  fi
fi

heading "summary"
if ((passed + failed == 0)); then
  failed=1
  problems+=("--filter \"$filter\": no test has such a name")
fi
if ((${#problems[@]})); then printf '%s\n' "${problems[@]}"; fi
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
