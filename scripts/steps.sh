# What the scripts beside this one share: headings with the time, building a preset, Python packages in
# .deps, stopping with a message. Sourced; the caller is in the root of the checkout.

heading() { printf '\n==== [%4d s] %s\n' "$SECONDS" "$*"; }

stop_with() {
  printf '%s: error: %s\n' "$(basename "$0")" "$1" >&2
  shift
  if (($#)); then printf '  %s\n' "$@" >&2; fi
  exit 1
}

# As many compilers as there are processors, and as fit into memory at 1.5 GB each.
build_jobs() {
  local jobs fit
  jobs=$(nproc)
  fit=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)
  if ((fit < jobs)); then jobs=$fit; fi
  if ((jobs < 1)); then jobs=1; fi
  echo "$jobs"
}

# Millions of bytes, as all sizes here: what a preset's build takes when all of it is there; what a folder of .deps takes,
# by its name without a version (venv: without CUDA); how much of that pip holds meanwhile as what it has downloaded.
declare -A BUILD_MB=([ci]=1300 [asan]=4600 [release]=600 [fuzz]=500 [wheel]=700)
declare -A DEPS_MB=([venv]=1500 [venv-cuda]=5000 [adaptdl]=45 [browser]=75 [frameworks]=740 [integrations]=240 [launchers]=80
  [nni]=660 [notebook]=310 [optuna]=580 [peers]=620 [ray]=330 [release]=60 [sampler-peers]=400 [torch]=1900 [wheel]=40)
DOWNLOADED_PERCENT=60

# size_mb PATH: what is there already, behind a link too. Never fails: what cannot be read, or vanishes, is not counted.
size_mb() { { du -D -s -B 1000000 "$1" 2>/dev/null || true; } | awk '{ mb = $1 } END { print mb + 0 }'; }

# existing PATH: the nearest folder above it that there is.
existing() {
  local folder=$1
  until [[ -d $folder ]]; do folder=$(dirname "$folder"); done
  printf '%s\n' "$folder"
}

# on_one_disk PATH PATH: whether both are, or would be, in one file system.
on_one_disk() { [[ $(stat -L -c %d "$(existing "$1")") == $(stat -L -c %d "$(existing "$2")") ]]; }

free_mb() { df -B 1000000 --output=avail "$(existing "$1")" | tail -n 1 | tr -d ' '; }

# need_space WHAT FOLDER MB [ADVICE...]: ends the script where FOLDER, which need not be there yet, has no room for that
# much, before any of it is written. A file system that compresses, or counts no blocks, makes it ask for too much: hence the
# variable.
need_space() {
  local what=$1 folder=$2 mb=$3 free
  if [[ ${ESPALIER_ANY_SPACE:-} == 1 ]]; then return; fi
  free=$(free_mb "$folder")
  ((mb <= free)) || stop_with "$what needs $mb MB in $folder, and $free MB are free there" "${@:4}" \
    "Make room there, then run this again." "ESPALIER_ANY_SPACE=1 goes on with what is free."
}

# need_space_in_deps DIR [NAME [ADVICE...]]: as need_space, of a folder of .deps that is to be made, in place of what is there
# now; NAME is its row, where that is not its own name, or rows with "+" between them. Of a link only the link is removed.
need_space_in_deps() {
  local dir=$1 rows row mb=0 there=0
  rows=$(basename "$dir")
  rows=${2:-${rows%%-[0-9]*}}
  for row in ${rows//+/ }; do mb=$((mb + DEPS_MB[$row])); done
  if [[ ! -L $dir ]]; then there=$(size_mb "$dir"); fi
  need_space "$dir" .deps $((mb * (100 + DOWNLOADED_PERCENT) / 100 - there)) "${@:3}"
}

# Where a build has a CUDA part, the compiler that it is built by.
cuda_toolkit() {
  if [[ ${ESPALIER_CUDA:-} == off ]]; then return 1; fi
  command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null
}

# whole_in_deps ROW FOLDER: whether that folder has what is written into it last, when all else is there.
whole_in_deps() {
  case $1 in
    venv) [[ -e $2/espalier-libtorch-set ]] ;;
    venv-cuda) [[ $(cat "$2/espalier-libtorch-set" 2>/dev/null) == "full "* ]] ;;
    *) [[ -e $2/installed ]] ;;
  esac
}

