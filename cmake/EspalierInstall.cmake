# cmake --install: the executable tuner, and the CMake package Espalier for programs that link the
# trial runner: its static libraries, its public headers, and how LibTorch is found.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(tuner PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS tuner)
install(FILES LICENSE README.md tuner/core/samplers/sobol_directions.LICENSE TYPE DOC)
# The pages that help texts and docstrings name, by the same paths.
install(DIRECTORY docs TYPE DOC)
install(FILES tuner/study_file/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tuner/study_file)
install(DIRECTORY search_spaces/catalog DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier/search_spaces)
# What `tuner simulate pollux` runs; it looks here, by its own place.
install(DIRECTORY allocator/simulator/loads/pollux DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier
        PATTERN "*.py" EXCLUDE)

if(ESPALIER_TORCH)
  set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Espalier)
  # The trial runner and what it is linked from: Espalier::trial_runner and so on.
  foreach(_name trial_runner datasets elastic control replica_wire messages control_proto collectives
          kernels digests allocator base)
    set_target_properties(espalier_${_name} PROPERTIES EXPORT_NAME ${_name})
    install(TARGETS espalier_${_name} EXPORT EspalierTargets FILE_SET HEADERS)
  endforeach()
  if(ESPALIER_BUILD_CUDA)
    install(TARGETS espalier_cuda DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  install(EXPORT EspalierTargets NAMESPACE Espalier:: DESTINATION ${_package})

  configure_package_config_file(cmake/EspalierConfig.cmake.in EspalierConfig.cmake
                                INSTALL_DESTINATION ${_package} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(EspalierConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/EspalierConfig.cmake
                ${CMAKE_CURRENT_BINARY_DIR}/EspalierConfigVersion.cmake
                cmake/FindLibTorch.cmake
          DESTINATION ${_package})
endif()

# What the wheel has beside its code in Python: pyproject.toml has this component put into the package
# espalier. A plain cmake --install leaves it out.
if(ESPALIER_TORCH)
  set(_wheel COMPONENT wheel EXCLUDE_FROM_ALL)
  # It has a library for each minor release of torch in a range, which its description names. A build makes one of them.
  file(STRINGS pyproject.toml _wheel_torch REGEX "^torch = ")
  string(REGEX MATCH ">=([0-9.]+),<([0-9.]+)" _wheel_torch "${_wheel_torch}")
  if(LibTorch_VERSION VERSION_LESS CMAKE_MATCH_1 OR LibTorch_VERSION VERSION_GREATER_EQUAL CMAKE_MATCH_2)
    string(CONCAT _why "pyproject.toml asks for torch${_wheel_torch}, but LibTorch is ${LibTorch_VERSION}: "
                       "build with another one, or change the line")
    if(SKBUILD)
      message(FATAL_ERROR "${_why}")
    endif()
    install(CODE "message(FATAL_ERROR \"${_why}\")" ${_wheel})
  endif()
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _minor "${LibTorch_VERSION}")
  set(_wheel_libraries lib/torch-${_minor})

  install(TARGETS tuner RUNTIME DESTINATION bin ${_wheel})
  # It finds the CUDA part beside it, and torch in the process.
  set_target_properties(espalier_torch PROPERTIES INSTALL_RPATH $ORIGIN)
  install(TARGETS espalier_torch LIBRARY DESTINATION ${_wheel_libraries} ${_wheel})
  install(FILES ${CMAKE_BINARY_DIR}/lib/libespalier_torch.json DESTINATION ${_wheel_libraries} ${_wheel})
  if(ESPALIER_BUILD_CUDA)
    install(TARGETS espalier_cuda LIBRARY DESTINATION ${_wheel_libraries} ${_wheel})
  endif()
  install(DIRECTORY docs DESTINATION share/espalier ${_wheel})
  install(FILES tuner/study_file/README.md DESTINATION share/espalier/tuner/study_file ${_wheel})
  install(DIRECTORY search_spaces/catalog DESTINATION share/espalier/search_spaces ${_wheel})
  install(DIRECTORY allocator/simulator/loads/pollux DESTINATION share/espalier ${_wheel}
          PATTERN "*.py" EXCLUDE)

  # scripts/wheel.sh adds the libraries that tuner is linked against: with what their licenses ask for, and those of
  # what its pages are made of.
  if(ESPALIER_BUILD_WEB)
    list(TRANSFORM ESPALIER_WEB_MODULES PREPEND ${ESPALIER_NODE_MODULES}/ OUTPUT_VARIABLE _web_modules)
    list(TRANSFORM _web_modules APPEND /package.json)
    install(CODE "set(ESPALIER_WEB_FILES \"${_web_modules}\")" ${_wheel})
  endif()
  install(SCRIPT cmake/EspalierLicenses.cmake ${_wheel})
  install(FILES tuner/core/samplers/sobol_directions.LICENSE DESTINATION share/espalier/licenses ${_wheel})
endif()
