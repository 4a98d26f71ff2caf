#!/usr/bin/env bash
# Installs scikit-learn, XGBoost and JAX, with which a test tunes the examples that know nothing of Espalier, in
# .deps/frameworks. Prints the folder. A second run does nothing.
# usage: scripts/setup-frameworks.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

install_venv frameworks alone --no-deps
