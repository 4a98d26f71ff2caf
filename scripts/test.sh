#!/usr/bin/env bash
# Builds what the tests need and runs them: by default the standard suite, which tests/suite/table.txt
# describes. Needs nothing but a clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--thorough | --part K | --changed] [--filter REGEX]
                       [--repeat N [--beside-load]] [--ci] [--help]

Without options: the standard suite. Unit tests of what needs no LibTorch run under the address and
undefined-behaviour sanitizers, all else without; the linter reads what changed since the commit that
scripts/linted-commit names.

  --thorough       everything: all cases of all tests, more of them under sanitizers, the thread
                   sanitizer, and every check of the linter
  --part K         part K of what --thorough has and the standard suite has not
  --changed        of the standard suite what has not passed yet with the same programs and files
  --filter REGEX   only the tests whose name matches, as in ctest -R; no linter
  --repeat N       each test N times; how often it failed is added up in tests/suite/repeats.txt
  --beside-load    ... while two processes take all the processor time they get, and (as root) the whole
                   machine all but stands still again and again, for up to 2.5 seconds: 0.95 s
                   at once, with 50 ms between, which the kernel leaves to others
  --ci             also one part of the thorough suite, chosen by the commit's hash, unless 55 minutes
                   have passed by then

Tests for which the machine lacks something are not run, and named; with ESPALIER_REQUIRE=all they have
failed. The last line says "N passed, M failed" over all runs; a preset that does not build counts as one
failed test, and so does the linter. Exit status: 0 when nothing failed, 1 when something did, 2 for a
wrong call.
TEXT
}

wrong_call() {
  printf 'test.sh: %s\n' "$1" >&2
  usage >&2
  exit 2
}

arguments=("$@")
suites=0 repeat=no beside_load=no
while (($#)); do
  case $1 in
    --thorough | --changed) suites=$((suites + 1)) ;;
    --part | --repeat)
      if [[ ! ${2:-} =~ ^[1-9][0-9]{0,3}$ ]]; then wrong_call "$1 \"${2:-}\": want a number from 1 to 9999"; fi
      if [[ $1 == --part ]]; then suites=$((suites + 1)); else repeat=yes; fi
      shift
      ;;
    --filter)
      if (($# < 2)); then wrong_call "--filter: want a regular expression"; fi
      shift
      ;;
    --beside-load) beside_load=yes ;;
    --ci) ;;
    -h | --help) usage; exit 0 ;;
    *) wrong_call "unknown argument \"$1\"" ;;
  esac
  shift
done
if ((suites > 1)); then wrong_call "--thorough, --part and --changed exclude one another"; fi
if [[ $beside_load == yes && $repeat == no ]]; then wrong_call "--beside-load: want --repeat N with it"; fi

heading "set-up"
builds=(ci asan)
if [[ " ${arguments[*]} " =~ " --"(filter|part|changed)" " ]]; then builds=(); fi  # which build some programs of them
need_space_for_tests "${builds[@]}"
scripts/setup.sh --tests
# Too long to build for each run.
if kubernetes=$(scripts/setup-kubernetes.sh --where 2>/dev/null); then
  printf 'tests of the Kubernetes engine: on the real API server in %s\n' "$kubernetes"
else
  printf 'tests of the Kubernetes engine: on their small API server, without kubectl: %s\n' \
    'scripts/setup-kubernetes.sh makes the real ones'
fi
# Of what this script has run so far: user and system time, minutes and seconds each.
ESPALIER_SET_UP_SECONDS=$(times | tail -n 1 | awk -F '[ms ]+' '{ print $1 * 60 + $2 + $3 * 60 + $4 }')
ESPALIER_SECONDS_SPENT=$SECONDS
export ESPALIER_SET_UP_SECONDS ESPALIER_SECONDS_SPENT
exec /usr/bin/python3 -B tests/suite/run.py "${arguments[@]}"
