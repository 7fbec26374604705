# cmake -D FOLDER=folder -P download_kokkos.cmake: puts Kokkos' source into FOLDER/kokkos.

include(${CMAKE_CURRENT_LIST_DIR}/../cmake/BracewellKokkosRelease.cmake)
set(archive ${FOLDER}/kokkos.tar.gz)
file(DOWNLOAD ${BRACEWELL_KOKKOS_URL} ${archive} EXPECTED_HASH ${BRACEWELL_KOKKOS_HASH})
file(REMOVE_RECURSE ${FOLDER}/unpacked)
file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${FOLDER}/unpacked)
file(GLOB source ${FOLDER}/unpacked/*)
file(RENAME ${source} ${FOLDER}/kokkos)
file(REMOVE ${archive})
