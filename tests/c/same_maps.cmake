# cmake -DPROGRAM=<program> -DFOLDER=<of the demo> -DOUT=<prefix> -P same_maps.cmake
# The values of both half maps, behind the header of 1024 bytes, are those of bracewell-reconstruct.

execute_process(COMMAND ${PROGRAM} ${FOLDER} ${OUT} COMMAND_ERROR_IS_FATAL ANY)
foreach(half 1 2)
  file(READ ${FOLDER}/map_half${half}.mrc expected OFFSET 1024 HEX)
  file(READ ${OUT}_half${half}.mrc found OFFSET 1024 HEX)
  string(LENGTH "${expected}" length)
  if(length LESS 1000 OR NOT expected STREQUAL found)
    message(FATAL_ERROR "${OUT}_half${half}.mrc: expected the bits of ${FOLDER}/map_half${half}.mrc, found others")
  endif()
endforeach()
