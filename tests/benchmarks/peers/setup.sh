#!/usr/bin/env bash
# Makes .deps/peers, the Python environment of the tools that benchmarks are compared with, and
# prints its interpreter. A second run does nothing.
#
# PyTorch is the same 2.11.0 that Espalier is built with: where the LibTorch in use is a whole wheel
# (setup.sh's full set) it is used from there, otherwise the wheel and all it depends on, several
# gigabytes, is installed here. Its CPU set is not enough: the Python half is linked against CUDA's
# libraries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
source scripts/steps.sh
source scripts/libtorch-pins.sh

# numpy 1 and an old setuptools: AdaptDL 0.2.11 (2022) uses what newer ones have removed.
REQUIREMENTS=(adaptdl==0.2.11 'ray[tune]==2.40.0' numpy==1.26.4 scipy==1.11.4 autograd==1.6.2
              pandas==2.2.3 pyarrow==17.0.0 portpicker==1.6.0 redis==5.0.8 requests==2.32.3
              semver==3.0.2 setuptools==66.1.1)
VENV=.deps/peers
PYTHON=$VENV/bin/python
STAMP=$VENV/espalier-peers
WANTED="${REQUIREMENTS[*]} ${LIBTORCH_FULL_SET[*]}"

lock_deps peers

if [[ ! -e $STAMP || $(<"$STAMP") != "$WANTED" ]] || ! "$PYTHON" -c 'import torch' 2>/dev/null; then
  echo "peers: installing ${REQUIREMENTS[*]} into $VENV" >&2
  need_space_in_deps "$VENV"
  libtorch=${ESPALIER_LIBTORCH:-$(echo .deps/venv/lib/python3*/site-packages/torch)}
  if wheel=$(dirname "$(readlink -f "$libtorch")") &&
     PYTHONPATH=$wheel /usr/bin/python3 -c 'import torch; assert torch.__version__.startswith("2.11.0")' 2>/dev/null; then
    own_torch=
  else
    own_torch=1
    echo "peers: installing ${LIBTORCH_FULL_SET[*]} as well (${DEPS_MB[venv-cuda]} MB)" >&2
    need_space_in_deps "$VENV" peers+venv-cuda "The full set of scripts/setup.sh, where a CUDA toolkit is, is used instead."
    REQUIREMENTS+=("${LIBTORCH_FULL_SET[@]}")
  fi
  # All that it needs room for has been asked for by now.
  rm -rf "$VENV"
  /usr/bin/python3 -m venv "$VENV"
  site=$(echo $VENV/lib/python3*/site-packages)
  if [[ -z $own_torch ]]; then echo "$wheel" >"$site/libtorch.pth"; fi
  pip_of "$VENV" install "${REQUIREMENTS[@]}"
  echo "$WANTED" >"$STAMP"
fi
echo "$PWD/$PYTHON"
