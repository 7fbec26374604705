// Expectation against brute force: plain loops in double over images, classes, poses, shifts and frequencies. Projections and
// insertions of one image at one pose are those of `project` and `backproject` in double, which have tests of their own.

#include "../deep_copy.hpp"
#include "../page_examples.hpp"

#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/expectation.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using std::int64_t, std::size_t;

template <class DataType, class Make>
void fill_with(const View<DataType>& view, const Make& make) {
  const auto host = Kokkos::create_mirror_view(view);
  for (size_t i = 0; i < host.size(); ++i)
    host.data()[i] = make(i);
  Test::deep_copy(view, host);
}
template <class ViewType>
auto on_host(const ViewType& view) {
  return Test::on_host(view);
}
/// A View with the axes of another but the first: of its own, or of memory that there is.
template <class ViewType, class From, class... Memories>
ViewType with_axes(size_t first, const From& from, const Memories&... memory) {
  if constexpr (ViewType::rank() == 4)
    return ViewType(memory..., first, from.extent(1), from.extent(2), from.extent(3));
  else
    return ViewType(memory..., first, from.extent(1), from.extent(2));
}
/// The same numbers in double.
template <class To, class From>
View<To> in_double(const View<From>& from) {
  const auto host = on_host(from);
  const auto to = with_axes<View<To>>(from.extent(0), from, std::string("double"));
  fill_with(to, [&](size_t i) { return typename View<To>::value_type(host.data()[i]); });
  return to;
}

struct Case {
  const char* name;
  size_t images, classes, poses, shifts;
  int height, width;
  bool shared = false; ///< filters and noise
  bool priors = true, origins = true;
  std::optional<double> radius = std::nullopt;
  std::vector<int64_t> first = {}; ///< of lists
  int64_t bytes = int64_t(1) << 20;
};

/// A problem at random, whose posteriors have some candidates each.
template <class T, int D>
struct Problem {
  using Complex = Kokkos::complex<T>;
  using Spectra = std::conditional_t<D == 2, Complex***, Complex****>;
  using Reals = std::conditional_t<D == 2, T***, T****>;

  Case sizes;
  Space space;
  int N;
  size_t h, columns, shell_count;
  double radius;
  View<Spectra> references, data;
  View<Reals> weight;
  View<Complex***> images;
  View<T***> filters, matrices;
  View<T**> noise, origins, shifts, pose_priors;
  View<T*> shift_priors, class_priors;
  ProjectionOptions options;

  explicit Problem(const Case& asked, Strategy strategy = Strategy::Owned)
      : sizes(asked), N(std::min(asked.height, asked.width) + 3), h(size_t(asked.height)),
        columns(size_t(asked.width / 2 + 1)), shell_count(size_t(asked.height + asked.width)),
        radius(asked.radius.value_or(std::min(asked.height, asked.width) / 2.)) {
    const auto n = size_t(N), k = sizes.classes;
    if constexpr (D == 2) {
      references = View<Spectra>("references", k, n, n / 2 + 1);
      data = View<Spectra>("data", k, n, n / 2 + 1);
      weight = View<Reals>("weight", k, n, n / 2 + 1);
    } else {
      references = View<Spectra>("references", k, n, n + 1, n / 2 + 1);
      data = View<Spectra>("data", k, n, n + 1, n / 2 + 1);
      weight = View<Reals>("weight", k, n, n + 1, n / 2 + 1);
    }
    const size_t own = sizes.shared ? 1 : sizes.images;
    images = View<Complex***>("images", sizes.images, h, columns);
    filters = View<T***>("filters", own, h, columns);
    noise = View<T**>("noise", own, shell_count);
    matrices = View<T***>("matrices", sizes.poses, D, D);
    shifts = View<T**>("shifts", sizes.shifts, 2);
    origins = View<T**>("origins", sizes.images, 2);
    pose_priors = View<T**>("priors", k, sizes.poses);
    shift_priors = View<T*>("priors", sizes.shifts);
    class_priors = View<T*>("priors", k);
    std::mt19937 engine(9);
    std::uniform_real_distribution<T> random(-1, 1);
    const auto complex = [&](T scale) {
      return [&, scale](size_t) {
        const T real = scale * random(engine);
        return Complex(real, scale * random(engine));
      };
    };
    fill_with(references, complex(T(0.4)));
    fill_with(images, complex(1));
    fill_with(filters, [&](size_t) { return random(engine); });
    fill_with(noise, [&](size_t) { return T(1.5) + random(engine); });
    fill_with(matrices, [&](size_t) { return random(engine); });
    fill_with(shifts, [&](size_t) { return 3 * random(engine); });
    fill_with(origins, [&](size_t) { return 5 * random(engine); });
    fill_with(pose_priors, [&](size_t) { return std::max(T(0), random(engine)); }); // half of them zero
    fill_with(shift_priors, [&](size_t) { return 1 + random(engine); });
    fill_with(class_priors, [&](size_t) { return 1 + random(engine); });
    fill_with(data, complex(1)); // is added to
    fill_with(weight, [&](size_t) { return random(engine); });
    options = {.oversampling = 1.1, .radius = sizes.radius, .strategy = strategy};
  }

  auto reference() const { return prepare<Linear>(space, HalfSpectrum{references, N}); }

  Expectation<Space, T> plan(int best = 4) const {
    Expectation<Space, T> step(space,
                               {.images = int64_t(sizes.images) + 1,
                                .shifts = int(sizes.shifts) + 2,
                                .height = sizes.height,
                                .width = sizes.width,
                                .best = best,
                                .bytes = sizes.bytes},
                               options);
    ExpectationImages<T, Memory> input{.spectra = HalfSpectrum{images, sizes.width}, .noise = noise};
    input.filters = Array<const T, Memory>(HalfSpectrum{filters, sizes.width});
    if (sizes.origins)
      input.origins = origins;
    step.set_images(space, input);
    step.set_shifts(space, shifts,
                    sizes.priors ? Array<const T, Memory>(shift_priors) : Array<const T, Memory>());
    return step;
  }

  ExpectationPoses<T, Memory> poses() const {
    ExpectationPoses<T, Memory> all{.matrices = matrices, .first = sizes.first};
    if (sizes.priors) {
      all.priors = pose_priors;
      all.class_priors = class_priors;
    }
    return all;
  }
};

/// Everything that a run yields.
template <class T, int D>
struct Outputs {
  View<double*> evidence, dummy;
  View<T**> class_shares, posteriors;
  View<int**> classes, poses, shifts;
  typename std::remove_const_t<decltype(Problem<T, D>::data)> data;
  decltype(Problem<T, D>::weight) weight;
  View<T*> shares;
  View<int*> candidates;
  View<double**> shift_sums;
  View<double***> shell_sums;

