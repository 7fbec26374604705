// Wrong input: the message names function, argument, what was expected and what was found, and nothing is
// written.

#include "../deep_copy.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

constexpr float untouched = 7;

/// Arguments that fit: two volumes of 6 x 7 x 8, three images of 5 x 6 of each.
struct Arguments {
  Space space;
  View<Complex****> reconstruction{"reconstruction", 2, 6, 7, 5}, volume_gradient{"volume", 2, 6, 7, 5},
      data{"data", 2, 6, 7, 5};
  View<float****> weight{"weight", 2, 6, 7, 5};
  View<Complex****> projections{"projections", 2, 3, 5, 4}, cotangent{"cotangent", 2, 3, 5, 4};
  View<float****> weights{"weights", 2, 3, 5, 4}, weights_gradient{"weights", 2, 3, 5, 4};
  View<float****> matrices{"matrices", 2, 3, 3, 3}, matrix_gradient{"matrices", 2, 3, 3, 3};
  View<float***> shifts{"shifts", 2, 3, 2}, shift_gradient{"shifts", 2, 3, 2};
  View<float****> filters{"filters", 2, 3, 5, 4};
  View<float*> scratch;
  ProjectionOptions options{.oversampling = 1};

  Arguments() { reset(); }
  void reset() const {
    Test::deep_copy(reconstruction, Complex(1, 2));
    Test::deep_copy(cotangent, Complex(1, 2));
    Test::deep_copy(filters, 1);
    Test::deep_copy(volume_gradient, Complex(untouched, untouched));
    Test::deep_copy(data, Complex(untouched, untouched));
    Test::deep_copy(weight, untouched);
    Test::deep_copy(projections, Complex(untouched, untouched));
    Test::deep_copy(weights_gradient, untouched);
    Test::deep_copy(matrix_gradient, untouched);
    Test::deep_copy(shift_gradient, untouched);
  }
  bool nothing_written() const {
    Kokkos::fence();
    bool same = true;
    const auto check = [&](const auto& view) {
      const auto host = Test::on_host(view);
      for (std::size_t i = 0; i < host.size(); ++i)
        same = same && Kokkos::real(host.data()[i]) == untouched;
    };
    check(volume_gradient), check(data), check(weight), check(projections), check(weights_gradient);
    check(matrix_gradient), check(shift_gradient);
    return same;
  }

  void project() const {
    Bracewell::project<Linear>(space, reconstruction,
                               {.matrices = matrices, .shifts = shifts, .filters = filters}, projections,
                               options);
  }
  void project_gradients() const {
    Bracewell::project_gradients<Linear>(
        space, reconstruction, {.matrices = matrices, .shifts = shifts, .filters = filters}, cotangent,
        {.projections = projections,
         .reconstruction = volume_gradient,
         .matrices = matrix_gradient,
         .shifts = shift_gradient,
         .scratch = scratch},
        options);
  }
  void backproject() const {
    Bracewell::backproject<Linear>(
        space, cotangent, {.matrices = matrices, .shifts = shifts, .filters = filters},
        {.data = data, .weight = weight, .weights = weights, .scratch = scratch}, options);
  }
  void backproject_gradients() const {
    Bracewell::backproject_gradients<Linear>(space, cotangent,
                                             {.matrices = matrices, .shifts = shifts, .filters = filters},
                                             {.data = reconstruction,
                                              .weight = weight_cotangent,
                                              .weights = weights,
                                              .projections = projections,
                                              .projection_weights = weights_gradient,
                                              .matrices = matrix_gradient,
                                              .shifts = shift_gradient},
                                             options);
  }
  View<float****> weight_cotangent{"weight cotangent", 2, 6, 7, 5};
};

struct Operator {
  std::string name;
  void (Arguments::*call)() const;
};
const std::vector<Operator> operators{{"project", &Arguments::project},
                                      {"project_gradients", &Arguments::project_gradients},
                                      {"backproject", &Arguments::backproject},
                                      {"backproject_gradients", &Arguments::backproject_gradients}};

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// "Bracewell::function: argument: expected ..., found ..." with nothing written.
void check_message(const Arguments& arguments, const std::string& message, const std::string& function,
                   const std::string& argument, const std::string& found) {
  INFO(message);
  CHECK(message.starts_with("Bracewell::" + function + ": " + argument + ": expected "));
  CHECK(message.ends_with(", found " + found));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(arguments.nothing_written());
}

