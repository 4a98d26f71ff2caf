# The LibTorch that Espalier is built with, pinned here and nowhere else. Sourced by setup.sh.
#
# LibTorch comes as the torch wheel: headers, libraries, cxx11 ABI. The CPU set is the wheel and the
# two CUDA libraries that its libtorch_cpu is linked against; the full set is the wheel with
# everything it depends on, which is what a build with a CUDA toolkit needs.
LIBTORCH_CPU_SET=(--no-deps torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
LIBTORCH_FULL_SET=(torch==2.11.0)
