# cmake -DPREFIX=<installation> -DLIBDIR=<lib> -DFOLDER=<to work in> -DC_COMPILER=<cc> -DPKG_CONFIG=<pkg-config> -DSOURCE=<interface.c>
#   -DKOKKOS=<folder of its libraries> -P c.cmake
# A program in C finds an installation by pkg-config, with the shared library and with the static one.

file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

# build(name libraries options...): compiles with the libraries of a folder, and runs.
function(build name libraries)
  set(ENV{PKG_CONFIG_PATH} ${libraries}/pkgconfig)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${ARGN} bracewell OUTPUT_VARIABLE flags
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(flags MATCHES "${PREFIX}\\.first")
    message(FATAL_ERROR "bracewell.pc names the folder from which it was moved: ${flags}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND ${C_COMPILER} -std=c99 ${SOURCE} -o ${FOLDER}/${name} ${flags} -lm COMMAND_ERROR_IS_FATAL ANY)
  set(ENV{LD_LIBRARY_PATH} "${libraries}:${KOKKOS}:$ENV{LD_LIBRARY_PATH}")
  execute_process(COMMAND ${FOLDER}/${name} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
build(shared ${PREFIX}/${LIBDIR})
# A linker that finds both takes the shared one.
file(COPY ${PREFIX}/${LIBDIR}/libbracewell.a ${PREFIX}/${LIBDIR}/pkgconfig DESTINATION ${FOLDER}/${LIBDIR})
file(COPY ${PREFIX}/include/bracewell.h DESTINATION ${FOLDER}/include)
build(static ${FOLDER}/${LIBDIR} --static)
