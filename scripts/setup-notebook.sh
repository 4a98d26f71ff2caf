#!/usr/bin/env bash
# Installs what the tests run notebooks with, in .deps/notebook: a virtual environment with the packages of
# scripts/notebook-requirements.txt, which imports torch from .deps/venv. Prints the folder. A second run does nothing.
# usage: scripts/setup-notebook.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

install_venv notebook with_torch
