# Finds what the headers need. BRACEWELL_FFT_LIBRARIES: the targets of the FFT libraries.

# Kokkos, in this order: that of a project around this one, an installed one, the release built from source.
if(NOT TARGET Kokkos::kokkos)
  find_package(Kokkos 5.0...<6 CONFIG QUIET)
  if(Kokkos_FOUND)
    message(STATUS "Found Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}): ${Kokkos_DIR}")
    foreach(backend SERIAL OPENMP CUDA HIP)
      if("$CACHE{Kokkos_ENABLE_${backend}}" AND NOT backend IN_LIST Kokkos_DEVICES)
        message(FATAL_ERROR
          "Kokkos in ${Kokkos_DIR} was built without ${backend}: set Kokkos_ROOT to an installation that has it, "
          "or -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON to build Kokkos from source.")
      endif()
    endforeach()
  else()
    # FETCHCONTENT_SOURCE_DIR_KOKKOS names a folder with the source, where there is no network.
    include(BracewellKokkosRelease)
    message(STATUS "Kokkos >= 5.0 is not installed: building it from ${BRACEWELL_KOKKOS_URL}")
    # It uses all cores unless another backend for hosts is asked for: Kokkos' own default is one core.
    if(NOT (DEFINED Kokkos_ENABLE_OPENMP OR Kokkos_ENABLE_SERIAL OR Kokkos_ENABLE_THREADS OR Kokkos_ENABLE_HPX))
      find_package(OpenMP QUIET COMPONENTS CXX)
      if(OpenMP_CXX_FOUND)
        set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "Kokkos that is built here uses all cores")
      else()
        message(WARNING "Bracewell: Kokkos uses one core of hosts, as ${CMAKE_CXX_COMPILER} has no OpenMP: install that, or set "
          "Kokkos_ENABLE_SERIAL to ON, which says that one is meant.")
      endif()
    endif()
    include(FetchContent)
    FetchContent_Declare(Kokkos SYSTEM URL ${BRACEWELL_KOKKOS_URL} URL_HASH ${BRACEWELL_KOKKOS_HASH})
    if(DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
      FetchContent_MakeAvailable(Kokkos)
    else() # shared libraries, libbracewell among them, can have it inside
      set(CMAKE_POSITION_INDEPENDENT_CODE ON)
      FetchContent_MakeAvailable(Kokkos)
      unset(CMAKE_POSITION_INDEPENDENT_CODE)
    endif()
  endif()
endif()
include(BracewellCheckKokkos)

set(BRACEWELL_FFT_LIBRARIES)
set(BRACEWELL_FFT_FILES "") # what a static library is linked with
if(BRACEWELL_ENABLE_FFT)
  if(BRACEWELL_HOST_FFT STREQUAL POCKETFFT)
    find_package(PocketFFT REQUIRED)
    set(BRACEWELL_FFT_LIBRARIES PocketFFT::PocketFFT)
  elseif(BRACEWELL_HOST_FFT MATCHES "^(FFTW|MKL)$")
    find_package(FFTW3 REQUIRED)
    set(BRACEWELL_FFT_LIBRARIES FFTW3::fftw3 FFTW3::fftw3f)
    set(BRACEWELL_FFT_FILES "${FFTW3_DOUBLE_LIBRARY} ${FFTW3_FLOAT_LIBRARY}")
  else()
    message(FATAL_ERROR "BRACEWELL_HOST_FFT: expected FFTW, POCKETFFT or MKL, found ${BRACEWELL_HOST_FFT}")
  endif()
  if(Kokkos_ENABLE_CUDA)
    find_package(CUDAToolkit REQUIRED)
    list(APPEND BRACEWELL_FFT_LIBRARIES CUDA::cufft)
  elseif(Kokkos_ENABLE_HIP)
    find_package(hipfft REQUIRED CONFIG)
    list(APPEND BRACEWELL_FFT_LIBRARIES hip::hipfft)
  endif()
endif()

find_package(Eigen3 5 QUIET CONFIG)
if(NOT Eigen3_FOUND)
  find_package(Eigen3 3.4 QUIET CONFIG) # which refuses ranges beyond its major version
endif()
set(MPI_CXX_SKIP_MPICXX ON) # the C interface alone
find_package(MPI 3.1 QUIET COMPONENTS CXX)
