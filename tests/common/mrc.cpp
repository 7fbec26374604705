// SPDX-License-Identifier: MIT
#include "common/mrc.hpp"
#include "../deep_copy.hpp"
#include "cryoem/image_statistics.hpp"

#include "support.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

using namespace Bracewell::Examples;
using namespace IoTest;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

std::vector<float> read_all(const fs::path& path, NonFinite non_finite = NonFinite::Reject) {
  const MrcReader reader(path);
  std::vector<float> values(static_cast<std::size_t>(reader.width() * reader.height() * reader.images()));
  reader.read_images(0, reader.images(), values, non_finite);
  return values;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), -3.0f);
  return values;
}

/// A float16 by its definition.
float half_value(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const int mantissa = static_cast<int>(bits & 1023);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                        : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_finite_half(std::uint32_t bits) { return (bits & 0x7c00) != 0x7c00; }

} // namespace

TEST_CASE("every mode is read in both byte orders, with and without a machine stamp") {
  struct Mode {
    std::int32_t number;
    std::size_t bytes;
    std::vector<std::uint32_t> bits;
    std::vector<float> values;
  };
  const auto mode = GENERATE(
      Mode{0, 1, {0x80, 0xff, 0x00, 0x7f, 0x05, 0xfb}, {-128, -1, 0, 127, 5, -5}},
      Mode{1, 2, {0x8000, 0xfffe, 0x0001, 0x7fff, 0x0100, 0xff00}, {-32768, -2, 1, 32767, 256, -256}},
      Mode{2,
           4,
           {0x3fc00000, 0xbf800000, 0, 0x42f6e979, 0x00000001, 0x7f7fffff},
           {1.5f, -1, 0, 123.456f, 0x1p-149f, 0x1.fffffep127f}},
      Mode{6, 2, {0x8000, 0xfffe, 0x0001, 0x7fff, 0x0100, 0xff00}, {32768, 65534, 1, 32767, 256, 65280}},
      Mode{12,
           2,
           {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x3555},
           {1, -2, 65504, 0x1p-14f, 0x1p-24f, 0x1.554p-2f}});
  const bool big_endian = GENERATE(false, true);
  const bool stamped = GENERATE(true, false);
  HandMadeMrc file(big_endian);
  file.size(3, 2, 1, mode.number);
  if (!stamped)
    file.without_stamp();
  for (const auto bits : mode.bits)
    file.append(bits, mode.bytes);

  const TemporaryFolder folder;
  const fs::path path = file.write(folder / "hand.mrc");
  CHECK(read_all(path) == mode.values);
  const MrcReader reader(path);
  CHECK(reader.header().big_endian == big_endian);
  CHECK(static_cast<std::int32_t>(reader.header().mode) == mode.number);
  if (stamped)
    CHECK(reader.warnings().empty());
  else
    CHECK(reader.warnings() ==
          std::vector<std::string>{"the header has no 'MAP ' tag and no machine stamp; read as " +
                                   std::string(big_endian ? "big-endian" : "little-endian")});
}

TEST_CASE("a machine stamp that contradicts the header is overruled with a warning") {
  const bool big_endian = GENERATE(false, true);
  HandMadeMrc file(big_endian);
  file.size(2, 2, 2, 2).append_reals(counted(8));
  file.bytes[212] = file.bytes[213] = big_endian ? 0x44 : 0x11;
  const TemporaryFolder folder;
  const fs::path path = file.write(folder / "hand.mrc");
  CHECK(read_all(path) == counted(8));
  REQUIRE(MrcReader(path).warnings().size() == 1);
  CHECK_THAT(MrcReader(path).warnings()[0], ContainsSubstring("contradicts"));
}

TEST_CASE("bytes are unsigned where IMOD says so") {
  const TemporaryFolder folder;
  HandMadeMrc file(GENERATE(false, true));
  file.size(2, 1, 1, 0).integers(39, {1146047817, 0}).append(0x80, 1).append(0x7f, 1);
  CHECK(read_all(file.write(folder / "old.mrc")) == std::vector<float>{128, 127});
  file.integers(40, {1}); // IMOD since its bytes are signed
  CHECK(read_all(file.write(folder / "new.mrc")) == std::vector<float>{-128, 127});
}

TEST_CASE("all 65536 values of float16 are read by their definition") {
  HandMadeMrc file;
  file.size(256, 256, 1, 12);
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    file.append(bits, 2);
  const TemporaryFolder folder;
  const auto values = read_all(file.write(folder / "halves.mrc"), NonFinite::Accept);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = values[bits];
    if (is_finite_half(bits)) {
      if (value != half_value(bits) || std::signbit(value) != (bits >= 0x8000))
        FAIL("at " << bits << ": " << value);
    } else if ((bits & 1023) == 0) {
      if (!std::isinf(value) || std::signbit(value) != (bits >= 0x8000))
        FAIL("at " << bits << ": " << value);
    } else if (!std::isnan(value)) {
      FAIL("at " << bits << ": " << value);
    }
  }
}

