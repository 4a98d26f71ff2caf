#!/usr/bin/env bash
# clang-tidy over the sources, by .clang-tidy. Reads many at a time, as unity builds compile them,
# because most of its time goes into headers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

usage() {
  cat <<'TEXT'
usage: scripts/lint.sh [--thorough] [--since FILE] [--filter REGEX] [--help]

Production code that needs no LibTorch, by the checks that are cheap: names, lengths of functions,
what is unused, copies.

  --thorough       every check of .clang-tidy, and also the sources that need LibTorch and the tests'
  --since FILE     only sources that differ, or have a header that does, from those of the commit that
                   the file names; all where the history has no such commit
  --filter REGEX   only sources whose path matches, a unity source's or that of one compiled by itself

Prints each finding once. Exit status: 0 when there is none, 1 when there is one, 2 for a wrong call.
TEXT
}

thorough=no filter=. since=
while (($#)); do
  case $1 in
    --thorough) thorough=yes ;;
    --filter | --since)
      if (($# < 2)); then usage >&2; exit 2; fi
      if [[ $1 == --filter ]]; then filter=$2; else since=$2; fi
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'lint.sh: unknown argument "%s"\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

build=build/lint
mkdir -p build
torch=OFF
if [[ $thorough == yes ]]; then torch=ON; fi
cmake --preset lint -D ESPALIER_TORCH="$torch" >build/lint.log || { cat build/lint.log; stop_with "the preset lint does not configure"; }
# What sources include, and nothing that is compiled.
ninja -C "$build" -t targets all |
  sed -n 's/^\([^/][^:]*\.pb\.h\): CUSTOM_COMMAND$/\1/p' | xargs ninja -C "$build" >>build/lint.log

checks=()
# Whether a parameter is only read takes longer to find out than all else together.
if [[ $thorough == no ]]; then
  checks=("--checks=-*,misc-unused-*,readability-function-size,readability-identifier-naming,performance-*,-performance-inefficient-vector-operation,-performance-no-automatic-move,-performance-unnecessary-value-param")
fi
# Those compiled by themselves that a unity source has as well are read once more.
sources() {
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | grep -v '\.pb\.cc$' | sort -u |
    grep -E -- "$filter" | if [[ $thorough == yes ]]; then cat; else grep -vE "^$PWD/($build/)?tests/"; fi |
    if [[ -n $since ]]; then having_changed; else cat; fi
}

# changed_sources COMMIT: what must be read again, as paths below the root. For a header that is one source that
# includes it: findings in headers are told wherever they are included.
changed_sources() {
  local file source
  { git diff --name-only --diff-filter=d "$1"; git ls-files --others --exclude-standard; } | sort -u |
    while read -r file; do
      case $file in
        *.cc) printf '%s\n' "$file" ;;
        *.h)
          source=${file%.h}.cc
          if [[ ! -e $source ]]; then
            source=$(git grep -lF "#include \"$file\"" -- '*.cc' ':!tests' | head -n 1) || true
          fi
          if [[ -n $source ]]; then printf '%s\n' "$source"; fi
          ;;
      esac
    done | sort -u
}

# Of sources, those that are or include one that has changed.
having_changed() {
  local commit source
  commit=$(cat "$since")
  if ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
    printf 'the history has no commit %s, which %s names: all sources are read\n' "$commit" "$since" >&2
    cat
    return
  fi
  changed_sources "$commit" | sed "s,^,$PWD/," >"$build/changed"
  while read -r source; do
    if grep -qxF "$source" "$build/changed" ||
      sed -n 's/^#include "\(.*\)"$/\1/p' "$source" | grep -qxFf "$build/changed"; then
      printf '%s\n' "$source"
    fi
  done
}

# To a unity source each of ours is a header.
ours='(base|tuner|trial_runner|allocator|search_spaces|adapters|examples|tests)'
# Its release takes the comparisons of rapidjson's iterators for ambiguous, and knows not all of g++'s flags.
sources >build/lint-sources || true
if [[ $filter != . && -z $since && ! -s build/lint-sources ]]; then stop_with "--filter \"$filter\": no source has such a path"; fi
xargs -r -P "$(nproc)" -n 1 -a build/lint-sources -- \
  clang-tidy --quiet -p "$build" "${checks[@]}" --extra-arg=-Wno-unknown-warning-option \
  --extra-arg=-Wno-ambiguous-reversed-operator "--header-filter=^$PWD/$ours/.*" >build/lint-findings.log 2>build/lint-errors.log || true
# Of a header that many sources include, each line once. Of others' headers there are some, too.
findings=$(grep -E "^$PWD/$ours/[^ ]+:[0-9]+:[0-9]+: (error|warning): " build/lint-findings.log | sort -u) || true
if [[ -n $findings ]]; then
  printf '%s\n' "${findings//$PWD\//}"
  printf '%d findings\n' "$(wc -l <<<"$findings")"
  exit 1
fi
if grep -q '^Error' build/lint-errors.log; then cat build/lint-errors.log; exit 1; fi
printf 'no findings in %d sources\n' "$(wc -l <build/lint-sources)"
