// Prints how far sums over many poses and points in float are from those in double, and what they take: the numbers that
// blocks of poses (project/detail/insertion/insertion.hpp) and of samples (gridding/detail/bins) were chosen by.

#include "tuning.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/project/backproject.hpp>

namespace {

using namespace Tuning;

template <class T>
View<T*> converted(const View<float*>& from) {
  const View<T*> to(Kokkos::view_alloc("converted", Kokkos::WithoutInitializing), from.size());
  Kokkos::parallel_for(
      "convert", Kokkos::RangePolicy<Space>(0, from.size()),
      KOKKOS_LAMBDA(const std::int64_t i) { to(i) = T(from(i)); });
  return to;
}

/// |found - right| / |right|
template <class T>
double relative_error(const View<T*>& found, const View<double*>& right) {
  double difference = 0, all = 0;
  Kokkos::parallel_reduce(
      "error", Kokkos::RangePolicy<Space>(0, right.size()),
      KOKKOS_LAMBDA(const std::int64_t i, double& d, double& a) {
        d += (double(found(i)) - right(i)) * (double(found(i)) - right(i));
        a += right(i) * right(i);
      },
      difference, all);
  return std::sqrt(difference / all);
}

/// Data, then weights, of spectra of ones of `image` pixels a side in a volume of `box`.
template <class T>
View<T*> inserted(int box, int image, const View<float*>& rotations, double* seconds = nullptr) {
  const Space space;
  const std::size_t poses = rotations.size() / 9, elements = std::size_t(box) * box * (box / 2 + 1);
  const View<T*> matrices = converted<T>(rotations), sums("sums", 3 * elements);
  const View<Kokkos::complex<T>****> images("images", 1, poses, image, image / 2 + 1);
  const View<T****> weights("weights", 1, 1, image, image / 2 + 1);
  Kokkos::deep_copy(images, Kokkos::complex<T>(1, T(0.5)));
  Kokkos::deep_copy(weights, T(1));
  using Volume = Kokkos::View<Kokkos::complex<T>****, Kokkos::LayoutRight, Space>;
  const Volume data(reinterpret_cast<Kokkos::complex<T>*>(sums.data()), 1, box, box, box / 2 + 1);
  const View<T****> weight(sums.data() + 2 * elements, 1, box, box, box / 2 + 1);
  const View<const T****> rows(matrices.data(), 1, poses, 3, 3);
  const auto run = [&] {
    Bracewell::backproject<Bracewell::Linear>(space, images, {.matrices = rows},
                                              {.data = data, .weight = weight, .weights = weights},
                                              {.oversampling = double(box) / image});
  };
  if (seconds) {
    *seconds = median_seconds(space, run);
    Kokkos::deep_copy(sums, T(0));
  }
  run();
  space.fence();
  return sums;
}

void poses(int box, int image, const char* which, const View<float*>& rotations, bool error) {
  double seconds = 0;
  const auto sums = inserted<float>(box, image, rotations, &seconds);
  std::printf("  %4d %4d %9zu  %-10s %10.4f", box, image, rotations.size() / 9, which, 1e3 * seconds);
  if (error)
    std::printf("   %.1e", relative_error(sums, inserted<double>(box, image, rotations)));
  std::printf("\n");
}

template <class T>
View<T*> spread(int size, const View<double**>& points, double* seconds = nullptr) {
  const Space space;
  const Bracewell::NonuniformFFT<Space, 2, T> plan(space, points, {size, size},
                                                   {.tolerance = sizeof(T) == 4 ? 1e-6 : 1e-12});
  const View<Kokkos::complex<T>**> values("values", 1, points.extent(0));
  Kokkos::deep_copy(values, Kokkos::complex<T>(1));
  const View<T*> image("image", 2 * size * size);
  const Kokkos::View<Kokkos::complex<T>***, Kokkos::LayoutRight, Space> out(
      reinterpret_cast<Kokkos::complex<T>*>(image.data()), 1, size, size);
  if (seconds)
    *seconds = median_seconds(space, [&] { plan.adjoint(space, values, out); });
  plan.adjoint(space, values, out);
  space.fence();
  return image;
}

/// Points in a square of this width.
void points(int size, std::size_t count, double spread_of_points) {
  const View<double**> at("points", count, 2);
  Kokkos::fill_random(at, Kokkos::Random_XorShift64_Pool<Space>(7), 0.1, 0.1 + spread_of_points);
  double seconds = 0;
  const auto found = spread<float>(size, at, &seconds);
  std::printf("  %4d %9zu  %8.3g %10.4f   %.1e\n", size, count, spread_of_points, 1e3 * seconds,
              relative_error(found, spread<double>(size, at)));
}

} // namespace

int main(int argc, char* argv[]) {
  const Kokkos::ScopeGuard guard(argc, argv);
  print_device("tune_sums", false);
  std::printf(
      "\nbackproject by Linear, data and weight\n   box image    poses  rotations          ms   error\n");
  for (const int count :
       host ? std::vector{1000, 10000, 100000} : std::vector{1000, 10000, 100000, 1000000}) {
    const auto rotations = random_rotations<3>(count);
    poses(12, 8, "random", rotations, true);
    for (int turn = 1; turn < count; turn *= 2) // the first, again and again
      Kokkos::deep_copy(Kokkos::subview(rotations, std::make_pair(9 * turn, 9 * std::min(2 * turn, count))),
                        Kokkos::subview(rotations, std::make_pair(0, 9 * std::min(turn, count - turn))));
    poses(12, 8, "equal", rotations, true);
  }
  for (const auto [box, image, count] :
       {std::array{64, 32, 2000}, {64, 32, 20000}, {128, 64, 20000}, {256, 128, 20000}, {512, 256, 20000}})
    if (!host || box <= 64)
      poses(box, image, "random", random_rotations<3>(count), box <= 128);
  std::printf(
      "\nNonuniformFFT::adjoint in 2D to 1e-6, values 1\n  size    points    square         ms   error\n");
  for (const int size : {16, 64, 256})
    for (const double square : {0.8, 1e-3, 0.})
      for (const std::size_t count : {100000, 1000000, 10000000})
        if (!host || count < 10000000)
          points(size, count, square);
}
