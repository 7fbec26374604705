// Addresses in half spectra against full spectra, and index arithmetic beyond 32 bits.

#include <bracewell/array.hpp>
#include <bracewell/rfft/layout.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <complex>
#include <set>
#include <vector>

using namespace Bracewell;

namespace {

int modulo(int i, int n) { return ((i % n) + n) % n; }

/// A real field at random, its full spectrum by the defining sum, and the half that a real-to-complex
/// transform stores.
template <int Dim>
struct Spectrum {
  HalfSpectrumLayout<Dim> layout;
  std::vector<std::complex<double>> full, half;
  double energy = 0; ///< of the field

  explicit Spectrum(const HalfSpectrumLayout<Dim>& given) : layout(given), half(layout.elements()) {
    std::size_t points = 1;
    for (const int n : layout.size)
      points *= n;
    std::vector<double> field(points);
    for (std::size_t i = 0; i < points; ++i)
      energy += std::pow(field[i] = std::sin(1. + 7. * double(i * i % 101)), 2);
    for (std::size_t k = 0; k < points; ++k) {
      std::complex<double> sum = 0;
      for (std::size_t i = 0; i < points; ++i) {
        double turns = 0;
        for (std::size_t d = 0, a = i, b = k; d < Dim; a /= layout.size[d], b /= layout.size[d], ++d)
          turns += double(a % layout.size[d] * (b % layout.size[d])) / layout.size[d];
        sum += field[i] * std::polar(1., -2 * M_PI * turns);
      }
      full.push_back(sum);
    }
    for (std::size_t element = 0; element < half.size(); ++element) {
      const std::size_t column = element % layout.columns(), row = element / layout.columns();
      half[element] = full[row * layout.size[0] + column];
    }
  }

  std::complex<double> at(const int (&tap)[Dim]) const {
    std::size_t index = 0;
    for (int d = Dim - 1; d >= 0; --d)
      index = index * layout.size[d] + modulo(tap[d], layout.size[d]);
    return full[index];
  }
};

/// Calls visit(tap) for every tap that windows around positions within the Nyquist limits can have, and
/// beyond: components in
/// [-N, N].
template <int Dim, class Visit>
void for_each_tap(const HalfSpectrumLayout<Dim>& layout, const Visit& visit) {
  int count = 1;
  for (const int n : layout.size)
    count *= 2 * n + 1;
  for (int i = 0; i < count; ++i) {
    int tap[Dim];
    for (int d = 0, rest = i; d < Dim; rest /= 2 * layout.size[d] + 1, ++d)
      tap[d] = rest % (2 * layout.size[d] + 1) - layout.size[d];
    visit(tap);
  }
}

template <int Dim>
void check_spectrum(const HalfSpectrumLayout<Dim>& layout) {
  const Spectrum<Dim> spectrum(layout);

  int wrong = 0;
  for_each_tap(layout, [&](const int(&tap)[Dim]) {
    const auto address = layout.resolve(tap);
    const auto value = spectrum.half[address.index];
    wrong += std::abs((address.conjugate ? std::conj(value) : value) - spectrum.at(tap)) > 1e-9;
    wrong += address.column != address.index % layout.columns();
    if (tap[0] >= 0 && tap[0] < layout.columns()) // rows are addressed without folding x
      wrong += std::abs(spectrum.half[layout.row(tap) + tap[0]] - spectrum.at(tap)) > 1e-9;
  });
  CHECK(wrong == 0);

  double energy = 0;
  std::int64_t represented = 0;
  for (std::int64_t element = 0; element < layout.elements(); ++element) {
    int k[Dim];
    layout.frequency(element, k);
    wrong += std::abs(spectrum.half[element] - spectrum.at(k)) > 1e-9;
    for (int d = 0; d < Dim; ++d)
      wrong += 2 * k[d] > layout.size[d] || 2 * k[d] <= -layout.size[d]; // the Nyquist frequency is positive
    wrong += layout.resolve(k).index != element || layout.resolve(k).conjugate;
    energy += layout.multiplicity(k[0]) * std::norm(spectrum.half[element]);
    represented += layout.multiplicity(k[0]);
    wrong += layout.self_mated(k[0]) != (layout.multiplicity(k[0]) == 1);
  }
  CHECK(wrong == 0);
  CHECK(represented == std::int64_t(spectrum.full.size()));
  CHECK(std::abs(energy / (double(spectrum.full.size()) * spectrum.energy) - 1) < 1e-12); // Parseval
}

} // namespace

TEST_CASE("a half spectrum of two dimensions addresses the full one") {
  check_spectrum<2>({GENERATE(1, 2, 4, 5, 8, 9), GENERATE(1, 2, 5, 6)});
}

TEST_CASE("a half spectrum of three dimensions addresses the full one") {
  check_spectrum<3>({GENERATE(4, 5, 6), GENERATE(4, 7), GENERATE(5, 6)});
}

