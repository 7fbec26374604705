// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/project/building_blocks.hpp>
#include <bracewell/project/detail/problem.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

template <class Value>
using real_part = typename RealOf<Value>::type;

/// The types that the functions of points take.
template <class Kernel, class Grid>
constexpr bool check_point_types() {
  using Value = typename view_of<Grid>::non_const_value_type;
  constexpr int rank = int(view_of<Grid>::rank());
  constexpr KernelFault fault = kernel_fault<Kernel, real_part<Value>>;
  BRACEWELL_EXPECTS_KERNEL(fault, "sample, insert");
  constexpr bool types = std::is_floating_point_v<Value> || is_complex<Grid>;
  static_assert(
      types,
      "Bracewell::sample, insert: grid: expected a View of Kokkos::complex (half spectra), float or double "
      "(images), found another type of values.");
  static_assert(rank == 3 || rank == 4, "Bracewell::sample, insert: grid: expected [B, H, W/2+1] or [B, D, "
                                        "H, W/2+1] of complex numbers, [B, H, W] "
                                        "or [B, D, H, W] of real ones, found another number of axes.");
  return fault == KernelFault::None && types && (rank == 3 || rank == 4);
}

/// Half spectra as grids of points.
template <class Kernel, class T_, int D, Mates mates>
struct SpectrumGrid {
  using T = T_;
  using Value = Kokkos::complex<T>;
  static constexpr int dimensions = D;
  static constexpr bool blocks = true; ///< hosts sample several points at once

  HalfSpectrumLayout<D> layout;
  const Value* data;

  template <class Array>
  explicit SpectrumGrid(const Array& array) : data(array.data) {
    for (int d = 0; d < D; ++d)
      layout.size[d] = static_cast<int>(d == 0 ? array.width : array.extents[D - d]);
  }

  KOKKOS_INLINE_FUNCTION std::int64_t elements() const { return layout.elements(); }
  KOKKOS_INLINE_FUNCTION auto sampler(std::int64_t batch) const {
    return Bracewell::Sampler<Kernel, T, D, mates>(
        HalfSpectrum<const T, D>(data + batch * elements(), layout));
  }
  KOKKOS_INLINE_FUNCTION auto inserter(Value* target) const {
    return Inserter<Kernel, T, D, mates>(HalfSpectrum<T, D>(target, layout));
  }
};

/// Interpolates an image or volume that is zero outside.
template <class Kernel, class T, int D>
struct ImageWindows {
  static constexpr int width = Kernel::width, rows = D == 2 ? width : width * width;

  int size[D];

  struct Window {
    int first[D];
    T fraction[D], weight[D][width];
  };
  /// False where the image is not reached: `value` is then what a sample is.
  KOKKOS_INLINE_FUNCTION bool place(const T (&q)[D], Window& window, T& value) const {
    value = 0;
    bool reached = true;
    for (int d = 0; d < D; ++d) {
      if (!(Kokkos::abs(q[d]) <= Kokkos::Experimental::finite_max_v<T>))
        value = Kokkos::Experimental::quiet_NaN_v<T>;
      reached = reached && q[d] > T(-width) && q[d] < T(size[d] + width);
    }
    for (int d = 0; d < D && reached; ++d) {
      split(q[d], window.first[d], window.fraction[d]);
      window.first[d] -= width / 2 - 1;
      Kernel::weights(window.fraction[d], window.weight[d]);
    }
    return reached;
  }

  /// Calls visit(element of the first tap of the row, first tap that is there, one beyond the last, y, z).
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_row(const Window& window, const Visit& visit) const {
    const int begin = Kokkos::max(0, -window.first[0]),
              end = Kokkos::min(int(width), size[0] - window.first[0]);
    for (int r = 0; r < rows; ++r) {
      const int y = r % width, z = D == 3 ? r / width : 0;
      const int row = window.first[1] + y, plane = D == 3 ? window.first[D - 1] + z : 0;
      if (row < 0 || row >= size[1] || plane < 0 || (D == 3 && plane >= size[D - 1]))
        continue;
      visit((std::int64_t(plane) * size[1] + row) * size[0] + window.first[0], begin, end, y, z);
    }
  }
};

