// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/job.hpp"
#include "common/checkpoint.hpp"
#include "common/hdf5.hpp"
#include "common/processes.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace Bracewell::Examples {

/// What an array has values of, and with it who has them: a process has those of its tile and of its patterns.
enum class Of { All, Object, Patterns };

/// Arrays of which every process has a part, to and from the first process and its files.
class TiledArrays {
public:
  TiledArrays(const Space& space, const Job& job) : space_(space), job_(job) {}

  /// Two values for each of this process' patterns, or none, as those of all. Collective.
  template <class Value>
  std::vector<Value> of_all_patterns(std::span<const Value> values) const {
    if (!job_.options().refine_positions)
      return {};
    std::vector<double> all(2 * job_.positions().size());
    for (std::size_t i = 0; i < values.size(); ++i)
      all[2 * static_cast<std::size_t>(job_.tile().patterns[i / 2]) + i % 2] = values[i];
    processes().sum(space_, host_view(all));
    return {all.begin(), all.end()};
  }

  /// Calls take(box, values) in the first process for all parts of an array of the object, of which every process has
  /// its tile. Collective.
  template <class Take>
  void gather(std::span<const float> values, const Take& take) const {
    constexpr std::int64_t pixels_at_once = 1 << 20;
    std::vector<float> band;
    for (std::size_t rank = 0; rank < job_.tiles().size(); ++rank) {
      const auto& [patterns, cell, object] = job_.tiles()[rank];
      const std::int64_t rows =
          std::max<std::int64_t>(1, pixels_at_once / std::max<std::int64_t>(1, cell.columns()));
      for (std::int64_t row = cell.begin[0]; cell.size() > 0 && row < cell.end[0]; row += rows) {
        const Hdf5Slab box{{row, cell.begin[1]}, {std::min(rows, cell.end[0] - row), cell.columns()}};
        band.resize(static_cast<std::size_t>(box.count[0] * box.count[1]));
        if (static_cast<int>(rank) == processes().rank())
          for (std::int64_t i = 0; i < box.count[0]; ++i)
            std::copy_n(values.begin() + (row + i - object.begin[0]) * object.columns() + cell.begin[1] -
                            object.begin[1],
                        box.count[1], band.begin() + i * box.count[1]);
        processes().broadcast(space_, host_view(band), static_cast<int>(rank));
        if (is_first_process())
          take(box, std::span<const float>(band));
      }
    }
  }

  /// Writes what all processes have of an array, in the first. Collective.
  template <class Value>
  void write(Hdf5Writer* file, const std::string& name, std::span<const Value> values, Of of) const {
    const auto whole = [&](std::span<const Value> all) {
      using Stored = typename HostValue<Value>::type;
      if (file)
        file->write<Stored>(name, {std::ssize(all)},
                            {reinterpret_cast<const Stored*>(all.data()), all.size()});
    };
    if constexpr (std::is_same_v<Value, float>)
      if (of == Of::Object && job_.shape().slices > 1) { // in one process
        if (file)
          file->write<float>(name, {job_.shape().slices, job_.object()[0], job_.object()[1]}, values);
        return;
      }
    if constexpr (std::is_same_v<Value, float>)
      if (of == Of::Object) {
        if (file)
          file->create_dataset<float>(name, {job_.object()[0], job_.object()[1]});
        return gather(values, [&](const Hdf5Slab& box, std::span<const float> of_box) {
          file->write<float>(name, box, of_box);
        });
      }
    if constexpr (std::is_arithmetic_v<Value>)
      if (of == Of::Patterns)
        return whole(of_all_patterns(values));
    whole(values);
  }

  /// Reads this process' part of what write() wrote in any number of processes.
  template <class Value>
  void read(const Hdf5Reader& file, const std::string& name, std::span<Value> values, Of of) const {
    using Stored = typename HostValue<Value>::type;
    const std::span<Stored> to(reinterpret_cast<Stored*>(values.data()), values.size());
    if (of == Of::Object) {
      const Hdf5Shape shape = file.shape(name);
      Hdf5Shape expected{job_.object()[0], job_.object()[1]};
      if (job_.shape().slices > 1)
        expected.insert(expected.begin(), job_.shape().slices);
      if (shape != expected)
        file.fail(name, "expected shape " + hdf5_text(expected) + ", found " + hdf5_text(shape));
      if (job_.shape().slices > 1) {
        std::ranges::copy(read_exactly<Stored>(file, name, to.size()), to.begin());
        return;
      }
      const Rectangle& own = job_.tile().object;
      file.read<Stored>(name, {{own.begin[0], own.begin[1]}, {own.rows(), own.columns()}}, to);
    } else if (of == Of::Patterns && job_.options().refine_positions) {
      const auto all = read_exactly<Stored>(file, name, 2 * job_.positions().size());
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = all[2 * static_cast<std::size_t>(job_.tile().patterns[i / 2]) + i % 2];
    } else {
      std::ranges::copy(read_exactly<Stored>(file, name, to.size()), to.begin());
    }
  }

  /// Windows of the tile as windows of the whole object, or back.
  void move_windows(std::vector<int>& windows, int sign) const {
    for (std::size_t i = 0; i < windows.size(); ++i)
      windows[i] += sign * static_cast<int>(job_.tile().object.begin[i % 2]);
  }

private:
  const Space& space_;
  const Job& job_;
};

} // namespace Bracewell::Examples
