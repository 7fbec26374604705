// TemplateMatching against brute force: sums over frequencies in double for every pixel and orientation, sums over voxels of
// tomograms. The number of false positives in noise is that of the threshold's equation. Molecules of Gaussian atoms, drawn in
// closed form, are found. The missing wedge is made by sums in double.

#include "../deep_copy.hpp"
#include "../page_examples.hpp"

#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/template_matching.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

using namespace Bracewell;

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Complex = std::complex<double>;
using std::size_t;
using Matrix = std::array<double, 9>;
constexpr double pi = std::numbers::pi;

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

/// Rotations by three angles at random; not by the library.
std::vector<Matrix> rotations(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> turn(0, 2 * pi), height(-1, 1);
  std::vector<Matrix> result(count);
  for (Matrix& m : result) {
    const double a = turn(engine), b = std::acos(height(engine)), c = turn(engine);
    const double ca = std::cos(a), sa = std::sin(a), cb = std::cos(b), sb = std::sin(b), cc = std::cos(c),
                 sc = std::sin(c);
    m = {ca * cb * cc - sa * sc,
         -ca * cb * sc - sa * cc,
         ca * sb,
         sa * cb * cc + ca * sc,
         ca * cc - sa * cb * sc,
         sa * sb,
         -sb * cc,
         sb * sc,
         cb};
  }
  return result;
}
template <class T>
View<T***> on_device(const std::vector<Matrix>& matrices) {
  const View<T***> view("matrices", matrices.size(), 3, 3);
  fill_with(view, [&](size_t i) { return T(matrices[i / 9][i % 9]); });
  return view;
}

/// Gaussian atoms in voxels from the centre: their spectrum in a box of `padded` voxels, their projection.
struct Molecule {
  struct Atom {
    double x, y, z, weight;
  };
  std::vector<Atom> atoms;
  double sigma = 1.2;

  /// With `signs` every other atom is negative: projections then have less in common.
  Molecule(size_t count, double reach, unsigned seed, bool signs = false) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> place(-reach, reach), weight(0.5, 1.5);
    for (size_t i = 0; i < count; ++i)
      atoms.push_back(
          {place(engine), place(engine), place(engine), (signs && i % 2 == 1 ? -1 : 1) * weight(engine)});
  }

  Complex spectrum(double x, double y, double z, double padded) const {
    Complex sum = 0;
    for (const Atom& a : atoms)
      sum += a.weight * std::polar(1.0, -2 * pi * (x * a.x + y * a.y + z * a.z) / padded);
    return sum * std::exp(-2 * pi * pi * sigma * sigma * (x * x + y * y + z * z) / (padded * padded));
  }

  template <class T>
  View<Kokkos::complex<T>****> stored(int padded) const {
    const size_t n = size_t(padded), half = n / 2 + 1;
    const View<Kokkos::complex<T>****> view("spectrum", 1, n, n, half);
    const auto frequency = [&](size_t i) { return i <= n / 2 ? double(i) : double(i) - double(n); };
    fill_with(view, [&](size_t i) {
      const Complex value =
          spectrum(double(i % half), frequency(i / half % n), frequency(i / half / n), padded);
      return Kokkos::complex<T>(T(value.real()), T(value.imag()));
    });
    return view;
  }

  /// At a point from the centre of the projection whose matrix is given, rows of atoms' voxels being as large as pixels.
  double projection(const Matrix& m, double x, double y) const {
    double sum = 0;
    for (const Atom& a : atoms) {
      const double dx = x - (m[0] * a.x + m[3] * a.y + m[6] * a.z),
                   dy = y - (m[1] * a.x + m[4] * a.y + m[7] * a.z);
      sum += a.weight * std::exp(-(dx * dx + dy * dy) / (2 * sigma * sigma));
    }
    return sum;
  }
};

/// Sums over every axis, one after the other, in double: spectra of values [z, y, x], or back (not divided).
struct DirectSums {
  int depth, height, width;

  size_t element(int x, int y, int z) const {
    return (size_t((z + depth) % depth) * size_t(height) + size_t((y + height) % height)) * size_t(width) +
           size_t((x + width) % width);
  }
  std::vector<Complex> operator()(std::vector<Complex> values, int sign) const {
    const size_t size[3] = {size_t(width), size_t(height), size_t(depth)};
    size_t stride = 1;
    for (const size_t n : size) {
      std::vector<Complex> sums(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t place = i / stride % n, begin = i - place * stride;
        for (size_t k = 0; k < n; ++k)
          sums[begin + k * stride] +=
              values[i] * std::polar(1.0, sign * 2 * pi * double(place * k % n) / double(n));
      }
      values = std::move(sums);
      stride *= n;
    }
    return values;
  }
  /// value *= factor(fx, fy, fz) of cycles per pixel.
  template <class Factor>
  void multiply(std::vector<Complex>& spectrum, const Factor& factor) const {
    for (int z = -((depth - 1) / 2); z <= depth / 2; ++z)
      for (int y = -((height - 1) / 2); y <= height / 2; ++y)
        for (int x = -((width - 1) / 2); x <= width / 2; ++x)
          spectrum[element(x, y, z)] *= factor(double(x) / width, double(y) / height, double(z) / depth);
  }
};

