#!/usr/bin/env bash
# Installs the Optuna that tests and benchmarks speak with, in .deps/optuna-VERSION: a virtual
# environment and, for Optuna's own storage tests, its source distribution. Prints each folder. A
# second run does nothing.
# usage: scripts/setup-optuna.sh [VERSION...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# set_up VERSION
set_up() {
  local version=$1 dir=.deps/optuna-$1 pins
  case $version in
    5.0.0) pins=(grpcio==1.85.1 protobuf==7.36.2 optuna-dashboard==0.21.0 selenium==4.51.0) ;;
    4.5.0) pins=(grpcio==1.74.0 "protobuf>=6.31,<7") ;;
    *) printf 'setup-optuna.sh: no pins for Optuna %s; there are 5.0.0 and 4.5.0\n' "$version" >&2; exit 2 ;;
  esac
  if [[ $(cat "$dir/installed" 2>/dev/null) != "${pins[*]}" ]]; then
    rm -rf "$dir"
    /usr/bin/python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check --no-input "optuna==$version" \
      "${pins[@]}" pytest pytest-timeout fakeredis scipy pandas plotly cmaes setuptools >&2
    # The tests are in the source distribution, not in the wheel.
    "$dir/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
      --dest "$dir" "optuna==$version" >&2
    tar -xzf "$dir/optuna-$version.tar.gz" -C "$dir"
    printf '%s\n' "${pins[*]}" >"$dir/installed"
  fi
  printf '%s\n' "$PWD/$dir"
}

mkdir -p .deps
exec 9>.deps/optuna-lock
flock 9
if (($# == 0)); then set -- 5.0.0; fi
for version in "$@"; do set_up "$version"; done
