// SPDX-License-Identifier: MIT
#include "common/tiff.hpp"
#include "support.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

using namespace Bracewell::Examples;
using namespace IoTest;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A TIFF file made by hand: 3 x 2 pixels in strips of one row.
struct HandMadeTiff {
  bool big_endian = false;
  std::uint16_t bits = 16, format = 1, compression = 1, samples = 1;
  std::vector<std::uint32_t> pixels{1, 2, 3, 4, 5, 0xfffe};

  Bytes bytes() const {
    Bytes file;
    const auto put = [&](std::uint32_t value, int size) {
      for (int i = 0; i < size; ++i)
        file.push_back(static_cast<std::uint8_t>(value >> 8 * (big_endian ? size - 1 - i : i)));
    };
    const auto field = [&](std::uint16_t tag, std::uint16_t value) {
      put(tag, 2), put(3, 2), put(1, 4), put(value, 2), put(0, 2);
    };
    file.push_back(big_endian ? 'M' : 'I');
    file.push_back(big_endian ? 'M' : 'I');
    put(42, 2), put(8, 4);
    put(8, 2); // fields
    const std::uint32_t data = 8 + 2 + 8 * 12 + 4 + 8;
    field(256, 3), field(257, 2), field(258, bits), field(259, compression);
    put(273, 2), put(4, 2), put(2, 4), put(8 + 2 + 8 * 12 + 4, 4);
    field(277, samples), field(278, 1), field(339, format);
    put(0, 4);
    put(data, 4), put(data + 3 * bits / 8, 4);
    for (const std::uint32_t pixel : pixels)
      put(pixel, bits / 8);
    return file;
  }
};

std::vector<float> values(const fs::path& path) {
  const TiffReader reader(path);
  std::vector<float> result(static_cast<std::size_t>(reader.width() * reader.height()));
  reader.read_rows(0, reader.height(), result);
  return result;
}

} // namespace

TEST_CASE("integers and reals of either byte order are read") {
  const TemporaryFolder folder;
  for (const bool big_endian : {false, true}) {
    write_bytes(folder / "a.tif", HandMadeTiff{.big_endian = big_endian}.bytes());
    CHECK(values(folder / "a.tif") == std::vector<float>{1, 2, 3, 4, 5, 65534});
    write_bytes(folder / "a.tif", HandMadeTiff{.big_endian = big_endian, .format = 2}.bytes());
    CHECK(values(folder / "a.tif") == std::vector<float>{1, 2, 3, 4, 5, -2});
    write_bytes(folder / "a.tif", HandMadeTiff{.big_endian = big_endian, .bits = 8}.bytes());
    CHECK(values(folder / "a.tif") == std::vector<float>{1, 2, 3, 4, 5, 254});
    const auto real = std::bit_cast<std::uint32_t>(-1.5f);
    write_bytes(
        folder / "a.tif",
        HandMadeTiff{.big_endian = big_endian, .bits = 32, .format = 3, .pixels = {real, 0, 0, 0, 0, real}}
            .bytes());
    CHECK(values(folder / "a.tif") == std::vector<float>{-1.5f, 0, 0, 0, 0, -1.5f});
  }
}

TEST_CASE("pages written in any order are a TIFF file on commit only") {
  const TemporaryFolder folder;
  const std::vector<float> one{1, 2, 3, 4, 5, 6}, two{-1, 0, 0.5f, 0, 0, 0};
  TiffWriter writer(folder / "a.tif", 3, 2, 2);
  writer.write(1, two);
  writer.write(0, one);
  CHECK_FALSE(fs::exists(folder / "a.tif"));
  writer.commit();
  CHECK(values(folder / "a.tif") == one);
  const Bytes bytes = read_bytes(folder / "a.tif");
  CHECK(std::memcmp(&bytes[bytes.size() - 24], two.data(), 24) == 0);
  CHECK_THROWS_AS(writer.write(2, one), std::logic_error);
  CHECK(folder.files() == 1);
}

TEST_CASE("what is no greyscale TIFF is refused in a sentence") {
  const TemporaryFolder folder;
  const auto message = [&](const Bytes& bytes) {
    write_bytes(folder / "bad.tif", bytes);
    return input_error([&] { values(folder / "bad.tif"); });
  };
  CHECK_THAT(message({}), ContainsSubstring("bad.tif: is not a TIFF file"));
  CHECK_THAT(message(Bytes(20)), ContainsSubstring("bad.tif: is not a TIFF file"));
  CHECK_THAT(message(HandMadeTiff{.compression = 5}.bytes()), ContainsSubstring("compressed (kind 5)"));
  CHECK_THAT(message(HandMadeTiff{.samples = 3}.bytes()), ContainsSubstring("3 values per pixel"));
  CHECK_THAT(message(HandMadeTiff{.format = 3}.bytes()), ContainsSubstring("16 bits and format 3"));
  const Bytes good = HandMadeTiff{}.bytes();
  for (std::size_t size = 8; size < good.size(); ++size)
    CHECK_THAT(message(Bytes(good.begin(), good.begin() + std::ptrdiff_t(size))),
               ContainsSubstring("bad.tif: "));
  for (std::size_t at = 0; at < good.size(); ++at) { // no harm, whatever it says
    Bytes bad = good;
    bad[at] ^= 0xff;
    write_bytes(folder / "bad.tif", bad);
    try {
      const TiffReader reader(folder / "bad.tif");
      CHECK(reader.width() * reader.height() < 1000);
      values(folder / "bad.tif");
    } catch (const InputError&) {
    }
  }
}