  explicit Outputs(const Problem<T, D>& p, size_t shells, size_t best = 4)
      : evidence("evidence", p.sizes.images), class_shares("shares", p.sizes.images, p.sizes.classes),
        posteriors("best", p.sizes.images, best), classes("best", p.sizes.images, best),
        poses("best", p.sizes.images, best), shifts("best", p.sizes.images, best),
        data(Kokkos::create_mirror(p.space, p.data)), weight(Kokkos::create_mirror(p.space, p.weight)),
        shares("shares", p.sizes.images), candidates("candidates", p.sizes.images),
        shift_sums("shift_sums", p.sizes.images, 3), shell_sums("shell_sums", p.sizes.images, shells, 3) {
    Test::deep_copy(data, p.data);
    Test::deep_copy(weight, p.weight);
    Test::deep_copy(evidence, 7);
    Test::deep_copy(shell_sums, 7);
  }

  ExpectationResults<T, Memory, D> results(int N) const {
    ExpectationResults<T, Memory, D> all;
    all.log_evidence = evidence;
    all.class_shares = class_shares;
    all.posteriors = posteriors;
    all.classes = classes;
    all.poses = poses;
    all.shifts = shifts;
    all.data = SpectraArray<Kokkos::complex<T>, Memory, D>(HalfSpectrum{data, N});
    all.weight = Array<T, Memory>(HalfSpectrum{weight, N});
    all.shares = shares;
    all.candidates = candidates;
    all.shift_sums = shift_sums;
    all.shell_sums = shell_sums;
    return all;
  }
};

/// The definition, in double.
template <class T, int D>
struct BruteForce {
  struct Candidate {
    int c, pose, shift;
    double log_weight, posterior;
  };
  std::vector<double> evidence;
  std::vector<std::vector<Candidate>> candidates; ///< of images, in order
  std::vector<std::complex<double>> data;
  std::vector<double> weight;
  std::vector<double> class_shares, shift_sums, shell_sums;

  BruteForce(const Problem<T, D>& p, size_t shells) {
    using Complex = Kokkos::complex<double>;
    using Spectra = std::conditional_t<D == 2, Complex***, Complex****>;
    using Reals = std::conditional_t<D == 2, double***, double****>;
    const auto& s = p.sizes;
    const HalfSpectrumLayout<2> layout{{s.width, s.height}};
    const size_t elements = p.h * p.columns;
    const auto references = in_double<Spectra>(p.references);
    const View<double****> matrices("matrices", 1, s.poses, D, D);
    const auto host_matrices = on_host(p.matrices);
    fill_with(matrices, [&](size_t i) { return double(host_matrices.data()[i]); });
    ProjectionOptions options = p.options;
    options.radius = p.radius;

    // All projections, class by class.
    std::vector<std::complex<double>> projections;
    const size_t of_class = references.size() / s.classes;
    for (size_t c = 0; c < s.classes; ++c) {
      const auto one = with_axes<View<Spectra>>(1, references, references.data() + c * of_class);
      const View<Complex****> out("projections", 1, s.poses, p.h, p.columns);
      project<Linear>(p.space, HalfSpectrum{one, p.N}, {.matrices = matrices}, HalfSpectrum{out, s.width},
                      options);
      const auto host = on_host(out);
      for (size_t i = 0; i < host.size(); ++i)
        projections.emplace_back(host.data()[i].real(), host.data()[i].imag());
    }

    const auto images = on_host(p.images);
    const auto filters = on_host(p.filters);
    const auto noise = on_host(p.noise), origins = on_host(p.origins), shifts = on_host(p.shifts),
               pose_priors = on_host(p.pose_priors);
    const auto shift_priors = on_host(p.shift_priors), class_priors = on_host(p.class_priors);
    class_shares.assign(s.images * s.classes, 0);
    shift_sums.assign(s.images * 3, 0);
    shell_sums.assign(s.images * shells * 3, 0);
    candidates.resize(s.images);
    struct Insertion {
      std::vector<size_t> poses;
      std::vector<std::complex<double>> images;
      std::vector<double> weights;
    };
    std::vector<Insertion> insertions(s.classes);
    const auto sums = in_double<Spectra>(p.data);
    const auto weights = in_double<Reals>(p.weight);
    for (size_t i = 0; i < s.images; ++i) {
      const size_t own = s.shared ? 0 : i;
      const auto at = [&](size_t e, int(&k)[2]) {
        layout.frequency(int64_t(e), k);
        return k[0] * k[0] + k[1] * k[1] <= p.radius * p.radius;
      };
      const auto shell = [&](const int(&k)[2]) {
        const double y = k[1] * double(s.width) / s.height;
        return size_t(std::floor(std::sqrt(k[0] * k[0] + y * y) + 0.5));
      };
      const auto phase = [&](const int(&k)[2], size_t shift) {
        const double row = double(shifts(shift, 0)) + (s.origins ? double(origins(i, 0)) : 0.),
                     column = double(shifts(shift, 1)) + (s.origins ? double(origins(i, 1)) : 0.);
        return std::polar(1., -2 * M_PI * (k[0] * column / s.width + k[1] * row / s.height));
      };
      const auto image = [&](size_t e) {
        const auto x = images.data()[i * elements + e];
        return std::complex<double>(double(x.real()), double(x.imag()));
      };
      const auto filter = [&](size_t e) { return double(filters.data()[own * elements + e]); };
      const int64_t begin = s.first.empty() ? 0 : s.first[i],
                    end = s.first.empty() ? int64_t(s.poses) : s.first[i + 1];
      double largest = -std::numeric_limits<double>::infinity();
      for (size_t c = 0; c < s.classes; ++c)
        for (int64_t pose = begin; pose < end; ++pose)
          for (size_t shift = 0; shift < s.shifts; ++shift) {
            double log = 0;
            if (s.priors)
              log = std::log(double(pose_priors(c, size_t(pose)))) + std::log(double(shift_priors(shift))) +
                    std::log(double(class_priors(c)));
            for (size_t e = 0; e < elements; ++e) {
              int k[2];
              if (!at(e, k))
                continue;
              const double v = double(noise(own, shell(k))), m = layout.multiplicity(k[0]);
              const auto predicted =
                  filter(e) * phase(k, shift) * projections[(c * s.poses + size_t(pose)) * elements + e];
              log -= m * (std::norm(image(e) - predicted) / (2 * v) + std::log(2 * M_PI * v)) / 2;
            }
            candidates[i].push_back({int(c), int(pose), int(shift), log, 0});
            largest = std::max(largest, log);
          }
      double total = 0;
      for (const auto& one : candidates[i])
        total += std::exp(one.log_weight - largest);
      evidence.push_back(candidates[i].empty() ? largest : largest + std::log(total));
      for (auto& one : candidates[i]) {
        one.posterior = std::exp(one.log_weight - evidence[i]);
        if (!(one.posterior > 0))
          continue;
        class_shares[i * s.classes + size_t(one.c)] += one.posterior;
        const double y = double(shifts(size_t(one.shift), 0)), x = double(shifts(size_t(one.shift), 1));
        shift_sums[3 * i] += one.posterior * y;
        shift_sums[3 * i + 1] += one.posterior * x;
        shift_sums[3 * i + 2] += one.posterior * (y * y + x * x);
        // The image of this candidate, and its weights, which are inserted for themselves.
        auto& to = insertions[size_t(one.c)];
        to.poses.push_back(size_t(one.pose));
        const size_t begin_of = to.images.size();
        to.images.resize(begin_of + elements);
        to.weights.resize(begin_of + elements);
        for (size_t e = 0; e < elements; ++e) {
          int k[2];
          if (!at(e, k))
            continue;
          const double v = double(noise(own, shell(k))), m = layout.multiplicity(k[0]);
          const auto predicted = filter(e) * phase(k, size_t(one.shift)) *
                                 projections[(size_t(one.c) * s.poses + size_t(one.pose)) * elements + e];
          double* const of_shell = &shell_sums[(i * shells + shell(k)) * 3];
          of_shell[0] += one.posterior * m * std::norm(image(e));
          of_shell[1] += one.posterior * m * std::real(std::conj(image(e)) * predicted);
          of_shell[2] += one.posterior * m * std::norm(predicted);
          to.images[begin_of + e] =
              one.posterior * filter(e) / v * image(e) * std::conj(phase(k, size_t(one.shift)));
          to.weights[begin_of + e] = one.posterior * filter(e) * filter(e) / v;
        }
      }
    }
    for (size_t c = 0; c < s.classes; ++c) {
      const auto& from = insertions[c];
      const size_t count = from.poses.size();
      if (count == 0)
        continue;
      const View<Complex****> inserted("inserted", 1, count, p.h, p.columns);
      const View<double****> inserted_weights("weights", 1, count, p.h, p.columns),
          at("matrices", 1, count, D, D);
      fill_with(inserted, [&](size_t e) { return Complex(from.images[e].real(), from.images[e].imag()); });
      fill_with(inserted_weights, [&](size_t e) { return from.weights[e]; });
      fill_with(at, [&](size_t e) {
        return double(host_matrices.data()[from.poses[e / (D * D)] * D * D + e % (D * D)]);
      });
      const auto part = [&](const auto& view) {
        using Part = std::remove_cvref_t<decltype(view)>;
        return with_axes<Part>(1, view, view.data() + c * of_class);
      };
      Backprojection<double, Memory, D> target;
      target.data = SpectraArray<Complex, Memory, D>(HalfSpectrum{part(sums), p.N});
      target.weight = Array<double, Memory>(HalfSpectrum{part(weights), p.N});
      target.weights = Array<const double, Memory>(HalfSpectrum{inserted_weights, s.width});
      backproject<Linear>(p.space, HalfSpectrum{inserted, s.width}, {.matrices = at}, target, options);
    }
    const auto host_sums = on_host(sums);
    const auto host_weights = on_host(weights);
    for (size_t i = 0; i < host_sums.size(); ++i) {
      data.emplace_back(host_sums.data()[i].real(), host_sums.data()[i].imag());
      weight.push_back(host_weights.data()[i]);
    }
  }
};