/// Every operator refuses what `spoil` makes of the arguments.
template <class Spoil>
void all_refuse(const Spoil& spoil, const std::string& argument, const std::string& found) {
  for (const Operator& one : operators) {
    Arguments arguments;
    spoil(arguments);
    check_message(arguments, message_of([&] { (arguments.*one.call)(); }), one.name, argument, found);
  }
}

template <class Spoil>
void refuses(const Operator& one, const Spoil& spoil, const std::string& argument, const std::string& found) {
  Arguments arguments;
  spoil(arguments);
  check_message(arguments, message_of([&] { (arguments.*one.call)(); }), one.name, argument, found);
}

/// A View over the memory of another.
template <class DataType, class Source, class... Extents>
View<DataType> over(const Source& source, Extents... extents) {
  return View<DataType>(reinterpret_cast<typename View<DataType>::pointer_type>(source.data()), extents...);
}

} // namespace

TEST_CASE("arguments that fit are accepted") {
  for (const auto& [name, call] : operators) {
    const Arguments arguments;
    INFO(name);
    CHECK_NOTHROW((arguments.*call)());
    CHECK_FALSE(arguments.nothing_written());
  }
}

TEST_CASE("poses that do not fit") {
  using A = Arguments;
  all_refuse([](A& a) { a.matrices = {}; }, "poses.matrices", "an empty one");
  all_refuse([](A& a) { a.matrices = View<float****>("m", 2, 3, 2, 2); }, "poses.matrices", "[2, 3, 2, 2]");
  all_refuse([](A& a) { a.matrices = View<float****>("m", 2, 3, 3, 2); }, "poses.matrices", "[2, 3, 3, 2]");
  all_refuse([](A& a) { a.matrices = View<float****>("m", 3, 3, 3, 3); }, "poses.matrices", "[3, 3, 3, 3]");
  all_refuse([](A& a) { a.matrices = View<float****>("m", 2, 4, 3, 3); }, "poses.matrices", "[2, 4, 3, 3]");
  all_refuse([](A& a) { a.shifts = View<float***>("s", 2, 3, 3); }, "poses.shifts", "[2, 3, 3]");
  all_refuse([](A& a) { a.shifts = View<float***>("s", 2, 2, 2); }, "poses.shifts", "[2, 2, 2]");
  all_refuse([](A& a) { a.shifts = View<float***>("s", 3, 3, 2); }, "poses.shifts", "[3, 3, 2]");
  all_refuse([](A& a) { a.filters = View<float****>("f", 2, 2, 5, 4); }, "poses.filters", "[2, 2, 5, 4]");
  all_refuse([](A& a) { a.filters = View<float****>("f", 3, 3, 5, 4); }, "poses.filters", "[3, 3, 5, 4]");
  all_refuse([](A& a) { a.filters = View<float****>("f", 2, 3, 4, 4); }, "poses.filters", "[2, 3, 4, 4]");
  all_refuse([](A& a) { a.filters = View<float****>("f", 2, 3, 5, 5); }, "poses.filters", "width 8");
}

TEST_CASE("poses of wrong rank") {
  const Arguments arguments;
  const View<float**> one_matrix("m", 3, 3);
  check_message(arguments, message_of([&] {
                  project<Linear>(arguments.space, arguments.reconstruction, {.matrices = one_matrix},
                                  arguments.projections, arguments.options);
                }),
                "project", "poses.matrices", "[3, 3]");
  const View<float*> one_shift("s", 2);
  check_message(arguments, message_of([&] {
                  project<Linear>(arguments.space, arguments.reconstruction,
                                  {.matrices = arguments.matrices, .shifts = one_shift},
                                  arguments.projections, arguments.options);
                }),
                "project", "poses.shifts", "[2]");
}

