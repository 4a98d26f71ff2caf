# Helpers for the project's own targets: warnings, sanitizers, the include root.

# Warnings are errors where the project itself is checked. Another compiler, or other options of optimisation,
# may warn of what has never been seen here, and that is no reason for a user's build to fail.
# -Wrestrict: g++ 12 warns of overlaps that cannot be where a literal meets a string (GCC bug 105329).
set(ESPALIER_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum $<$<BOOL:${ESPALIER_WERROR}>:-Werror> -Wno-restrict)
# The sources are written for g++ and its warnings; clang only builds them to fuzz them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(ESPALIER_WARNINGS -w)
endif()

# Folders that take longer to compile with sanitizers and optimisation than their tests gain by the
# latter: the command line, text and records in and out.
set(ESPALIER_UNOPTIMISED_FOLDERS
    "^(search_spaces|tuner/(api|cli|credentials|forwarding|proto|server|storage|study_file)|trial_runner/agent|adapters)(/|$)")

# RapidJSON, which they include, adds to null pointers where it has no memory yet.
set(ESPALIER_RAPIDJSON_FOLDERS "^(base|search_spaces|adapters/(nni|optuna/dashboard))(/|$)")

# Not without sanitizers: the programs of such builds are also carried elsewhere, and would be four
# times as large. Nor with the thread sanitizer, of whose time the tests' own takes the most.
function(espalier_quick_options target)
  file(RELATIVE_PATH _folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(ESPALIER_QUICK_BUILD AND ESPALIER_SANITIZE AND NOT ESPALIER_SANITIZE MATCHES thread AND _folder MATCHES "${ESPALIER_UNOPTIMISED_FOLDERS}")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

function(espalier_target_defaults target)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE ${ESPALIER_WARNINGS})
  # With -O3 g++ 12 takes the other alternatives of a std::variant for ones that are read uninitialised.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
  espalier_quick_options(${target})
  if(ESPALIER_SANITIZE)
    # -Wmaybe-uninitialized: instrumented and optimised code is known for false ones (GCC's manual).
    target_compile_options(${target} PRIVATE -fsanitize=${ESPALIER_SANITIZE}
                                             -fno-omit-frame-pointer -fno-sanitize-recover=all
                                             -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${ESPALIER_SANITIZE})
    if(ESPALIER_FUZZ)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
      file(RELATIVE_PATH _folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
      if(_folder MATCHES "${ESPALIER_RAPIDJSON_FOLDERS}")
        target_compile_options(${target} PRIVATE -fno-sanitize=pointer-overflow)
      endif()
    endif()
    if(ESPALIER_SANITIZE MATCHES undefined)
      # Checks of each pointer before its use take a third of the time to compile. A null pointer
      # ends an instrumented program anyway.
      target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment)
    endif()
  endif()
endfunction()

# espalier_messages(TARGET...): libraries of generated sources, which are compiled without our warnings. Under the thread
# sanitizer they are instrumented, and laid out as in the library for all who include them.
function(espalier_messages)
  foreach(_target IN LISTS ARGN)
    espalier_quick_options(${_target})
    if(ESPALIER_SANITIZE MATCHES thread)
      target_compile_options(${_target} PUBLIC "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/library_layout.inc"
                                        PRIVATE -fsanitize=thread)
    endif()
  endforeach()
endfunction()

# A torch source takes 1.3 GB to compile: one at a time on small machines.
cmake_host_system_information(RESULT _espalier_memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR _espalier_torch_jobs "${_espalier_memory_mb} / 6000")
if(_espalier_torch_jobs LESS 1)
  set(_espalier_torch_jobs 1)
endif()
set_property(GLOBAL APPEND PROPERTY JOB_POOLS torch_compile=${_espalier_torch_jobs})

function(espalier_limit_torch_jobs target)
  if("LibTorch::torch" IN_LIST ARGN)
    set_target_properties(${target} PROPERTIES JOB_POOL_COMPILE torch_compile)
  endif()
endfunction()

# espalier_library(NAME SOURCES a.cc ... [DEPS public...] [PRIVATE_DEPS ...] [PUBLIC_HEADERS a.h ...])
# Public headers are installed: programs of users include them. They see LibTorch and absl at most.
function(espalier_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;PUBLIC_HEADERS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  espalier_target_defaults(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}
                                FILES ${ARG_PUBLIC_HEADERS})
  espalier_limit_torch_jobs(${name} ${ARG_DEPS} ${ARG_PRIVATE_DEPS})
endfunction()

# espalier_executable(NAME SOURCES a.cc ... [DEPS ...])
function(espalier_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  espalier_target_defaults(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  espalier_limit_torch_jobs(${name} ${ARG_DEPS})
endfunction()

# Which of the builds of tests/suite/table.txt this is.
set(ESPALIER_TESTED_BUILD ci)
if(ESPALIER_SANITIZE MATCHES address)
  set(ESPALIER_TESTED_BUILD asan)
elseif(ESPALIER_SANITIZE MATCHES thread)
  set(ESPALIER_TESTED_BUILD tsan)
endif()

# espalier_add_test(NAME COMMAND...): a CTest test, which tests/suite/launch.py runs: it chooses the cases that
# a suite has and counts processor time. The command's first word may be a target.
function(espalier_add_test name program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B -E ${PROJECT_SOURCE_DIR}/tests/suite/launch.py ${name}
                                ${ESPALIER_TESTED_BUILD} ${program} ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# espalier_test(NAME SOURCES a.cc ... [DEPS ...] [LABELS ...] [LONG]): one GoogleTest binary, one CTest
# test with the label "gtest" besides those. One that needs LibTorch, or programs that do, has the
# label "torch"; one that is not built with sanitizers, because it computes for minutes what others
# compute as well, "unsanitized". LONG: its own sources are worth optimising. BEFORE: words before the
# program in the test's command.
function(espalier_test name)
  cmake_parse_arguments(ARG "LONG" "" "SOURCES;DEPS;LABELS;BEFORE" ${ARGN})
  if(ESPALIER_SANITIZE AND "unsanitized" IN_LIST ARG_LABELS)
    return()
  endif()
  espalier_executable(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} GTest::gtest GTest::gmock
                      GTest::gtest_main)
  if(ESPALIER_QUICK_BUILD AND NOT ARG_LONG AND NOT ESPALIER_SANITIZE MATCHES thread)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  espalier_add_test(${name} ${ARG_BEFORE} $<TARGET_FILE:${name}>)
  set(_labels gtest ${ARG_LABELS})
  # Against what hangs. Instrumented programs take several times as long.
  set(_limit 600)
  if(ESPALIER_SANITIZE)
    set(_limit 1200)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${_limit} LABELS "${_labels}")
endfunction()