/// |found - expected| over |expected|, in the L2 norm.
template <class Found, class Expected>
double distance(const Found& found, const Expected& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    using Value = typename Expected::value_type;
    Value value;
    if constexpr (std::is_same_v<Value, double>)
      value = double(found.data()[i]);
    else
      value = Value(double(found.data()[i].real()), double(found.data()[i].imag()));
    difference += std::norm(value - expected[i]);
    norm += std::norm(expected[i]);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

/// `run(problem, outputs)` against brute force.
template <class T, int D, class Run>
void check_run(const Problem<T, D>& p, const Run& run) {
  const Case& sizes = p.sizes;
  INFO(sizes.name << ", D = " << D);
  const size_t shells = p.plan().shell_sizes().size();
  const BruteForce<T, D> expected(p, shells);
  const Outputs<T, D> found(p, shells);
  run(p, found);
  p.space.fence();
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

  const auto evidence = on_host(found.evidence);
  const auto posteriors = on_host(found.posteriors);
  const auto classes = on_host(found.classes), poses = on_host(found.poses), shifts = on_host(found.shifts);
  const auto counts = on_host(found.candidates);
  const auto shares = on_host(found.shares);
  for (size_t i = 0; i < sizes.images; ++i) {
    auto ranked = expected.candidates[i];
    const auto positive =
        std::count_if(ranked.begin(), ranked.end(), [](const auto& one) { return one.posterior > 1e-30; });
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.posterior > b.posterior; });
    if (ranked.empty() || !(ranked[0].posterior > 0)) {
      CHECK(evidence(i) == -std::numeric_limits<double>::infinity());
      CHECK(poses(i, 0) == -1);
      CHECK(posteriors(i, 0) == 0);
      CHECK(counts(i) == 0);
      continue;
    }
    CHECK(std::abs(evidence(i) - expected.evidence[i]) < 10 * tolerance);
    CHECK(counts(i) == positive);
    CHECK(std::abs(shares(i) - T(1)) < tolerance);
    for (size_t rank = 0; rank < 4; ++rank) {
      if (rank >= ranked.size() || !(ranked[rank].posterior > 0)) {
        CHECK(poses(i, rank) == -1);
        continue;
      }
      CHECK(std::abs(double(posteriors(i, rank)) - ranked[rank].posterior) < tolerance);
      // Which it is, unless another one is as likely.
      const bool alone = rank + 1 >= ranked.size() ||
                         ranked[rank].posterior > ranked[rank + 1].posterior * (1 + 100 * tolerance);
      const bool clear =
          rank == 0 || ranked[rank - 1].posterior > ranked[rank].posterior * (1 + 100 * tolerance);
      if (alone && clear) {
        CHECK(classes(i, rank) == ranked[rank].c);
        CHECK(poses(i, rank) == ranked[rank].pose);
        CHECK(shifts(i, rank) == ranked[rank].shift);
      }
    }
  }
  CHECK(distance(on_host(found.class_shares), expected.class_shares) < tolerance);
  CHECK(distance(on_host(found.shift_sums), expected.shift_sums) < tolerance);
  CHECK(distance(on_host(found.shell_sums), expected.shell_sums) < tolerance);
  CHECK(distance(on_host(found.data), expected.data) < tolerance);
  CHECK(distance(on_host(found.weight), expected.weight) < tolerance);
}

template <class T, int D>
void check_case(const Case& sizes) {
  check_run(Problem<T, D>(sizes), [](const auto& p, const auto& found) {
    auto step = p.plan();
    step.run(p.space, p.reference(), p.poses(), found.results(p.N), 1);
  });
}