TEST_CASE("the header's fields come out in the order x, y, z") {
  // Columns run along z, rows along x, sections along y.
  HandMadeMrc file(GENERATE(false, true));
  file.size(4, 2, 3, 2)
      .integers(5, {40, 20, 30})
      .integers(8, {10, 5, 0})
      .reals(11, {20, 30, 40, 90, 94.5f, 90});
  file.integers(17, {3, 1, 2}).integers(23, {4, 160}).reals(50, {1, 2, 3}).integers(56, {2});
  std::memcpy(&file.bytes[224], "first label   ", 14);
  std::memset(&file.bytes[304], 'x', 80);
  file.bytes.resize(1024 + 160, 0xff);
  file.append_reals(counted(24));
  const TemporaryFolder folder;
  const MrcReader reader(file.write(folder / "map.mrc"));
  const MrcHeader& header = reader.header();
  CHECK(reader.warnings().empty());
  CHECK(reader.width() == 4);
  CHECK(reader.height() == 2);
  CHECK(reader.images() == 3);
  CHECK(header.size == std::array<std::int64_t, 3>{2, 3, 4});
  CHECK(header.start == std::array<std::int64_t, 3>{20, 30, 40});
  CHECK(header.axis_order == std::array<int, 3>{2, 0, 1});
  CHECK(header.voxel_size[0] == 2);
  CHECK(header.voxel_size[1] == 6);
  CHECK_FALSE(header.voxel_size[2].has_value()); // no sampling
  CHECK(header.cell_angles == std::array<double, 3>{90, 94.5, 90});
  CHECK(header.origin == std::array<double, 3>{1, 2, 3});
  CHECK(header.space_group == 4);
  CHECK(header.data_offset == 1184);
  CHECK(header.labels == std::vector<std::string>{"first label", std::string(80, 'x')});

  CHECK_THAT(input_error([&] {
               std::vector<float> image(8);
               reader.read_images(0, 1, image);
             }),
             ContainsSubstring("map.mrc: is not an image stack: its axes are not in the order x, y, z"));
}

TEST_CASE("a volume is read in the order z, y, x from any order of the axes") {
  std::vector<int> axes{1, 2, 3};
  constexpr std::array<int, 3> size{2, 3, 4};
  std::vector<float> expected;
  for (int z = 0; z < size[2]; ++z)
    for (int y = 0; y < size[1]; ++y)
      for (int x = 0; x < size[0]; ++x)
        expected.push_back(static_cast<float>(100 * z + 10 * y + x));
  const TemporaryFolder folder;
  do {
    constexpr std::array<int, 3> decimals{1, 10, 100};
    const auto along = [&](std::size_t i) { return static_cast<std::size_t>(axes[i] - 1); };
    HandMadeMrc file;
    file.size(size[along(0)], size[along(1)], size[along(2)], 1).integers(17, {axes[0], axes[1], axes[2]});
    for (int s = 0; s < size[along(2)]; ++s)
      for (int r = 0; r < size[along(1)]; ++r)
        for (int c = 0; c < size[along(0)]; ++c)
          file.append(static_cast<std::uint32_t>(c * decimals[along(0)] + r * decimals[along(1)] +
                                                 s * decimals[along(2)]),
                      2);
    const MrcReader reader(file.write(folder / "map.mrc"));
    CHECK(reader.header().size == std::array<std::int64_t, 3>{2, 3, 4});
    CHECK(reader.read_volume() == expected);
  } while (std::ranges::next_permutation(axes).found);
}

TEST_CASE("ranges of a stack are read by many threads at once") {
  constexpr std::int64_t width = 50, height = 41,
                         images = 100; // 205000 values: several chunks, none at an image's edge
  HandMadeMrc file(GENERATE(false, true));
  file.size(width, height, images, 6);
  for (std::int64_t i = 0; i < width * height * images; ++i)
    file.append(static_cast<std::uint32_t>(i % 65521), 2);
  const TemporaryFolder folder;
  const MrcReader reader(file.write(folder / "stack.mrcs"));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::int64_t first = 0; first < 8; ++first)
      threads.emplace_back([&, first] {
        for (std::int64_t count = 0; first + count <= images; count += 7) {
          std::vector<float> values(static_cast<std::size_t>(count * width * height));
          reader.read_images(first, count, values);
          for (std::size_t i = 0; i < values.size(); ++i)
            if (values[i] !=
                static_cast<float>((first * width * height + static_cast<std::int64_t>(i)) % 65521))
              ++wrong;
        }
      });
  }
  CHECK(wrong == 0);

  std::vector<float> image(width * height);
  for (const std::int64_t first : {std::int64_t(-1), images, std::numeric_limits<std::int64_t>::max()})
    CHECK_THAT(input_error([&] { reader.read_images(first, 1, image); }),
               ContainsSubstring("has 100 images, asked for 1"));
  CHECK_THROWS_AS(reader.read_images(0, 2, image), std::invalid_argument);
}

