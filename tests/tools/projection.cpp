// Kernels, labels and instances of the projection operators, seen through Kokkos' tools interface.

#include "checks.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#if defined(KOKKOS_ENABLE_OPENMP) && !defined(KOKKOS_ENABLE_CUDA) && !defined(KOKKOS_ENABLE_HIP)
#include <omp.h>

#include <atomic>
#endif

using namespace Bracewell;

namespace {

using Test::Function;
using Test::Space;
using Test::View;
using Complex = Kokkos::complex<float>;

const std::vector<Strategy>& strategies() {
  static const auto all = Impl::is_host<Space>
                              ? std::vector{Strategy::Atomic, Strategy::Owned, Strategy::Duplicated}
                              : std::vector{Strategy::Atomic, Strategy::Owned};
  return all;
}

struct Arguments {
  View<Complex****> reconstruction{"r", 2, 9, 8, 6}, data{"d", 2, 9, 8, 6};
  View<float****> weight{"w", 2, 9, 8, 6};
  View<Complex****> projections{"p", 2, 3, 7, 5}, cotangent{"c", 2, 3, 7, 5};
  View<float****> weights{"ws", 2, 3, 7, 5}, projection_weights{"pw", 2, 3, 7, 5};
  View<float****> matrices{"m", 2, 3, 3, 3}, matrix_gradient{"mg", 2, 3, 3, 3};
  View<float***> shifts{"s", 2, 3, 2}, shift_gradient{"sg", 2, 3, 2};
  View<float*> scratch{"scratch", 100000};
  Poses<float, Space::memory_space> poses{.matrices = matrices, .shifts = shifts};
};

template <class Kernel>
std::vector<Function> functions(const Arguments& a) {
  std::vector<Function> all{
      {"project",
       [&](const Space& space) { project<Kernel>(space, a.reconstruction, a.poses, a.projections); }},
      {"backproject_gradients",
       [&](const Space& space) {
         backproject_gradients<Kernel>(space, a.cotangent, a.poses,
                                       {.data = a.reconstruction,
                                        .weight = a.weight,
                                        .weights = a.weights,
                                        .projections = a.projections,
                                        .projection_weights = a.projection_weights});
       }},
      {"backproject_gradients", [&](const Space& space) {
         backproject_gradients<Kernel>(
             space, a.cotangent, a.poses,
             {.data = a.reconstruction, .matrices = a.matrix_gradient, .shifts = a.shift_gradient});
       }}};
  for (const Strategy strategy : strategies()) {
    all.push_back({"backproject", [&a, strategy](const Space& space) {
                     backproject<Kernel>(
                         space, a.cotangent, a.poses,
                         {.data = a.data, .weight = a.weight, .weights = a.weights, .scratch = a.scratch},
                         {.strategy = strategy});
                   }});
    all.push_back({"project_gradients", [&a, strategy](const Space& space) {
                     project_gradients<Kernel>(space, a.reconstruction, a.poses, a.cotangent,
                                               {.projections = a.projections,
                                                .reconstruction = a.data,
                                                .matrices = a.matrix_gradient,
                                                .shifts = a.shift_gradient,
                                                .scratch = a.scratch},
                                               {.strategy = strategy});
                   }});
  }
  return all;
}

} // namespace

TEST_CASE("labels of the projection operators; no fences, copies or allocations") {
  const Arguments arguments;
  for (const Function& function : functions<Linear>(arguments))
    check_labels(function);
}

TEST_CASE("the projection operators run on the instance they are given") {
  const Arguments arguments;
  for (const Function& function : functions<Linear>(arguments))
    check_instances(function);
}

#if defined(KOKKOS_ENABLE_OPENMP) && !defined(KOKKOS_ENABLE_CUDA) && !defined(KOKKOS_ENABLE_HIP)
namespace {

/// Linear interpolation that notes how many threads its parallel region has.
struct Witness : Linear {
  static inline std::atomic<int> fewest = 0, most = 0;
  static void reset() { fewest = 1000000, most = 0; }