# missing_in_deps ROW [COUNT]: what is not there yet of so many folders of .deps of that kind. Whole ones lack nothing, whatever
# their size.
missing_in_deps() {
  local name=${1%-cuda} left=$((DEPS_MB[$1] * ${2:-1})) folder
  for folder in ".deps/$name" ".deps/$name"-[0-9]*; do
    if whole_in_deps "$1" "$folder"; then left=$((left - DEPS_MB[$1])); else left=$((left - $(size_mb "$folder"))); fi
  done
  echo $((left > 0 ? left : 0))
}

# missing_in_build PRESET: what is not there yet of its build. One without a row is not counted.
missing_in_build() {
  local left=$((${BUILD_MB[$1]:-0} - $(size_mb "build/$1")))
  echo $((left > 0 ? left : 0))
}

# need_space_for_tests [BUILD...]: as need_space, of all that setup.sh and install_for_tests are to put into .deps yet, and
# of these builds.
need_space_for_tests() {
  local deps=0 builds=0 row build disk=$PWD saves=()
  for row in adaptdl browser frameworks nni notebook wheel; do deps=$((deps + $(missing_in_deps "$row"))); done
  deps=$((deps + $(missing_in_deps optuna 2)))
  if [[ -z ${ESPALIER_LIBTORCH:-} ]]; then
    for row in integrations launchers ray; do deps=$((deps + $(missing_in_deps "$row"))); done
    row=venv
    if cuda_toolkit >/dev/null; then
      row=venv-cuda
      saves=("ESPALIER_CUDA=off needs $((DEPS_MB[venv-cuda] - DEPS_MB[venv])) MB less.")
    fi
    deps=$((deps + $(missing_in_deps "$row")))
  fi
  for build in "$@"; do
    if on_one_disk "build/$build" build; then
      builds=$((builds + $(missing_in_build "$build")))
    else
      need_space_for_build "$build"
    fi
  done
  if on_one_disk .deps build; then
    if ! on_one_disk .deps .; then disk=$(readlink -f .deps); fi
    need_space "what tests are built and run with" "$disk" $((deps + builds)) "${saves[@]}"
  else
    need_space "what tests run with" .deps "$deps" "${saves[@]}"
    need_space "what tests are built with" build "$builds"
  fi
}

need_space_for_build() {
  need_space "a build of $1" "build/$1" "$(missing_in_build "$1")" "rm -r build/NAME gives back another build."
}

# need_space_for_packages APT_GET PACKAGE...: as need_space, of what apt-get, called like that, would download and unpack. It
# says so and does nothing for --print-uris, even with the -y that --assume-no gives way to.
need_space_for_packages() {
  local told mb
  told=$(LC_ALL=C "$1" install --print-uris --no-install-recommends "${@:2}" 2>/dev/null || true)
  mb=$(awk '
    function mb(size, unit) {
      gsub(",", "", size)
      return size * (unit == "GB" ? 1000 : unit == "MB" ? 1 : unit == "kB" ? 0.001 : 0)
    }
    /^Need to get / { split($0, words, /[ \/]/); sum += mb(words[4], words[5]) }
    /^After this operation, .* additional disk space/ { sum += mb($4, $5) }
    END { print int(sum + 0.999) }' <<<"$told")
  need_space "${*:2}" /usr "$mb"
}

# with_retries COMMAND...: networks fail for a moment: a few tries, with a growing pause in between. What has found the disk
# full is not tried again, since that lasts.
NETWORK_TRIES=3
with_retries() {
  local try file said status
  for ((try = 1; try <= NETWORK_TRIES; ++try)); do
    file=$(mktemp -p /dev/shm 2>/dev/null || mktemp)
    status=0
    shown_from "$file" "$@" || status=$?
    said=$(<"$file")
    rm -f "$file"
    if ((status == 0)); then return 0; fi
    case ${said,,} in
      *"no space left on device"* | *"quota exceeded"* | *"enough free space"*)
        stop_with "the disk is full, as said above: $(free_mb .) MB are free in $PWD, $(free_mb /usr) MB in /usr" \
          "Make room there, then run this again." ;;
    esac
    if ((try < NETWORK_TRIES)); then
      printf 'failed (try %d of %d), trying again in %d s: %s\n' "$try" "$NETWORK_TRIES" $((try * 5)) "$*"
      sleep $((try * 5))
    fi
  done
  return 1
}

