// SPDX-License-Identifier: MIT
#include "common/tiff.hpp"
#include "support.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace Bracewell::Examples;
using namespace IoTest;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A TIFF file made by hand: 3 x 2 pixels in strips of one row.
struct HandMadeTiff {
  bool big_endian = false;
  std::uint16_t bits = 16, format = 1, compression = 1, samples = 1, orientation = 1;
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
    put(10, 2); // fields
    const std::uint32_t data = 8 + 2 + 10 * 12 + 4 + 16;
    field(256, 3), field(257, 2), field(258, bits), field(259, compression);
    put(273, 2), put(4, 2), put(2, 4), put(8 + 2 + 10 * 12 + 4, 4);
    field(274, orientation), field(277, samples), field(278, 1);
    put(279, 2), put(4, 2), put(2, 4), put(8 + 2 + 10 * 12 + 4 + 8, 4);
    field(339, format);
    put(0, 4);
    put(data, 4), put(data + 3 * bits / 8, 4);
    put(3 * bits / 8, 4), put(3 * bits / 8, 4);
    for (const std::uint32_t pixel : pixels)
      put(pixel, bits / 8);
    return file;
  }
};

/// A TIFF file as libtiff writes it.
struct LibraryTiff {
  std::uint32_t width, height;
  int bits, format;
  Bytes bytes = {}; ///< rows, each from a whole byte on
  int predictor = 1, compression = COMPRESSION_NONE;
  std::uint32_t rows_per_strip = 1000, tile = 0;
  const char* mode = "w";

  template <class T>
  static Bytes of(const std::vector<T>& numbers) {
    Bytes result(numbers.size() * sizeof(T));
    std::memcpy(result.data(), numbers.data(), result.size());
    return result;
  }

  /// Whole bytes as the machine has them, other numbers of bits in a row, the highest first.
  static Bytes packed(const std::vector<std::int64_t>& numbers, std::size_t width, int bits) {
    const std::size_t row = (width * static_cast<std::size_t>(bits) + 7) / 8;
    Bytes result(numbers.size() / width * row);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      for (int bit = 0; bit < bits; ++bit) {
        const std::size_t at = i % width * static_cast<std::size_t>(bits) + static_cast<std::size_t>(bit);
        const int from = bits % 8 == 0 ? bit : bits - 1 - bit, to = bits % 8 == 0 ? bit % 8 : 7 - int(at % 8);
        result[i / width * row + at / 8] |= static_cast<std::uint8_t>((numbers[i] >> from & 1) << to);
      }
    return result;
  }

  fs::path write(const fs::path& path) const {
    TIFF* const tiff = TIFFOpen(path.c_str(), mode);
    REQUIRE(tiff != nullptr);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, format);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    if (predictor != 1)
      TIFFSetField(tiff, TIFFTAG_PREDICTOR, predictor);
    const std::size_t row = bytes.size() / height;
    if (tile > 0) {
      TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile);
      TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile);
      const std::size_t wide = tile * static_cast<std::size_t>(bits) / 8;
      for (std::uint32_t y = 0; y < height; y += tile)
        for (std::uint32_t x = 0; x < width; x += tile) {
          Bytes part(tile * wide, 0x5a);
          const std::size_t from = x * static_cast<std::size_t>(bits) / 8;
          for (std::uint32_t line = 0; line < std::min(tile, height - y); ++line)
            std::copy_n(&bytes[(y + line) * row + from], std::min(wide, row - from), &part[line * wide]);
          REQUIRE(TIFFWriteEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, 0), part.data(),
                                       static_cast<tmsize_t>(part.size())) > 0);
        }
    } else {
      const std::uint32_t rows = std::min(rows_per_strip, height);
      TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, rows);
      for (std::uint32_t y = 0; y < height; y += rows) {
        Bytes part(bytes.begin() + std::ptrdiff_t(y * row),
                   bytes.begin() + std::ptrdiff_t(std::min(y + rows, height) * row));
        REQUIRE(TIFFWriteEncodedStrip(tiff, y / rows, part.data(), static_cast<tmsize_t>(part.size())) > 0);
      }
    }
    TIFFClose(tiff);
    return path;
  }
};