  template <class T>
  static void weights(T f, T (&w)[width]) {
    const int threads = omp_get_num_threads();
    if (threads < fewest)
      fewest = threads;
    if (threads > most)
      most = threads;
    Linear::weights(f, w);
  }
};

} // namespace

TEST_CASE("the projection operators run on the threads of their OpenMP instance") {
  if (Space().concurrency() < 2)
    SKIP("one thread has one instance");
  const Arguments arguments;
  for (const auto& [space, threads] : {std::pair{Space(), Space().concurrency()}, std::pair{Space(1), 1}})
    for (const Function& function : functions<Witness>(arguments)) {
      Witness::reset();
      function.call(space);
      space.fence();
      INFO(function.name);
      CHECK(Witness::fewest == threads);
      CHECK(Witness::most == threads);
    }
}
#endif

TEST_CASE("only the gradients that are asked for are computed") {
  const Arguments a;
  const Space space;
  const auto kernels = [&](const ProjectGradients<float, Space::memory_space>& wanted) {
    return Test::report(
        [&] { project_gradients<Linear>(space, a.reconstruction, a.poses, a.cotangent, wanted); });
  };
  const auto scatters = [](const Test::Report& seen) {
    return seen.launches("reconstruction") || seen.launches("atomic") || seen.launches("owned") ||
           seen.launches("duplicated");
  };
  SECTION("poses alone: one gather, no scatter") {
    for (const auto& wanted : {ProjectGradients<float, Space::memory_space>{.matrices = a.matrix_gradient},
                               ProjectGradients<float, Space::memory_space>{.shifts = a.shift_gradient},
                               ProjectGradients<float, Space::memory_space>{.matrices = a.matrix_gradient,
                                                       .shifts = a.shift_gradient}}) {
      const Test::Report seen = kernels(wanted);
      CHECK(seen.kernels.size() == 1);
      CHECK(seen.launches("Bracewell::project_gradients::poses"));
      CHECK_FALSE(scatters(seen));
    }
  }
  SECTION("values and pose gradients in one pass") {
    const Test::Report seen =
        kernels({.projections = a.projections, .matrices = a.matrix_gradient, .shifts = a.shift_gradient});
    CHECK(seen.kernels.size() == 1);
    CHECK_FALSE(scatters(seen));
  }
  SECTION("the reconstruction alone: no gather") {
    const Test::Report seen = kernels({.reconstruction = a.data});
    CHECK(seen.kernels.size() == 1);
    CHECK(scatters(seen));
    CHECK_FALSE(seen.launches("poses"));
  }
  SECTION("nothing asked for: nothing launched") { CHECK(kernels({}).kernels.empty()); }
  SECTION("nothing asked of a back-projection: nothing launched") {
    const Test::Report seen = Test::report(
        [&] { backproject_gradients<Linear>(space, a.cotangent, a.poses, {.data = a.reconstruction}); });
    CHECK(seen.kernels.empty());
  }
  SECTION("poses of a back-projection: one gather") {
    const Test::Report seen = Test::report([&] {
      backproject_gradients<Linear>(space, a.cotangent, a.poses,
                                    {.data = a.reconstruction, .matrices = a.matrix_gradient});
    });
    CHECK(seen.kernels.size() == 1);
    CHECK_FALSE(scatters(seen));
  }
}

TEST_CASE("no poses: no kernels") {
  Arguments a;
  a.projections = View<Complex****>("p", 2, 0, 7, 5);
  a.poses = {.matrices = View<float****>("m", 1, 1, 3, 3)};
  CHECK(Test::report([&] {
          project<Linear>(Space(), a.reconstruction, a.poses, a.projections);
        }).kernels.empty());
  CHECK(Test::report([&] {
          backproject<Linear>(Space(), a.projections, a.poses, {.data = a.data});
        }).kernels.empty());
}
