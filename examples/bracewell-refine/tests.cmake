bracewell_program(refine_check
  ${CMAKE_CURRENT_LIST_DIR}/tests/check.cpp ${CMAKE_CURRENT_SOURCE_DIR}/bracewell-reconstruct/demo.cpp
  LIBRARIES bracewell_examples_common)

set(cases noise_free noisy errors)
if(EXISTS ${PROJECT_SOURCE_DIR}/../shared/data/cryoem) # test data lie beside the checkout, not in it
  list(APPEND cases ribosome)
else()
  message(STATUS "bracewell-refine's test with a ribosome is skipped: no ${PROJECT_SOURCE_DIR}/../shared/data")
endif()
foreach(case ${cases})
  add_test(NAME refine_${case}
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/tests/run ${case} $<TARGET_FILE:bracewell-refine> $<TARGET_FILE:refine_check>
      ${PROJECT_SOURCE_DIR}/../shared/data/cryoem)
endforeach()
