# The LibTorch that Espalier is built with, and those that wheels have libraries for, pinned here and nowhere
# else. Sourced by setup.sh, setup-torch.sh and wheel.sh.
#
# LibTorch comes as the torch wheel: headers, libraries, cxx11 ABI. The CPU set is the wheel, the two
# CUDA libraries that its libtorch_cpu is linked against, and what `import torch` asks of Python; the
# other CUDA libraries that it loads are stubs there, which torch_stubs.py makes. The full set is the
# wheel with everything it depends on, which is what a build with a CUDA toolkit needs.
# NumPy 1 has no release for Python 3.13 and later.
NUMPY=numpy==1.26.4
if /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then NUMPY=numpy==2.3.5; fi
LIBTORCH_CPU_SET=(--no-deps torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
                  "$NUMPY" typing-extensions==4.16.0 filelock==4.2.12 sympy==1.14.0 mpmath==1.3.0
                  networkx==3.6.1 jinja2==3.1.6 markupsafe==3.0.4 fsspec==2026.9.0)
LIBTORCH_FULL_SET=(torch==2.11.0 "$NUMPY")

# One library a minor release, whose C++ interface is its own. It is built with the first of it, and so needs nothing that
# came later. The extras of pyproject.toml name the range.
WHEEL_TORCHES=(2.10.0 2.11.0 2.12.0 2.13.0 2.14.0 2.15.0)
# What the CUDA part is built with, the oldest of CUDA 13 that any of these torches asks for; 2.10 has CUDA 12, for which
# there is none.
CUDA_PART_SET=(nvidia-cuda-runtime==13.0.96 nvidia-nccl-cu13==2.28.9)
FIRST_TORCH_OF_CUDA_13=2.11
