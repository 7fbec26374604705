# golden_projectors has one translation unit per kernel, golden_tomography and golden_ptychography
# one per precision.
find_package(nlohmann_json 3 REQUIRED CONFIG)
foreach(operators projectors tomography ptychography)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/golden/${operators}/*.cpp)
  target_sources(golden_${operators} PRIVATE ${sources})
  target_link_libraries(golden_${operators} PRIVATE nlohmann_json::nlohmann_json)
  bracewell_joined(golden_${operators} 4)
endforeach()

# golden_test(name operators data): compares with the golden data of that name.
function(golden_test name operators data)
  set(prefix ${BRACEWELL_TEST_DATA}/golden/${data})
  if(BRACEWELL_TEST_DATA AND EXISTS ${prefix}.json)
    add_test(NAME ${name} COMMAND golden_${operators} ${prefix})
  else()
    bracewell_skipped_test(${name} "BRACEWELL_TEST_DATA has no golden/${data}.json")
  endif()
endfunction()
golden_test(golden_projectors projectors projectors/projectors_A)
golden_test(golden_tomography tomography tomography/tomography_A)
foreach(case A C_rect D_experiments)
  golden_test(golden_ptychography_${case} ptychography ptychography/ptycho_${case})
endforeach()