TEST_CASE("a stack of more than 4 GiB is read at its end") {
  const TemporaryFolder folder;
  const fs::path path = folder / "sparse.mrcs";
  HandMadeMrc().size(1024, 1024, 1100, 2).write(path);
  std::error_code error;
  fs::resize_file(path, 1024 + std::uintmax_t(1100) * 1024 * 1024 * 4,
                  error); // takes no space on most file systems
  if (error)
    SKIP("no room for a sparse file: " << error.message());
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file.write("\x00\x00\xc0\x3f", 4);
    REQUIRE(file.flush());
  }
  std::vector<float> image(1024 * 1024);
  MrcReader(path).read_images(1099, 1, image);
  CHECK(image.back() == 1.5f);
  CHECK(std::count(image.begin(), image.end(), 0.0f) == 1024 * 1024 - 1);
}

TEST_CASE("malformed MRC files are refused with a clear message") {
  const TemporaryFolder folder;
  const fs::path path = folder / "bad.mrc";
  const auto message = [&] { return input_error([&] { MrcReader reader(path); }); };
  HandMadeMrc file;
  file.size(4, 3, 2, 2).append_reals(counted(24));

  SECTION("missing") { CHECK(message() == path.string() + ": cannot be opened: No such file or directory"); }
  SECTION("a folder") {
    fs::create_directory(path);
    CHECK(message() == path.string() + ": is a directory, not a file");
  }
  SECTION("empty") {
    write_text(path, "");
    CHECK(message() ==
          path.string() + ": is not an MRC file: expected a header of 1024 bytes, found 0 bytes");
  }
  SECTION("shorter than the header") {
    file.bytes.resize(1023);
    file.write(path);
    CHECK_THAT(message(), ContainsSubstring("expected a header of 1024 bytes, found 1023"));
  }
  SECTION("text") {
    write_text(path, std::string(5000, 'a'));
    CHECK_THAT(message(), ContainsSubstring("is not an MRC file: found mode"));
  }
  SECTION("zeros") {
    write_text(path, std::string(5000, '\0'));
    CHECK_THAT(message(), ContainsSubstring("expected positive sizes, found 0 x 0 x 0"));
  }
  SECTION("compressed") {
    write_text(path, "\x1f\x8b" + std::string(2000, 'a'));
    CHECK_THAT(message(), ContainsSubstring("gzip"));
  }
  SECTION("truncated by one byte") {
    file.bytes.pop_back();
    file.write(path);
    CHECK(message() ==
          path.string() + ": is truncated: expected 1120 bytes for size 4 x 3 x 2 and mode 2, found 1119");
  }
  SECTION("truncated, without a stamp, big-endian") {
    HandMadeMrc big(true);
    big.size(4, 3, 2, 2).without_stamp().append_reals(counted(23)).write(path);
    CHECK_THAT(message(), ContainsSubstring("is truncated: expected 1120 bytes"));
  }
  SECTION("extended header past the end") {
    file.integers(24, {1 << 30}).write(path);
    CHECK_THAT(message(),
               ContainsSubstring("states an extended header of 1073741824 bytes, which is not there"));
  }
  SECTION("negative extended header") {
    file.integers(24, {-160}).write(path);
    CHECK_THAT(message(), ContainsSubstring("expected an extended header of 0 or more bytes, found -160"));
  }
  SECTION("modes that are not read") {
    file.integers(4, {4}).write(path);
    CHECK_THAT(message(), ContainsSubstring("has mode 4 (complex float32), expected 0 (int8), 1 (int16)"));
    for (const std::int32_t mode : {3, 5, 7, 101, -1, 77}) {
      file.integers(4, {mode}).write(path);
      CHECK_THAT(message(), ContainsSubstring("has mode " + std::to_string(mode)));
    }
  }
  SECTION("absurd sizes") {
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
    file.size(0, 3, 2, 2).write(path);
    CHECK_THAT(message(), ContainsSubstring("expected positive sizes, found 0 x 3 x 2"));
    file.size(4, -3, 2, 2).write(path);
    CHECK_THAT(message(), ContainsSubstring("expected positive sizes, found 4 x -3 x 2"));
    file.size(least, least, least, 2).write(path);
    CHECK_THAT(message(), ContainsSubstring("expected positive sizes"));
    file.size(most, most, most, 2).write(path);
    CHECK_THAT(message(), ContainsSubstring("is past any file"));
    file.size(most, most, 1, 2).write(path); // 2^64 bytes
    CHECK_THAT(message(), ContainsSubstring("is past any file"));
    file.size(most, most, 1, 0).write(path); // 2^62 bytes
    CHECK_THAT(message(), ContainsSubstring("is truncated: expected 4611686014132421633 bytes"));
    file.size(65536, 65536, 65536, 2).write(path); // 2^50 bytes
    CHECK_THAT(message(), ContainsSubstring("is truncated"));
  }
  SECTION("axes") {
    file.integers(17, {1, 1, 3}).write(path);
    CHECK_THAT(message(), ContainsSubstring(
                              "expected a permutation of 1, 2, 3 for the order of the axes, found 1, 1, 3"));
    file.integers(17, {0, 0, 0}).write(path);
    CHECK_THAT(MrcReader(path).warnings().at(0), ContainsSubstring("no order of the axes"));
  }
  SECTION("bytes after the end are a warning") {
    file.append(0, 1).write(path);
    CHECK(MrcReader(path).warnings() ==
          std::vector<std::string>{"the file has 1 bytes after the last value"});
  }
  SECTION("a stack of maps is no map") {
    file.integers(23, {401}).write(path);
    CHECK_THAT(input_error([&] { MrcReader(path).read_volume(); }), ContainsSubstring("is a stack of maps"));
  }
  SECTION("cut while it is open") {
    const MrcReader reader(file.write(path));
    fs::resize_file(path, 1100);
    // The file was right when the run began: no mistake of the user's, exit code 1.
    CHECK_THROWS_WITH(reader.read_volume(),
                      ContainsSubstring("became shorter while it was read") &&
                          ContainsSubstring("ends at byte 1100, 1120 when it was opened"));
  }
}