/// Whether views from -60 to 50 degrees show a frequency; the share of planes. By angles, not as the library does.
double in_range(double x, double, double z) {
  if (x == 0 && z == 0)
    return 1;
  double angle = std::atan2(z, x) * 180 / pi;
  angle += angle > 90 ? -180 : angle <= -90 ? 180 : 0;
  return angle >= -60 && angle <= 50 ? 1 : 0;
}
double in_planes(double x, double, double z) {
  double share = 0;
  for (const double angle : {-60., -35., -10., 20., 50.})
    share +=
        std::max(0., 1 - std::hypot(x, z) * std::abs(std::sin(std::atan2(z, x) - angle * pi / 180)) / 0.05);
  return std::min(1., share);
}
constexpr auto everything = [](double, double, double) { return 1.0; };
TiltWedge range_of_views() { return {.lowest = -60, .highest = 50}; }

/// The same frequencies as sums in double. Everything is on the full spectrum.
struct BruteForce {
  int depth, height, width, layers, rows, columns;
  double limit, pixel_size, voxel_size;
  double (*measured)(double, double, double);
  std::vector<Complex> volume; ///< [n, n, n/2+1]
  int n;
  const CTF* ctf;

  std::vector<double> maximum, mean, deviation;
  std::vector<std::vector<double>> correlations;

  Complex stored(int x, int y, int z) const {
    const bool mate = x < 0;
    if (mate)
      x = -x, y = -y, z = -z;
    const auto wrapped = [&](int k) { return size_t((k % n + n) % n); };
    const Complex value = volume[(wrapped(z) * size_t(n) + wrapped(y)) * size_t(n / 2 + 1) + size_t(x)];
    return mate ? std::conj(value) : value;
  }

  Complex interpolated(const double (&q)[3]) const {
    Complex sum = 0;
    int below[3];
    double part[3];
    for (int d = 0; d < 3; ++d) {
      below[d] = int(std::floor(q[d]));
      part[d] = q[d] - below[d];
    }
    for (int corner = 0; corner < 8; ++corner) {
      const int x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
      sum += (x ? part[0] : 1 - part[0]) * (y ? part[1] : 1 - part[1]) * (z ? part[2] : 1 - part[2]) *
             stored(below[0] + x, below[1] + y, below[2] + z);
    }
    return sum;
  }

  /// Whether a frequency is compared. By hand: below the limit, and below every Nyquist limit.
  bool compared(int x, int y, int z) const {
    return std::hypot(double(x) / width, double(y) / height, double(z) / depth) <= limit + 1e-12 &&
           (x != 0 || y != 0 || z != 0) && 2 * std::abs(x) < std::min(width, columns) &&
           2 * std::abs(y) < std::min(height, rows) && 2 * std::abs(z) < std::min(depth, layers);
  }

  void run(const std::vector<double>& micrograph, const std::vector<Matrix>& matrices) {
    const DirectSums sums{depth, height, width};
    const std::vector<Complex> spectrum = sums({micrograph.begin(), micrograph.end()}, -1);
    std::vector<double> power(size_t(8 * width)), members(size_t(8 * width));
    const auto shell = [&](int x, int y, int z) {
      return size_t(
          std::floor(std::hypot(double(x), double(y) * width / height, double(z) * width / depth) + 0.5));
    };
    const auto share = [&](int x, int y, int z) {
      return measured(double(x) / width, double(y) / height, double(z) / depth);
    };
    for (int z = -((depth - 1) / 2); z <= depth / 2; ++z)
      for (int y = -((height - 1) / 2); y <= height / 2; ++y)
        for (int x = -((width - 1) / 2); x <= width / 2; ++x) {
          power[shell(x, y, z)] += std::norm(share(x, y, z) * spectrum[sums.element(x, y, z)]);
          members[shell(x, y, z)] += std::pow(share(x, y, z), 2);
        }
    const size_t pixels = size_t(layers * rows * columns);
    std::vector<double> sum(pixels), squares(pixels);
    maximum.assign(pixels, -std::numeric_limits<double>::infinity());
    for (const Matrix& m : matrices) {
      const DirectSums out{layers, rows, columns};
      std::vector<Complex> terms(pixels);
      double norm = 0;
      for (int z = -depth / 2; z <= depth / 2; ++z)
        for (int y = -height / 2; y <= height / 2; ++y)
          for (int x = -width / 2; x <= width / 2; ++x) {
            if (!compared(x, y, z))
              continue;
            const double fx = x / (width * pixel_size), fy = y / (height * pixel_size),
                         fz = z / (depth * pixel_size),
                         amplitude = std::sqrt(power[shell(x, y, z)] / members[shell(x, y, z)]);
            double q[3], transfer = share(x, y, z);
            for (size_t d = 0; d < 3; ++d)
              q[d] = n * voxel_size * (m[3 * d] * fx + m[3 * d + 1] * fy + m[3 * d + 2] * fz);
            if (ctf)
              transfer *=
                  depth == 1 ? ctf->value<double>(fx, fy) : ctf->value<double>(std::hypot(fx, fy, fz), 0);
            const Complex filtered = interpolated(q) * transfer / amplitude;
            norm += std::norm(filtered);
            terms[out.element(x, y, z)] += spectrum[sums.element(x, y, z)] / amplitude * std::conj(filtered);
          }
      const std::vector<Complex> values = out(terms, 1);
      correlations.emplace_back(pixels);
      for (size_t pixel = 0; pixel < pixels; ++pixel) {
        const double real = values[pixel].real() / std::sqrt(norm);
        CHECK(std::abs(values[pixel].imag()) < 1e-8 * std::sqrt(norm) * double(pixels));
        correlations.back()[pixel] = real;
        maximum[pixel] = std::max(maximum[pixel], real);
        sum[pixel] += real;
        squares[pixel] += real * real;
      }
    }
    const double count = double(matrices.size());
    mean.resize(pixels);
    deviation.resize(pixels);
    for (size_t i = 0; i < pixels; ++i) {
      mean[i] = sum[i] / count;
      deviation[i] = std::sqrt(squares[i] / count - mean[i] * mean[i]);
    }
  }
};

