# Losses and the solver of small detectors are compiled once, for those tests that include plans.hpp.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ptychography/plans/*.cpp)
add_library(bracewell_test_plans STATIC ${sources})
target_link_libraries(bracewell_test_plans PUBLIC ${bracewell_operators} PRIVATE bracewell_warnings)
foreach(name test_ptychography_constraints test_ptychography_errors test_ptychography_experiments test_ptychography_lines test_ptychography_loss
    test_ptychography_operators test_ptychography_page test_ptychography_solver test_ptychography_storage golden_ptychography)
  target_link_libraries(${name} PRIVATE bracewell_test_plans)
endforeach()

target_compile_definitions(test_ptychography_page PRIVATE BRACEWELL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
