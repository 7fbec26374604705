#include <bracewell/distributed/communicator.hpp>
#include <bracewell/project/backproject.hpp>

#include <cstdio>

int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  bool right = false;
  {
    const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings().set_map_device_id_by("mpi_rank"));
    const Kokkos::DefaultExecutionSpace space;
    const Bracewell::Communicator<Kokkos::DefaultExecutionSpace> processes(space, MPI_COMM_WORLD);
    const Bracewell::Share mine = processes.share(1001); // of so many images of a point, all in one pose
    using Spectra = Kokkos::View<Kokkos::complex<float>****, Kokkos::LayoutRight>;
    Spectra images("images", 1, mine.size(), 32, 17), data("data", 1, 32, 32, 17);
    Kokkos::View<float****, Kokkos::LayoutRight> matrices("matrices", 1, 1, 3, 3);
    auto identity = Kokkos::create_mirror_view(matrices);
    for (int axis = 0; axis < 3; ++axis)
      identity(0, 0, axis, axis) = 1;
    Kokkos::deep_copy(matrices, identity);
    Kokkos::deep_copy(images, 1);
    Bracewell::backproject(space, images, {.matrices = matrices}, {.data = data});
    processes.sum(space, data); // now that of all images, in every process
    const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), data);
    std::printf("Process %d of %d: %ld images of %g\n", processes.rank(), processes.size(), long(mine.size()),
                result(0, 0, 3, 4).real());
    right = result(0, 0, 3, 4) == 1001.0f;
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
