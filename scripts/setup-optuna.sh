#!/usr/bin/env bash
# Installs the Optuna that tests and benchmarks speak with, in .deps/optuna-VERSION: a virtual
# environment and, for Optuna's own storage tests, its source distribution. Prints each folder. A
# second run does nothing.
# usage: scripts/setup-optuna.sh [VERSION...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# set_up VERSION
set_up() {
  local version=$1 dir=.deps/optuna-$1 pins
  case $version in
    5.0.0) pins=(grpcio==1.85.1 protobuf==7.36.2 optuna-dashboard==0.21.0 selenium==4.51.0) ;;
    4.5.0) pins=(grpcio==1.74.0 "protobuf>=6.31,<7") ;;
    *) printf 'setup-optuna.sh: no pins for Optuna %s; there are 5.0.0 and 4.5.0\n' "$version" >&2; exit 2 ;;
  esac
  if ! installed_in "$dir" "${pins[@]}"; then
    make_venv "$dir" "optuna==$version" "${pins[@]}" pytest pytest-timeout fakeredis scipy pandas plotly \
      cmaes setuptools
    # The tests are in the source distribution, not in the wheel.
    pip_of "$dir/venv" download --no-deps --no-binary :all: --dest "$dir" "optuna==$version"
    tar -xzf "$dir/optuna-$version.tar.gz" -C "$dir"
    mark_installed "$dir" "${pins[@]}"
  fi
  printf '%s\n' "$PWD/$dir"
}

lock_deps optuna
if (($# == 0)); then set -- 5.0.0; fi
for version in "$@"; do set_up "$version"; done