TEST_CASE("values that are not finite are refused with image, column and row, or read on request") {
  const std::uint32_t bits = GENERATE(0x7fc00000u, 0x7f800000u, 0xff800000u, 0x7f800001u);
  const bool big_endian = GENERATE(false, true);
  HandMadeMrc file(big_endian);
  file.size(100, 90, 20, 2);
  constexpr std::size_t at = (13 * 90 + 7) * 100 + 42;
  for (std::size_t i = 0; i < 100 * 90 * 20; ++i)
    file.append(i == at ? bits : 0x3f800000, 4);
  const TemporaryFolder folder;
  const MrcReader reader(file.write(folder / "nan.mrcs"));
  std::vector<float> values(100 * 90 * 5);
  for (const std::int64_t first : {9, 13})
    CHECK(input_error([&] { reader.read_images(first, 5, values); }) ==
          reader.path().string() +
              ": image 14 (counting from 1) has a value that is not finite at column 43, row 8");
  CHECK_NOTHROW(reader.read_images(14, 5, values));
  reader.read_images(13, 5, values, NonFinite::Accept);
  CHECK_FALSE(std::isfinite(values[7 * 100 + 42]));
  CHECK_THAT(input_error([&] { reader.read_volume(); }), ContainsSubstring("image 14"));
}

TEST_CASE("changed header bytes never do worse than an InputError") {
  const TemporaryFolder folder;
  const fs::path path = folder / "fuzz.mrc";
  HandMadeMrc original(GENERATE(false, true));
  original.size(5, 4, 3, GENERATE(0, 2, 12))
      .integers(8, {5, 4, 3})
      .reals(11, {5, 4, 3, 90, 90, 90})
      .integers(56, {1});
  for (int i = 0; i < 60; ++i)
    original.append(0x3f800000, 4);
  if (GENERATE(false, true))
    original.without_stamp();
  // The bytes that the reader looks at, so that few changes are wasted.
  std::vector<std::size_t> looked_at;
  for (const auto& [first, last] :
       {std::pair<std::size_t, std::size_t>{0, 76}, {88, 96}, {152, 160}, {208, 224}})
    for (std::size_t i = first; i < last; ++i)
      looked_at.push_back(i);
  std::mt19937 random(20240607);
  const auto below = [&random](std::size_t end) { return random() % end; };
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    Bytes bytes = original.bytes;
    for (std::size_t change = 1 + below(4); change > 0; --change) {
      const std::size_t at = looked_at[below(looked_at.size())];
      constexpr std::array<std::uint8_t, 6> edges{0x00, 0x01, 0x7f, 0x80, 0xff, 0x02};
      bytes[at] = below(2) == 0 ? edges[below(edges.size())] : static_cast<std::uint8_t>(random());
    }
    if (below(4) == 0)
      bytes.resize(below(bytes.size() + 1));
    write_bytes(path, bytes);
    try {
      const MrcReader reader(path);
      REQUIRE(reader.width() * reader.height() * reader.images() <= 240);
      const std::vector<float> volume = reader.read_volume(NonFinite::Accept);
      REQUIRE(volume.size() <= 240);
      ++read;
    } catch (const InputError& error) {
      REQUIRE_THAT(error.what(), StartsWith(path.string() + ": "));
      ++refused;
    }
  }
  CHECK(read > 50);
  CHECK(refused > 50);
}