std::vector<float> values(const fs::path& path) {
  const TiffReader reader(path);
  std::vector<float> result(static_cast<std::size_t>(reader.pages() * reader.width() * reader.height()));
  const auto page = static_cast<std::size_t>(reader.width() * reader.height());
  for (std::int64_t i = 0; i < reader.pages(); ++i)
    reader.read_rows(i, 0, reader.height(),
                     std::span(result).subspan(static_cast<std::size_t>(i) * page, page));
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

TEST_CASE("TIFF by libtiff: any bits, compression, tiles, BigTIFF") {
  const TemporaryFolder folder;
  const auto written = [&](const LibraryTiff& tiff) { return values(tiff.write(folder / "a.tif")); };
  std::vector<std::int64_t> numbers(37 * 29);
  for (const int bits : {1, 4, 7, 8, 12, 16, 24, 31, 32, 64})
    for (const bool is_signed : {false, true}) {
      if (is_signed && bits == 1)
        continue;
      CAPTURE(bits, is_signed);
      const std::int64_t top = std::int64_t(1) << (std::min(bits, 62) - (is_signed ? 1 : 0));
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = std::int64_t(i * 2654435761u * 97) % top - (is_signed && i % 2 ? top : 0);
      const std::vector<float> expected(numbers.begin(), numbers.end());
      LibraryTiff tiff{.width = 37, .height = 29, .bits = bits, .format = is_signed ? 2 : 1};
      tiff.bytes = LibraryTiff::packed(numbers, 37, bits);
      CHECK(written(tiff) == expected);
      tiff.mode = "w8b"; // BigTIFF, of the other byte order
      CHECK(written(tiff) == expected);
      tiff.mode = "w", tiff.rows_per_strip = 7;
      for (const int compression : {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS}) {
        tiff.compression = compression;
        CHECK(written(tiff) == expected);
      }
    }
  std::vector<float> reals(37 * 29);
  for (std::size_t i = 0; i < reals.size(); ++i)
    reals[i] = std::ldexp(float(i % 31) - 15, int(i % 13) - 9);
  const std::vector<double> doubles(reals.begin(), reals.end());
  CHECK(written({.width = 37, .height = 29, .bits = 64, .format = 3, .bytes = LibraryTiff::of(doubles)}) ==
        reals);
  CHECK(written({.width = 37,
                 .height = 29,
                 .bits = 32,
                 .format = 3,
                 .bytes = LibraryTiff::of(reals),
                 .predictor = 3,
                 .compression = COMPRESSION_ADOBE_DEFLATE}) == reals);
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x3555};
  CHECK(written({.width = 3, .height = 2, .bits = 16, .format = 3, .bytes = LibraryTiff::of(halves)}) ==
        std::vector<float>{1, -2, 65504, std::ldexp(1.f, -24), -0.f, 0x1.554p-2f});

  // Tiles of 16 x 16: padded ones at the right and at the bottom.
  for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW})
    CHECK(written({.width = 37,
                   .height = 29,
                   .bits = 32,
                   .format = 3,
                   .bytes = LibraryTiff::of(reals),
                   .compression = compression,
                   .tile = 16}) == reals);
  const TiffReader reader(folder / "a.tif");
  std::vector<float> rows(5 * 37);
  reader.read_rows(0, 14, 5, rows);
  CHECK(std::equal(rows.begin(), rows.end(), reals.begin() + 14 * 37));
}

TEST_CASE("TIFF: all pages, and a series of files in the order of their numbers") {
  const TemporaryFolder folder;
  const std::vector<float> one{1, 2, 3, 4, 5, 6}, two{-1, 0, 0.5f, 0, 0, 0};
  TiffWriter writer(folder / "a.tif", 3, 2, 2);
  writer.write(one);
  writer.write(two);
  CHECK_FALSE(fs::exists(folder / "a.tif"));
  writer.commit();
  CHECK_THROWS_AS(writer.write(one), std::logic_error);
  std::vector<float> both = one;
  both.insert(both.end(), two.begin(), two.end());
  CHECK(values(folder / "a.tif") == both);
  CHECK(folder.files() == 1);

  fs::create_directory(folder / "scan");
  std::vector<float> expected;
  for (const int number : {2, 10, 9, 1, 11}) {
    TiffWriter page(folder / ("scan/p_" + std::to_string(number) + ".tif"), 2, 1, 1);
    page.write(std::vector<float>{float(number), 0.5f});
    page.commit();
  }
  write_text(folder / "scan/notes.txt", "no picture");
  for (const int number : {1, 2, 9, 10, 11})
    expected.insert(expected.end(), {float(number), 0.5f});
  CHECK(values(folder / "scan") == expected);
  CHECK(TiffReader(folder / "scan").series());
  CHECK(values(folder / "scan/p_1*.tif") == std::vector<float>{1, 0.5f, 10, 0.5f, 11, 0.5f});
  const auto message = [&](const char* name) { return input_error([&] { TiffReader(folder / name); }); };
  CHECK_THAT(message("scan/q*.tif"), ContainsSubstring("expected TIFF files, found none"));
  CHECK_THAT(message("none.tif"), ContainsSubstring("none.tif"));
  TiffWriter other(folder / "scan/p_3.tif", 3, 1, 1);
  other.write(std::vector<float>{1, 2, 3});
  other.commit();
  CHECK_THAT(message("scan"), ContainsSubstring("p_3.tif: expected pages of 2 x 1 pixels"));
}

