# How the repository's own programs are built: tests, examples and benchmarks.

set(BRACEWELL_TEST_DATA "" CACHE PATH "Folder with golden/ and data/, which tests compare with and run on")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(bracewell_warnings INTERFACE)
target_compile_options(bracewell_warnings INTERFACE -Wall -Wextra
  # Not with nvcc: the code that it generates is not pedantic, and CUDA's headers have global names such as half.
  $<$<NOT:$<BOOL:${Kokkos_ENABLE_CUDA}>>:-Wpedantic$<SEMICOLON>-Wshadow>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict> # GCC bug 105651
  $<$<BOOL:${BRACEWELL_WARNINGS_AS_ERRORS}>:-Werror>)

# What the programs link: the operators compiled once, where they are.
set(bracewell_operators Bracewell::Bracewell)
if(TARGET Bracewell::Compiled)
  set(bracewell_operators Bracewell::Compiled)
endif()

# bracewell_program(name sources... [LIBRARIES target...]): an executable in the folder of its kind.
# It reuses the precompiled headers of the target ${bracewell_precompiled}, where that is set.
function(bracewell_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" LIBRARIES)
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${bracewell_operators} ${arg_LIBRARIES} bracewell_warnings)
  if(bracewell_precompiled)
    target_precompile_headers(${name} REUSE_FROM ${bracewell_precompiled})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

# bracewell_skipped_test(name reason): a test that cannot run here, and says why.
function(bracewell_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
endfunction()

# The tests of the current folder run with two threads, and know where the data are.
function(bracewell_set_test_environment)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT OMP_NUM_THREADS=2 OMP_PROC_BIND=false
      # Two tests share two cores: many work on one most of the time. Threads that wait leave theirs to the other.
      OMP_WAIT_POLICY=passive
      # A damaged HDF5 file makes its library ask for a terabyte: that is to fail as it does without the sanitizers.
      ASAN_OPTIONS=allocator_may_return_null=1
      # The thread sanitizer does not know the locks inside of libraries, OpenMP's above all.
      TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:allocator_may_return_null=1:suppressions=${PROJECT_SOURCE_DIR}/cmake/races_of_libraries.supp
      LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/leaks_of_libraries.supp)
    if(BRACEWELL_TEST_DATA)
      set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "BRACEWELL_TEST_DATA=${BRACEWELL_TEST_DATA}")
    endif()
    get_test_property(${test} COST cost)
    if(NOT cost AND (Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP)) # beside programs that wait for each other (tests/drivers)
      set_property(TEST ${test} PROPERTY COST 0.9)
    endif()
  endforeach()
endfunction()