TEST_CASE("a volume is written byte for byte as the specification says") {
  const TemporaryFolder folder;
  const fs::path path = folder / "map.mrc";
  // Mean 2.5, mean squared deviation (5.5^2 + 4.5^2 + ... + 5.5^2) / 12 = 143 / 12.
  write_volume(path, counted(12), {3, 2, 2}, {.pixel_size = 1.5});
  HandMadeMrc expected;
  expected.size(3, 2, 2, 2)
      .integers(8, {3, 2, 2})
      .reals(11, {4.5f, 3, 3, 90, 90, 90})
      .integers(17, {1, 2, 3});
  expected.reals(20, {-3, 8, 2.5f}).integers(23, {1, 0}).integers(28, {20140});
  expected.reals(55, {std::sqrt(143.0f / 12)}).integers(56, {1});
  std::memset(&expected.bytes[224], ' ', 80);
  std::memcpy(&expected.bytes[224], "Bracewell", 9);
  expected.append_reals(counted(12));
  CHECK(read_bytes(path) == expected.bytes);
  CHECK(MrcReader(path).warnings().empty());
  CHECK(folder.files() == 1);
}

TEST_CASE("a stack is written as a stream, in float32 and float16") {
  const TemporaryFolder folder;
  const fs::path path = folder / "stack.mrcs";
  const bool half = GENERATE(false, true);
  MrcWriter writer(path, MrcWriter::Kind::Stack, 3, 2, {half ? MrcMode::Float16 : MrcMode::Float32, 2.0});
  const std::vector<float> values = counted(30);
  writer.write(std::span(values).first(6));
  writer.write(std::span(values).subspan(6, 18));
  writer.write({});
  writer.write(std::span(values).last(6));
  CHECK_FALSE(fs::exists(path));
  writer.close();
  CHECK_THROWS_AS(writer.write(std::span(values).last(6)), std::logic_error);

  HandMadeMrc expected;
  expected.size(3, 2, 5, half ? 12 : 2).integers(8, {3, 2, 1}).reals(11, {6, 4, 2, 90, 90, 90});
  expected.integers(17, {1, 2, 3}).reals(20, {-3, 26, 11.5f}).integers(23, {0, 0}).integers(28, {20140});
  expected.reals(55, {std::sqrt((30.0f * 30 - 1) / 12)}).integers(56, {1});
  std::memset(&expected.bytes[224], ' ', 80);
  std::memcpy(&expected.bytes[224], "Bracewell", 9);
  Bytes found = read_bytes(path);
  REQUIRE(found.size() == 1024 + 30 * (half ? 2 : 4));
  found.resize(1024);
  CHECK(found == expected.bytes);
  CHECK(read_all(path) == values);
  CHECK(MrcReader(path).header().voxel_size == std::array<std::optional<double>, 3>{2.0, 2.0, 2.0});
}

TEST_CASE("threads write a stack in any order, the same as a stream") {
  const TemporaryFolder folder;
  const bool half = GENERATE(false, true);
  const MrcWriteOptions options{.mode = half ? MrcMode::Float16 : MrcMode::Float32};
  std::mt19937 generator(1);
  std::vector<float> values(6 * 101);
  for (float& value : values)
    value = static_cast<float>(generator() % 2000) / 1000.0f;
  MrcWriter stream(folder / "stream.mrcs", MrcWriter::Kind::Stack, 3, 2, options);
  stream.write(values);
  stream.close();
  MrcWriter writer(folder / "threads.mrcs", MrcWriter::Kind::Stack, 3, 2, options);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::size_t last = 101 - thread; last > 0; last -= std::min<std::size_t>(last, 4))
          writer.write_at(static_cast<std::int64_t>(last) - 1, std::span(values).subspan(6 * (last - 1), 6));
      });
  }
  writer.close();
  CHECK(read_bytes(folder / "threads.mrcs") == read_bytes(folder / "stream.mrcs"));

  MrcWriter gap(folder / "gap.mrcs", MrcWriter::Kind::Stack, 3, 2, options);
  gap.write_at(1, std::span(values).first(6));
  CHECK_THROWS_AS(gap.close(), std::logic_error);
}

