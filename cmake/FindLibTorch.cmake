# Finds LibTorch without asking for a CUDA toolkit, as its own package file would.
#
#   ESPALIER_LIBTORCH  folder that has include/ and lib/ (a libtorch download or a torch wheel);
#                      default: the wheel in .deps/venv that scripts/setup.sh installs. An
#                      environment variable of the same name wins over both
#
# Installed with the CMake package, for programs that find_package(Espalier).
#
# Sets LibTorch_VERSION. Targets: LibTorch::torch (CPU: torch_cpu, c10). The include directories hold
# headers of an older protobuf: link it only where torch is used.

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

foreach(_espalier_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  set(_espalier_header "${LibTorch_INCLUDE_DIR}/${_espalier_header}")
  if(NOT LibTorch_VERSION AND EXISTS "${_espalier_header}")
    file(READ "${_espalier_header}" _espalier_header)
    if(_espalier_header MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)")
      set(LibTorch_VERSION "${CMAKE_MATCH_1}")
    endif()
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  FAIL_MESSAGE "LibTorch not found in '${ESPALIER_LIBTORCH}': name one with -DESPALIER_LIBTORCH=/path/to/libtorch (in a checkout of Espalier, scripts/setup.sh installs one)")

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
endif()
