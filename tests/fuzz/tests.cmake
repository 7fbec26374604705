# Readers that belong to programs are compiled into the test of them.
if(NOT TARGET test_fuzz_seeds)
  return()
endif()
set(program_readers ${PROJECT_SOURCE_DIR}/examples/bracewell-ptychography/measurement.cpp
  ${PROJECT_SOURCE_DIR}/examples/bracewell-ptychography/other_formats.cpp
  ${PROJECT_SOURCE_DIR}/examples/bracewell-ptychography/object_file.cpp
  ${PROJECT_SOURCE_DIR}/examples/bracewell-tomography/frame_stack.cpp
  ${PROJECT_SOURCE_DIR}/examples/bracewell-tomography/scan.cpp)
target_sources(test_fuzz_seeds PRIVATE ${program_readers})
bracewell_joined(test_fuzz_seeds 8)
target_compile_definitions(test_fuzz_seeds PRIVATE BRACEWELL_FUZZ_FOUND="${CMAKE_CURRENT_LIST_DIR}/found")

# The targets of libFuzzer, fuzz_<name>, are built where its instrumentation is on: by the preset "fuzz".
if(NOT CMAKE_CXX_FLAGS MATCHES "fuzzer-no-link")
  return()
endif()
add_library(bracewell_fuzz_readers STATIC ${program_readers})
target_link_libraries(bracewell_fuzz_readers PUBLIC bracewell_examples_common)

function(bracewell_fuzz name source)
  bracewell_program(${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/libfuzzer/${source} LIBRARIES bracewell_fuzz_readers)
  target_compile_definitions(${name} PRIVATE ${ARGN})
endfunction()

block()
set(bracewell_precompiled) # those of the tests have another compiler's options
bracewell_fuzz(fuzz_seeds seeds.cpp)
set(targets)
foreach(reader mrc star tiff hdf5 cxi object scan)
  bracewell_fuzz(fuzz_${reader} target.cpp HEADER="../${reader}.hpp" TARGET=${reader})
  list(APPEND targets fuzz_${reader})
endforeach()
foreach(driver project ptychography reconstruct refine tomography)
  string(TOUPPER ${driver} upper)
  bracewell_fuzz(fuzz_options_${driver} options.cpp MAIN="bracewell-${driver}/main.cpp" FUZZ_${upper})
  # Command lines compare little but strings, whose comparison libFuzzer sees without.
  target_compile_options(fuzz_options_${driver} PRIVATE -fno-sanitize-coverage=trace-cmp)
  list(APPEND targets fuzz_options_${driver})
endforeach()
foreach(target ${targets})
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
endforeach()
add_custom_target(fuzz DEPENDS ${targets} fuzz_seeds)
endblock()