TEST_CASE("rows of plain pages are read from where they are, as they are stored") {
  const TemporaryFolder folder;
  const auto stored = [](const TiffReader& reader, std::int64_t first, std::int64_t count) {
    Bytes bytes(static_cast<std::size_t>(reader.pages() * count * reader.width() *
                                         bytes_of(reader.stored_format()->type)));
    reader.read_stored(0, first, count, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  };
  for (const bool big_endian : {false, true}) {
    CAPTURE(big_endian);
    write_bytes(folder / "hand.tif", HandMadeTiff{.big_endian = big_endian}.bytes());
    const TiffReader reader(folder / "hand.tif");
    REQUIRE(reader.stored_format() == StoredFormat{StoredType::UInt16, big_endian});
    CHECK(reader.rows_together() == 1);
    CHECK(stored(reader, 1, 1) ==
          (big_endian ? Bytes{0, 4, 0, 5, 0xff, 0xfe} : Bytes{4, 0, 5, 0, 0xfe, 0xff}));
  }
  fs::create_directory(folder / "series");
  const auto page = [&](const char* name, const LibraryTiff& tiff) { return tiff.write(folder / name); };
  page("series/1.tif",
       {.width = 2, .height = 3, .bits = 8, .format = SAMPLEFORMAT_INT, .bytes = {1, 2, 3, 4, 5, 6}});
  page("series/2.tif", {.width = 2,
                        .height = 3,
                        .bits = 8,
                        .format = SAMPLEFORMAT_INT,
                        .bytes = {7, 8, 9, 10, 11, 12},
                        .rows_per_strip = 2});
  const TiffReader series(folder / "series");
  REQUIRE(series.stored_format() == StoredFormat{StoredType::Int8});
  CHECK(series.rows_together() == 3);
  CHECK(stored(series, 1, 2) == Bytes{3, 4, 5, 6, 9, 10, 11, 12});
  CHECK(values(folder / "series") == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  fs::resize_file(folder / "series/2.tif", 10);
  CHECK_THAT(input_error([&] { stored(series, 0, 3); }), ContainsSubstring("2.tif"));

  const auto format = [&](const char* name) { return TiffReader(folder / name).stored_format(); };
  page("packed.tif", {.width = 2,
                      .height = 3,
                      .bits = 8,
                      .format = SAMPLEFORMAT_UINT,
                      .bytes = {1, 2, 3, 4, 5, 6},
                      .compression = COMPRESSION_PACKBITS});
  page("bits.tif", {.width = 2, .height = 3, .bits = 4, .format = SAMPLEFORMAT_UINT, .bytes = {1, 2, 3}});
  CHECK_FALSE(format("packed.tif"));
  CHECK_FALSE(format("bits.tif"));
  fs::remove(folder / "series/2.tif"); // pages of two kinds
  page("series/3.tif",
       {.width = 2, .height = 3, .bits = 8, .format = SAMPLEFORMAT_UINT, .bytes = {1, 2, 3, 4, 5, 6}});
  CHECK_FALSE(format("series"));
}

TEST_CASE("what is no greyscale TIFF is refused in a sentence") {
  const TemporaryFolder folder;
  const auto message = [&](const Bytes& bytes) {
    write_bytes(folder / "bad.tif", bytes);
    return input_error([&] { values(folder / "bad.tif"); });
  };
  CHECK_THAT(message({}), ContainsSubstring("bad.tif: is not a TIFF file"));
  CHECK_THAT(message(Bytes(20)), ContainsSubstring("bad.tif: is not a TIFF file"));
  CHECK_THAT(message(HandMadeTiff{.compression = 99}.bytes()), ContainsSubstring("compressed (kind 99)"));
  CHECK_THAT(message(HandMadeTiff{.samples = 3}.bytes()), ContainsSubstring("3 values per pixel"));
  for (const std::uint16_t orientation : {0, 9, 65535})
    CHECK_THAT(message(HandMadeTiff{.orientation = orientation}.bytes()),
               ContainsSubstring("expected an orientation of 1 to 8 (") &&
                   ContainsSubstring(std::to_string(orientation)));
  CHECK_THAT(message(HandMadeTiff{.format = 5}.bytes()), ContainsSubstring("16 bits and format 5"));
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

TEST_CASE("an image that its file has too few bytes for is refused") {
  const TemporaryFolder folder;
  auto bytes = HandMadeTiff{.compression = COMPRESSION_LZW}.bytes();
  for (const std::size_t side : {18u, 30u}) // values of the first two fields
    bytes[side] = bytes[side + 1] = 0xff;
  write_bytes(folder / "a.tif", bytes);
  CHECK_THAT(input_error([&] { TiffReader(folder / "a.tif"); }),
             ContainsSubstring("a.tif: is damaged: 65535 x 65535 pixels of 16 bits in a file of "));
}
