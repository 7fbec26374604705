# The permissive library that BRACEWELL_HOST_FFT takes in place of FFTW. The components that are compiled here have FFTW's.
find_path(test_POCKETFFT pocketfft_hdronly.h PATH_SUFFIXES pocketfft gemmi/third_party)
mark_as_advanced(test_POCKETFFT)
if(test_POCKETFFT AND NOT Kokkos_ENABLE_CUDA AND NOT Kokkos_ENABLE_HIP)
  add_executable(test_fft_pocketfft ${CMAKE_CURRENT_LIST_DIR}/pocketfft/plan.cpp)
  target_compile_definitions(test_fft_pocketfft PRIVATE
    BRACEWELL_HOST_FFT_POCKETFFT POCKETFFT_CACHE_SIZE=32 POCKETFFT_NO_MULTITHREADING)
  target_compile_options(test_fft_pocketfft PRIVATE $<$<CONFIG:Release>:-O0>) # the library takes a compiler long
  target_include_directories(test_fft_pocketfft SYSTEM PRIVATE ${test_POCKETFFT})
  target_link_libraries(test_fft_pocketfft PRIVATE bracewell_warnings $<TARGET_FILE:bracewell_test_main>
    Bracewell::Bracewell Catch2::Catch2)
  add_dependencies(test_fft_pocketfft bracewell_test_main)
  add_test(NAME test_fft_pocketfft COMMAND test_fft_pocketfft)
else()
  bracewell_skipped_test(test_fft_pocketfft "there is no pocketfft_hdronly.h")
endif()