template <class T, int Dim = 2>
struct Found {
  template <class Value>
  using Grid = View<std::conditional_t<Dim == 3, Value***, Value**>>;
  Grid<T> scores, maxima, means, deviations;
  Grid<int> best;

  explicit Found(const TemplateMatching<Space, T, Dim>& matching)
      : scores(make<T>(matching)), maxima(make<T>(matching)), means(make<T>(matching)),
        deviations(make<T>(matching)), best(make<int>(matching)) {
    matching.results(
        Space(),
        {.scores = scores, .maxima = maxima, .best = best, .means = means, .deviations = deviations});
  }

private:
  template <class Value>
  static Grid<Value> make(const TemplateMatching<Space, T, Dim>& matching) {
    const auto layers = size_t(matching.layers()), rows = size_t(matching.rows()),
               columns = size_t(matching.columns());
    if constexpr (Dim == 3)
      return Grid<Value>("result", layers, rows, columns);
    else
      return Grid<Value>("result", rows, columns);
  }
};

template <class T>
View<T**> noise(int height, int width, unsigned seed) {
  const View<T**> view("micrograph", size_t(height), size_t(width));
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  fill_with(view, [&](size_t) { return T(3 + normal(engine)); });
  return view;
}

/// A tomogram [depth, height, width] of values in double.
template <class T>
View<T***> tomogram(const std::vector<double>& values, int depth, int height, int width) {
  const View<T***> view("tomogram", size_t(depth), size_t(height), size_t(width));
  fill_with(view, [&](size_t i) { return T(values[i]); });
  return view;
}

struct Case {
  int depth, height, width;
  double limit, voxel_size;
  bool ctf;
  std::int64_t bytes;
  TiltWedge wedge = {};
  double (*measured)(double, double, double) = everything;
};

} // namespace

