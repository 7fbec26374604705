# Finds what the headers need and lists the targets in BRACEWELL_DEPENDENCIES.

# Kokkos, in this order: an installed one, the prefix that ./dev prepared, the release built from source.
set(private_prefix ${PROJECT_SOURCE_DIR}/.deps/usr)
find_package(Kokkos 5.0...<6 CONFIG QUIET PATHS ${private_prefix})
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
  message(STATUS "Kokkos >= 5.0 is not installed: building the release from source (./dev setup provides a package)")
  include(FetchContent)
  FetchContent_Declare(Kokkos SYSTEM
    URL https://github.com/kokkos/kokkos/releases/download/5.0.0/kokkos-5.0.0.tar.gz)
  FetchContent_MakeAvailable(Kokkos)
endif()

list(APPEND CMAKE_PREFIX_PATH ${private_prefix})
find_package(Eigen3 3.4 REQUIRED CONFIG)
find_package(FFTW3 REQUIRED)
set(BRACEWELL_DEPENDENCIES Kokkos::kokkos Eigen3::Eigen FFTW3::fftw3 FFTW3::fftw3f)
if(Kokkos_ENABLE_CUDA)
  find_package(CUDAToolkit REQUIRED)
  list(APPEND BRACEWELL_DEPENDENCIES CUDA::cufft)
elseif(Kokkos_ENABLE_HIP)
  find_package(hipfft REQUIRED CONFIG)
  list(APPEND BRACEWELL_DEPENDENCIES hip::hipfft)
endif()
