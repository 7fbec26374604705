bracewell_program(match_check ${CMAKE_CURRENT_LIST_DIR}/tests/check.cpp LIBRARIES bracewell_examples_common)

set(cases found star errors tomogram tomogram_noise)
if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP) # what is refused is the same with every backend
  list(REMOVE_ITEM cases errors)
endif()
foreach(case ${cases})
  add_test(NAME match_${case}
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/tests/run ${case} $<TARGET_FILE:bracewell-match> $<TARGET_FILE:match_check>)
endforeach()
add_test(NAME match_grid COMMAND match_check grid)
