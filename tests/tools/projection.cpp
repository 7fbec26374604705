// Kernels, labels and instances of the projection operators, seen through Kokkos' tools interface.

#include "checks.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
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
  View<Complex****> projections{"p", 2, 3, 8, 5}, cotangent{"c", 2, 3, 8, 5};
  View<float****> weights{"ws", 2, 3, 8, 5}, projection_weights{"pw", 2, 3, 8, 5};
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
      function.call(space); // the first call checks the kernel, on this thread
      space.fence();
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
  SECTION("poses alone: zeros and one gather, no scatter") {
    for (const auto& wanted : {ProjectGradients<float, Space::memory_space>{.matrices = a.matrix_gradient},
                               ProjectGradients<float, Space::memory_space>{.shifts = a.shift_gradient},
                               ProjectGradients<float, Space::memory_space>{.matrices = a.matrix_gradient,
                                                       .shifts = a.shift_gradient}}) {
      const Test::Report seen = kernels(wanted);
      CHECK(seen.kernels.size() == 2);
      CHECK(seen.launches("Bracewell::project_gradients::poses"));
      CHECK_FALSE(scatters(seen));
    }
  }
  SECTION("values and pose gradients in one pass") {
    const Test::Report seen =
        kernels({.projections = a.projections, .matrices = a.matrix_gradient, .shifts = a.shift_gradient});
    CHECK(seen.kernels.size() == 2);
    CHECK_FALSE(scatters(seen));
  }
  SECTION("the reconstruction alone: no gather") {
    const Test::Report seen = kernels({.reconstruction = a.data});
    CHECK(seen.kernels.size() == 2);
    CHECK(scatters(seen));
    CHECK_FALSE(seen.launches("poses"));
  }
  SECTION("poses of a back-projection: one gather") {
    const Test::Report seen = Test::report([&] {
      backproject_gradients<Linear>(space, a.cotangent, a.poses,
                                    {.data = a.reconstruction, .matrices = a.matrix_gradient});
    });
    CHECK(seen.kernels.size() == 2);
    CHECK_FALSE(scatters(seen));
  }
}

namespace {

/// The label of the kernel that the choice functions name.
std::string step_of(Sampling sampling) {
  switch (sampling) {
  case Sampling::Rows:
    return "rows";
  case Sampling::Tiles:
    return "tiles";
  case Sampling::PaddedCopies:
    return "padded";
  case Sampling::PoseSums:
    break;
  }
  return "poses";
}
std::string step_of(Insertion insertion) {
  switch (insertion) {
  case Insertion::Atomic:
  case Insertion::AtomicHost:
    return "atomic";
  case Insertion::Patches:
    return "patches";
  case Insertion::OwnedHost:
  case Insertion::OwnedGpu:
    return "owned";
  case Insertion::Duplicated:
    break;
  }
  return "duplicated";
}

/// `poses` projections of 8 x 8 of a volume of `n` x `n` x `n`, prepared or not.
template <class Kernel>
void check_sampling(int n, int poses, bool prepared) {
  CAPTURE(Kernel::name, n, poses, prepared);
  const Space space;
  const ProjectionOptions options{.oversampling = 1};
  const View<Complex****> volume("volume", 1, n, n, n / 2 + 1), images("images", 1, poses, 8, 5),
      output("output", 1, poses, 8, 5);
  const View<float****> matrices("matrices", 1, 1, 3, 3), gradient("gradient", 1, 1, 3, 3);
  const auto reference = prepare<Kernel>(space, volume);
  const auto cotangent = prepare<Kernel>(space, volume, ReadBy::BackprojectGradients);
  SamplingWork work{.host = Impl::is_host<Space>, .prepared = prepared};
  const auto label = [&](const std::string& function) {
    return "Bracewell::" + function + "::" + step_of(choose_sampling(work));
  };
  const auto last = [](const Test::Report& seen) { return seen.kernels.back().label; };
  CHECK(last(Test::report([&] {
          if (prepared)
            project(space, reference, {.matrices = matrices}, images, options);
          else
            project<Kernel>(space, volume, {.matrices = matrices}, images, options);
        })) == label("project"));
  CHECK(last(Test::report([&] {
          if (prepared)
            backproject_gradients(space, images, {.matrices = matrices}, cotangent, {.projections = output},
                                  options);
          else
            backproject_gradients<Kernel>(space, images, {.matrices = matrices},
                                          {.data = volume, .projections = output}, options);
        })) == label("backproject_gradients"));
  work.pose_gradients = true;
  CHECK(last(Test::report([&] {
          if (prepared)
            project_gradients(space, reference, {.matrices = matrices}, images, {.matrices = gradient},
                              options);
          else
            project_gradients<Kernel>(space, volume, {.matrices = matrices}, images, {.matrices = gradient},
                                      options);
        })) == label("project_gradients"));
}

} // namespace

