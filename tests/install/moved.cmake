# cmake -DPREFIX=<installation> -DLIBDIR=<lib> -DFOLDER=<to work in> -DC_COMPILER=<cc> -DPKG_CONFIG=<pkg-config> -DSOURCE=<interface.c>
#   -P moved.cmake
# The part of C of an installation that was moved: a program finds it by pkg-config, with the shared library and with the static one.

file(REMOVE_RECURSE ${FOLDER})
file(GLOB libraries ${PREFIX}/${LIBDIR}/libbracewell.*)
file(COPY ${libraries} ${PREFIX}/${LIBDIR}/pkgconfig DESTINATION ${FOLDER}/${LIBDIR})
file(COPY ${PREFIX}/include/bracewell.h DESTINATION ${FOLDER}/include)
set(ENV{PKG_CONFIG_PATH} ${FOLDER}/${LIBDIR}/pkgconfig)

# build(name options...): compiles and runs.
function(build name)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${ARGN} bracewell OUTPUT_VARIABLE flags
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(flags MATCHES "${PREFIX}/")
    message(FATAL_ERROR "bracewell.pc names the folder from which it was moved: ${flags}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND ${C_COMPILER} -std=c99 ${SOURCE} -o ${FOLDER}/${name} ${flags} -lm COMMAND_ERROR_IS_FATAL ANY)
  set(ENV{LD_LIBRARY_PATH} "${FOLDER}/${LIBDIR}:${KOKKOS}:$ENV{LD_LIBRARY_PATH}")
  execute_process(COMMAND ${FOLDER}/${name} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
build(shared)
file(GLOB shared ${FOLDER}/${LIBDIR}/libbracewell.so*)
file(REMOVE ${shared})
build(static --static)
