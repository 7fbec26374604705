# FFTW 3 in double and in float: targets FFTW3::fftw3 and FFTW3::fftw3f. FFTW3_PREFIX is where to look last, and then
# where it was found. Where BRACEWELL_HOST_FFT is MKL, both are MKL, which has FFTW's interface.

if(BRACEWELL_HOST_FFT STREQUAL MKL)
  find_path(FFTW3_INCLUDE_DIR fftw3.h PATHS "$ENV{MKLROOT}/include" "${FFTW3_PREFIX}/include" /usr/include PATH_SUFFIXES fftw mkl/fftw
    NO_DEFAULT_PATH)
  foreach(name DOUBLE FLOAT)
    find_library(FFTW3_${name}_LIBRARY mkl_rt PATHS "$ENV{MKLROOT}/lib" "${FFTW3_PREFIX}/lib" PATH_SUFFIXES intel64)
  endforeach()
endif()
find_path(FFTW3_INCLUDE_DIR fftw3.h PATHS "${FFTW3_PREFIX}/include")
foreach(precision DOUBLE:fftw3 FLOAT:fftw3f)
  string(REPLACE ":" ";" precision ${precision})
  list(GET precision 0 name)
  list(GET precision 1 library)
  find_library(FFTW3_${name}_LIBRARY ${library} PATHS "${FFTW3_PREFIX}/lib"
    PATH_SUFFIXES "${CMAKE_LIBRARY_ARCHITECTURE}")
endforeach()
cmake_path(GET FFTW3_INCLUDE_DIR PARENT_PATH FFTW3_PREFIX)
mark_as_advanced(FFTW3_INCLUDE_DIR FFTW3_DOUBLE_LIBRARY FFTW3_FLOAT_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(FFTW3
  REQUIRED_VARS FFTW3_DOUBLE_LIBRARY FFTW3_FLOAT_LIBRARY FFTW3_INCLUDE_DIR)

function(_fftw3_target name library)
  if(FFTW3_FOUND AND NOT TARGET FFTW3::${name})
    add_library(FFTW3::${name} UNKNOWN IMPORTED)
    set_target_properties(FFTW3::${name} PROPERTIES
      IMPORTED_LOCATION ${library} INTERFACE_INCLUDE_DIRECTORIES ${FFTW3_INCLUDE_DIR})
  endif()
endfunction()
_fftw3_target(fftw3 "${FFTW3_DOUBLE_LIBRARY}")
_fftw3_target(fftw3f "${FFTW3_FLOAT_LIBRARY}")
