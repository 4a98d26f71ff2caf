# Run by cmake --install: copies the copyright files of the Debian packages whose libraries bin/tuner
# uses, into share/espalier/licenses; but for those that every Linux has, which no wheel brings.
set(_prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${_prefix}/bin/tuner"
     RESOLVED_DEPENDENCIES_VAR _libraries UNRESOLVED_DEPENDENCIES_VAR _missing
     PRE_EXCLUDE_REGEXES "^lib(c|m|stdc\\+\\+|gcc_s|z)\\.so" "^ld-linux")
set(_files)
foreach(_library IN LISTS _libraries)
  file(REAL_PATH "${_library}" _file)  # packages list this one, not the links to it
  list(APPEND _files "${_file}")
endforeach()
execute_process(COMMAND dpkg -S ${_files} OUTPUT_VARIABLE _owners RESULT_VARIABLE _result ERROR_QUIET)
if(NOT _result EQUAL 0)
  message(WARNING "dpkg does not know all libraries of tuner: add their licenses before you pass the wheel on")
endif()
file(MAKE_DIRECTORY "${_prefix}/share/espalier/licenses")
string(REGEX MATCHALL "[^\n]+" _owners "${_owners}")
foreach(_owner IN LISTS _owners)
  string(REGEX REPLACE ":.*" "" _package "${_owner}")
  if(EXISTS /usr/share/doc/${_package}/copyright)
    file(REAL_PATH /usr/share/doc/${_package}/copyright _copyright)
    file(COPY_FILE "${_copyright}" "${_prefix}/share/espalier/licenses/${_package}" ONLY_IF_DIFFERENT)
  endif()
endforeach()
