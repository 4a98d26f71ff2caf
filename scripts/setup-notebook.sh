#!/usr/bin/env bash
# Installs what the tests run notebooks with, in .deps/notebook: a virtual environment with the packages of
# scripts/notebook-requirements.txt, which imports torch from .deps/venv. Prints the folder. A second run does nothing.
# usage: scripts/setup-notebook.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

REQUIREMENTS=scripts/notebook-requirements.txt
DIR=.deps/notebook
PINS=("$(sha256sum "$REQUIREMENTS")")

lock_deps notebook
if ! installed_in "$DIR" "${PINS[@]}"; then
  make_venv "$DIR" --require-hashes -r "$REQUIREMENTS"
  # After its own packages, so that these come first. The path is from the folder that holds this file.
  for site in "$DIR"/venv/lib/python3*/site-packages; do
    printf '../../../../../venv/lib/%s/site-packages\n' "$(basename "$(dirname "$site")")" >"$site/torch.pth"
  done
  mark_installed "$DIR" "${PINS[@]}"
fi
printf '%s\n' "$PWD/$DIR"
