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

# build_preset PRESET [TARGET...]: configures the preset and builds the targets, or everything.
build_preset() {
  local preset=$1 target targets=()
  shift
  for target in "$@"; do targets+=(--target "$target"); done
  cmake --preset "$preset" || return 1
  cmake --build --preset "$preset" -j "$(build_jobs)" "${targets[@]}"
}

# Nothing else installs into .deps/NAME* until this script ends.
lock_deps() {
  mkdir -p .deps
  exec 9>".deps/$1-lock"
  flock 9
}

# installed_in DIR PIN...: whether mark_installed has said so of just these packages.
installed_in() { [[ $(cat "$1/installed" 2>/dev/null) == "${*:2}" ]]; }
mark_installed() { printf '%s\n' "${*:2}" >"$1/installed"; }

pip_of() { local venv=$1; shift; "$venv/bin/pip" "$@" --quiet --disable-pip-version-check --no-input >&2; }

# make_venv DIR PACKAGE...: a new virtual environment DIR/venv with these packages, in place of DIR.
make_venv() {
  local dir=$1
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
