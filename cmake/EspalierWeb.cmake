# Whether the pages that browsers show are built into `tuner`, and what they are built with.
#
#   ESPALIER_WEB  AUTO (default): where esbuild, brotli, React and D3's modules are found, as Debian has them;
#                 ON: fail without; OFF. An environment variable of the same name, of a value like "off",
#                 wins over AUTO
#
# Sets ESPALIER_BUILD_WEB, and ESPALIER_NODE_MODULES: the folder of the libraries. No Node runs.

set(ESPALIER_WEB AUTO CACHE STRING "Build the pages for browsers: AUTO, ON or OFF")
set_property(CACHE ESPALIER_WEB PROPERTY STRINGS AUTO ON OFF)

# Debian's packages of these names, with node- before them.
set(ESPALIER_WEB_MODULES react react-dom scheduler d3-array d3-axis d3-color d3-dispatch d3-drag d3-ease d3-format
                         d3-interpolate d3-scale d3-selection d3-time d3-time-format d3-timer d3-transition d3-zoom)

set(_espalier_no_web "")
if(NOT "$ENV{ESPALIER_WEB}" STREQUAL "" AND NOT "$ENV{ESPALIER_WEB}" AND ESPALIER_WEB STREQUAL "AUTO")
  set(_espalier_no_web "ESPALIER_WEB=$ENV{ESPALIER_WEB} in the environment")
elseif(ESPALIER_WEB STREQUAL "AUTO" OR ESPALIER_WEB)
  foreach(_espalier_program esbuild brotli gzip)
    string(TOUPPER ESPALIER_${_espalier_program} _espalier_variable)
    find_program(${_espalier_variable} ${_espalier_program})
    if(NOT ${_espalier_variable} AND NOT _espalier_no_web)
      set(_espalier_no_web "${_espalier_program} was not found (scripts/setup.sh installs it)")
    endif()
  endforeach()
  find_path(ESPALIER_NODE_MODULES react/package.json PATHS /usr/share/nodejs NO_DEFAULT_PATH)
  foreach(_espalier_module IN LISTS ESPALIER_WEB_MODULES)
    if(NOT EXISTS "${ESPALIER_NODE_MODULES}/${_espalier_module}/package.json" AND NOT _espalier_no_web)
      set(_espalier_no_web "${_espalier_module} was not found (Debian's package node-${_espalier_module}; scripts/setup.sh installs it)")
    endif()
  endforeach()
else()
  set(_espalier_no_web "ESPALIER_WEB=${ESPALIER_WEB}")
endif()

if(_espalier_no_web AND NOT ESPALIER_WEB STREQUAL "AUTO" AND ESPALIER_WEB)
  message(FATAL_ERROR "ESPALIER_WEB=${ESPALIER_WEB}, but ${_espalier_no_web}")
elseif(_espalier_no_web)
  set(ESPALIER_BUILD_WEB OFF)
  message(STATUS "Pages for browsers: not built, ${_espalier_no_web}")
else()
  set(ESPALIER_BUILD_WEB ON)
  message(STATUS "Pages for browsers: built by ${ESPALIER_ESBUILD}, with the libraries in ${ESPALIER_NODE_MODULES}")
endif()
