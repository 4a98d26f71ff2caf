#!/usr/bin/env bash
# Installs scikit-learn, XGBoost and JAX, with which a test tunes the examples that know nothing of Espalier, in
# .deps/frameworks. Prints the folder. A second run does nothing.
# usage: scripts/setup-frameworks.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

REQUIREMENTS=scripts/frameworks-requirements.txt
DIR=.deps/frameworks
PINS=("$(sha256sum "$REQUIREMENTS")")

lock_deps frameworks
if ! installed_in "$DIR" "${PINS[@]}"; then
  make_venv "$DIR" --no-deps --require-hashes -r "$REQUIREMENTS"
  mark_installed "$DIR" "${PINS[@]}"
fi
printf '%s\n' "$PWD/$DIR"
