# Run by cmake --install: copies the copyright files of the Debian packages that bin/tuner and lib/*/libespalier_torch.so
# are made of into share/espalier/licenses: of the libraries that they load, but for those that every Linux has or torch
# brings, which no wheel contains, of those that are in them as code of headers, and of those that the pages are made of
# (ESPALIER_WEB_FILES: a file of each). What no package is known for ends
# the installation: a wheel must not be passed on without its licenses.
set(_prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(_headers nlohmann/json.hpp rapidjson/document.h CLI/CLI.hpp eigen3/Eigen/Core gloo/algorithm.h)
file(GLOB _torch_libraries "${_prefix}/lib/*/libespalier_torch.so")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${_prefix}/bin/tuner" LIBRARIES ${_torch_libraries}
     RESOLVED_DEPENDENCIES_VAR _libraries UNRESOLVED_DEPENDENCIES_VAR _missing
     PRE_EXCLUDE_REGEXES "^lib(c|m|stdc\\+\\+|gcc_s|z)\\.so" "^ld-linux" "^lib(torch|c10|cud|nccl|gomp|shm)")
set(_unknown ${_missing})
set(_packages)
list(TRANSFORM _headers PREPEND /usr/include/ OUTPUT_VARIABLE _files)
list(APPEND _files ${ESPALIER_WEB_FILES})
foreach(_library IN LISTS _libraries)
  file(REAL_PATH "${_library}" _file)  # packages list this one, not the links to it
  list(APPEND _files "${_file}")
endforeach()
foreach(_file IN LISTS _files)
  # Where /lib is /usr/lib, a package may list the file below either.
  string(REGEX REPLACE "^/usr/lib" "/lib" _other "${_file}")
  execute_process(COMMAND dpkg -S ${_file} OUTPUT_VARIABLE _owner ERROR_QUIET)
  if(_owner STREQUAL "")
    execute_process(COMMAND dpkg -S ${_other} OUTPUT_VARIABLE _owner ERROR_QUIET)
  endif()
  string(REGEX REPLACE "[:,].*" "" _package "${_owner}")
  if(_package AND EXISTS "/usr/share/doc/${_package}/copyright")
    list(APPEND _packages ${_package})
  else()
    list(APPEND _unknown ${_file})
  endif()
endforeach()
if(_unknown)
  list(JOIN _unknown "\n  " _text)
  message(FATAL_ERROR "no package with a license is known for\n  ${_text}")
endif()
list(REMOVE_DUPLICATES _packages)
file(MAKE_DIRECTORY "${_prefix}/share/espalier/licenses")
foreach(_package IN LISTS _packages)
  file(REAL_PATH /usr/share/doc/${_package}/copyright _copyright)
  file(COPY_FILE "${_copyright}" "${_prefix}/share/espalier/licenses/${_package}" ONLY_IF_DIFFERENT)
endforeach()
