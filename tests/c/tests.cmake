# Programs in C99 and C++11 that know bracewell.h alone.

include(CheckLanguage)
check_language(C)
if(NOT TARGET bracewell_c OR NOT CMAKE_C_COMPILER)
  message(STATUS "tests/c is skipped: libbracewell is not built, or there is no C compiler")
  return()
endif()
enable_language(C)

# c_program(name source standard)
function(c_program name source standard)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/${source})
  target_compile_options(${name} PRIVATE -std=${standard} -pedantic -Wall -Werror)
  target_link_libraries(${name} PRIVATE bracewell_c m)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    CXX_STANDARD 11 DISABLE_PRECOMPILE_HEADERS ON)
endfunction()
c_program(test_c_interface interface.c c99)
c_program(test_c_reconstruct reconstruct.c c99)
c_program(test_c_reconstruct11 reconstruct.cpp c++11)
add_test(NAME test_c_interface COMMAND test_c_interface)

# What it exports is what the list says: a name that goes, or changes its arguments, raises SOVERSION (c/CMakeLists.txt).
add_test(NAME c_symbols COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:bracewell_c>
  -DLIST=${PROJECT_SOURCE_DIR}/c/symbols.txt -P ${CMAKE_CURRENT_LIST_DIR}/symbols.cmake)

# The programs have the bits of bracewell-reconstruct, where that is told what they do.
if(TARGET bracewell-reconstruct)
  set(demo ${CMAKE_CURRENT_BINARY_DIR}/c_demo)
  add_test(NAME c_demo COMMAND bracewell-reconstruct --demo ${demo} --kernel linear --oversampling 2 --floor 0.001 --wiener 0
    --gridding-steps 0 --correction separable --ctf --symmetry C1 --batch 500 --reproducible)
  set_tests_properties(c_demo PROPERTIES FIXTURES_SETUP c_demo)
  foreach(name test_c_reconstruct test_c_reconstruct11)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DFOLDER=${demo} -DOUT=${demo}/${name}
      -P ${CMAKE_CURRENT_LIST_DIR}/same_maps.cmake)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED c_demo)
  endforeach()
endif()

foreach(source reconstruct.c reconstruct.cpp)
  string(REGEX REPLACE ".*\\." "" language ${source})
  add_test(NAME docs_c_${language} COMMAND ${CMAKE_COMMAND} -DLANGUAGE=${language}
    -DFILE=${CMAKE_CURRENT_LIST_DIR}/${source} -DPAGE=${PROJECT_SOURCE_DIR}/docs/c.md
    -P ${CMAKE_CURRENT_LIST_DIR}/page.cmake)
endforeach()
