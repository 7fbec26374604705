# golden_projectors has one translation unit per kernel.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/golden/projectors/*.cpp)
target_sources(golden_projectors PRIVATE ${sources})
find_package(nlohmann_json 3 REQUIRED CONFIG)
target_link_libraries(golden_projectors PRIVATE nlohmann_json::nlohmann_json)

# The golden data lie beside the checkout, not in it.
set(golden_data ${PROJECT_SOURCE_DIR}/../shared/golden)
if(EXISTS ${golden_data})
  add_test(NAME golden_projectors COMMAND golden_projectors ${golden_data}/projectors/projectors_A)
else()
  message(STATUS "golden tests are skipped: no ${golden_data}")
endif()
