# tests/distributed/<name>.cpp becomes a program that runs as 1 to 4 processes of MPI, and one that is built without MPI.

# Open MPI refuses root, and more processes than cores, where it is not told, and looks for ssh on one host, too.
set(bracewell_mpi_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  OMPI_MCA_plm_rsh_agent=sh)

bracewell_program(test_distributed_alone distributed/communicator.cpp LIBRARIES bracewell_test_main)
add_test(NAME test_distributed_alone COMMAND test_distributed_alone)
if(NOT MPI_CXX_FOUND)
  bracewell_skipped_test(test_distributed_communicator "MPI is not installed (./dev setup installs Open MPI)")
  return()
endif()
bracewell_program(test_distributed_communicator distributed/communicator.cpp LIBRARIES bracewell_test_main)
target_link_libraries(test_distributed_communicator PRIVATE Bracewell::MPI)
foreach(processes 1 2 3 4)
  set(test test_distributed_communicator_${processes})
  add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${processes}
    $<TARGET_FILE:test_distributed_communicator>)
  set_tests_properties(${test} PROPERTIES TIMEOUT 120 ENVIRONMENT "${bracewell_mpi_environment}")
endforeach()