template <class Kernel, class T, int D>
struct ImageSampler {
  ImageWindows<Kernel, T, D> windows;
  const T* data;

  KOKKOS_INLINE_FUNCTION T operator()(const T (&q)[D]) const {
    typename ImageWindows<Kernel, T, D>::Window window;
    T sum;
    if (windows.place(q, window, sum))
      windows.for_each_row(window, [&](std::int64_t element, int begin, int end, int y, int z) {
        T row = 0;
        for (int x = begin; x < end; ++x)
          row += window.weight[0][x] * data[element + x];
        sum += window.weight[1][y] * (D == 3 ? window.weight[D - 1][z] : T(1)) * row;
      });
    return sum;
  }

  KOKKOS_INLINE_FUNCTION T operator()(const T (&q)[D], T (&gradient)[D]) const {
    typename ImageWindows<Kernel, T, D>::Window window;
    T sum;
    const bool reached = windows.place(q, window, sum);
    for (T& one : gradient)
      one = sum;
    if (!reached)
      return sum;
    T slope[D][Kernel::width];
    for (int d = 0; d < D; ++d)
      Kernel::derivatives(window.fraction[d], slope[d]);
    windows.for_each_row(window, [&](std::int64_t element, int begin, int end, int y, int z) {
      T row = 0, row_slope = 0;
      for (int x = begin; x < end; ++x) {
        row += window.weight[0][x] * data[element + x];
        row_slope += slope[0][x] * data[element + x];
      }
      const T plane = D == 3 ? window.weight[D - 1][z] : T(1);
      sum += window.weight[1][y] * plane * row;
      gradient[0] += window.weight[1][y] * plane * row_slope;
      gradient[1] += slope[1][y] * plane * row;
      if constexpr (D == 3)
        gradient[2] += window.weight[1][y] * slope[2][z] * row;
    });
    return sum;
  }
};

template <class Kernel, class T, int D>
struct ImageInserter {
  ImageWindows<Kernel, T, D> windows;
  T* data;

  KOKKOS_INLINE_FUNCTION bool add(const T (&q)[D], T value) const {
    return add_by(q, value, [](T* address, T one) { *address += one; });
  }
  KOKKOS_INLINE_FUNCTION bool atomic_add(const T (&q)[D], T value) const {
    return add_by(q, value, [](T* address, T one) { Kokkos::atomic_add(address, one); });
  }

private:
  template <class Add>
  KOKKOS_INLINE_FUNCTION bool add_by(const T (&q)[D], T value, const Add& add_one) const {
    typename ImageWindows<Kernel, T, D>::Window window;
    T none;
    if (!windows.place(q, window, none))
      return false;
    windows.for_each_row(window, [&](std::int64_t element, int begin, int end, int y, int z) {
      const T across = window.weight[1][y] * (D == 3 ? window.weight[D - 1][z] : T(1)) * value;
      for (int x = begin; x < end; ++x)
        add_one(data + element + x, window.weight[0][x] * across);
    });
    return true;
  }
};

/// Images and volumes as grids of points.
template <class Kernel, class T_, int D>
struct ImageGrid {
  using T = T_;
  using Value = T;
  static constexpr int dimensions = D;
  static constexpr bool blocks = false;

  ImageWindows<Kernel, T, D> windows;
  const T* data;

  template <class Array>
  explicit ImageGrid(const Array& array) : data(array.data) {
    for (int d = 0; d < D; ++d)
      windows.size[d] = static_cast<int>(array.extents[D - d]);
  }

  KOKKOS_INLINE_FUNCTION std::int64_t elements() const {
    std::int64_t product = 1;
    for (int d = 0; d < D; ++d)
      product *= windows.size[d];
    return product;
  }
  KOKKOS_INLINE_FUNCTION auto sampler(std::int64_t batch) const {
    return ImageSampler<Kernel, T, D>{windows, data + batch * elements()};
  }
  KOKKOS_INLINE_FUNCTION auto inserter(T* target) const {
    return ImageInserter<Kernel, T, D>{windows, target};
  }
};