/// The scores of GPUs (ScoreTiles), wherever, and their tables.
template <class T>
void check_tiles(const Case& sizes) {
  check_run(Problem<T, 3>(sizes), [](const auto& p, const auto& found) {
    using Complex = Kokkos::complex<T>;
    using Spectra = Impl::PaddedSpectra<Complex, 3, Linear::width>;
    const auto& space = p.space;
    const HalfSpectrumLayout<3> layout{{p.N, p.N + 1, p.N}};
    const HalfSpectrumLayout<2> box{{p.sizes.width, p.sizes.height}};
    const auto classes = int64_t(p.sizes.classes), images = int64_t(p.sizes.images),
               poses = int64_t(p.sizes.poses);
    const typename Spectra::Order order(layout);
    const Kokkos::View<typename Spectra::Order::Entry*, Space> entries("entries",
                                                                       size_t(classes * order.size));
    const Spectra spectra{entries.data(), order, false};
    Impl::copy_to_padded<Impl::Mates::Single>(
        space, "copy", layout, Impl::StoredSpectra<Complex>{p.references.data(), layout.elements()}, classes,
        spectra);
    const Array<const Complex, Memory> references(HalfSpectrum{p.references, p.N});
    const Impl::Reference<Complex, Spectra> reference{references, {"references", references}, spectra};
    auto options = p.options;
    options.radius = p.radius;
    Impl::ExpectationPlan<Space, T, true> plan(space, box, images, int(p.sizes.shifts), 4, p.sizes.bytes,
                                               options);
    const bool own = !p.sizes.shared;
    plan.set_images(space, images,
                    {.layout = box,
                     .shells = {},
                     .spectra = p.images.data(),
                     .filters = p.filters.data(),
                     .variances = nullptr,
                     .origins = p.sizes.origins ? p.origins.data() : nullptr,
                     .filter_stride = own ? box.elements() : 0,
                     .noise_stride = own},
                    p.noise.data(), int64_t(p.shell_count));
    plan.set_shifts(space, int(p.sizes.shifts), p.shifts.data(),
                    p.sizes.priors ? p.shift_priors.data() : nullptr);
    const Impl::ExpectationList<T> list{
        .matrices = p.matrices.data(),
        .first = 0,
        .count = poses,
        .logs = plan.logs_of(space, plan.pose_logs, p.sizes.priors ? p.pose_priors.data() : nullptr,
                             classes * poses),
        .log_stride = poses,
        .class_logs =
            plan.logs_of(space, plan.class_logs, p.sizes.priors ? p.class_priors.data() : nullptr, classes),
        .left_out = 0,
        .found = nullptr};
    if (p.sizes.first.empty())
      plan.template run<Linear, 3>(space, reference, list, 0, images, found.results(p.N));
    else
      plan.template run_lists<Linear, 3>(space, reference, list, p.sizes.first, found.results(p.N));
  });
}

const Case odd{"odd box, everything for each image", 3, 2, 7, 3, 7, 9},
    even{"even box, shared filters and noise", 4, 1, 5, 4, 8, 6, true, false, false},
    single{"one image, pose, shift and class", 1, 1, 1, 1, 5, 5},
    corners{"all corners", 2, 2, 4, 2, 6, 7, false, true, false, 20.},
    again{"scores are computed twice", 2, 2, 150, 2, 5, 4, false, true, true, {}, {}, 0},
    again_shared{"the same, shared filters", 3, 1, 200, 1, 4, 5, true, false, false, {}, {}, 0},
    lists{"lists of different lengths", 4, 2, 9, 2, 6, 5, false, true, true, {}, {1, 4, 4, 5, 9}},
    long_lists{"lists that are scored twice", 2, 1, 160, 1, 4, 4, false, true, true, {}, {0, 90, 160}, 0},
    groups{"several groups of images", 70, 1, 3, 2, 4, 4, false, true, true, {}, {}, 40 * 3 * 2 * 8},
    many_lists{"more lists than a group has, poses of a part for several of them",
               20,
               2,
               150,
               1,
               4,
               4,
               false,
               true,
               true,
               {},
               {0, 3, 3, 10, 20, 30, 31, 32, 40, 50, 55, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150}},
    few_scores{"groups of lists by what memory has",
               5,
               1,
               20,
               3,
               4,
               5,
               true,
               false,
               false,
               {},
               {0, 4, 8, 12, 16, 20},
               0};

/// A small problem in float, for what does not need brute force.
const Case small{"small", 2, 2, 5, 3, 6, 6, false, false, false};

template <class Call>
void fails(const char* message, const Call& call) {
  CHECK_THROWS_WITH(call(), std::string("Bracewell::Expectation") + message);
}

} // namespace

TEMPLATE_TEST_CASE("an expectation is what brute force finds", "", float, double) {
  for (const auto* one : {&odd, &even, &single, &corners, &again, &again_shared, &lists, &long_lists, &groups,
                          &many_lists, &few_scores})
    check_case<TestType, 3>(*one);
  for (const auto* one : {&odd, &again, &lists})
    check_case<TestType, 2>(*one);
}

TEMPLATE_TEST_CASE("an expectation by tiles is what brute force finds", "", float, double) {
  for (const auto* one : {&odd, &even, &again, &again_shared, &many_lists, &groups})
    check_tiles<TestType>(*one);
}

namespace {
/// The best candidates by a team of several threads, which GPUs have and hosts do not take by themselves, beside sorting.
template <class T>
void check_ranks(int team, int ranks, int levels) {
  constexpr int images = 3, poses = 150, shifts = 7, tiles = 3, entries = poses * shifts,
                parts = (poses + Impl::part_poses - 1) / Impl::part_poses;
  CAPTURE(team, ranks, levels);
  const Space space;
  std::mt19937 engine(unsigned(13 * ranks + levels));
  std::uniform_int_distribution<int> level(0, levels - 1);
  using Candidate = Impl::RankedCandidate<T>;
  std::vector<std::vector<Candidate>> all(images);
  const View<Candidate*> ranked("ranked", size_t(images * ranks)), fresh("fresh", size_t(2 * images * ranks));
  fill_with(ranked, [](size_t) { return Candidate(); });
  for (int k = 0; k < tiles; ++k) {
    const View<T*> values("values", size_t(images * entries));
    const View<Impl::PartSum<T>*> sums("sums", size_t(images * parts));
    const View<int64_t*> first("first", images + 1);
    fill_with(values, [&](size_t) { return T(level(engine) - levels / 2) / 37; });
    if (k == 1)
      fill_with(values, [&](size_t i) { return i % 501 == 77 ? T(NAN) : i % 3 ? T(0) : T(-0.0); });
    fill_with(first, [](size_t i) { return std::array{100, 290, 290, 500}[i]; }); // the second has none
    Impl::CandidateTile<T> tile{.values = values.data(),
                                .images = images,
                                .poses = poses,
                                .shifts = shifts,
                                .class_index = k,
                                .first_pose = 150 * k,
                                .first_part = 0,
                                .parts_of_image = parts};
    if (k != 1)
      tile.ranges.first = first.data();
    Kokkos::parallel_for("sums", Kokkos::TeamPolicy<Space>(space, images * parts, 1),
                         Impl::SumPosteriorParts<T>{tile, sums.data()});
    Kokkos::parallel_for("rank", Impl::RankCandidates<T>::policy(space, images, team),
                         Impl::RankCandidates<T>{tile, sums.data(), ranked.data(), ranks, fresh.data()});
    space.fence();
    const auto host = on_host(values);
    for (int i = 0; i < images; ++i)
      for (int e = 0; e < entries; ++e) {
        const int64_t pose = tile.first_pose + e / shifts;
        const std::array bounds{100, 290, 290, 500};
        if (k != 1 && (pose < bounds[size_t(i)] || pose >= bounds[size_t(i) + 1]))
          continue;
        const T key = host(size_t(i * entries + e));
        all[size_t(i)].push_back(
            {std::isfinite(key) ? -key / 2 : Impl::LogWeight<T>::poison, k, e % shifts, pose});
      }
  }
  const auto found = on_host(ranked);
  for (size_t i = 0; i < images; ++i) {
    std::stable_sort(all[i].begin(), all[i].end(),
                     [](const Candidate& a, const Candidate& b) { return a.log_weight > b.log_weight; });
    all[i].resize(size_t(ranks));
    size_t wrong = 0;
    for (size_t r = 0; r < size_t(ranks); ++r) {
      const auto &is = found(i * size_t(ranks) + r), &right = all[i][r];
      wrong += is.log_weight != right.log_weight || is.class_index != right.class_index ||
               is.pose != right.pose || is.shift != right.shift;
    }
    CHECK(wrong == 0);
  }
}
} // namespace

