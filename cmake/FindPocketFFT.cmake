# pocketfft for C++, one header: target PocketFFT::PocketFFT. PocketFFT_PREFIX is where to look last, and then where it was found.

find_path(PocketFFT_INCLUDE_DIR pocketfft_hdronly.h PATHS "${PocketFFT_PREFIX}" PATH_SUFFIXES pocketfft)
set(PocketFFT_PREFIX ${PocketFFT_INCLUDE_DIR})
mark_as_advanced(PocketFFT_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PocketFFT REQUIRED_VARS PocketFFT_INCLUDE_DIR)

if(PocketFFT_FOUND AND NOT TARGET PocketFFT::PocketFFT)
  add_library(PocketFFT::PocketFFT INTERFACE IMPORTED)
  # Threads are those of the execution space; lengths of several plans are kept.
  set_target_properties(PocketFFT::PocketFFT PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${PocketFFT_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS
    "BRACEWELL_HOST_FFT_POCKETFFT;POCKETFFT_CACHE_SIZE=32;POCKETFFT_NO_MULTITHREADING")
endif()