# shown_from FILE COMMAND...: what the command says as errors stands in FILE, and is shown as it comes. A pipe would be waited
# for as long as a daemon that the command starts keeps it open: hence the file, in memory where there is such a folder, since
# the disk may be full. The first of the two in the background is there for its end alone, at which the other one shows the
# rest; both end with the script, too.
shown_from() {
  local file=$1 status=0 runs shows
  tail -s 0.1 -f --pid=$$ /dev/null &
  runs=$!
  tail -s 0.1 -f -n +1 --pid=$runs "$file" >&2 &
  shows=$!
  "${@:2}" 2>"$file" || status=$?
  kill "$runs"
  wait "$runs" "$shows" 2>/dev/null || true
  if [[ -s $file && -n $(tail -c 1 "$file") ]]; then echo >&2; fi
  return $status
}

# build_preset PRESET [TARGET...]: configures the preset and builds the targets, or everything.
build_preset() {
  local preset=$1 target targets=()
  shift
  need_space_for_build "$preset"
  for target in "$@"; do targets+=(--target "$target"); done
  cmake --preset "$preset" || return 1
  cmake --build --preset "$preset" -j "$(build_jobs)" "${targets[@]}"
}

# Nothing else installs into .deps/NAME* until this script ends.
lock_deps() {
  mkdir -p .deps
  exec 9>".deps/$1-lock"
  flock 9
  UNPACKED=$PWD/.deps/$1-unpacked
}

# installed_in DIR PIN...: whether mark_installed has said so of just these packages.
installed_in() { [[ $(cat "$1/installed" 2>/dev/null) == "${*:2}" ]]; }
mark_installed() { printf '%s\n' "${*:2}" >"$1/installed"; }

# pip_of VENV ARGUMENT...: what pip downloads it unpacks beside what it installs, so that one file system has to have room,
# and keeps nowhere: a cache would have it all once more. What one that was killed has left is removed by the next.
pip_of() {
  local venv=$1 status=0
  shift
  rm -rf "$UNPACKED"
  mkdir -p "$UNPACKED"
  TMPDIR=$UNPACKED "$venv/bin/pip" "$@" --quiet --disable-pip-version-check --no-input --no-cache-dir >&2 || status=$?
  rm -rf "$UNPACKED"
  return $status
}

# make_venv DIR PACKAGE...: a new virtual environment DIR/venv with these packages, in place of DIR.
make_venv() {
  local dir=$1
  need_space_in_deps "$dir"
  rm -rf "$dir"
  /usr/bin/python3 -m venv "$dir/venv"
  pip_of "$dir/venv" install "${@:2}"
}

# install_pinned NAME FILE COMMAND...: .deps/NAME, made by a command that installs what FILE pins, unless it was made
# with just this file. Prints the folder.
install_pinned() {
  local dir=.deps/$1 sums
  lock_deps "$1"
  sums=$(sha256sum <"$2")
  if ! installed_in "$dir" "$sums"; then
    "${@:3}"
    mark_installed "$dir" "$sums"
  fi
  printf '%s\n' "$PWD/$dir"
}

# see_torch DIR [FOLDER...]: DIR/venv also imports what .deps/venv has, with torch, and what is in folders of .deps. Its
# own packages come first.
see_torch() {
  local site folder
  for site in "$1"/venv/lib/python3*/site-packages; do  # to which paths in its file are relative
    { for folder in "${@:2}"; do printf '../../../../../%s\n' "$folder"; done
      printf '../../../../../venv/lib/%s/site-packages\n' "$(basename "$(dirname "$site")")"; } >"$site/torch.pth"
  done
}

# install_venv NAME alone|with_torch [OPTION...]: as install_pinned, a virtual environment in .deps/NAME with what
# scripts/NAME-requirements.txt pins, by pip with these options; with the torch of .deps/venv where that is said.
install_venv() { install_pinned "$1" "scripts/$1-requirements.txt" fill_venv "$@"; }
fill_venv() {
  make_venv ".deps/$1" --require-hashes -r "scripts/$1-requirements.txt" "${@:3}"
  if [[ $2 == with_torch ]]; then see_torch ".deps/$1"; fi
}

# What only tests need: the Optunas that the tests of its protocol speak with, AdaptDL's own tests, the libraries with
# integrations of ours, DeepSpeed, Ray, NNI, what makes wheels, Jupyter and what notebooks and terminals show by, what
# drives a browser, and what examples are written with.
install_for_tests() {
  scripts/setup-optuna.sh 5.0.0 4.5.0 && scripts/setup-nni.sh && scripts/setup-adaptdl.sh &&
    if [[ -x .deps/venv/bin/python3 ]]; then scripts/setup-launchers.sh && scripts/setup-ray.sh; fi &&
    scripts/setup-wheel.sh && scripts/setup-notebook.sh && scripts/setup-browser.sh && scripts/setup-frameworks.sh
}
