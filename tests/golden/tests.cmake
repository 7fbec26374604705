# golden_projectors has one translation unit per kernel, golden_tomography and golden_ptychography
# one per precision.
find_package(nlohmann_json 3 REQUIRED CONFIG)
foreach(operators projectors tomography ptychography)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/golden/${operators}/*.cpp)
  target_sources(golden_${operators} PRIVATE ${sources})
  target_link_libraries(golden_${operators} PRIVATE nlohmann_json::nlohmann_json)
endforeach()

# The golden data lie beside the checkout, not in it.
set(golden_data ${PROJECT_SOURCE_DIR}/../shared/golden)
if(EXISTS ${golden_data})
  add_test(NAME golden_projectors COMMAND golden_projectors ${golden_data}/projectors/projectors_A)
  add_test(NAME golden_tomography COMMAND golden_tomography ${golden_data}/tomography/tomography_A)
  foreach(case A C_rect)
    add_test(NAME golden_ptychography_${case} COMMAND golden_ptychography ${golden_data}/ptychography/ptycho_${case})
  endforeach()
else()
  message(STATUS "golden tests are skipped: no ${golden_data}")
endif()
