#!/usr/bin/env bash
# Installs what building and running Espalier needs and this machine lacks: Debian packages, and
# LibTorch in .deps/venv. Asks nothing; does nothing when all is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

PACKAGES=(
  # compiler and build
  build-essential cmake ninja-build ccache mold pkg-config git ca-certificates
  # libraries
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  nlohmann-json3-dev rapidjson-dev libcpp-httplib-dev libsqlite3-dev libspdlog-dev libcli11-dev libyaml-cpp-dev
  libeigen3-dev
  prometheus-cpp-dev libgloo-dev libgtest-dev libgmock-dev zlib1g-dev libssl-dev libre2-dev
  libnghttp2-dev
  # LibTorch's virtual environment, scripts and tests
  python3 python3-venv sqlite3 curl
  # the pages for browsers: what bundles and compresses them, and the libraries in them
  esbuild brotli node-react node-react-dom node-scheduler node-d3-array node-d3-axis node-d3-color node-d3-dispatch
  node-d3-drag node-d3-ease node-d3-format node-d3-interpolate node-d3-scale node-d3-selection node-d3-time
  node-d3-time-format node-d3-timer node-d3-transition node-d3-zoom
  # the images of examples/fashion_mnist
  dataset-fashion-mnist
)
# Only tests need them: a browser for pages, and the compiler that holds ours to their types; the linter; networks
# between hosts, with faults; a batch system; a reader of manifests.
TEST_PACKAGES=(chromium chromium-driver node-typescript clang-tidy iproute2 nftables slurmctld slurmd slurm-client munge
               slurm-wlm-basic-plugins python3-yaml)
VENV=.deps/venv
STAMP=$VENV/espalier-libtorch-set

usage() {
  cat <<'TEXT'
usage: scripts/setup.sh [--tests] [--help]

Installs the missing Debian packages (as root, or with sudo) and LibTorch in .deps/venv of this
checkout: the CPU set, or the full set where a CUDA toolkit is found. A second run does nothing.

  --tests                   also what only the tests need
  ESPALIER_LIBTORCH=/path   use this LibTorch (the folder with include/ and lib/), download none
  ESPALIER_CUDA=off         the CPU set even where a CUDA toolkit is found
TEXT
}

say() { printf 'setup: %s\n' "$*"; }

missing_packages() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${PACKAGES[@]}" 2>/dev/null |
    awk -v wanted="${PACKAGES[*]}" '
      $1 == "installed" { have[$2] = 1 }
      END { n = split(wanted, w, " "); for (i = 1; i <= n; ++i) if (!(w[i] in have)) print w[i] }' ||
    true
}

