#!/usr/bin/env bash
# Installs a torch to build a library of the wheel with, in .deps/torch-VERSION: a virtual environment with the torch
# wheel alone and, where its CUDA is 13, what the CUDA part is linked with. About 1.5 GB. Prints the folder of LibTorch. A
# second run does nothing; nor does one for the torch that scripts/setup.sh has installed.
# usage: scripts/setup-torch.sh VERSION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh
source scripts/libtorch-pins.sh

version=${1:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
  stop_with "\"$version\" is no version of torch" "One of: ${WHEEL_TORCHES[*]}"
packages=(--no-deps "torch==$version")
[[ $(printf '%s\n' "$version" "$FIRST_TORCH_OF_CUDA_13" | sort -V | head -n 1) == "$version" ]] ||
  packages+=("${CUDA_PART_SET[@]}")

folder=.deps/venv
# Its CPU set has stubs for what the CUDA part is linked with.
if [[ $(cat "$folder/espalier-libtorch-set" 2>/dev/null) != "full torch==$version "* ]]; then
  folder=.deps/torch-$version
  lock_deps "torch-$version"
  if ! installed_in "$folder" "${packages[@]}"; then
    make_venv "$folder" "${packages[@]}"
    mark_installed "$folder" "${packages[@]}"
  fi
  folder+=/venv
fi
printf '%s\n' "$PWD/$(echo "$folder"/lib/python3*/site-packages/torch)"