TEST_CASE("options out of range") {
  for (const double wrong : {0., -1., double(INFINITY), double(NAN)})
    all_refuse([&](Arguments& a) { a.options.oversampling = wrong; }, "options.oversampling",
               Impl::number(wrong));
  for (const double wrong : {-1e-9, double(INFINITY), double(NAN)})
    all_refuse([&](Arguments& a) { a.options.radius = wrong; }, "options.radius", Impl::number(wrong));
  for (const double wrong : {0., 0.5, double(NAN)})
    all_refuse([&](Arguments& a) { a.options.ewald_radius = wrong; }, "options.ewald_radius",
               Impl::number(wrong));
}

TEST_CASE("volumes and projections that do not fit") {
  const auto& [project, project_gradients, backproject, backproject_gradients] =
      std::tie(operators[0], operators[1], operators[2], operators[3]);
  using A = Arguments;
  const auto three_volumes = [] { return View<Complex****>("v", 3, 6, 7, 5); };
  const auto tiny_volume = [] { return View<Complex****>("v", 2, 3, 7, 5); };
  for (const Operator& one : {project, project_gradients}) {
    refuses(
        one, [](A& a) { a.reconstruction = {}; }, "reconstruction", "an empty one");
    refuses(
        one, [&](A& a) { a.reconstruction = tiny_volume(); }, "reconstruction", "[2, 3, 7, 5]");
    refuses(
        one, [&](A& a) { a.reconstruction = three_volumes(); }, "reconstruction", "[3, 6, 7, 5]");
  }
  refuses(
      project, [](A& a) { a.projections = {}; }, "projections", "an empty one");
  refuses(
      project_gradients, [](A& a) { a.cotangent = {}; }, "cotangent", "an empty one");
  refuses(
      backproject, [](A& a) { a.cotangent = {}; }, "projections", "an empty one");
  refuses(
      backproject,
      [&](A& a) {
        a.data = tiny_volume();
        Test::deep_copy(a.data, untouched);
      },
      "data", "[2, 3, 7, 5]");
  refuses(
      backproject,
      [&](A& a) {
        a.data = three_volumes();
        Test::deep_copy(a.data, untouched);
      },
      "data", "[3, 6, 7, 5]");
  refuses(
      backproject_gradients, [&](A& a) { a.reconstruction = three_volumes(); }, "data", "[3, 6, 7, 5]");
  refuses(
      project_gradients,
      [](A& a) {
        a.volume_gradient = View<Complex****>("v", 1, 6, 7, 5);
        Test::deep_copy(a.volume_gradient, untouched);
      },
      "gradients.reconstruction", "[1, 6, 7, 5] (width 8)");
  refuses(
      project_gradients,
      [](A& a) {
        a.matrix_gradient = View<float****>("m", 1, 3, 3, 3);
        Test::deep_copy(a.matrix_gradient, untouched);
      },
      "gradients.matrices", "[1, 3, 3, 3] (width 4)");
}

TEST_CASE("widths that the columns contradict") {
  const Arguments a;
  const Poses<float, Space::memory_space> poses{.matrices = a.matrices};
  for (const int wrong : {7, 10, 0, -1})
    check_message(a, message_of([&] {
                    project<Linear>(a.space, HalfSpectrum{a.reconstruction, wrong}, poses, a.projections);
                  }),
                  "project", "reconstruction", "[2, 6, 7, 5]");
  check_message(a, message_of([&] {
                  project<Linear>(a.space, a.reconstruction, poses, HalfSpectrum{a.projections, 8});
                }),
                "project", "projections", "[2, 3, 5, 4]");
  // Gradients have the width of what they are gradients of.
  check_message(a, message_of([&] {
                  project_gradients<Linear>(a.space, HalfSpectrum{a.reconstruction, 9}, poses, a.cotangent,
                                            {.reconstruction = a.volume_gradient}, a.options);
                }),
                "project_gradients", "gradients.reconstruction", "[2, 6, 7, 5] (width 8)");
  CHECK_NOTHROW(project<Linear>(a.space, HalfSpectrum{a.reconstruction, 9}, poses,
                                HalfSpectrum{a.projections, 7}, a.options));
}

