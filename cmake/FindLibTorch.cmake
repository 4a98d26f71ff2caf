# Finds LibTorch without asking for a CUDA toolkit, as its own package file would.
#
#   ESPALIER_LIBTORCH  folder that has include/ and lib/ (a libtorch download or a torch wheel);
#                      default: the wheel in .deps/venv that scripts/setup.sh installs. An
#                      environment variable of the same name wins over both
#
# Targets: LibTorch::torch (CPU: torch_cpu, c10). The include directories hold headers of an older
# protobuf: link it PRIVATE, and only where torch is used.

if(NOT "$ENV{ESPALIER_LIBTORCH}" STREQUAL "")
  set(ESPALIER_LIBTORCH "$ENV{ESPALIER_LIBTORCH}" CACHE PATH "LibTorch folder (include/ and lib/)" FORCE)
endif()
if(NOT ESPALIER_LIBTORCH)
  file(GLOB _espalier_wheels "${CMAKE_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/torch")
  if(_espalier_wheels)
    list(GET _espalier_wheels 0 _espalier_wheel)
    set(ESPALIER_LIBTORCH "${_espalier_wheel}" CACHE PATH "LibTorch folder (include/ and lib/)" FORCE)
  endif()
endif()

# What was found belongs to one folder: another one is searched anew.
if(NOT "${ESPALIER_LIBTORCH}" STREQUAL "${ESPALIER_LIBTORCH_SEARCHED}")
  unset(LibTorch_INCLUDE_DIR CACHE)
  unset(LibTorch_CPU_LIBRARY CACHE)
  unset(LibTorch_C10_LIBRARY CACHE)
  set(ESPALIER_LIBTORCH_SEARCHED "${ESPALIER_LIBTORCH}" CACHE INTERNAL "")
endif()

find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
          PATHS "${ESPALIER_LIBTORCH}/include" NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS "${ESPALIER_LIBTORCH}/lib" NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS "${ESPALIER_LIBTORCH}/lib" NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  FAIL_MESSAGE "LibTorch not found in '${ESPALIER_LIBTORCH}': run scripts/setup.sh, or name one with -DESPALIER_LIBTORCH=/path/to/libtorch")

if(LibTorch_FOUND AND NOT TARGET LibTorch::torch)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${LibTorch_C10_LIBRARY}")
  add_library(LibTorch::torch SHARED IMPORTED)
  set_target_properties(LibTorch::torch PROPERTIES
    IMPORTED_LOCATION "${LibTorch_CPU_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES
      "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_LINK_LIBRARIES "LibTorch::c10")
  # A torch source takes 1.3 GB to compile: one at a time on small machines. The helpers of
  # EspalierTargets.cmake put targets that link LibTorch::torch into this pool.
  cmake_host_system_information(RESULT _espalier_memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
  math(EXPR _espalier_torch_jobs "${_espalier_memory_mb} / 6000")
  if(_espalier_torch_jobs LESS 1)
    set(_espalier_torch_jobs 1)
  endif()
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS torch_compile=${_espalier_torch_jobs})
endif()
