# Compiled as readers of the pages compile: -O3, and nothing that only this machine's processor has. What compilers do to the
# library then, tests with -O1 do not see.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT Kokkos_ENABLE_CUDA)
  target_compile_options(test_docs_cryoem PRIVATE -O3 $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-march=x86-64>)
  set_target_properties(test_docs_cryoem PROPERTIES DISABLE_PRECOMPILE_HEADERS ON) # which know other options
endif()