namespace {

template <class T, int Dim>
void agrees_with_sums(const std::vector<Case>& cases) {
  const Space space;
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-11;
  const int padded = 24;
  const Molecule molecule(9, 3.5, 5);
  for (const Case& one : cases) {
    CAPTURE(one.depth, one.height, one.width, one.limit);
    using Matching = TemplateMatching<Space, T, Dim>;
    Matching matching(space,
                      {.height = one.height,
                       .width = one.width,
                       .pixel_size = 1.5,
                       .voxel_size = one.voxel_size,
                       .depth = one.depth},
                      {.limit = one.limit, .bytes = one.bytes, .wedge = one.wedge});
    const auto shaped = [&](const View<T**>& pixels) {
      if constexpr (Dim == 2)
        return pixels;
      else
        return View<T***>(pixels.data(), size_t(one.depth), size_t(one.height), size_t(one.width));
    };
    CHECK(matching.limit() == std::min(one.limit, 1.5 / (2 * one.voxel_size)));
    CHECK(matching.rows() >= 2 * matching.limit() * one.height);
    CHECK(matching.columns() >= 2 * matching.limit() * one.width);
    const auto flat = noise<T>(one.depth * one.height, one.width, 7);
    const auto micrograph = shaped(flat);
    const auto matrices = rotations(10, 3);
    const auto view = on_device<T>(matrices);
    const auto spectrum = molecule.stored<T>(padded);
    const typename Matching::Reference reference(space, spectrum);
    const CTF ctf({.defocus_u = 300, .defocus_v = 250, .defocus_angle = 20, .amplitude_contrast = 0.1});
    // A micrograph before it leaves nothing behind.
    const auto before = noise<T>(one.depth * one.height, one.width, 8);
    matching.set_micrograph(space, shaped(before));
    matching.search(space, reference, on_device<T>(rotations(3, 4)));
    matching.set_micrograph(space, micrograph);
    if (one.ctf)
      matching.set_ctf(space, ctf);
    // In two calls: numbers go on.
    matching.search(space, reference, Kokkos::subview(view, std::pair(0, 7), Kokkos::ALL, Kokkos::ALL));
    matching.search(space, reference, Kokkos::subview(view, std::pair(7, 7), Kokkos::ALL, Kokkos::ALL));
    matching.search(space, reference, Kokkos::subview(view, std::pair(7, 10), Kokkos::ALL, Kokkos::ALL));
    CHECK(matching.orientations() == 10);
    const Found<T, Dim> found(matching);

    BruteForce truth{.depth = one.depth,
                     .height = one.height,
                     .width = one.width,
                     .layers = matching.layers(),
                     .rows = matching.rows(),
                     .columns = matching.columns(),
                     .limit = matching.limit(),
                     .pixel_size = 1.5,
                     .voxel_size = one.voxel_size,
                     .measured = one.measured,
                     .volume = {},
                     .n = padded,
                     .ctf = one.ctf ? &ctf : nullptr,
                     .maximum = {},
                     .mean = {},
                     .deviation = {},
                     .correlations = {}};
    const auto stored = on_host(spectrum);
    for (size_t i = 0; i < stored.size(); ++i)
      truth.volume.emplace_back(stored.data()[i].real(), stored.data()[i].imag());
    const auto pixels = on_host(micrograph);
    truth.run({pixels.data(), pixels.data() + pixels.size()}, matrices);

    const auto maxima = on_host(found.maxima), means = on_host(found.means),
               deviations = on_host(found.deviations), scores = on_host(found.scores);
    const auto best = on_host(found.best);
    double worst = 0, worst_best = 0, worst_score = 0, size = 0;
    for (size_t i = 0; i < truth.maximum.size(); ++i) {
      worst = std::max({worst, std::abs(double(maxima.data()[i]) - truth.maximum[i]),
                        std::abs(double(means.data()[i]) - truth.mean[i]),
                        std::abs(double(deviations.data()[i]) - truth.deviation[i])});
      REQUIRE((best.data()[i] >= 0 && best.data()[i] < 10));
      worst_best = std::max(worst_best, truth.maximum[i] - truth.correlations[size_t(best.data()[i])][i]);
      const double score = (truth.maximum[i] - truth.mean[i]) / truth.deviation[i];
      worst_score = std::max(worst_score, std::abs(double(scores.data()[i]) / score - 1));
      size = std::max(size, truth.maximum[i]);
    }
    CHECK(size > 1); // in units of the noise
    CHECK(worst < tolerance * size);
    CHECK(worst_best < tolerance * size);
    CHECK(worst_score < 20 * tolerance); // deviations are small somewhere
  }
}

} // namespace

TEMPLATE_TEST_CASE("Template matching agrees with sums over frequencies", "[project]", float, double) {
  using T = TestType;
  CHECK(TemplateMatching<Space, T>(Space(), {.height = 20, .width = 20, .pixel_size = 1.5, .voxel_size = 2})
            .limit() == 0.375); // the map's Nyquist limit
  // Bytes for one orientation at a time, for some of them, and for more than there are. Windows stay within the map's
  // Nyquist limit, where a half spectrum is its own mate.
  agrees_with_sums<T, 2>({Case{1, 40, 36, 0.45, 1.5, false, 1}, Case{1, 37, 41, 0.37, 1.0, true, 100000},
                          Case{1, 24, 45, 0.34, 2.0, true, 10000000}});
  // Tomograms: everything measured, a range of views, planes.
  agrees_with_sums<T, 3>({Case{11, 12, 15, 0.45, 1.5, false, 1},
                          Case{9, 14, 13, 0.4, 1.0, true, 100000, range_of_views(), in_range},
                          Case{16,
                               10,
                               11,
                               0.34,
                               2.0,
                               true,
                               10000000,
                               {.angles = {-60, -35, -10, 20, 50}, .thickness = 0.05},
                               in_planes}});
}