TEMPLATE_TEST_CASE("teams of threads rank candidates as sorting does", "", float, double) {
  const int most = Impl::is_host<Space> ? std::min(2, int(Space().concurrency())) : 256;
  for (const int team : {1, most})
    for (const int ranks : {1, 5, 128, 2000})
      for (const int levels : {2, 50, 1 << 30}) // many candidates, or none, have the same weight
        check_ranks<TestType>(team, ranks, levels);
}

namespace {
/// Two passes: the support and the mean shift of brute force at a small radius, then brute force at the poses about it.
template <class T, int D>
void check_passes(const Case& sizes, size_t most) {
  INFO(sizes.name << ", at most " << most);
  const Problem<T, D> p(sizes);
  const BruteForce<T, D> coarse(p, p.plan().shell_sizes().size());
  constexpr size_t turn_count = 3, shift_count = 4;
  std::mt19937 engine(4);
  std::uniform_real_distribution<T> random(-1, 1);
  const View<T***> turns("turns", turn_count, D, D);
  fill_with(turns, [&](size_t i) { return T(i % (D * D) % (D + 1) == 0) + random(engine) / 8; });

  // The finer problem: the same images, other shifts, and lists of poses.
  Case of = sizes;
  of.radius.reset();
  of.shifts = shift_count;
  of.poses = 0;
  of.first = {0};
  of.origins = true;
  std::vector<size_t> parents;
  std::vector<double> origins;
  const auto given = on_host(p.origins), steps = on_host(p.shifts);
  for (size_t i = 0; i < sizes.images; ++i) {
    std::vector<double> totals(sizes.poses, 0), mean(2, 0);
    for (const auto& one : coarse.candidates[i]) {
      if (!(one.posterior > 0))
        continue;
      totals[size_t(one.pose)] += one.posterior;
      for (size_t axis = 0; axis < 2; ++axis)
        mean[axis] += one.posterior * double(steps(size_t(one.shift), axis));
    }
    for (size_t axis = 0; axis < 2; ++axis)
      origins.push_back(mean[axis] + (sizes.origins ? double(given(i, axis)) : 0.));
    for (size_t pose = 0; pose < sizes.poses; ++pose)
      if (totals[pose] > 1e-30 && std::count_if(totals.begin(), totals.end(), [&](double one) {
                                    return one > totals[pose];
                                  }) < std::ptrdiff_t(most))
        parents.push_back(pose);
    of.first.push_back(int64_t(turn_count * parents.size()));
  }
  of.poses = turn_count * parents.size();
  Problem<T, D> f(of);
  f.references = p.references;
  f.images = p.images;
  f.filters = p.filters;
  f.noise = p.noise;
  f.class_priors = p.class_priors;
  f.data = p.data;
  f.weight = p.weight;
  fill_with(f.origins, [&](size_t i) { return T(origins[i]); });
  const auto priors = on_host(p.pose_priors);
  fill_with(f.pose_priors,
            [&](size_t i) { return priors(i / of.poses, parents[i % of.poses / turn_count]); });
  const auto matrices = on_host(p.matrices), turned = on_host(turns);
  fill_with(f.matrices, [&](size_t i) {
    const size_t pose = i / (D * D), row = i / D % D, column = i % D;
    double sum = 0;
    for (size_t k = 0; k < D; ++k)
      sum +=
          double(matrices(parents[pose / turn_count], row, k)) * double(turned(pose % turn_count, k, column));
    return T(sum);
  });
  check_run(f, [&](const auto&, const auto& found) {
    auto first = p.plan();
    auto second = f.plan();
    ExpectationImages<T, Memory> input{.spectra = HalfSpectrum{p.images, sizes.width}, .noise = p.noise};
    input.filters = Array<const T, Memory>(HalfSpectrum{p.filters, sizes.width});
    if (sizes.origins)
      input.origins = p.origins;
    auto poses = p.poses();
    const auto finer = second.run_passes(p.space, first, input, p.reference(), poses,
                                         {.matrices = turns, .most = int64_t(most)}, found.results(p.N), 1);
    CHECK(finer.first == of.first);
    const auto is = on_host(finer.matrices), right = on_host(f.matrices);
    REQUIRE(is.size() == right.size());
    double worst = 0;
    for (size_t i = 0; i < is.size(); ++i)
      worst = std::max(worst, std::abs(double(is.data()[i] - right.data()[i])));
    CHECK(worst < (sizeof(T) == 4 ? 1e-6 : 1e-14));
  });
}
} // namespace

TEMPLATE_TEST_CASE("two passes are what brute force finds", "", float, double) {
  const Case all{"everything for each image", 4, 2, 9, 3, 7, 9, false, true, true, 2.2},
      shared{"shared, no priors, no origins", 3, 1, 6, 2, 8, 6, true, false, false, 2.},
      of_images{"lists", 3, 2, 9, 2, 6, 5, false, true, true, 1.5, {1, 4, 4, 9}},
      tiles{"poses of several tiles", 2, 2, 150, 2, 5, 4, false, true, true, 1.5, {}, 0};
  for (const size_t most : {size_t(2), size_t(1000)}) {
    check_passes<TestType, 3>(all, most);
    check_passes<TestType, 2>(of_images, most);
    check_passes<TestType, 3>(shared, most);
  }
  check_passes<TestType, 3>(tiles, 5);
}

TEST_CASE("the support of a posterior has the share that is asked for") {
  Case many{"many", 3, 2, 300, 4, 8, 8, false, true, false};
  for (const int64_t bytes : {int64_t(0), int64_t(1) << 20}) {
    many.bytes = bytes;
    Problem<double, 3> p(many);
    fill_with(p.noise, [](size_t) { return 0.02; }); // few poses are likely
    const BruteForce<double, 3> expected(p, p.plan().shell_sizes().size());
    auto step = p.plan();
    const auto some = step.support(p.space, p.reference(), p.poses(), {}, 0.9);
    REQUIRE(some.first.size() == 4);
    for (size_t i = 0; i < 3; ++i) {
      double sum = 0;
      std::vector<double> totals(300, 0);
      for (const auto& one : expected.candidates[i])
        if (one.posterior > 0)
          totals[size_t(one.pose)] += one.posterior;
      for (int64_t k = some.first[i]; k < some.first[i + 1]; ++k) {
        sum += totals[size_t(some.poses[size_t(k)])];
        CHECK((k == some.first[i] || some.poses[size_t(k)] > some.poses[size_t(k - 1)]));
      }
      CHECK(sum >= 0.9);
      CHECK(some.first[i + 1] - some.first[i] < 100); // of 300
    }
  }
}

