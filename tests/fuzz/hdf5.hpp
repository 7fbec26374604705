// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "common/hdf5.hpp"

#include <algorithm>

namespace Fuzz {

/// Everything that an HDF5 file has: groups, some values of every dataset, attributes.
inline void hdf5(Bytes bytes) {
  using namespace Bracewell::Examples;
  accepts([&] {
    const Hdf5Reader reader(as_file(bytes));
    int left = 50; // groups can contain each other
    const auto read_dataset = [&](const std::string& name) {
      const Hdf5Shape shape = reader.shape(name);
      Hdf5Slab slab{Hdf5Shape(shape.size(), 0), shape};
      for (auto& count : slab.count)
        count = std::min<std::int64_t>(count, 3);
      const auto values = static_cast<std::size_t>(hdf5_elements(slab.count));
      if (reader.is_complex(name)) {
        std::vector<std::complex<float>> some(values);
        reader.read(name, slab, std::span(some));
      } else {
        std::vector<float> some(values);
        reader.read(name, slab, std::span(some));
        std::vector<std::int32_t> integers(values);
        reader.read(name, slab, std::span(integers));
      }
      accepts([&] { static_cast<void>(reader.read<double>(name)); });
    };
    const auto visit = [&](const auto& self, const std::string& group) -> void {
      for (const auto& member : reader.list(group)) {
        if (--left < 0)
          return;
        const std::string name = group + "/" + member;
        accepts([&] { static_cast<void>(reader.attribute(name, "scale")); });
        accepts([&] { static_cast<void>(reader.text_attribute(name, "units")); });
        if (reader.has_dataset(name))
          accepts([&] { read_dataset(name); });
        else if (reader.has(name))
          accepts([&] { self(self, name); });
      }
    };
    visit(visit, "");
  });
}

} // namespace Fuzz
