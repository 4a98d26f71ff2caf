# cmake --install: the executable tuner, and the CMake package Espalier for programs that link the
# trial runner: its static libraries, its public headers, and how LibTorch is found.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(tuner PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS tuner)
install(FILES LICENSE README.md docs/elastic_training_loop.md TYPE DOC)
install(DIRECTORY search_spaces/catalog DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier/search_spaces)
# What `tuner simulate pollux` runs; it looks here, by its own place.
install(DIRECTORY allocator/simulator/loads/pollux DESTINATION ${CMAKE_INSTALL_DATADIR}/espalier
        PATTERN "*.py" EXCLUDE)

if(ESPALIER_TORCH)
  set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Espalier)
  # The trial runner and what it is linked from: Espalier::trial_runner and so on.
  foreach(_name trial_runner datasets elastic control replica_wire messages control_proto collectives
          digests allocator base)
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
