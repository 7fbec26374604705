bracewell_program(match_check ${CMAKE_CURRENT_LIST_DIR}/tests/check.cpp LIBRARIES bracewell_examples_common)

foreach(case found star errors tomogram tomogram_noise)
  add_test(NAME match_${case}
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/tests/run ${case} $<TARGET_FILE:bracewell-match> $<TARGET_FILE:match_check>)
endforeach()
add_test(NAME match_grid COMMAND match_check grid)
