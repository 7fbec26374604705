# cmake -DROOT=<repository> -DOUTPUT=<folder> -P documented.cmake
# Every name of the public headers, those outside detail/ and impl/, is documented. Skipped without Doxygen.

cmake_minimum_required(VERSION 3.25)

find_program(doxygen doxygen)
if(NOT doxygen)
  message(STATUS "skipped: there is no doxygen on the PATH")
  return()
endif()

if(NOT OUTPUT)
  message(FATAL_ERROR "documented.cmake: expected -DOUTPUT=<folder> for what doxygen writes, found none")
endif()
file(READ ${ROOT}/docs/Doxyfile settings)
file(WRITE ${OUTPUT}/Doxyfile "${settings}
OUTPUT_DIRECTORY = ${OUTPUT}
")
execute_process(COMMAND ${doxygen} ${OUTPUT}/Doxyfile WORKING_DIRECTORY ${ROOT} OUTPUT_QUIET
  ERROR_VARIABLE warnings RESULT_VARIABLE status)
if(warnings OR NOT status EQUAL 0)
  string(REPLACE "\n" "\n  " warnings "\n${warnings}") # indented lines are not wrapped
  message(FATAL_ERROR "doxygen ends with ${status} and says${warnings}")
endif()
message(STATUS "Every public name is documented.")
