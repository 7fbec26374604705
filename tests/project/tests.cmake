# The operators behind run-time choices are compiled once, for those tests of the folder that include operators.hpp.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/project/operators/*.cpp)
add_library(bracewell_test_operators STATIC ${sources})
target_link_libraries(bracewell_test_operators PUBLIC ${bracewell_operators} PRIVATE bracewell_warnings)
bracewell_joined(bracewell_test_operators 4)
if(bracewell_precompiled)
  target_precompile_headers(bracewell_test_operators REUSE_FROM ${bracewell_precompiled})
endif()
foreach(name
    adjointness broadcast filters_and_lenses gaussian_molecules gradients hostile_poses image_loss reproducible
    scratch_kernels skip_redundant)
  target_link_libraries(${program_of_test_project_${name}} PRIVATE bracewell_test_operators)
endforeach()

add_test(NAME project_reproducible_threads COMMAND ${CMAKE_COMMAND}
  -D PROGRAM=$<TARGET_FILE:${program_of_test_project_reproducible}> -P ${CMAKE_CURRENT_SOURCE_DIR}/project/same_hash.cmake)