TEMPLATE_TEST_CASE("A tomogram's correlation is a sum over voxels of molecules that are turned there",
                   "[project]", float, double) {
  using T = TestType;
  const Space space;
  const int n = 24;
  const double limit = 0.35;
  Molecule molecule(7, 3, 15, true);
  molecule.sigma = 1.6;
  // Every axis goes to the next: frequencies of the map are those of the tomogram, so nothing is interpolated.
  const Matrix matrix{0, 0, 1, 1, 0, 0, 0, 1, 0};
  std::mt19937 engine(4);
  std::normal_distribution<double> normal;
  std::vector<Complex> values(size_t(n * n * n));
  for (Complex& value : values)
    value = normal(engine);
  const DirectSums sums{n, n, n};
  std::vector<Complex> spectrum = sums(values, -1);
  sums.multiply(spectrum, in_range);
  values = sums(spectrum, 1);
  std::vector<double> reals;
  for (const Complex& value : values)
    reals.push_back(value.real() / (n * n * n));

  TemplateMatching<Space, T, 3> matching(space, {.height = n, .width = n, .depth = n},
                                         {.limit = limit, .nyquist = 0.5, .wedge = range_of_views()});
  REQUIRE((matching.layers() == n && matching.rows() == n && matching.columns() == n));
  matching.set_micrograph(space, tomogram<T>(reals, n, n, n));
  const typename TemplateMatching<Space, T, 3>::Reference reference(space, molecule.stored<T>(n));
  matching.search(space, reference, on_device<T>({matrix}));
  const Found<T, 3> found(matching);
  const auto maxima = on_host(found.maxima);

  // Whitened, in double.
  std::vector<double> power(size_t(3 * n)), members(power.size());
  const auto shell = [&](double x, double y, double z) {
    return size_t(std::floor(std::hypot(x, y, z) * n + 0.5));
  };
  spectrum = sums({reals.begin(), reals.end()}, -1);
  auto visited = spectrum;
  size_t visits = 0;
  sums.multiply(visited, [&](double x, double y, double z) {
    power[shell(x, y, z)] +=
        in_range(x, y, z) * std::norm(spectrum[sums.element(int(std::lround(x * n)), int(std::lround(y * n)),
                                                            int(std::lround(z * n)))]);
    members[shell(x, y, z)] += in_range(x, y, z);
    ++visits;
    return 1.0;
  });
  REQUIRE(visits == spectrum.size());
  const auto filter = [&](double x, double y, double z) {
    const double radius = std::hypot(x, y, z);
    return radius > limit + 1e-12 || radius == 0
               ? 0.0
               : in_range(x, y, z) * std::sqrt(members[shell(x, y, z)] / power[shell(x, y, z)]);
  };
  const auto filtered = [&](const std::vector<double>& volume) {
    auto transformed = sums({volume.begin(), volume.end()}, -1);
    sums.multiply(transformed, filter);
    return sums(transformed, 1); // times n^3
  };
  const auto white = filtered(reals);
  double size = 0, worst = 0;
  for (const std::array<int, 3>& place :
       {std::array{12, 12, 12}, std::array{3, 20, 9}, std::array{0, 23, 11}, std::array{17, 1, 22}}) {
    // Atoms turned and put there, x, y, z.
    std::vector<double> drawn(reals.size());
    for (const Molecule::Atom& a : molecule.atoms) {
      const double at[3] = {place[0] + matrix[0] * a.x + matrix[3] * a.y + matrix[6] * a.z,
                            place[1] + matrix[1] * a.x + matrix[4] * a.y + matrix[7] * a.z,
                            place[2] + matrix[2] * a.x + matrix[5] * a.y + matrix[8] * a.z};
      for (int i = 0; i < n * n * n; ++i) {
        double square = 0;
        const int index[3] = {i % n, i / n % n, i / n / n};
        for (size_t d = 0; d < 3; ++d)
          square += std::pow(std::remainder(index[d] - at[d], n), 2);
        drawn[size_t(i)] += a.weight * std::exp(-square / (2 * molecule.sigma * molecule.sigma));
      }
    }
    const auto shown = filtered(drawn);
    double product = 0, norm = 0;
    for (size_t i = 0; i < shown.size(); ++i) {
      product += white[i].real() * shown[i].real();
      norm += shown[i].real() * shown[i].real();
    }
    const double cells = double(n) * n * n, expected = std::sqrt(cells) * (product / (cells * cells)) /
                                                       std::sqrt(norm / (cells * cells));
    size = std::max(size, std::abs(expected));
    worst = std::max(
        worst, std::abs(double(maxima(size_t(place[2]), size_t(place[1]), size_t(place[0]))) - expected));
  }
  CAPTURE(size, worst);
  CHECK(size > 0.5);
  CHECK(worst < 1e-5 * size);
}