TEST_CASE("the largest shares stay, and of equal ones the first") {
  const Space space;
  const int team = Impl::is_host<Space> ? std::min(2, int(Space().concurrency())) : 256;
  for (const int threads : {1, team})
    for (const int64_t most : {1, 3, 4, 6, 1000}) {
      const std::vector<double> values{0, 0.5, 0.25, 0.25, 0, 0.25, 1, 1e-300, 0.25};
      const View<double**> shares("shares", 2, values.size());
      fill_with(shares, [&](size_t i) { return values[i % values.size()]; });
      Kokkos::parallel_for("keep", Kokkos::TeamPolicy<Space>(space, 2, threads),
                           Impl::KeepLargest<double>{shares.data(), int64_t(values.size()), most});
      const auto found = on_host(shares);
      const size_t order[] = {6, 1, 2, 3, 5, 8, 7};
      for (size_t i = 0; i < 2; ++i)
        for (size_t rank = 0; rank < 7; ++rank)
          CHECK((found(i, order[rank]) > 0) == (int64_t(rank) < most));
    }
}

TEST_CASE("sums have at least the share of the posterior that is asked for") {
  std::vector<int> counts; // the same, whether scores are kept or not
  for (const int64_t bytes : {int64_t(0), int64_t(1) << 20}) {
    Case many{"many", 3, 2, 300, 4, 8, 8, false, true, false};
    many.bytes = bytes;
    Problem<double, 3> p(many);
    fill_with(p.noise, [](size_t) { return 0.02; }); // few candidates are likely
    auto step = p.plan();
    const size_t shells = step.shell_sizes().size();
    const Outputs<double, 3> all(p, shells), some(p, shells);
    step.run(p.space, p.reference(), p.poses(), all.results(p.N), 1);
    step.run(p.space, p.reference(), p.poses(), some.results(p.N), 0.9);
    const auto shares = on_host(some.shares), of_all = on_host(all.shares);
    const auto count = on_host(some.candidates), count_all = on_host(all.candidates);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(shares(i) >= 0.9);
      CHECK(shares(i) < 1 + 1e-12);
      CHECK(std::abs(of_all(i) - 1) < 1e-12);
      CHECK(count(i) < count_all(i) / 10);
      CHECK(count(i) >= 1);
      counts.push_back(count(i));
      CHECK(on_host(some.evidence)(i) == on_host(all.evidence)(i));
      CHECK(on_host(some.posteriors)(i, 0) == on_host(all.posteriors)(i, 0));
      // The power of the image counts with the share.
      double power = 0, power_all = 0;
      for (size_t s = 0; s < shells; ++s) {
        power += on_host(some.shell_sums)(i, s, 0);
        power_all += on_host(all.shell_sums)(i, s, 0);
      }
      CHECK(std::abs(power - shares(i) * power_all) < 1e-10 * power_all);
    }
  }
  for (size_t i = 0; i < 3; ++i)
    CHECK(counts[3 + i] == counts[i]);
}

TEST_CASE("a projection that is the image is certain, and gives the image back") {
  // In the plane, with the identity and equal boxes, projections are the references themselves.
  const int n = 8;
  const Space space;
  View<Kokkos::complex<double>***> references("references", 2, n, n / 2 + 1),
      images("images", 1, n, n / 2 + 1), data("data", 2, n, n / 2 + 1);
  View<double***> weight("weight", 2, n, n / 2 + 1), matrices("matrices", 1, 2, 2);
  View<double**> noise("noise", 1, 16), shifts("shifts", 1, 2);
  fill_with(references, [&](size_t i) { // of a point at (1, 2) and one at (3, 0), for Hermitian spectra
    const size_t c = i / (n * (n / 2 + 1)), row = i / (n / 2 + 1) % n, x = i % (n / 2 + 1);
    const double turns = -2 * M_PI * double(row * (c ? 3 : 1) + x * (c ? 0 : 2)) / n;
    return Kokkos::complex<double>(std::cos(turns), std::sin(turns));
  });
  Test::deep_copy(images, Kokkos::subview(references, Kokkos::pair(1, 2), Kokkos::ALL, Kokkos::ALL));
  fill_with(matrices, [](size_t i) { return i % 3 == 0 ? 1. : 0.; });
  Test::deep_copy(noise, 0.01);
  Expectation<Space, double> step(space, {.images = 1, .shifts = 1, .height = n, .width = n}, {.radius = 3});
  step.set_images(space, {.spectra = images, .noise = noise});
  step.set_shifts(space, shifts);
  const View<double*> evidence("evidence", 1);
  const View<double**> class_shares("class_shares", 1, 2);
  const size_t shells = step.shell_sizes().size();
  REQUIRE(shells == 4);
  CHECK(step.shell_sizes() == std::vector<int64_t>{1, 8, 12, 8}); // of 29 frequencies with |k| <= 3
  const View<double***> sums("sums", 1, shells, 3);
  step.run(space, prepare<Linear>(space, references), {.matrices = matrices},
           {.log_evidence = evidence,
            .class_shares = class_shares,
            .data = data,
            .weight = weight,
            .shell_sums = sums});
  CHECK(on_host(class_shares)(0, 1) == 1);
  CHECK(std::abs(on_host(evidence)(0) + 29. / 2 * std::log(2 * M_PI * 0.01)) < 1e-9);
  for (size_t s = 0; s < shells; ++s)
    for (size_t j = 0; j < 3; ++j)
      CHECK(std::abs(on_host(sums)(0, s, j) - double(step.shell_sizes()[s])) < 1e-10);
  const auto host = on_host(data), truth = on_host(references);
  const auto weights = on_host(weight);
  for (size_t row : {size_t(0), size_t(2), size_t(n - 1)})
    for (size_t x = 0; x < 3; ++x) {
      CHECK(weights(0, row, x) == 0);
      CHECK(std::abs(weights(1, row, x) - 100) < 1e-9);
      CHECK(Kokkos::abs(host(1, row, x) - 100. * truth(1, row, x)) < 1e-9);
    }
}

TEST_CASE("an expectation has the same bits in every run") {
  for (const int64_t bytes : {int64_t(0), int64_t(1) << 20}) {
    Case many{"many", 5, 2, 90, 3, 8, 8};
    many.bytes = bytes;
    const Problem<float, 3> p(many, Strategy::Owned);
    const auto bits = [&] {
      auto step = p.plan();
      const Outputs<float, 3> found(p, step.shell_sizes().size());
      step.run(p.space, p.reference(), p.poses(), found.results(p.N));
      std::vector<unsigned char> all;
      const auto add = [&](const auto& view) {
        const auto host = on_host(view);
        const auto* const bytes_of = reinterpret_cast<const unsigned char*>(host.data());
        all.insert(all.end(), bytes_of, bytes_of + host.size() * sizeof(*host.data()));
      };
      add(found.evidence), add(found.posteriors), add(found.poses), add(found.data), add(found.weight);
      add(found.shell_sums), add(found.shift_sums);
      return all;
    };
    CHECK(bits() == bits());
  }
}

