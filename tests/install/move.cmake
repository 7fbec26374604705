# cmake -DBUILD=<build> -DFOLDER=<folder> -P move.cmake: installs the build, and moves the installation to FOLDER.
file(REMOVE_RECURSE ${FOLDER} ${FOLDER}.first)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}.first COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(RENAME ${FOLDER}.first ${FOLDER})