TEST_CASE("only columns with stored mates count once") {
  const HalfSpectrumLayout<2> even{8, 3}, odd{9, 3};
  CHECK(even.columns() == 5);
  CHECK(odd.columns() == 5);
  CHECK(even.multiplicity(4) == 1);
  CHECK(odd.multiplicity(4) == 2);
  for (const auto& layout : {even, odd})
    CHECK(layout.multiplicity(0) == 1);
}

TEMPLATE_TEST_CASE_SIG("addresses beyond 2^33 elements", "", ((int Dim), Dim), 2, 3) {
  HalfSpectrumLayout<Dim> layout;
  for (int d = 0; d < Dim; ++d)
    layout.size[d] = Dim == 2 ? 150000 + d : 3000 + d;
  const std::int64_t elements = layout.elements();
  REQUIRE(elements > (std::int64_t(1) << 33));

  std::set<std::int64_t> probes{0, elements - 1};
  for (int shift = 20; shift < 34; ++shift)
    for (int offset = -2; offset <= 2; ++offset)
      if ((std::int64_t(1) << shift) + offset < elements)
        probes.insert((std::int64_t(1) << shift) + offset);
  for (const std::int64_t element : probes) {
    int k[Dim], mate[Dim];
    layout.frequency(element, k);
    for (int d = 0; d < Dim; ++d)
      mate[d] = -k[d];
    CHECK(layout.resolve(k).index == element);
    CHECK(layout.row(k) + k[0] == element);
    if (!layout.self_mated(k[0])) {
      CHECK(layout.resolve(mate).index == element);
      CHECK(layout.resolve(mate).conjugate);
    }
  }
}

TEST_CASE("sizes and widths of arrays beyond 2^33 elements") {
  Array<float, Kokkos::HostSpace> array;
  array.rank = 4;
  const std::int64_t extents[] = {3, 3000, 3000, 1501};
  std::copy(extents, extents + 4, array.extents);
  CHECK(array.size() == std::int64_t(3) * 3000 * 3000 * 1501);
  CHECK(array.shape() == "[3, 3000, 3000, 1501]");
}

TEST_CASE("arrays take shape and width from Views") {
  const Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace> view("view", 2, 6, 5);
  using Reference = Array<const double, Kokkos::HostSpace>;
  CHECK(Reference(view).width == 8);
  CHECK(Reference(HalfSpectrum{view, 9}).width == 9);
  CHECK(Reference(view).rank == 3);
  CHECK(Reference(view).size() == 60);
  CHECK(Reference(view).data == view.data());
  CHECK(Reference(view));
  CHECK_FALSE(Reference());
  CHECK_FALSE(Reference(Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace>()));
}

TEST_CASE("arrays take Views of any layout whose rows have no gaps, and refuse others") {
  const Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace> view("rows", 1, 6, 8);
  using Reference = Array<double, Kokkos::HostSpace>;
  const auto message_of = [](const auto& part) {
    try {
      Reference array(part);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto all = Kokkos::ALL;
  CHECK(message_of(Kokkos::subview(view, all, all, Kokkos::pair(0, 5))) ==
        "Bracewell: View 'rows' [1, 6, 5]: expected rows without gaps, strides [30, 5, 1], found strides "
        "[48, 8, 1]");
  CHECK(message_of(Kokkos::subview(view, 0, all, 3)) ==
        "Bracewell: View 'rows' [6]: expected rows without gaps, strides [1], found strides [8]");
  // Rows 2 and 3 of an array of one batch: LayoutStride, without gaps.
  const Reference part(Kokkos::subview(view, all, Kokkos::pair(2, 4), all));
  CHECK(part.data == &view(0, 2, 0));
  CHECK(part.shape() == "[1, 2, 8]");
  CHECK(part.width == 14);
  CHECK(message_of(Kokkos::subview(view, all, Kokkos::pair(2, 2), Kokkos::pair(0, 5))) ==
        "no error"); // empty
  const Kokkos::View<double*, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", 4);
  CHECK(Reference(left).data == left.data());
  const Kokkos::View<double, Kokkos::LayoutLeft, Kokkos::HostSpace> number("number");
  CHECK(Reference(number).size() == 1);
}

TEST_CASE("arrays keep Views without a name, and refer to those with one") {
  using View = Kokkos::View<double*, Kokkos::LayoutRight, Kokkos::HostSpace>;
  using Reference = Array<double, Kokkos::HostSpace>;
  View view("kept", 3);
  {
    const Reference named(view);
    CHECK(view.use_count() == 1);
    const Reference kept{View(view)}, half{HalfSpectrum{view, 5u}};
    CHECK(view.use_count() == 3);
    const Array<const double, Kokkos::HostSpace> read_only(kept);
    CHECK(view.use_count() == 3); // together
    CHECK(half.width == 5);
  }
  CHECK(view.use_count() == 1);
}
