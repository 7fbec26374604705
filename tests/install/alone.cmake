# cmake -DSOURCE=<checkout> -DKOKKOS_SOURCE=<its source> -DFOLDER=<to work in> -DCXX=<compiler> -P alone.cmake
# `./dev install` of a checkout without Kokkos; the installation moves, the checkout goes, and a project finds what it needs.

file(REMOVE_RECURSE ${FOLDER})
foreach(name CMakeLists.txt CMakePresets.json LICENSE cmake dev include scripts src)
  file(COPY ${SOURCE}/${name} DESTINATION ${FOLDER}/checkout)
endforeach()
unset(ENV{Kokkos_ROOT})
unset(ENV{CMAKE_PREFIX_PATH})
set(ENV{KOKKOS_SOURCE} ${KOKKOS_SOURCE})
set(ENV{CXX} ${CXX})
execute_process(COMMAND ${FOLDER}/checkout/dev install ${FOLDER}/first COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${FOLDER}/first ${FOLDER}/moved)
file(REMOVE_RECURSE ${FOLDER}/checkout)
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install/shared -B ${FOLDER}/build
  -DBracewell_ROOT=${FOLDER}/moved -DCMAKE_CXX_COMPILER=${CXX} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FOLDER}/build/consumer COMMAND_ERROR_IS_FATAL ANY)

# Programs start by the system's loader, and nothing that they load lies in the checkout or where the installation was.
find_program(READELF readelf REQUIRED)
foreach(name consumer host libimages_shared.so libimages_plugin.so)
  execute_process(COMMAND ${READELF} --program-headers --dynamic ${FOLDER}/build/${name} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "${FOLDER}/build" "" text "${text}") # where the program's own library is
  if(text MATCHES "${FOLDER}|${SOURCE}|\\.deps")
    message(FATAL_ERROR "${name} does not stand alone: ${text}")
  endif()
endforeach()
