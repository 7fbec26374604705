// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Mean of a real half spectrum, such as a weight volume, in every shell of the full spectrum (elements count
/// as often as they stand for). Shell s holds s - 1/2 <= |k| < s + 1/2, |k| in periods per box width; empty
/// shells give 0.
/// @param values    real [B, (D,) H, W/2+1]
/// @param averages  double [B, S], S at will; overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Spectrum, class Averages>
void shell_averages(const ExecutionSpace& space, const Spectrum& values, const Averages& averages);

namespace Impl {

/// Shells of a half spectrum: shell s holds the frequencies with s - 1/2 <= r < s + 1/2. r counts periods per box width: r^2
/// = sum (k W / N)^2 over axes of size N, and r = |k| in a cubic box.
template <int Dim>
struct Shells {
  double scale[Dim]; ///< W / N (x, y[, z])

  explicit Shells(const Box<Dim>& box) {
    for (int d = 0; d < Dim; ++d)
      scale[d] = double(box.size[0]) / box.size[d];
  }

  /// Shell of a frequency on column x, in a row whose share of r^2 is given.
  KOKKOS_FUNCTION static int shell(int x, double squared) {
    return static_cast<int>(Kokkos::sqrt(squared + double(x) * x) + 0.5);
  }

  /// First column of a row that belongs to shell s or a later one.
  KOKKOS_FUNCTION static int first_column(int s, double squared) {
    const double rest = (s - 0.5) * (s - 0.5) - squared;
    return s == 0 || rest <= 0 ? 0 : static_cast<int>(Kokkos::ceil(Kokkos::sqrt(rest)));
  }

  KOKKOS_FUNCTION double squared(int k, int d) const { return k * scale[d] * (k * scale[d]); }

  /// The share of r^2 of a row with these indices (y[, z] from 1 on).
  KOKKOS_FUNCTION double squared(const int (&index)[Dim], const Box<Dim>& box) const {
    double sum = 0;
    for (int d = 1; d < Dim; ++d)
      sum += squared(HalfSpectrumLayout<Dim>::frequency(index[d], box.size[d]), d);
    return sum;
  }
};

/// One team per shell and batch element visits the shell's stretch of every row: no atomics, the same sum in
/// every run. Term::add(index, multiplicity, sum) takes in an element, Term::result(sum) makes the output. A term of several
/// outputs has a sum of each, and add() takes where the shell's curves are, too: batch * shells + shell.
template <class ExecutionSpace, class Term, int Dim>
struct ReduceShells {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
  using Member = typename Policy::member_type;

  Term term;
  Box<Dim> box;
  Shells<Dim> radii;
  int shells;
  double* results; ///< [B, shells], or [B, shells, outputs]

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const int s = shells - 1 - static_cast<int>(member.league_rank() / box.batches); // the largest first
    const std::int64_t batch = member.league_rank() % box.batches;

    // The rows that the shell can reach: frequencies low ... low + count - 1 on the slow axes.
    int low[Dim] = {}, count[Dim] = {};
    int rows = 1;
    for (int d = 1; d < Dim; ++d) {
      const int reach = static_cast<int>((s + 0.5) / radii.scale[d]) + 1, n = box.size[d];
      low[d] = Kokkos::max(-reach, -(n - 1) / 2);
      count[d] = Kokkos::min(reach, n / 2) - low[d] + 1;
      rows *= count[d];
    }
    typename Term::Sum sum;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, rows),
        [&](int r, typename Term::Sum& partial) {
          std::int64_t row = batch;
          double squared = 0;
          int rest = r;
          int index[Dim] = {};
          for (int d = 1; d < Dim; ++d) {
            const int k = low[d] + rest % count[d];
            rest /= count[d];
            squared += radii.squared(k, d);
            index[d] = k < 0 ? k + box.size[d] : k;
          }
          for (int d = Dim - 1; d > 0; --d)
            row = row * box.size[d] + index[d];
          const int first = radii.first_column(s, squared);
          const int end = Kokkos::min(radii.first_column(s + 1, squared), box.columns);
          for (int x = first; x < end; ++x) {
            const int multiplicity = x == 0 || 2 * x == box.size[0] ? 1 : 2;
            if constexpr (Term::outputs > 1)
              term.add(row * box.columns + x, multiplicity, batch * shells + s, partial);
            else
              term.add(row * box.columns + x, multiplicity, partial);
          }
        },
        sum);
    Kokkos::single(Kokkos::PerTeam(member), [&] {
      if constexpr (Term::outputs > 1)
        for (int i = 0; i < Term::outputs; ++i)
          results[(batch * shells + s) * Term::outputs + i] = sum.values[i];
      else
        results[batch * shells + s] = term.result(sum);
    });
  }
};

template <class T>
struct MeanOfShell {
  using Sum = Sums<2>;
  static constexpr int outputs = 1;
  const T* values;

  KOKKOS_FUNCTION void add(std::int64_t index, int multiplicity, Sum& sum) const {
    sum.values[0] += multiplicity * double(values[index]);
    sum.values[1] += multiplicity;
  }
  KOKKOS_FUNCTION double result(const Sum& sum) const {
    return sum.values[1] > 0 ? sum.values[0] / sum.values[1] : 0;
  }
};

/// Checks results [B, S], or [B, S, outputs], which no shells make an empty problem, and runs the reduction.
template <int Dim, class ExecutionSpace, class Term, class MemorySpace>
void reduce_shells(const ExecutionSpace& space, const Arguments& arguments, const char* argument,
                   const char* label, const Box<Dim>& box, const Array<double, MemorySpace>& results,
                   const Term& term) {
  constexpr int outputs = Term::outputs, rank = outputs > 1 ? 3 : 2;
  const bool fits = results && results.rank == rank && results.extents[0] == box.batches &&
                    results.extents[1] <= box.size[0] * std::int64_t(4) &&
                    (outputs == 1 || results.extents[rank - 1] == outputs);
  arguments.require(
      fits, argument,
      [&] {
        return "[" + std::to_string(box.batches) + ", shells" +
               (outputs > 1 ? ", " + std::to_string(outputs) : std::string()) + "], at most 4 W shells";
      },
      [&] { return results.shape(); });
  if (results.size() == 0)
    return;
  const auto shells = static_cast<int>(results.extents[1]);
  using Functor = ReduceShells<ExecutionSpace, Term, Dim>;
  const typename Functor::Policy policy(space, static_cast<int>(shells * box.batches),
                                        is_host<ExecutionSpace> ? 1 : 128);
  Kokkos::parallel_for(label, policy, Functor{term, box, Shells<Dim>(box), shells, results.data});
}

} // namespace Impl

template <class ExecutionSpace, class Spectrum, class Averages>
void shell_averages(const ExecutionSpace& space, const Spectrum& values, const Averages& averages) {
  constexpr int Dim = int(Impl::view_of<Spectrum>::rank()) - 1;
  using T = Impl::real_of<Spectrum>;
  const Array<const T, typename ExecutionSpace::memory_space> in(values);
  const Array<double, typename ExecutionSpace::memory_space> out(averages);
  constexpr Impl::Arguments arguments{"shell_averages"};
  const auto box = Impl::spectrum_box<Dim>(arguments, "values", in);
  arguments.disjoint({{"averages", out}}, {{"values", in}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::shell_averages");
  Impl::reduce_shells<Dim>(space, arguments, "averages", "Bracewell::shell_averages::sum", box, out,
                           Impl::MeanOfShell<T>{in.data});
}

} // namespace Bracewell