TEST_CASE("candidates whose prior is zero do not count") {
  Problem<float, 3> p(small);
  auto step = p.plan();
  const size_t shells = step.shell_sizes().size();
  const Outputs<float, 3> found(p, shells);
  View<float*> priors("priors", 5);
  fill_with(priors, [](size_t i) { return i == 3 ? 0.5f : 0.f; });
  ExpectationPoses<float, Memory> poses{.matrices = p.matrices, .priors = priors};
  step.run(p.space, p.reference(), poses, found.results(p.N), 1);
  for (size_t rank = 0; rank < 4; ++rank)
    CHECK(on_host(found.poses)(0, rank) == 3);
  CHECK(on_host(found.candidates)(1) == 2 * 3);

  Test::deep_copy(priors, 0);
  const Outputs<float, 3> none(p, shells);
  step.run(p.space, p.reference(), poses, none.results(p.N));
  CHECK(on_host(none.evidence)(1) == -std::numeric_limits<double>::infinity());
  CHECK(on_host(none.poses)(1, 0) == -1);
  CHECK(on_host(none.class_shares)(1, 1) == 0);
  CHECK(on_host(none.shell_sums)(1, 1, 0) == 0);
  const auto data = on_host(none.data), before = on_host(p.data);
  CHECK(std::memcmp(data.data(), before.data(), data.size() * sizeof(*data.data())) == 0);
}

TEST_CASE("references that are not finite are told by the evidence, and add nothing") {
  Problem<float, 3> p(small);
  fill_with(p.references,
            [&](size_t) { return Kokkos::complex<float>(std::numeric_limits<float>::quiet_NaN(), 0); });
  auto step = p.plan();
  const Outputs<float, 3> found(p, step.shell_sizes().size());
  step.run(p.space, p.reference(), p.poses(), found.results(p.N));
  CHECK(std::isnan(on_host(found.evidence)(0)));
  CHECK(std::isnan(on_host(found.class_shares)(0, 0)));
  CHECK(on_host(found.poses)(0, 0) == -1);
  CHECK(on_host(found.shares)(0) == 0);
  const auto data = on_host(found.data), before = on_host(p.data);
  CHECK(std::memcmp(data.data(), before.data(), data.size() * sizeof(*data.data())) == 0);
}

TEST_CASE("no images, poses or shifts are no expectation") {
  const Problem<float, 3> p(small);
  auto step = p.plan();
  const size_t shells = step.shell_sizes().size();
  const Outputs<float, 3> found(p, shells);
  auto results = found.results(p.N);
  step.run(p.space, p.reference(), {.matrices = View<float***>("matrices", 0, 3, 3)}, results);
  CHECK(on_host(found.evidence)(1) == -std::numeric_limits<double>::infinity());
  CHECK(on_host(found.poses)(0, 0) == -1);
  CHECK(on_host(found.shell_sums)(0, 0, 0) == 0);

  Test::deep_copy(found.evidence, 7);
  step.set_shifts(p.space, View<float**>("shifts", 0, 2));
  step.run(p.space, p.reference(), p.poses(), results);
  CHECK(on_host(found.evidence)(1) == -std::numeric_limits<double>::infinity());

  const View<float**> noise("noise", 1, 9);
  Test::deep_copy(noise, 1);
  step.set_images(p.space, {.spectra = View<Kokkos::complex<float>***>("images", 0, 6, 4), .noise = noise});
  results.log_evidence = View<double*>("evidence", 0);
  results.class_shares = View<float**>("shares", 0, 2);
  results.posteriors = View<float**>("best", 0, 4);
  results.classes = results.poses = results.shifts = View<int**>("best", 0, 4);
  results.shares = View<float*>("shares", 0);
  results.candidates = View<int*>("candidates", 0);
  results.shift_sums = View<double**>("shift_sums", 0, 3);
  results.shell_sums = View<double***>("shell_sums", 0, shells, 3);
  step.run(p.space, p.reference(), p.poses(), results);
  const auto data = on_host(found.data), before = on_host(p.data);
  CHECK(std::memcmp(data.data(), before.data(), data.size() * sizeof(*data.data())) == 0);
}

TEST_CASE("wrong arguments of an expectation") {
  const Problem<float, 3> p(small);
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto sized = [&](ExpectationSizes sizes, ProjectionOptions options = {}) {
    Expectation<Space>(p.space, sizes, options);
  };
  fails(": sizes.images: expected from 0 to 1073741824, found -1",
        [&] { sized({.images = -1, .shifts = 1, .height = 6, .width = 6}); });
  fails(": sizes.bytes: expected from 0 to 4294967296, found -5",
        [&] { sized({.images = 1, .shifts = 1, .height = 6, .width = 6, .bytes = -5}); });
  fails(": options.radius: expected from 0 to 1e+09, found -2",
        [&] { sized({.images = 1, .shifts = 1, .height = 6, .width = 6}, {.radius = -2}); });
  fails(": options.strategy: expected Automatic, Atomic or Owned, found Duplicated", [&] {
    sized({.images = 1, .shifts = 1, .height = 6, .width = 6}, {.strategy = Strategy::Duplicated});
  });

  Expectation<Space> step(p.space, {.images = 2, .shifts = 3, .height = 6, .width = 6, .best = 4}, p.options);
  const size_t shells = step.shell_sizes().size();
  const Outputs<float, 3> found(p, shells);
  const auto run = [&](auto&& change, double share = 0.999) {
    auto poses = p.poses();
    auto results = found.results(p.N);
    change(poses, results);
    step.run(p.space, p.reference(), poses, results, share);
  };
  const auto unchanged = [](auto&, auto&) {};
  fails("::run: images: expected set_images before, found none", [&] { run(unchanged); });
  using Images = ExpectationImages<float, Memory>;
  fails("::set_images: images.noise: expected an allocated View, found an empty one",
        [&] { step.set_images(p.space, Images{.spectra = p.images, .noise = {}}); });
  fails("::set_images: images.noise: expected [1|2, 4 shells or more], found [2, 3]", [&] {
    step.set_images(p.space, Images{.spectra = p.images, .noise = View<float**>("noise", 2, 3)});
  });
  fails("::set_images: images.noise: expected finite values above zero, found 0 at element 0", [&] {
    step.set_images(p.space, Images{.spectra = p.images, .noise = View<float**>("noise", 1, 4)});
  });
  fails("::set_images: images.spectra: expected finite values, found nan at element 11", [&] {
    View<Kokkos::complex<float>***> images("images", 2, 6, 4);
    fill_with(images, [&](size_t i) { return Kokkos::complex<float>(0, i == 5 ? nan : 0); });
    step.set_images(p.space, Images{.spectra = images, .noise = p.noise});
  });
  fails("::set_images: images.filters: expected [2, 6, 4] (width 6), found [3, 6, 4] (width 6)", [&] {
    step.set_images(
        p.space,
        Images{.spectra = p.images, .noise = p.noise, .filters = View<float***>("filters", 3, 6, 4)});
  });
  fails("::set_images: images.origins: expected [2, 2], found [2, 3]", [&] {
    step.set_images(p.space,
                    Images{.spectra = p.images, .noise = p.noise, .origins = View<float**>("origins", 2, 3)});
  });
  step.set_images(p.space, Images{.spectra = p.images, .noise = p.noise});
  fails("::run: shifts: expected set_shifts before, found none", [&] { run(unchanged); });
  fails("::set_shifts: shifts: expected at most 3 shifts, found [4, 2]",
        [&] { step.set_shifts(p.space, View<float**>("shifts", 4, 2)); });
  fails("::set_shifts: priors: expected [3], found [2]",
        [&] { step.set_shifts(p.space, p.shifts, View<float*>("priors", 2)); });
  fails("::set_shifts: priors: expected finite values, none negative, found -1 at element 0", [&] {
    const View<float*> priors("priors", 3);
    Test::deep_copy(priors, -1);
    step.set_shifts(p.space, p.shifts, priors);
  });
  step.set_shifts(p.space, p.shifts);
  fails("::run: share: expected from 0 to 1, found 1.5", [&] { run(unchanged, 1.5); });
  fails("::run: share: expected from 0 to 1, found nan", [&] { run(unchanged, double(nan)); });
  fails("::run: poses.matrices: expected [5, 3, 3], found [5, 2, 3]",
        [&] { run([](auto& poses, auto&) { poses.matrices = View<float***>("matrices", 5, 2, 3); }); });
  fails("::run: poses.matrices: expected finite values, found nan at element 0", [&] {
    const View<float***> matrices("matrices", 5, 3, 3);
    Test::deep_copy(matrices, nan);
    run([&](auto& poses, auto&) { poses.matrices = matrices; });
  });
  fails("::run: poses.priors: expected [2, 5], found [3, 5]",
        [&] { run([](auto& poses, auto&) { poses.priors = View<float**>("priors", 3, 5); }); });
  fails("::run: poses.first: expected 3 numbers of 2 images, found 2", [&] {
    const std::vector<int64_t> first{0, 5};
    run([&](auto& poses, auto&) { poses.first = first; });
  });
  fails("::run: poses.first: expected ascending numbers from 0 to 5, found 3 to 6 of image 1", [&] {
    const std::vector<int64_t> first{0, 3, 6};
    run([&](auto& poses, auto&) { poses.first = first; });
  });
  fails("::run: results.weight: expected data and weight together, found one without the other",
        [&] { run([](auto&, auto& results) { results.weight = {}; }); });
  fails("::run: results.log_evidence: expected [2], found [3]",
        [&] { run([](auto&, auto& results) { results.log_evidence = View<double*>("evidence", 3); }); });
  fails("::run: results.classes: expected [2, 4], found []",
        [&] { run([](auto&, auto& results) { results.classes = {}; }); });
  fails(
      "::run: results.candidates: expected memory of its own, found memory shared with results.log_evidence",
      [&] {
        const View<int*> shared(reinterpret_cast<int*>(found.evidence.data()), 2);
        run([&](auto&, auto& results) { results.candidates = shared; });
      });
  CHECK(on_host(found.evidence)(0) == 7);
  CHECK(on_host(found.shell_sums)(1, 1, 1) == 7);
}