TEST_CASE("Molecules are found in a tomogram that lacks a wedge, and noise stays below the threshold",
          "[project]") {
  const Space space;
  const int depth = 40, height = 45, width = 48, box = 16;
  const Molecule molecule(14, 5, 23, true);
  const auto matrices = rotations(40, 6);
  struct Planted {
    int z, y, x, orientation;
  };
  const std::vector<Planted> planted{{12, 10, 11, 3}, {25, 33, 30, 27}, {9, 30, 36, 14}};
  std::mt19937 engine(8);
  std::normal_distribution<double> normal;
  const DirectSums sums{depth, height, width};
  const auto measured = [&](double molecules) {
    std::vector<Complex> values(size_t(depth * height * width));
    for (size_t i = 0; i < values.size(); ++i) {
      const int x = int(i) % width, y = int(i) / width % height, z = int(i) / width / height;
      double sum = normal(engine);
      for (const Planted& one : planted) {
        const Matrix& m = matrices[size_t(one.orientation)];
        for (const Molecule::Atom& a : molecule.atoms) {
          const double dx = x - one.x - (m[0] * a.x + m[3] * a.y + m[6] * a.z),
                       dy = y - one.y - (m[1] * a.x + m[4] * a.y + m[7] * a.z),
                       dz = z - one.z - (m[2] * a.x + m[5] * a.y + m[8] * a.z);
          sum += molecules * a.weight *
                 std::exp(-(dx * dx + dy * dy + dz * dz) / (2 * molecule.sigma * molecule.sigma));
        }
      }
      values[i] = sum;
    }
    auto spectrum = sums(values, -1);
    sums.multiply(spectrum, in_range);
    std::vector<double> reals;
    for (const Complex& value : sums(spectrum, 1))
      reals.push_back(value.real() / double(values.size()));
    return tomogram<float>(reals, depth, height, width);
  };
  using Matching = TemplateMatching<Space, float, 3>;
  Matching matching(space, {.height = height, .width = width, .depth = depth}, {.wedge = range_of_views()});
  REQUIRE((matching.layers() == depth && matching.rows() == height && matching.columns() == width));
  const auto spectrum = molecule.stored<float>(2 * box);
  const Matching::Reference reference(space, spectrum);
  const double trials = double(depth) * height * width * double(matrices.size()),
               threshold = false_positive_threshold(trials, 0.01);

  matching.set_micrograph(space, measured(1.2));
  matching.search(space, reference, on_device<float>(matrices));
  {
    const Found<float, 3> found(matching);
    const auto maxima = on_host(found.maxima);
    const auto best = on_host(found.best);
    for (const Planted& one : planted) {
      const auto z = size_t(one.z), y = size_t(one.y), x = size_t(one.x);
      CAPTURE(one.x, one.y, one.z, maxima(z, y, x), threshold);
      CHECK(double(maxima(z, y, x)) > threshold);
      CHECK(best(z, y, x) == one.orientation);
      for (const auto& [w, v, u] : {std::array{1, 0, 0}, std::array{0, 1, 0}, std::array{0, 0, 1}}) {
        CHECK(maxima(z + size_t(w), y + size_t(v), x + size_t(u)) < maxima(z, y, x));
        CHECK(maxima(z - size_t(w), y - size_t(v), x - size_t(u)) < maxima(z, y, x));
      }
    }
    for (size_t i = 0; i < maxima.size(); ++i) {
      if (double(maxima.data()[i]) < threshold)
        continue;
      const int x = int(i) % width, y = int(i) / width % height, z = int(i) / width / height;
      double nearest = 1e9;
      for (const Planted& one : planted)
        nearest = std::min(nearest, std::hypot(x - one.x, y - one.y, z - one.z));
      CAPTURE(x, y, z, maxima.data()[i]);
      CHECK(nearest < 9);
    }
  }

  // Every voxel and orientation of noise by itself.
  const auto only_noise = measured(0);
  const double limits[] = {false_positive_threshold(trials, 20000), false_positive_threshold(trials, 1000)};
  double counts[2] = {}, squares = 0;
  for (const Matrix& one : matrices) {
    matching.set_micrograph(space, only_noise);
    matching.search(space, reference, on_device<float>({one}));
    const auto maxima = on_host(Found<float, 3>(matching).maxima);
    for (size_t i = 0; i < maxima.size(); ++i) {
      const double value = maxima.data()[i];
      counts[0] += value > limits[0] ? 1 : 0;
      counts[1] += value > limits[1] ? 1 : 0;
      squares += value * value;
    }
  }
  CAPTURE(counts[0], counts[1], squares / trials);
  CHECK(std::abs(squares / trials - 1) < 0.01);
  CHECK(std::abs(counts[0] / 20000 - 1) < 0.05);
  CHECK(std::abs(counts[1] / 1000 - 1) < 0.2);
}