# apt-get as root. sudo clears the environment, so what apt needs of it is handed over by name.
apt() {
  local run=(env DEBIAN_FRONTEND=noninteractive)
  local name
  for name in http_proxy https_proxy no_proxy; do
    if [[ -n ${!name:-} ]]; then run+=("$name=${!name}"); fi
  done
  if ((EUID != 0)); then
    run=(sudo "${run[@]}")
  fi
  "${run[@]}" apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    stop_with "this system has no apt-get; setup.sh installs Debian packages" \
        "Install what these Debian packages hold by your system's own means, then build with cmake:" \
        "${PACKAGES[*]}"
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "Debian packages: all ${#PACKAGES[@]} are there"
    return
  fi
  local by_hand="apt-get install --no-install-recommends ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    stop_with "Debian packages are missing, and installing them needs root; there is no sudo here" \
        "Run this script as root, or have somebody run: $by_hand"
  fi
  # Without a terminal sudo must not wait for a password that nobody can type.
  if ((EUID != 0)) && [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; then
    stop_with "Debian packages are missing, and sudo here wants a password but there is no terminal" \
        "Run this script in a terminal or as root, or have somebody run: $by_hand"
  fi
  say "Debian packages: installing ${missing[*]}"
  with_retries apt update ||
    stop_with "apt-get update failed" "Check the network and /etc/apt/sources.list, then run this again."
  need_space_for_packages apt "${missing[@]}"
  with_retries apt install --no-install-recommends "${missing[@]}" ||
    stop_with "apt-get could not install the missing packages" \
        "The lines above say why. To see it by hand, as root: $by_hand"
}

# The part of a LibTorch that the build looks for.
is_libtorch() { [[ -e $1/lib/libtorch_cpu.so && -e $1/include/torch/csrc/api/include/torch/torch.h ]]; }

check_named_libtorch() {
  is_libtorch "$ESPALIER_LIBTORCH" ||
    stop_with "ESPALIER_LIBTORCH=$ESPALIER_LIBTORCH is not a LibTorch" \
        "It must hold lib/libtorch_cpu.so and include/torch/csrc/api/include/torch/torch.h." \
        "Name such a folder, or unset ESPALIER_LIBTORCH to have one downloaded."
  say "LibTorch: using $ESPALIER_LIBTORCH, as ESPALIER_LIBTORCH says"
}

# The stamp is written last. So an environment without one is the rest of an interrupted install.
install_libtorch() {
  local name=cpu requirements=("${LIBTORCH_CPU_SET[@]}") row=venv why="" nvcc saves=()
  if nvcc=$(cuda_toolkit); then
    name=full requirements=("${LIBTORCH_FULL_SET[@]}") row=venv-cuda
    why=", for the CUDA toolkit of $nvcc; ESPALIER_CUDA=off avoids it"
    saves=("ESPALIER_CUDA=off installs the set without CUDA instead, of ${DEPS_MB[venv]} MB.")
  fi
  local wanted="$name ${requirements[*]}" full="full ${LIBTORCH_FULL_SET[*]}"
  local cpu="cpu ${LIBTORCH_CPU_SET[*]}" have=nothing
  if is_libtorch "$(echo $VENV/lib/python3*/site-packages/torch)" && [[ -e $STAMP ]]; then
    have=$(<"$STAMP")
  fi
  # The full set serves a CPU build as well.
  if [[ $have == "$wanted" || $have == "$full" ]]; then
    say "LibTorch: ${have%% *} set is there (${have#* })"
    return
  fi
  say "LibTorch: installing the $name set into $VENV (about ${DEPS_MB[$row]} MB on disk$why)"
  need_space_in_deps $VENV "$row" "${saves[@]}" "ESPALIER_LIBTORCH=/path/to/libtorch uses one that you have."
  if [[ $have != "$cpu" && -e $VENV ]]; then
    say "LibTorch: $VENV is of another version, or its install was interrupted; starting afresh"
    rm -rf "$VENV"
  fi
  if [[ ! -e $VENV ]]; then
    # Debian's own Python, not one that happens to come first on the path.
    /usr/bin/python3 -m venv "$VENV" || stop_with "python3 -m venv $VENV failed" "Is python3-venv installed?"
  fi
  rm -f "$STAMP"
  if [[ $have == "$cpu" ]]; then
    "$VENV/bin/python3" scripts/torch_stubs.py --remove "$(echo $VENV/lib/python3*/site-packages)"
  fi
  UNPACKED=$PWD/.deps/libtorch-unpacked
  with_retries pip_of "$VENV" install "${requirements[@]}" ||
    stop_with "pip could not install LibTorch (${requirements[*]})" \
        "Check the network, then run this again." \
        "Or name a LibTorch that you have: ESPALIER_LIBTORCH=/path/to/libtorch"
  is_libtorch "$(echo $VENV/lib/python3*/site-packages/torch)" ||
    stop_with "pip installed torch, but $VENV/lib/python3*/site-packages/torch is no whole LibTorch" \
        "Remove .deps and run this again."
  if [[ $name == cpu ]]; then
    "$VENV/bin/python3" scripts/torch_stubs.py "$(echo $VENV/lib/python3*/site-packages)" ||
      say "without stubs for the CUDA libraries that are not here, Python cannot import this torch"
  fi
  printf '%s\n' "$wanted" >"$STAMP"
}

case "${1:-}" in
  "") ;;
  --tests) PACKAGES+=("${TEST_PACKAGES[@]}") ;;
  -h | --help) usage; exit 0 ;;
  *) printf 'setup: error: unknown argument "%s"\n' "$1" >&2; usage >&2; exit 2 ;;
esac

install_packages
if [[ -n ${ESPALIER_LIBTORCH:-} ]]; then
  check_named_libtorch
else
  mkdir -p .deps
  # Two set-ups at once in one checkout would undo each other.
  exec 9>.deps/lock
  flock -n 9 || { say "waiting for another setup.sh in this checkout"; flock 9; }
  source scripts/libtorch-pins.sh  # which ask Debian's Python, one of the packages, for its version
  install_libtorch
fi
say "done in $SECONDS s"