TEST_CASE("images are read as they are stored, each to its place") {
  HandMadeMrc file(true);
  file.size(2, 1, 300, 1);
  for (std::uint32_t i = 0; i < 600; ++i)
    file.append(i, 2);
  const TemporaryFolder folder;
  const MrcReader reader(file.write(folder / "stack.mrcs"));
  CHECK((reader.format() == StoredFormat{StoredType::Int16, true}));
  REQUIRE(reader.image_bytes() == 4);
  std::vector<std::byte> bytes(4 * 299);
  std::vector<std::byte*> places; // from the last to the first
  for (std::size_t i = 299; i > 0; --i)
    places.push_back(bytes.data() + 4 * (i - 1));
  reader.read_stored(1, places);
  for (std::size_t i = 0; i < 299; ++i)
    for (std::size_t k = 0; k < 4; ++k)
      REQUIRE(bytes[4 * i + k] == std::byte{file.bytes[1024 + 4 * (299 - i) + k]});
  CHECK_THAT(input_error([&] { reader.read_stored(2, places); }),
             ContainsSubstring("has 300 images, asked for 299"));
}

TEST_CASE("float16 is written rounded to the nearest, ties to even") {
  const TemporaryFolder folder;
  const fs::path path = folder / "halves.mrc";
  std::vector<float> values;
  std::vector<float> expected;
  const auto add = [&](float value, float rounded) {
    values.insert(values.end(), {value, -value});
    expected.insert(expected.end(), {rounded, -rounded});
  };
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half_value(bits);
    const float high = half_value(bits + 1);
    const float middle = 0.5f * (low + high); // exact in float32
    add(low, low);
    add(middle, bits % 2 == 0 ? low : high);
    add(std::nextafter(middle, 0.0f), low);
    add(std::nextafter(middle, 1e9f), high);
  }
  add(65504, 65504);
  add(std::nextafter(65520.0f, 0.0f), 65504);
  add(1e-30f, 0);
  MrcWriter writer(path, MrcWriter::Kind::Stack, static_cast<std::int64_t>(values.size()), 1,
                   {MrcMode::Float16});
  writer.write(values);
  writer.close();
  CHECK(read_all(path) == expected);

  MrcWriter large(folder / "large.mrc", MrcWriter::Kind::Stack, 2, 1, {MrcMode::Float16});
  CHECK_THAT(input_error([&] {
               large.write(std::vector<float>{1, 65520});
             }),
             ContainsSubstring("image 1 (counting from 1) has values above 65504"));
}

TEST_CASE("statistics do not cancel for a large mean") {
  const TemporaryFolder folder;
  const fs::path path = folder / "large.mrcs";
  constexpr int width = 101, height = 100, count = 50;
  const bool by_kernel = GENERATE(false, true);
  MrcWriter writer(path, MrcWriter::Kind::Stack, width, height);
  writer.reserve(count);
  const DeviceView<float*> on_device("image", width * height);
  const OnHost<MrcWriter::Moments*> moments("moments", 1);
  for (int i = 0; i < count; ++i) {
    std::vector<float> image(width * height);
    for (std::size_t k = 0; k < image.size(); ++k)
      image[k] = 1e6f + (k % 2 == 0 ? 1.0f : -1.0f) + 2.0f * static_cast<float>(i % 2);
    if (by_kernel) {
      Test::deep_copy(on_device, host_view(image));
      ImageMoments{on_device.data(), width * height, moments.data()}.run(Space(), 1);
      Space().fence();
      writer.write_at(i, image, {moments.data(), 1});
    } else {
      writer.write(image);
    }
  }
  if (by_kernel) { // a value that is not finite is found, and an image without moments
    std::vector<float> image(width * height);
    image[width + 2] = std::numeric_limits<float>::infinity();
    Test::deep_copy(on_device, host_view(image));
    ImageMoments{on_device.data(), width * height, moments.data()}.run(Space(), 1);
    Space().fence();
    CHECK_THROWS_WITH(
        writer.write_at(count, image, {moments.data(), 1}),
        ContainsSubstring("image 51 (counting from 1) has a value that is not finite at column 3, row 2"));
    CHECK_THROWS_AS(writer.write_at(count, image, {}), std::invalid_argument);
  }
  writer.close();
  const Bytes bytes = read_bytes(path);
  std::array<float, 3> statistics;
  float deviation;
  std::memcpy(statistics.data(), &bytes[76], 12);
  std::memcpy(&deviation, &bytes[216], 4);
  CHECK(statistics == std::array<float, 3>{999999, 1000003, 1000001});
  CHECK(std::abs(deviation - std::sqrt(2.0f)) < 1e-6f); // variance 1 within an image and 1 between them
}

