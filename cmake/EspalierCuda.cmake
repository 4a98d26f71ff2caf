# Whether Espalier's CUDA part is built, and the target it is built from.
#
#   ESPALIER_CUDA  AUTO (default): where a CUDA toolkit is found and LibTorch has its CUDA part;
#                  ON: fail without; OFF. An environment variable of the same name, of a value like
#                  "off", wins over AUTO
#
# Sets ESPALIER_BUILD_CUDA. Target: LibTorch::cuda, with NCCL. No GPU is needed to build.

set(ESPALIER_CUDA AUTO CACHE STRING "Build the CUDA part: AUTO, ON or OFF")
set_property(CACHE ESPALIER_CUDA PROPERTY STRINGS AUTO ON OFF)

# The stubs that scripts/torch_stubs.py makes for a machine without a toolkit have some 20 kB; what they stand for has more.
set(_espalier_most_of_a_stub 100000)

# The CUDA libraries are in LibTorch's own folder, or in those of the wheels beside it.
function(_espalier_find_cuda_library variable pattern)
  set(${variable} "" PARENT_SCOPE)
  file(GLOB _candidates "${_espalier_torch}/lib/${pattern}" "${_espalier_torch}/../nvidia/*/lib/${pattern}")
  foreach(_candidate IN LISTS _candidates)
    file(SIZE "${_candidate}" _size)
    if(_size GREATER _espalier_most_of_a_stub)
      set(${variable} "${_candidate}" PARENT_SCOPE)
      break()
    endif()
  endforeach()
endfunction()

# Sets _espalier_no_cuda to what is missing.
macro(_espalier_find_cuda)
  # What was found of a toolkit that is no longer there is looked for anew.
  if(CUDAToolkit_NVCC_EXECUTABLE AND NOT EXISTS "${CUDAToolkit_NVCC_EXECUTABLE}")
    get_cmake_property(_espalier_cached CACHE_VARIABLES)
    list(FILTER _espalier_cached INCLUDE REGEX "^(CUDAToolkit|CUDA)_")
    list(REMOVE_ITEM _espalier_cached CUDAToolkit_ROOT)
    foreach(_espalier_name IN LISTS _espalier_cached)
      unset(${_espalier_name} CACHE)
    endforeach()
  endif()
  find_package(CUDAToolkit QUIET)
  # Links would lead away from the folders beside it.
  get_filename_component(_espalier_torch "${LibTorch_CPU_LIBRARY}" REALPATH)
  get_filename_component(_espalier_torch "${_espalier_torch}/../.." ABSOLUTE)
  _espalier_find_cuda_library(_espalier_torch_cuda libtorch_cuda.so)
  _espalier_find_cuda_library(_espalier_c10_cuda libc10_cuda.so)
  _espalier_find_cuda_library(_espalier_cudart "libcudart*.so*")
  _espalier_find_cuda_library(_espalier_nccl "libnccl.so*")
  find_path(_espalier_nccl_include nccl.h
            PATHS "${_espalier_torch}/../nvidia/nccl/include" ${CUDAToolkit_INCLUDE_DIRS}
            NO_DEFAULT_PATH NO_CACHE)
  set(_espalier_nccl_version 0)
  if(_espalier_nccl_include)
    file(STRINGS ${_espalier_nccl_include}/nccl.h _espalier_line REGEX "define NCCL_VERSION_CODE")
    string(REGEX MATCH "[0-9]+$" _espalier_nccl_version "${_espalier_line}")
  endif()
  string(REGEX MATCH "[0-9]+" _espalier_cuda_major "${CUDAToolkit_VERSION}")
  if(NOT CUDAToolkit_FOUND)
    set(_espalier_no_cuda "no CUDA toolkit was found")
  elseif(NOT EXISTS "${CUDAToolkit_NVCC_EXECUTABLE}")
    set(_espalier_no_cuda "the CUDA toolkit has no nvcc")
  elseif(NOT _espalier_torch_cuda OR NOT _espalier_c10_cuda OR NOT _espalier_cudart OR NOT _espalier_nccl)
    set(_espalier_no_cuda "LibTorch in ${_espalier_torch} has no CUDA part (scripts/setup.sh installs one where nvcc is)")
  elseif(NOT _espalier_nccl_include)
    set(_espalier_no_cuda "nccl.h was not found")
  elseif(_espalier_nccl_version LESS 22809)
    set(_espalier_no_cuda "NCCL's version code is ${_espalier_nccl_version}: want 22809 (2.28.9) or newer")
  elseif(NOT _espalier_cudart MATCHES "\\.so\\.${_espalier_cuda_major}$|libcudart-[0-9a-f]+")
    set(_espalier_no_cuda "the toolkit is CUDA ${CUDAToolkit_VERSION}, LibTorch was built with another: ${_espalier_cudart}")
  endif()
endmacro()

set(_espalier_no_cuda "")
if(NOT "$ENV{ESPALIER_CUDA}" STREQUAL "" AND NOT "$ENV{ESPALIER_CUDA}" AND ESPALIER_CUDA STREQUAL "AUTO")
  set(_espalier_no_cuda "ESPALIER_CUDA=$ENV{ESPALIER_CUDA} in the environment")
elseif(ESPALIER_CUDA STREQUAL "AUTO" OR ESPALIER_CUDA)
  _espalier_find_cuda()
else()
  set(_espalier_no_cuda "ESPALIER_CUDA=${ESPALIER_CUDA}")
endif()

if(_espalier_no_cuda AND NOT ESPALIER_CUDA STREQUAL "AUTO" AND ESPALIER_CUDA)
  message(FATAL_ERROR "ESPALIER_CUDA=${ESPALIER_CUDA}, but ${_espalier_no_cuda}")
elseif(_espalier_no_cuda)
  set(ESPALIER_BUILD_CUDA OFF)
  message(STATUS "CUDA part: not built, ${_espalier_no_cuda}")
else()
  set(ESPALIER_BUILD_CUDA ON)
  message(STATUS "CUDA part: built, toolkit ${CUDAToolkit_VERSION}, ${_espalier_nccl}")
  add_library(LibTorch::cuda INTERFACE IMPORTED)
  target_include_directories(LibTorch::cuda INTERFACE ${_espalier_nccl_include} ${CUDAToolkit_INCLUDE_DIRS})
  # Linked though nothing may call it: loading it makes LibTorch know of CUDA.
  target_link_libraries(LibTorch::cuda INTERFACE
    -Wl,--push-state,--no-as-needed ${_espalier_torch_cuda} ${_espalier_c10_cuda} -Wl,--pop-state
    ${_espalier_nccl} ${_espalier_cudart} LibTorch::torch)
endif()