TEST_CASE("the page's expectation") {
  constexpr int N = 3, K = 2, S = 4, Q = 6, n = 12;
  const Space space;
  const View<Kokkos::complex<float>****> references("references", K, 2 * n, 2 * n, n + 1),
      data("data", K, 2 * n, 2 * n, n + 1);
  const View<float****> weight("weight", K, 2 * n, 2 * n, n + 1);
  const View<Kokkos::complex<float>***> images("images", N, n, n / 2 + 1);
  const View<float***> ctf("ctf", N, n, n / 2 + 1), matrices("matrices", Q, 3, 3);
  const View<float**> variances("variances", 1, n), shifts("shifts", S, 2),
      class_shares("class_shares", N, K), posteriors("posteriors", N, 3);
  const View<int**> classes("classes", N, 3), poses("poses", N, 3), best_shifts("shifts", N, 3);
  const View<double*> evidence("evidence", N);
  Test::deep_copy(variances, 1);
  Test::deep_copy(ctf, 1);
  fill_with(matrices, [](size_t i) { return i % 4 == 0 ? 1.f : 0.f; });
  // [expectation
  Expectation<Space> step(space, {.images = N, .shifts = S, .height = n, .width = n, .best = 3},
                          {.oversampling = 2, .radius = 6});
  step.set_images(space, {.spectra = images, .noise = variances, .filters = ctf});
  step.set_shifts(space, shifts);
  const View<double***> shell_sums("shell_sums", N, step.shell_sizes().size(), 3);
  step.run(space, prepare<Linear>(space, references), {.matrices = matrices},
           {.log_evidence = evidence,
            .class_shares = class_shares, // [N, K]
            .posteriors = posteriors,     // [N, 3] of the three most likely candidates
            .classes = classes,
            .poses = poses,
            .shifts = best_shifts,
            .data = data, // [K, 2n, 2n, n+1]
            .weight = weight,
            .shell_sums = shell_sums});
  // expectation]
  // All candidates of images and references of zeros are as likely; the first is best.
  CHECK(std::abs(on_host(class_shares)(2, 1) - 0.5f) < 1e-6f);
  CHECK(std::abs(on_host(posteriors)(1, 0) - 1.f / (K * S * Q)) < 1e-7f);
  CHECK(on_host(poses)(0, 0) == 0);
  CHECK(on_host(best_shifts)(0, 2) == 2);
  double frequencies = 0;
  for (const auto size : step.shell_sizes())
    frequencies += double(size);
  const auto expected = std::log(double(K * S * Q)) - frequencies / 2 * std::log(2 * M_PI);
  CHECK(std::abs(on_host(evidence)(1) - expected) < 1e-5);
  // [expectation-lists
  std::vector<std::int64_t> first(N + 1); // image i has the poses first[i] to first[i+1] - 1
  for (int i = 0; i <= N; ++i)
    first[std::size_t(i)] = std::int64_t(i) * Q / N;
  step.run(space, prepare<Linear>(space, references), {.matrices = matrices, .first = first},
           {.log_evidence = evidence});
  // expectation-lists]
  CHECK(std::abs(on_host(evidence)(1) - (expected - std::log(double(N)))) < 1e-5);
  const View<float***> turns("turns", 8, 3, 3);
  fill_with(turns, [](size_t i) { return i % 9 % 4 == 0 ? 1.f : 0.f; });
  const auto fine_shifts = shifts;
  // [expectation-passes
  Expectation<Space> coarse(space, {.images = N, .shifts = S, .height = n, .width = n},
                            {.oversampling = 2, .radius = 3});
  coarse.set_shifts(space, shifts);
  step.set_shifts(space, fine_shifts);
  const auto finer = step.run_passes(space, coarse, {.spectra = images, .noise = variances, .filters = ctf},
                                     prepare<Linear>(space, references), {.matrices = matrices},
                                     {.matrices = turns}, {.log_evidence = evidence});
  // expectation-passes]
  CHECK(finer.first.back() == N * Q * 8);
  CHECK(std::abs(on_host(evidence)(1) - (expected + std::log(8.))) < 1e-5);
}

TEST_CASE("the examples of the page on expectation are this test's") {
  const std::filesystem::path root = BRACEWELL_SOURCE_DIR;
  Test::check_page_examples(root / "tests/project/expectation.cpp", {root / "docs/expectation.md"});
}
