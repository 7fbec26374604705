# cmake -DNM=<nm> -DLIBRARY=<libbracewell.so> -DLIST=<symbols.txt> -P symbols.cmake

execute_process(COMMAND ${NM} --dynamic --defined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${output}")
set(found "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "[ @].*" "" symbol "${line}")
  if(NOT line MATCHES " A ") # the version itself
    list(APPEND found ${symbol})
  endif()
endforeach()
file(STRINGS ${LIST} expected REGEX "^[^#]")
set(gone ${expected})
list(REMOVE_ITEM gone ${found})
set(new ${found})
list(REMOVE_ITEM new ${expected})
if(gone OR new OR NOT found)
  message(FATAL_ERROR "${LIBRARY} lacks: ${gone}; it exports what ${LIST} does not name: ${new}")
endif()