TEST_CASE("a file that is not closed leaves nothing behind and the old one in place") {
  const TemporaryFolder folder;
  const fs::path path = folder / "map.mrc";
  write_text(path, "old");
  const std::vector<float> image(4, 1.0f);
  SECTION("abandoned") {
    MrcWriter writer(path, MrcWriter::Kind::Volume, 2, 2);
    writer.write(image);
  }
  SECTION("a value that is not finite") {
    MrcWriter writer(path, MrcWriter::Kind::Volume, 2, 2);
    writer.write(image);
    const std::vector<float> bad{1, 2, std::numeric_limits<float>::quiet_NaN(), 4};
    CHECK_THROWS_WITH(
        writer.write(bad),
        ContainsSubstring("image 2 (counting from 1) has a value that is not finite at column 1, row 2"));
  }
  SECTION("no images") {
    MrcWriter writer(path, MrcWriter::Kind::Stack, 2, 2);
    CHECK_THROWS_WITH(writer.close(), ContainsSubstring("it would have no images"));
  }
  SECTION("wrong arguments") {
    CHECK_THROWS_AS(MrcWriter(path, MrcWriter::Kind::Stack, 2, 2, {MrcMode::Int16}), InputError);
    CHECK_THROWS_AS(MrcWriter(path, MrcWriter::Kind::Stack, 0, 2), InputError);
    CHECK_THROWS_AS(MrcWriter(path, MrcWriter::Kind::Stack, 2, 2, {.pixel_size = -1}), InputError);
    CHECK_THROWS_AS(MrcWriter(path, MrcWriter::Kind::Stack, 2, 2).write(std::span(image).first(3)),
                    std::invalid_argument);
    CHECK_THROWS_AS(MrcWriter(folder / "no/such/folder/map.mrc", MrcWriter::Kind::Stack, 2, 2), InputError);
    CHECK_THROWS_AS(MrcWriter(folder.path(), MrcWriter::Kind::Stack, 2, 2), InputError);
  }
  CHECK(read_text(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file can be replaced while it is being read") {
  const TemporaryFolder folder;
  const fs::path path = folder / "map.mrc";
  write_volume(path, counted(8), {2, 2, 2});
  const MrcReader reader(path);
  write_volume(path, counted(27), {3, 3, 3});
  CHECK(reader.read_volume() == counted(8));
  CHECK(MrcReader(path).read_volume() == counted(27));
}

TEST_CASE("the public MRC files have the values that mrcfile reads") {
  // Minimum, maximum, sum and the value at [images / 2, 1, 2] by Python's mrcfile 1.5.4 and NumPy in double;
  // NaN left out.
  struct File {
    std::string name;
    std::int64_t width, height, images;
    double minimum, maximum, sum, value;
    int nans;
    std::optional<double> pixel_size;
    std::size_t warnings;
  };
  const auto file =
      GENERATE(File{"cryoem/ay19102021_L3_position6_ribo_it09_bin8_1.82A.mrcs", 64, 64, 220, -58.3742027,
                    81.2357559, -187444.817541, -7.1184144, 0, 1, 1},
               File{"cryoem/clean70SRibosome_vol_65p.mrc",
                    65,
                    65,
                    65,
                    -0.000439947034,
                    0.000738793286,
                    0.446507140618,
                    9.17716761e-07,
                    0,
                    {},
                    0},
               File{"cryoem/relion31.mrcs", 256, 256, 5, -4.38332033, 4.40073633, 3527.85972976, 0.0926389024,
                    0, 1, 1},
               File{"cryoem/ribosome70S_64.mrc", 64, 64, 64, -0.000437462644, 0.000729393738, 0.426214536742,
                    -3.4231411e-07, 0, 5.078125, 0},
               File{"cryoem/rln_proj_64_centered.mrcs", 64, 64, 4, -0.00539249321, 0.00928924978,
                    1.44192203631, 8.5529955e-06, 0, 1, 0},
               File{"cryoem/rln_proj_64_shifted.mrcs", 64, 64, 4, -0.00539249321, 0.00928924978,
                    1.44192203631, -2.17541892e-05, 0, 1, 0},
               File{"cryoem/rln_proj_65.mrcs",
                    65,
                    65,
                    5,
                    -0.00478005083,
                    0.00900041964,
                    1.88822214612,
                    2.19004232e-06,
                    0,
                    {},
                    0},
               File{"cryoem/sim70S_particles.mrcs", 64, 64, 600, -5.11580944, 6.04361677, 13009.3171944,
                    0.0589738898, 0, 5.078125, 0},
               File{"cryoem/toy_projections.mrcs", 30, 30, 1000, 0, 8.85285378, 180142.644971, 0, 0, 1, 1},
               File{"cryoem/toymodel_small_nocenter.mrc", 30, 30, 30, 0, 1, 180, 0, 0, 1, 0},
               File{"tomography/savu_24737_projections.mrc",
                    160,
                    135,
                    91,
                    0.0516662598,
                    0.754882812,
                    1189705.89899,
                    0.652832031,
                    91,
                    {},
                    0});
  CAPTURE(file.name);
  const MrcReader reader(shared_data(file.name));
  REQUIRE(reader.width() == file.width);
  REQUIRE(reader.height() == file.height);
  REQUIRE(reader.images() == file.images);
  CHECK(reader.header().voxel_size[0] == file.pixel_size);
  CHECK(reader.warnings().size() == file.warnings);
  const std::vector<float> values = read_all(reader.path(), NonFinite::Accept);
  double sum = 0;
  float low = std::numeric_limits<float>::max();
  float high = -low;
  int nans = 0;
  for (const float value : values) {
    if (std::isnan(value)) {
      ++nans;
      continue;
    }
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const auto agrees = [](double found, double expected) {
    return std::abs(found - expected) <= 1e-8 * std::abs(expected);
  };
  CHECK(nans == file.nans);
  CHECK(agrees(low, file.minimum));
  CHECK(agrees(high, file.maximum));
  CHECK(agrees(sum, file.sum));
  CHECK(agrees(values[static_cast<std::size_t>((file.images / 2 * file.height + 1) * file.width + 2)],
               file.value));
  if (nans > 0)
    CHECK_THAT(input_error([&] { read_all(reader.path()); }),
               ContainsSubstring("image 1 (counting from 1)") && ContainsSubstring("column 1, row 1"));
}

TEST_CASE("EMD-3001 comes out with its axes in order") {
  // By Python: numpy.transpose(mrcfile.open(...).data, (2, 0, 1)), for the file's columns, rows and sections
  // run along z, x, y.
  const MrcReader reader(shared_data("cryoem/EMD-3001.map"));
  const MrcHeader& header = reader.header();
  CHECK(reader.warnings().empty());
  CHECK_FALSE(header.big_endian);
  CHECK(header.size == std::array<std::int64_t, 3>{43, 25, 73});
  CHECK(header.start == std::array<std::int64_t, 3>{-21, -12, 0});
  CHECK(header.axis_order == std::array<int, 3>{2, 0, 1});
  CHECK(header.space_group == 4);
  CHECK(header.data_offset == 1184);
  CHECK(std::abs(header.voxel_size[0].value() - 17.93 / 40) < 1e-6);
  CHECK(std::abs(header.voxel_size[1].value() - 4.71 / 12) < 1e-6);
  CHECK(std::abs(header.voxel_size[2].value() - 33.03 / 72) < 1e-6);
  CHECK(std::abs(header.cell_angles[1] - 94.326) < 1e-5);
  CHECK(header.labels == std::vector<std::string>{"::::EMDATABANK.org::::EMD-3001::::"});
  const std::vector<float> volume = reader.read_volume();
  const auto at = [&](std::size_t z, std::size_t y, std::size_t x) { return volume[(z * 25 + y) * 43 + x]; };
  CHECK(at(0, 0, 0) == 0.04283447191119194f);
  CHECK(at(0, 0, 42) == 0.06724497675895691f);
  CHECK(at(36, 12, 21) == -0.08018922805786133f);
  CHECK(at(5, 20, 33) == -0.017191510647535324f);
  CHECK(at(60, 3, 7) == 0.41940122842788696f);
  CHECK(std::ranges::max_element(volume) - volume.begin() == (15 * 25 + 9) * 43 + 24);
  CHECK(std::ranges::min_element(volume) - volume.begin() == (49 * 25 + 6) * 43 + 20);
}

TEST_CASE("labels are broken at 80 characters, are ASCII, and ten at most") {
  const TemporaryFolder folder;
  const fs::path path = folder / "map.mrc";
  const std::vector<float> values(8);
  write_volume(path, values, {2, 2, 2}, {.labels = {"program 1", std::string(100, 'a'), "5 \xc3\x85"}});
  CHECK(MrcReader(path).header().labels ==
        std::vector<std::string>{"program 1", std::string(80, 'a'), std::string(20, 'a'), "5 ??"});
  write_volume(path, values, {2, 2, 2}, {.labels = std::vector<std::string>(20, "line")});
  CHECK(MrcReader(path).header().labels == std::vector<std::string>(10, "line"));
  write_volume(path, values, {2, 2, 2});
  CHECK(MrcReader(path).header().labels == std::vector<std::string>{"Bracewell"});
}