TEST_CASE("odd boxes that do not state their width") {
  const Arguments a;
  const Poses<float, Space::memory_space> poses{.matrices = a.matrices};
  const View<Complex****> odd_images("images", 2, 3, 7, 4), odd_volumes("volumes", 2, 9, 9, 5);
  Test::deep_copy(odd_images, untouched);
  check_message(a,
                message_of([&] { project<Linear>(a.space, a.reconstruction, poses, odd_images, a.options); }),
                "project", "projections", "a View [2, 3, 7, 4] alone");
  check_message(a,
                message_of([&] { project<Linear>(a.space, odd_volumes, poses, a.projections, a.options); }),
                "project", "reconstruction", "a View [2, 9, 9, 5] alone");
  for (const std::size_t width : {6, 7}) // of any integer type
    CHECK_NOTHROW(project<Linear>(a.space, HalfSpectrum{odd_volumes, 9}, poses,
                                  HalfSpectrum{odd_images, width}, a.options));
}

TEST_CASE("boxes that differ need an oversampling") {
  all_refuse([](Arguments& a) { a.options.oversampling = {}; }, "options.oversampling", "none");
}

TEST_CASE("gradients that nobody asks for") {
  const Arguments a;
  const Poses<float, Space::memory_space> poses{.matrices = a.matrices};
  check_message(a, message_of([&] {
                  project_gradients<Linear>(a.space, a.reconstruction, poses, a.cotangent, {}, a.options);
                }),
                "project_gradients", "gradients", "none");
  check_message(a, message_of([&] {
                  backproject_gradients<Linear>(a.space, a.cotangent, poses, {.data = a.reconstruction},
                                                a.options);
                }),
                "backproject_gradients", "gradients", "none");
}

TEST_CASE("memory of Views without a name lives as long as what refers to it") {
  const Arguments a;
  Poses<float, Space::memory_space> poses;
  {
    const View<float****> matrices("matrices", 1, 1, 3, 3);
    Test::deep_copy(matrices, 1);
    poses = {.matrices = View<float****>(matrices)};
    CHECK(matrices.use_count() == 2);
  }
  const View<float****> others("others", 1, 1, 3, 3); // where the first may have been
  project<Linear>(a.space, a.reconstruction, poses, a.projections, a.options);
  const View<Complex****> again("again", 2, 3, 5, 4);
  Test::deep_copy(others, 1);
  project<Linear>(a.space, a.reconstruction, {.matrices = others}, again, a.options);
  const auto one = Test::on_host(a.projections), two = Test::on_host(again);
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(one.data()[i] == two.data()[i]);
}

TEST_CASE("weights and weight volumes that do not fit") {
  using A = Arguments;
  const Operator &backproject = operators[2], &backproject_gradients = operators[3];
  refuses(
      backproject, [](A& a) { a.weights = {}; }, "weight", "one without the other");
  refuses(
      backproject, [](A& a) { a.weights = View<float****>("w", 2, 3, 5, 3); }, "weights", "width 4");
  refuses(
      backproject, [](A& a) { a.weights = View<float****>("w", 2, 2, 5, 4); }, "weights", "[2, 2, 5, 4]");
  refuses(
      backproject,
      [](A& a) {
        a.weight = View<float****>("w", 1, 6, 7, 5);
        Test::deep_copy(a.weight, untouched);
      },
      "weight", "[1, 6, 7, 5] (width 8)");
  refuses(
      backproject_gradients, [](A& a) { a.weights = {}; }, "weight", "one without the other");
  refuses(
      backproject_gradients, [](A& a) { a.weights = View<float****>("w", 2, 2, 5, 4); }, "weights",
      "[2, 2, 5, 4]");
  refuses(
      backproject_gradients, [](A& a) { a.weight_cotangent = View<float****>("w", 2, 5, 7, 5); }, "weight",
      "[2, 5, 7, 5] (width 8)");
}