/// Values, and gradients with respect to points, of neighbours in the list: on hosts as many as vectors take, on GPUs one.
template <class Space, class Grid>
struct SamplePoints {
  using T = typename Grid::T;
  using Value = typename Grid::Value;
  static constexpr int D = Grid::dimensions, size = is_host<Space> ? 64 / sizeof(T) : 1;

  Grid grid;
  const T* points;      ///< [B|1, N, D]
  const Value* factors; ///< [B, N], what gradients of values are multiplied with; null: no gradients
  Value* values;        ///< [B, N]; null: not wanted
  T* gradients;         ///< like points; null: not wanted
  std::int64_t batches, count;
  bool shared_points, shared_grid;

  void launch(const Space& space, const char* label) const {
    const std::int64_t items = (shared_points ? 1 : batches) * ((count + size - 1) / size);
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, items),
                         *this);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t blocks = (count + size - 1) / size, row = item / blocks, first = item % blocks * size;
    const int here = static_cast<int>(Kokkos::min(std::int64_t(size), count - first));
    T q[D][size], sums[D][size];
    for (int i = 0; i < size; ++i)
      for (int d = 0; d < D; ++d) {
        q[d][i] = points[(row * count + first + Kokkos::min(i, here - 1)) * D + d];
        sums[d][i] = 0;
      }
    for (std::int64_t batch = shared_points ? 0 : row; batch < (shared_points ? batches : row + 1); ++batch) {
      const auto sample = grid.sampler(shared_grid ? 0 : batch);
      if (Grid::blocks && !gradients)
        sample_block(sample, q, batch * count + first, here);
      else
        for (int i = 0; i < here; ++i)
          sample_one(sample, q, i, batch * count + first + i, sums);
    }
    if (gradients)
      for (int i = 0; i < here; ++i)
        for (int d = 0; d < D; ++d)
          gradients[(row * count + first + i) * D + d] = sums[d][i];
  }

private:
  template <class Sample>
  KOKKOS_INLINE_FUNCTION void sample_block(const Sample& sample, const T (&q)[D][size], std::int64_t output,
                                           int here) const {
    if constexpr (Grid::blocks) {
      Value sampled[size];
      sample(q, sampled);
      for (int i = 0; i < here; ++i)
        values[output + i] = sampled[i];
    }
  }

  template <class Sample>
  KOKKOS_INLINE_FUNCTION void sample_one(const Sample& sample, const T (&q)[D][size], int i,
                                         std::int64_t output, T (&sums)[D][size]) const {
    T own[D];
    for (int d = 0; d < D; ++d)
      own[d] = q[d][i];
    Value gradient[D];
    const Value value = gradients ? sample(own, gradient) : sample(own);
    if (values)
      values[output] = value;
    if (gradients)
      for (int d = 0; d < D; ++d)
        sums[d][i] += product(factors[output], gradient[d]);
  }

  /// Re(conj(a) b).
  KOKKOS_INLINE_FUNCTION static T product(const T& a, const T& b) { return a * b; }
  KOKKOS_INLINE_FUNCTION static T product(const Kokkos::complex<T>& a, const Kokkos::complex<T>& b) {
    return a.real() * b.real() + a.imag() * b.imag();
  }
};

/// Adds values at points, by atomic additions or, where hosts have many points, each thread to a copy of its own.
template <class Space, class Grid>
struct InsertPoints {
  using T = typename Grid::T;
  using Value = typename Grid::Value;
  static constexpr int D = Grid::dimensions, size = is_host<Space> ? 64 / sizeof(T) : 1;

  Grid grid;
  const T* points;
  const Value* values;
  Value* target;
  std::int64_t batches, count;
  bool shared_points, shared_grid;

  void launch(const Space& space, const char* label) const {
    if constexpr (is_host<Space>) {
      launch_on_host(space, label);
    } else {
      Kokkos::parallel_for(
          std::string(label) + "::atomic",
          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, batches * count), *this);
    }
  }

  /// One point, by atomic additions.
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t batch = i / count;
    T q[D];
    read(batch, i - batch * count, q);
    grid.inserter(target + (shared_grid ? 0 : batch * grid.elements())).atomic_add(q, values[i]);
  }