TEST_CASE("Noise exceeds thresholds as often as their equation says", "[project]") {
  // Of the normal distribution: P(t > 3.0902) = 1e-3, P(t > 4.7534) = 1e-6 (tables).
  CHECK(std::abs(false_positive_threshold(1000) - 3.090232306167813) < 1e-9);
  CHECK(std::abs(false_positive_threshold(3e6, 3) - 4.753424308822899) < 1e-9);
  CHECK(false_positive_threshold(2) < 1e-9);

  const Space space;
  const int height = 300, width = 256;
  TemplateMatching<Space> matching(space, {.height = height, .width = width});
  const Molecule molecule(40, 9, 11, true);
  const TemplateMatching<Space>::Reference reference(space, molecule.stored<float>(64));
  // Coloured: neighbouring pixels are alike.
  const View<float**> micrograph("micrograph", size_t(height), size_t(width));
  const auto white = on_host(noise<float>(height, width, 21));
  fill_with(micrograph, [&](size_t i) {
    return 100 * (white.data()[i] + 0.8f * white.data()[(i + 1) % white.size()] +
                  0.6f * white.data()[(i + size_t(width)) % white.size()]);
  });
  const auto count_above = [&](const Found<float>& found, double threshold) {
    const auto maxima = on_host(found.maxima);
    double count = 0;
    for (size_t i = 0; i < maxima.size(); ++i)
      count += double(maxima.data()[i]) > threshold ? 1 : 0;
    return count;
  };
  // Every pixel and orientation by itself: 2.3e6 trials. Neighbouring pixels exceed together, so counts scatter more than
  // Poisson's do.
  const auto matrices = rotations(30, 2);
  const double trials = double(matching.rows()) * matching.columns() * 30;
  double counts[2] = {};
  for (const Matrix& matrix : matrices) {
    matching.set_micrograph(space, micrograph);
    matching.search(space, reference, on_device<float>({matrix}));
    const Found<float> found(matching);
    counts[0] += count_above(found, false_positive_threshold(trials, 20000));
    counts[1] += count_above(found, false_positive_threshold(trials, 1000));
  }
  CAPTURE(counts[0], counts[1]);
  CHECK(std::abs(counts[0] / 20000 - 1) < 0.05);
  CHECK(std::abs(counts[1] / 1000 - 1) < 0.2);

  // All of them: a pixel that exceeds in several orientations counts once.
  matching.set_micrograph(space, micrograph);
  matching.search(space, reference, on_device<float>(matrices));
  const Found<float> found(matching);
  const double count = count_above(found, false_positive_threshold(trials, 1000));
  CAPTURE(count);
  CHECK((count > 0.5 * counts[1] && count <= counts[1]));
  CHECK(count_above(found, false_positive_threshold(trials, 0.01)) == 0);

  // The variance over pixels of the correlation is 1 by construction.
  double squares = 0;
  const auto means = on_host(found.means), deviations = on_host(found.deviations);
  for (size_t i = 0; i < means.size(); ++i)
    squares += std::pow(double(means.data()[i]), 2) + std::pow(double(deviations.data()[i]), 2);
  CHECK(std::abs(squares / double(means.size()) - 1) < 0.02);
}

TEST_CASE("Template matching finds molecules where they are", "[project]") {
  const Space space;
  const int height = 192, width = 170, box = 32;
  const Molecule molecule(30, 8, 17);
  const auto matrices = rotations(60, 9);
  struct Planted {
    double row, column;
    int orientation;
  };
  const std::vector<Planted> planted{
      {40.0, 50.0, 3}, {90.5, 120.25, 41}, {150.0, 33.0, 17}, {2.0, 100.0, 59}};
  const View<float**> micrograph("micrograph", size_t(height), size_t(width));
  std::mt19937 engine(1);
  std::normal_distribution<double> normal;
  const auto periodic = [](double distance, int size) {
    return distance - size * std::round(distance / size);
  };
  fill_with(micrograph, [&](size_t i) {
    const double row = double(i) / width, column = double(i % size_t(width));
    double value = normal(engine);
    for (const Planted& one : planted)
      value += molecule.projection(matrices[size_t(one.orientation)], periodic(column - one.column, width),
                                   periodic(std::floor(row) - one.row, height));
    return float(value);
  });
  // As a map, in real space.
  const View<float****> map("map", 1, size_t(box), size_t(box), size_t(box));
  fill_with(map, [&](size_t i) {
    const auto at = [](size_t index) { return double(index) - 16; };
    const double x = at(i % 32), y = at(i / 32 % 32), z = at(i / 1024);
    double sum = 0;
    for (const auto& a : molecule.atoms)
      sum += a.weight * std::exp(-(std::pow(x - a.x, 2) + std::pow(y - a.y, 2) + std::pow(z - a.z, 2)) /
                                 (2 * molecule.sigma * molecule.sigma));
    return float(sum);
  });
  const auto view = on_device<float>(matrices);
  // [template-matching
  TemplateMatching<Space> matching(space,
                                   {.height = height, .width = width, .pixel_size = 1, .voxel_size = 1});
  matching.set_micrograph(space, micrograph);
  matching.search(space, prepare_map<Linear>(space, map, 2 * box), view); // [orientations, 3, 3]
  const auto rows = size_t(matching.rows()), columns = size_t(matching.columns());
  const View<float**> maxima("maxima", rows, columns);
  const View<int**> best("best", rows, columns);
  matching.results(space, {.maxima = maxima, .best = best});
  // A false positive in a hundred micrographs of noise:
  const double threshold =
      false_positive_threshold(double(rows * columns) * double(matching.orientations()), 0.01);
  // template-matching]
  REQUIRE((matching.rows() == 192 && matching.columns() == 180));
  const auto value = on_host(maxima);
  const auto orientation = on_host(best);
  for (const Planted& one : planted) {
    bool right = false;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        const double row = double(r) * height / double(rows), column = double(c) * width / double(columns);
        if (std::hypot(periodic(row - one.row, height), periodic(column - one.column, width)) < 1 &&
            double(value(r, c)) > threshold)
          right = right || orientation(r, c) == one.orientation;
      }
    CAPTURE(one.row, one.column);
    CHECK(right);
  }
  // What is above the threshold lies within the reach of one of them.
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) {
      double nearest = 1e9;
      for (const Planted& one : planted)
        nearest =
            std::min(nearest, std::hypot(periodic(double(r) * height / double(rows) - one.row, height),
                                         periodic(double(c) * width / double(columns) - one.column, width)));
      CAPTURE(r, c, value(r, c));
      CHECK((double(value(r, c)) < threshold || nearest < 20));
    }
}