TEST_CASE("a gradient of weights needs a weight volume") {
  const Arguments a;
  check_message(a, message_of([&] {
                  backproject_gradients<Linear>(
                      a.space, a.cotangent, {.matrices = a.matrices},
                      {.data = a.reconstruction, .projection_weights = a.weights_gradient}, a.options);
                }),
                "backproject_gradients", "projection_weights", "none");
}

TEST_CASE("a gradient of shifts needs shifts") {
  const Arguments a;
  check_message(a, message_of([&] {
                  project_gradients<Linear>(a.space, a.reconstruction, {.matrices = a.matrices}, a.cotangent,
                                            {.shifts = a.shift_gradient}, a.options);
                }),
                "project_gradients", "gradients.shifts", "[2, 3, 2]");
}

TEST_CASE("outputs that share memory with other arguments") {
  const Operator &project = operators[0], &project_gradients = operators[1], &backproject = operators[2],
                 &backproject_gradients = operators[3];
  using A = Arguments;
  const auto untouched_cotangent = [](A& a) { Test::deep_copy(a.cotangent, untouched); };
  const auto untouched_volume = [](A& a) { Test::deep_copy(a.reconstruction, untouched); };
  refuses(
      project,
      [&](A& a) { untouched_volume(a), a.projections = over<Complex****>(a.reconstruction, 2, 3, 5, 4); },
      "projections", "memory shared with reconstruction");
  refuses(
      project_gradients, [&](A& a) { untouched_volume(a), a.volume_gradient = a.reconstruction; },
      "gradients.reconstruction", "memory shared with reconstruction");
  refuses(
      project_gradients, [&](A& a) { untouched_cotangent(a), a.projections = a.cotangent; },
      "gradients.projections", "memory shared with cotangent");
  refuses(
      backproject, [&](A& a) { a.cotangent = over<Complex****>(a.data, 2, 3, 5, 4); }, "data",
      "memory shared with projections");
  refuses(
      backproject, [&](A& a) { a.weight = over<float****>(a.data, 2, 6, 7, 5); }, "weight",
      "memory shared with data");
  refuses(
      backproject, [&](A& a) { a.weights = over<float****>(a.weight, 2, 3, 5, 4); }, "weight",
      "memory shared with weights");
  refuses(
      backproject_gradients, [&](A& a) { a.cotangent = a.projections; }, "projections",
      "memory shared with projections (input)");
  refuses(
      backproject_gradients, [&](A& a) { a.weights = a.weights_gradient; }, "projection_weights",
      "memory shared with weights");
  const auto matrices_over_images = [](A& a) { a.matrices = over<float****>(a.projections, 2, 3, 3, 3); };
  refuses(project, matrices_over_images, "projections", "memory shared with poses.matrices");
  refuses(
      project, [](A& a) { a.filters = over<float****>(a.projections, 2, 3, 5, 4); }, "projections",
      "memory shared with poses.filters");
  refuses(
      backproject, [](A& a) { a.weights = over<float****>(a.data, 2, 3, 5, 4); }, "data",
      "memory shared with weights");
  refuses(
      backproject, [](A& a) { a.scratch = over<float*>(a.cotangent, 4); }, "scratch",
      "memory shared with projections");
  refuses(
      project_gradients, [](A& a) { a.scratch = over<float*>(a.volume_gradient, 4); }, "scratch",
      "memory shared with gradients.reconstruction");
  refuses(
      backproject_gradients, [](A& a) { a.weights = over<float****>(a.projections, 2, 3, 5, 4); },
      "projections", "memory shared with weights");
  for (const bool forward : {true, false}) {
    const Operator& one = forward ? project_gradients : backproject_gradients;
    const std::string name = forward ? "gradients." : "";
    refuses(one, matrices_over_images, name + "projections", "memory shared with poses.matrices");
    refuses(
        one, [](A& a) { Test::deep_copy(a.matrices, untouched), a.matrix_gradient = a.matrices; },
        name + "matrices", "memory shared with poses.matrices");
    refuses(
        one, [](A& a) { Test::deep_copy(a.shifts, untouched), a.shift_gradient = a.shifts; }, name + "shifts",
        "memory shared with poses.shifts");
    refuses(
        one, [](A& a) { a.shift_gradient = over<float***>(a.matrix_gradient, 2, 3, 2); }, name + "shifts",
        "memory shared with " + name + "matrices");
  }
}