private:
  KOKKOS_INLINE_FUNCTION void read(std::int64_t batch, std::int64_t i, T (&q)[D]) const {
    for (int d = 0; d < D; ++d)
      q[d] = points[((shared_points ? 0 : batch * count) + i) * D + d];
  }

  /// Grids one after the other, or all batches into one.
  void launch_on_host(const Space& space, const char* label) const {
    const std::int64_t grids = shared_grid ? 1 : batches, each = batches * count / grids,
                       elements = grid.elements();
    const std::int64_t threads = space.concurrency();
    // With as many additions as elements, clearing and summing copies takes less time than atomic additions.
    const bool copies = threads > 1 && each * 32 >= elements * threads;
    const auto sums = copies ? device_vector<Value>(space, "Bracewell::insert::copies", threads * elements)
                             : decltype(device_vector<Value>(space, "", 0))();
    for (std::int64_t g = 0; g < grids; ++g) {
      Value* const own = target + g * elements;
      if (threads == 1 || !copies) {
        const std::int64_t tasks = threads == 1 ? 1 : (each + 1023) / 1024;
        const auto inserter = grid.inserter(own);
        const auto task = [&](std::int64_t t) {
          for (std::int64_t i = each * t / tasks; i < each * (t + 1) / tasks; ++i)
            if (threads == 1)
              add_one(inserter, g * each + i);
            else
              (*this)(g * each + i);
        };
        launch_host_tasks(space, {label, "::atomic"}, tasks, task);
        continue;
      }
      launch_host_tasks(space, {label, "::copies"}, threads, [&](std::int64_t t) {
        Value* const copy = sums.data() + t * elements;
        std::fill(copy, copy + elements, Value(0));
        const auto inserter = grid.inserter(copy);
        for (std::int64_t i = each * t / threads; i < each * (t + 1) / threads; ++i)
          add_one(inserter, g * each + i);
      });
      const std::int64_t parts = (elements + 4095) / 4096;
      launch_host_tasks(space, {label, "::sum"}, parts, [&](std::int64_t part) {
        for (std::int64_t i = part * 4096; i < std::min(elements, (part + 1) * 4096); ++i) {
          Value sum(0);
          for (std::int64_t t = 0; t < threads; ++t)
            sum += sums.data()[t * elements + i];
          own[i] += sum;
        }
      });
    }
  }

  template <class Inserter>
  void add_one(const Inserter& inserter, std::int64_t i) const {
    T q[D];
    read(i / count, i % count, q);
    inserter.add(q, values[i]);
  }
};

/// Which points a call is about.
struct PointShapes {
  std::int64_t batches, points;
  bool shared_points, shared_grid;
};

template <class Kernel, int D, class Value, class Memory>
[[gnu::cold]] PointShapes check_points(const Arguments& arguments, const char* grid_name,
                                       const Array<Value, Memory>& grid, const ArrayShape& points,
                                       const char* values_name, const ArrayShape& values) {
  using Real = real_part<std::remove_const_t<Value>>;
  check_kernel<Kernel, Real>(arguments.function);
  constexpr bool half = !std::is_same_v<Real, std::remove_const_t<Value>>;
  box<D>(arguments, grid_name, grid, half);
  for (int axis = 1; axis <= D; ++axis) {
    const std::int64_t size = axis == D && half ? grid.width : grid.extents[axis];
    const std::int64_t least = half ? std::max(4, Kernel::width) : 1;
    if (size < least || size > 32768)
      arguments.refuse(grid_name, "axes of %lld to 32768 elements, found %s", static_cast<long long>(least),
                       grid.shape_text().characters);
  }
  arguments.given(values_name, values);
  if (values.rank != 2)
    arguments.refuse(values_name, "[B, N], found %s", values.shape_text().characters);
  const std::int64_t batches = values.extents[0], count = values.extents[1];
  arguments.given("points", points);
  if (points.rank != 3 || (points.extents[0] != 1 && points.extents[0] != batches) ||
      points.extents[1] != count || points.extents[2] != D)
    arguments.refuse("points", "[1|%lld, %lld, %d], found %s", static_cast<long long>(batches),
                     static_cast<long long>(count), D, points.shape_text().characters);
  if (grid.extents[0] != 1 && grid.extents[0] != batches)
    arguments.refuse(grid_name, "batch axis of 1 or %lld, found %s", static_cast<long long>(batches),
                     grid.shape_text().characters);
  return {batches, count, points.extents[0] == 1, grid.extents[0] == 1};
}