TEST_CASE("the sampling kernel that choose_sampling names is the one that runs") {
  for (const bool prepared : {false, true}) {
    check_sampling<Linear>(8, 3, prepared);
    check_sampling<CatmullRom>(8, 100, prepared);
    if (!Impl::is_host<Space>) // sizes that would take a host long
      check_sampling<CatmullRom>(208, 1024, prepared);
  }
}

TEST_CASE("the insertion kernel that choose_insertion names is the one that runs") {
  const Space space;
  for (const int poses : {1, Impl::is_host<Space> ? 10 : 10000})
    for (const Strategy strategy : strategies()) {
      CAPTURE(poses, int(strategy));
      const View<Complex****> volume("volume", 1, 8, 8, 5), data("data", 1, 8, 8, 5),
          images("images", 1, poses, 8, 5);
      const View<float****> matrices("matrices", 1, 1, 3, 3);
      const View<float*> scratch("scratch", scratch_size(space, Strategy::Duplicated, 8 * 8 * 5, false));
      const Insertion insertion = choose_insertion({.dimensions = 3,
                                                    .projection_dimensions = 2,
                                                    .width = 2,
                                                    .batches = 1,
                                                    .poses = poses,
                                                    .projection_elements = 8 * 5,
                                                    .threads = space.concurrency(),
                                                    .host = Impl::is_host<Space>,
                                                    .strategy = strategy});
      const auto check = [&](const std::string& function, const Test::Report& seen) {
        CHECK(seen.launches("Bracewell::" + function + "::" + step_of(insertion)));
      };
      check("backproject", Test::report([&] {
              backproject<Linear>(space, images, {.matrices = matrices}, {.data = data, .scratch = scratch},
                                  {.strategy = strategy});
            }));
      check("project_gradients::reconstruction", Test::report([&] {
              project_gradients<Linear>(space, volume, {.matrices = matrices}, images,
                                        {.reconstruction = data, .scratch = scratch}, {.strategy = strategy});
            }));
    }
}

TEST_CASE("no poses: no kernels but those that write zeros") {
  Arguments a;
  a.projections = View<Complex****>("p", 2, 0, 8, 5);
  const View<float****> matrices("m", 1, 1, 3, 3);
  a.poses = {.matrices = matrices};
  a.matrix_gradient = View<float****>("g", 1, 1, 3, 3);
  CHECK(Test::report([&] {
          project<Linear>(Space(), a.reconstruction, a.poses, a.projections);
        }).kernels.empty());
  CHECK(Test::report([&] {
          backproject<Linear>(Space(), a.projections, a.poses, {.data = a.data});
        }).kernels.empty());
  CHECK(Test::report([&] {
          project_gradients<Linear>(Space(), a.reconstruction, a.poses, a.projections,
                                    {.reconstruction = a.data, .matrices = a.matrix_gradient});
        }).kernels.size() == 1);
  CHECK(Test::report([&] {
          backproject_gradients<Linear>(Space(), a.projections, a.poses,
                                        {.data = a.reconstruction, .matrices = a.matrix_gradient});
        }).kernels.size() == 1);
}