TEST_CASE("strategies that cannot be had") {
  using A = Arguments;
  for (const Operator& one : {operators[1], operators[2]}) {
    Arguments arguments;
    arguments.options.strategy = Strategy::Duplicated;
    arguments.scratch = View<float*>("scratch", 10);
    const std::string message = message_of([&] { (arguments.*one.call)(); });
    if (Impl::is_host<Space>)
      check_message(arguments, message, one.name, "scratch", "10");
    else
      check_message(arguments, message, one.name, "options.strategy", "Duplicated");
  }
  if (Impl::is_host<Space>)
    refuses(
        operators[2], [](A& a) { a.options.strategy = Strategy::Duplicated; }, "scratch", "0");
}

TEST_CASE("the memory that accumulation needs is what is asked for") {
  Arguments arguments;
  const auto elements = static_cast<std::int64_t>(arguments.data.size());
  const auto values_of = [&](Strategy strategy) {
    return scratch_size(arguments.space, strategy, elements, true);
  };
  for (const Strategy strategy : {Strategy::Automatic, Strategy::Atomic, Strategy::Owned}) {
    CHECK(values_of(strategy) == 0);
    arguments.options.strategy = strategy;
    CHECK_NOTHROW(arguments.backproject());
  }
  if (!Impl::is_host<Space>)
    return;
  arguments.options.strategy = Strategy::Duplicated;
  const std::int64_t values = values_of(Strategy::Duplicated);
  arguments.scratch = View<float*>("scratch", values - 1);
  CHECK_THROWS_AS(arguments.backproject(), Error);
  arguments.scratch = View<float*>("scratch", values);
  CHECK_NOTHROW(arguments.backproject());
}

TEST_CASE("no poses: nothing is done") {
  Arguments arguments;
  arguments.projections = View<Complex****>("p", 2, 0, 5, 4);
  arguments.cotangent = View<Complex****>("c", 2, 0, 5, 4);
  arguments.weights = View<float****>("w", 2, 0, 5, 4);
  arguments.weights_gradient = View<float****>("w", 2, 0, 5, 4);
  for (const std::size_t poses : {0, 1}) {
    arguments.matrices = View<float****>("m", 2, poses, 3, 3);
    arguments.shifts = View<float***>("s", 2, poses, 2);
    arguments.filters = View<float****>("f", 2, poses, 5, 4);
    arguments.matrix_gradient = View<float****>("m", 2, poses, 3, 3);
    arguments.shift_gradient = View<float***>("s", 2, poses, 2);
    for (const auto& [name, call] : operators) {
      INFO(name);
      arguments.reset();
      CHECK_NOTHROW((arguments.*call)());
      if (std::string(name).find("gradients") == std::string::npos) // those are zero: empty_problems.cpp
        CHECK(arguments.nothing_written());
    }
  }
}

TEST_CASE("an error gives its parts, and copies keep them") {
  Arguments arguments;
  arguments.options.oversampling = -1;
  const auto parts = [](const Error& error) {
    return std::string(error.function()) + '|' + std::string(error.argument()) + '|' +
           std::string(error.expected()) + '|' + std::string(error.found());
  };
  for (const auto& [name, call] : operators) {
    try {
      (arguments.*call)();
      FAIL("no error");
    } catch (const Error& error) {
      // A copy is what is tested. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
      const Error copy = error;
      CHECK(std::string(error.what()) == "Bracewell::" + name + ": options.oversampling: expected " +
                                             std::string(copy.expected()) + ", found -1");
      CHECK(parts(copy) == name + "|options.oversampling|" + std::string(error.expected()) + "|-1");
      CHECK(!error.expected().empty());
    }
  }
  CHECK(parts(Error("cuFFT could not plan")) == "|||");
}