/// The kernels of a grid with one kind of mates.
template <class Kernel, int D, class ExecutionSpace, class Value, class Run>
void with_grid(const Array<Value, typename ExecutionSpace::memory_space>& array, Mates mates,
               const Run& run) {
  using Element = std::remove_const_t<Value>;
  using T = real_part<Element>;
  if constexpr (std::is_same_v<T, Element>)
    run(ImageGrid<Kernel, T, D>(array));
  else if (mates == Mates::Single)
    run(SpectrumGrid<Kernel, T, D, Mates::Single>(array));
  else
    run(SpectrumGrid<Kernel, T, D, Mates::Both>(array));
}

template <class Kernel, class ExecutionSpace, class Grid, class Points, class Factors, class Outputs>
void sample_points(const ExecutionSpace& space, const Arguments& arguments, const char* label,
                   const char* grid_name, const Grid& grid_view, const Points& points_view,
                   const char* factors_name, const Factors* factors_view, const Outputs& outputs,
                   Mates mates) {
  using Memory = typename ExecutionSpace::memory_space;
  using Value = typename view_of<Grid>::non_const_value_type;
  using T = real_part<Value>;
  constexpr int D = int(view_of<Grid>::rank()) - 1;
  const Array<const Value, Memory> grid(grid_view);
  const Array<const T, Memory> points(points_view);
  Array<const Value, Memory> factors;
  if (factors_view)
    factors = Array<const Value, Memory>(*factors_view);
  const auto shapes = check_points<Kernel, D>(arguments, grid_name, grid, points, factors_name,
                                              factors ? ArrayShape(factors) : ArrayShape(outputs.values));
  if (factors_view) {
    arguments.require(outputs.values || outputs.points || outputs.grid, "gradients", "at least one output",
                      "none");
    if (outputs.values)
      arguments.same_shape("gradients.values", outputs.values, factors);
    if (outputs.points)
      arguments.same_shape("gradients.points", outputs.points, points);
  }
  arguments.disjoint({{factors_view ? "gradients.values" : "values", outputs.values},
                      {"gradients.grid", outputs.grid},
                      {"gradients.points", outputs.points}},
                     {{grid_name, grid}, {"points", points}, {factors_name, factors}});
  if (!outputs.values && !outputs.points)
    return;
  if (shapes.batches == 0 || shapes.points == 0)
    return;
  with_grid<Kernel, D, ExecutionSpace>(grid, mates, [&](const auto& of_grid) {
    SamplePoints<ExecutionSpace, std::remove_cvref_t<decltype(of_grid)>>{
        of_grid,        points.data,   factors.data,         outputs.values.data, outputs.points.data,
        shapes.batches, shapes.points, shapes.shared_points, shapes.shared_grid}
        .launch(space, label);
  });
}

/// Adds values at points that have been checked.
template <class Kernel, int D, class ExecutionSpace, class Value, class T>
void insert_points(const ExecutionSpace& space, const char* label,
                   const Array<const Value, typename ExecutionSpace::memory_space>& values,
                   const Array<const T, typename ExecutionSpace::memory_space>& points,
                   const Array<Value, typename ExecutionSpace::memory_space>& grid, Mates mates) {
  if (values.size() == 0)
    return;
  with_grid<Kernel, D, ExecutionSpace>(grid, mates, [&](const auto& of_grid) {
    InsertPoints<ExecutionSpace, std::remove_cvref_t<decltype(of_grid)>>{of_grid,
                                                                         points.data,
                                                                         values.data,
                                                                         grid.data,
                                                                         values.extents[0],
                                                                         values.extents[1],
                                                                         points.extents[0] == 1,
                                                                         grid.extents[0] == 1}
        .launch(space, label);
  });
}

} // namespace Bracewell::Impl
