# Losses and the solver of small detectors are compiled once, for those tests that include plans.hpp.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ptychography/plans/*.cpp)
add_library(bracewell_test_plans STATIC ${sources})
target_link_libraries(bracewell_test_plans PUBLIC ${bracewell_operators} PRIVATE bracewell_warnings)
foreach(name ${programs_of_ptychography} golden_ptychography)
  target_link_libraries(${name} PRIVATE bracewell_test_plans)
endforeach()
