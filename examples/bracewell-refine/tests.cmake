bracewell_program(refine_check
  ${CMAKE_CURRENT_LIST_DIR}/tests/check.cpp ${CMAKE_CURRENT_SOURCE_DIR}/bracewell-reconstruct/demo.cpp
  LIBRARIES bracewell_examples_common)

set(cases noise_free noisy errors ribosome ribosome_alone constant)
if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP) # what is refused is the same with every backend
  list(REMOVE_ITEM cases errors)
endif()
foreach(case ${cases})
  if(case MATCHES ribosome AND NOT (BRACEWELL_TEST_DATA AND EXISTS ${BRACEWELL_TEST_DATA}/data/cryoem))
    bracewell_skipped_test(refine_${case} "BRACEWELL_TEST_DATA has no data/cryoem")
  elseif(case STREQUAL constant AND NOT (BRACEWELL_TEST_DATA AND EXISTS ${BRACEWELL_TEST_DATA}/cases/cryoem))
    bracewell_skipped_test(refine_${case} "BRACEWELL_TEST_DATA has no cases/cryoem")
  else()
    add_test(NAME refine_${case}
      COMMAND ${CMAKE_CURRENT_LIST_DIR}/tests/run ${case} $<TARGET_FILE:bracewell-refine> $<TARGET_FILE:refine_check>
        "${BRACEWELL_TEST_DATA}/data/cryoem")
  endif()
endforeach()