TEST_CASE("The page of template matching shows this code", "[project]") {
  const std::filesystem::path root = BRACEWELL_SOURCE_DIR;
  Test::check_page_examples(root / "tests/project/template_matching.cpp",
                            {root / "docs/template-matching.md"});
}

TEST_CASE("Template matching refuses what does not fit", "[project]") {
  using Catch::Matchers::ContainsSubstring;
  const Space space;
  TemplateMatching<Space> matching(space, {.height = 20, .width = 24});
  const Molecule molecule(3, 2, 1);
  const TemplateMatching<Space>::Reference reference(space, molecule.stored<float>(16));
  const auto matrices = on_device<float>(rotations(2, 1));
  const View<float**> scores("scores", 20, 24);
  const auto says = [](const char* text) { return ContainsSubstring(text); };
  CHECK_THROWS_WITH(matching.search(space, reference, matrices), says("set_micrograph before"));
  CHECK_THROWS_WITH(matching.results(space, {.scores = scores}), says("a search before"));
  const auto micrograph = noise<float>(20, 24, 1);
  CHECK_THROWS_WITH(matching.set_micrograph(space, noise<float>(24, 20, 1)), says("[20, 24]"));
  const View<float**> constant("constant", 20, 24);
  Test::deep_copy(constant, 7.f);
  CHECK_THROWS_WITH(matching.set_micrograph(space, constant), says("a constant"));
  const auto damaged = noise<float>(20, 24, 1);
  fill_with(damaged, [](size_t i) { return i == 33 ? std::nanf("") : float(i % 7); });
  CHECK_THROWS_WITH(matching.set_micrograph(space, damaged), says("found 1 others"));
  matching.set_micrograph(space, micrograph);
  CHECK_THROWS_WITH(matching.search(space, reference, View<float***>("m", 2, 3, 2)), says("[2, 3, 3]"));
  matching.search(space, reference, on_device<float>({})); // of none no error
  auto wrong = rotations(2, 1);
  wrong[1][4] = std::nan("");
  CHECK_THROWS_WITH(matching.search(space, reference, on_device<float>(wrong)),
                    says("matrices: expected finite"));
  CHECK(matching.orientations() == 0);
  matching.search(space, reference, matrices);
  CHECK_THROWS_WITH(matching.results(space, {.scores = scores, .maxima = scores}), says("shared"));
  CHECK_THROWS_WITH(matching.results(space, {.scores = View<float**>("s", 24, 20)}), says("[20, 24]"));
  CHECK_THROWS_WITH(TemplateMatching<Space>(space, {.height = 0, .width = 9}), says("sizes.height"));
  CHECK_THROWS_WITH(TemplateMatching<Space>(space, {.height = 20, .width = 24}, {.limit = 0.7}),
                    says("options.limit"));
  CHECK_THROWS_WITH(TemplateMatching<Space>(space, {.height = 20, .width = 24, .pixel_size = -1}),
                    says("pixel_size"));
  CHECK_THROWS_WITH(false_positive_threshold(10, 11), says("expected"));
  CHECK_THROWS_WITH(TemplateMatching<Space>(space, {.height = 20, .width = 24, .depth = 8}),
                    says("sizes.depth"));
  using Tomograms = TemplateMatching<Space, float, 3>;
  const TemplateMatchingSizes sizes{.height = 9, .width = 8, .depth = 7};
  CHECK_THROWS_WITH(Tomograms(space, {.height = 20, .width = 24}), says("sizes.depth"));
  CHECK_THROWS_WITH(Tomograms(space, sizes, {.wedge = {.lowest = 60, .highest = -60}}),
                    says("options.wedge.highest: expected above 60, found -60"));
  CHECK_THROWS_WITH(Tomograms(space, sizes, {.wedge = {.angles = {3, 120}, .thickness = 0.1}}),
                    says("options.wedge.angles"));
  CHECK_THROWS_WITH(Tomograms(space, sizes, {.wedge = {.angles = {3, 12}}}), says("options.wedge.thickness"));
  CHECK_THROWS_WITH(Tomograms(space, sizes).set_micrograph(space, View<float***>("t", 7, 8, 9)),
                    says("[7, 9, 8]"));

  // A map of zeros has no norm: its correlation is zero, and so is its score.
  const View<Kokkos::complex<float>****> zeros("zeros", 1, 16, 16, 9);
  matching.set_micrograph(space, micrograph);
  matching.search(space, TemplateMatching<Space>::Reference(space, zeros), matrices);
  const Found<float> found(matching);
  const auto flat = on_host(found.scores), maxima = on_host(found.maxima);
  for (size_t i = 0; i < flat.size(); ++i)
    CHECK((flat.data()[i] == 0 && maxima.data()[i] == 0));
}
