#!/usr/bin/env bash
# Makes .deps/sampler-peers, the Python environment of the samplers that ours are compared with, which finds
# torch where setup.sh has put it, and prints its interpreter. A second run does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
source scripts/steps.sh

DIR=.deps/sampler-peers
PINS=(optuna==5.0.0 cmaes==0.13.1 scipy==1.17.1 numpy==2.4.6 rustuna==0.2.0)

lock_deps sampler-peers
if ! installed_in "$DIR" "${PINS[@]}"; then
  make_venv "$DIR" "${PINS[@]}"
  see_torch "$DIR"
  mark_installed "$DIR" "${PINS[@]}"
fi
printf '%s\n' "$PWD/$DIR/venv/bin/python"
