# Programs that run the drivers, one ctest each. They are skipped where what they compare with is absent: RELION, or the data that lie
# beside the checkout.
if(NOT TARGET bracewell-project OR NOT TARGET bracewell-reconstruct)
  message(STATUS "tests/drivers is skipped: the examples are not built")
  return()
endif()

# Takes O_TMPFILE away from a program, or fails in its reading.
add_library(test_drivers_faults SHARED ${CMAKE_CURRENT_LIST_DIR}/faults/faults.cpp)
target_compile_features(test_drivers_faults PRIVATE cxx_std_20)
target_link_libraries(test_drivers_faults PRIVATE bracewell_warnings ${CMAKE_DL_LIBS})
# `env` loads it, too, which has no sanitizer. It has functions itself that _FORTIFY_SOURCE would put others in the place of.
target_compile_options(test_drivers_faults PRIVATE -fno-sanitize=all -U_FORTIFY_SOURCE)
target_link_options(test_drivers_faults PRIVATE -fno-sanitize=all)

file(GLOB driver_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} drivers/programs/*.cpp)
set(parts 1)
if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP) # While a program begins another one works.
  set(parts 5)
endif()
bracewell_tests(drivers ${driver_sources} PARTS ${parts} LIBRARIES bracewell_examples_cryoem)
foreach(name ${programs_of_drivers})
  target_compile_definitions(${name} PRIVATE
    BRACEWELL_CLASSIFY="$<TARGET_FILE:bracewell-classify>"
    BRACEWELL_MATCH="$<TARGET_FILE:bracewell-match>"
    BRACEWELL_PROJECT="$<TARGET_FILE:bracewell-project>"
    BRACEWELL_PTYCHOGRAPHY="$<TARGET_FILE:bracewell-ptychography>"
    BRACEWELL_RECONSTRUCT="$<TARGET_FILE:bracewell-reconstruct>"
    BRACEWELL_REFINE="$<TARGET_FILE:bracewell-refine>"
    BRACEWELL_STAR="$<TARGET_FILE:bracewell-star>"
    BRACEWELL_TOMOGRAPHY="$<TARGET_FILE:bracewell-tomography>"
    BRACEWELL_FAULTS="$<TARGET_FILE:test_drivers_faults>"
    BRACEWELL_MPIEXEC="$<$<BOOL:${MPI_CXX_FOUND}>:${MPIEXEC_EXECUTABLE}>")
  # They are there when tests run; compilers need not wait for them.
  foreach(target bracewell-classify bracewell-match bracewell-project bracewell-ptychography bracewell-reconstruct bracewell-refine
      bracewell-star bracewell-tomography test_drivers_faults)
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:${target}>)
  endforeach()
endforeach()
if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP) # whose atomic additions come in any order
  foreach(name ${programs_of_drivers})
    target_compile_definitions(${name} PRIVATE BRACEWELL_SUMS_WITHOUT_ORDER)
  endforeach()
endif()
if(Kokkos_ENABLE_CUDA) # They have no kernels, and nvcc 13.0 does not come to an end with some of them.
  set_target_properties(${programs_of_drivers} test_drivers_faults PROPERTIES CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/host_compiler.sh)
endif()
# Cases of many seconds wait for their turn (./dev check turn-3, turn-4): tags name it.
foreach(turn turn-3 turn-4)
  foreach(source ${driver_sources})
    file(STRINGS ${source} cases REGEX "\\[\\.${turn}\\]")
    if(cases)
      cmake_path(GET source STEM name)
      set(test test_drivers_${name}_${turn})
      add_test(NAME ${test} COMMAND ${program_of_test_drivers_${name}} -\# "[#${name}][${turn}]")
      set_tests_properties(${test} PROPERTIES LABELS ${turn})
      list(APPEND tests_of_drivers ${test})
    endif()
  endforeach()
endforeach()
bracewell_program(test_drivers_library drivers/library/local_resolution.cpp LIBRARIES bracewell_test_main bracewell_examples_cryoem)
add_test(NAME test_drivers_library_turn-4 COMMAND test_drivers_library)
set_tests_properties(test_drivers_library_turn-4 PROPERTIES LABELS turn-4)
list(APPEND tests_of_drivers test_drivers_library_turn-4)
# Much of their time one thread works: two run side by side, long ones first. Catch2 ends with 4 when everything was skipped.
# Programs begin on an NVIDIA GPU in half of the time with one connection to it; tests of kernels have all eight.
set_tests_properties(${tests_of_drivers} PROPERTIES SKIP_RETURN_CODE 4 COST 1
  ENVIRONMENT "OMP_WAIT_POLICY=passive;CUDA_DEVICE_MAX_CONNECTIONS=1;${bracewell_mpi_environment}")
if(parts GREATER 1) # Most later parts come after tests of kernels (COST 0.9, bracewell_set_test_environment), which keep cores at work.
  foreach(test ${tests_of_drivers})
    if(test MATCHES "_[2-9]$")
      set_tests_properties(${test} PROPERTIES COST 0.5)
    endif()
  endforeach()
endif()

# More threads than Kokkos has room for were a crash, or an endless wait; variables that Kokkos cannot read were an abort, and
# small stacks a segmentation fault.
function(bracewell_test_of_environment name setting)
  add_test(NAME drivers_${name} COMMAND sh -c # the variable is set here: all tests get OMP_NUM_THREADS
    "d=$(mktemp -d) && trap 'rm -r $d' EXIT && ${setting} '$<TARGET_FILE:bracewell-ptychography>' --demo $d/demo --passes 1; echo code $?")
  set_tests_properties(drivers_${name} PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "${ARGN}code 0")
  if(ARGN)
    set_tests_properties(drivers_${name} PROPERTIES PASS_REGULAR_EXPRESSION "bracewell-ptychography: ${ARGN}\ncode 2")
  endif()
endfunction()
foreach(setting OMP_NUM_THREADS=513 OMP_NUM_THREADS=768 OMP_NUM_THREADS=100000 KOKKOS_NUM_THREADS=768)
  string(MAKE_C_IDENTIFIER ${setting} name)
  bracewell_test_of_environment(${name} ${setting})
endforeach()
foreach(setting "KOKKOS_NUM_THREADS=x a number" "KOKKOS_NUM_THREADS=0 a number from 1" "KOKKOS_DISABLE_WARNINGS=maybe yes.*"
    "KOKKOS_MAP_DEVICE_ID_BY=nothing mpi_rank.random")
  string(REGEX MATCH "^([A-Z_]+)=([a-z0-9]+) (.*)" setting "${setting}")
  bracewell_test_of_environment(${CMAKE_MATCH_1}_${CMAKE_MATCH_2} ${CMAKE_MATCH_1}=${CMAKE_MATCH_2}
    "environment variable ${CMAKE_MATCH_1}: expected ${CMAKE_MATCH_3}, found .${CMAKE_MATCH_2}.")
endforeach()
bracewell_test_of_environment(small_stack "ulimit -s 64 &&" "ulimit -s: expected stacks of at least 256 kB, found 64 kB")
bracewell_test_of_environment(OMP_STACKSIZE OMP_STACKSIZE=64k
  "environment variable OMP_STACKSIZE: expected stacks of at least 256 kB, found 64 kB")
