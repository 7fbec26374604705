// SPDX-License-Identifier: MIT
#include "../deep_copy.hpp"
#include "common/hdf5_blocks.hpp"
#include "common/output_family.hpp"
#include "common/stored_values.hpp"
#include "common/views.hpp"
#include "support.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <span>
#include <thread>

#include <sys/stat.h>

using namespace Bracewell::Examples;
using namespace IoTest;
using Catch::Matchers::ContainsSubstring;

namespace {

/// 0, 1, 2, ... as [2, 3, 4] of type T, and a few other things.
template <class T>
void write_example(const fs::path& path) {
  Hdf5Writer writer(path);
  std::vector<T> values(24);
  std::iota(values.begin(), values.end(), T(0));
  writer.write<T>("/exchange/data", {2, 3, 4}, values);
  writer.write_scalar<double>("/energy", 12.5);
  writer.write_attribute("/exchange/data", "scale", 0.25);
  writer.write_attribute("/exchange", "units", std::string("counts"));
  writer.create_group("/empty/group");
  writer.soft_link("/exchange/data", "/links/data");
  writer.soft_link("/nothing", "/dangling");
  writer.commit();
}

} // namespace

TEMPLATE_TEST_CASE("boxes of every type are read as any other", "", std::uint8_t, std::int16_t, std::uint64_t,
                   float, double) {
  const TemporaryFolder folder;
  write_example<TestType>(folder / "a.h5");
  const Hdf5Reader reader(folder / "a.h5");
  CHECK(reader.shape("/exchange/data") == Hdf5Shape{2, 3, 4});
  std::vector<float> box(4);
  reader.read<float>("/exchange/data", {{1, 1, 2}, {1, 2, 2}}, box);
  CHECK(box == std::vector<float>{18, 19, 22, 23});
  std::vector<std::int32_t> line(3);
  reader.read<std::int32_t>("/links/data", {{0, 0, 3}, {1, 3, 1}}, line);
  CHECK(line == std::vector<std::int32_t>{3, 7, 11});
  CHECK(reader.read<double>("/exchange/data")[23] == 23);
  CHECK(reader.read_scalar<float>("/energy") == 12.5f);
  CHECK(reader.shape("/energy").empty());
  CHECK(reader.attribute("/exchange/data", "scale") == 0.25);
  CHECK_FALSE(reader.attribute("/exchange/data", "offset"));
}

TEST_CASE("what a file has") {
  const TemporaryFolder folder;
  write_example<float>(folder / "a.h5");
  const Hdf5Reader reader(folder / "a.h5");
  CHECK(reader.list() == std::vector<std::string>{"dangling", "empty", "energy", "exchange", "links"});
  CHECK(reader.list("/exchange") == std::vector<std::string>{"data"});
  CHECK(reader.list("/empty/group").empty());
  CHECK((reader.has("/exchange/data") && reader.has("/exchange") && reader.has("exchange/data")));
  CHECK((reader.has_dataset("/links/data") && !reader.has_dataset("/exchange")));
  for (const char* name : {"/exchange/theta", "/none/data", "/dangling", "/exchange/data/more"})
    CHECK_FALSE(reader.has(name));
}

TEST_CASE("complex numbers are compounds of r and i") {
  const TemporaryFolder folder;
  using Complex = std::complex<float>;
  const std::vector<Complex> values{{1, 2}, {3, 4}, {5, 6}};
  Hdf5Writer writer(folder / "c.h5");
  writer.write<Complex>("probe", {3}, values);
  writer.commit();
  const Hdf5Reader reader(folder / "c.h5");
  CHECK(reader.is_complex("probe"));
  CHECK(reader.read<Complex>("probe") == values);
  CHECK(reader.read<std::complex<double>>("probe")[2] == std::complex<double>(5, 6));
  CHECK_THAT(input_error([&] { reader.read<float>("probe"); }),
             ContainsSubstring("c.h5: dataset probe: ") && ContainsSubstring("found complex"));
}

TEST_CASE("a file appears on commit only, slab by slab") {
  const TemporaryFolder folder;
  write_text(folder / "out.h5", "old");
  {
    Hdf5Writer writer(folder / "out.h5");
    writer.create_dataset<float>("/data", {2, 2});
  }
  CHECK(read_text(folder / "out.h5") == "old");
  CHECK(folder.files() == 1);
  Hdf5Writer writer(folder / "out.h5");
  writer.create_dataset<float>("/data", {3, 2});
  const std::vector<float> row{1, 2};
  writer.write<float>("/data", {{2, 0}, {1, 2}}, row);
  writer.commit();
  CHECK(Hdf5Reader(folder / "out.h5").read<int>("/data") == std::vector<int>{0, 0, 0, 0, 1, 2});
  CHECK(folder.files() == 1);
  CHECK_THROWS_AS(writer.commit(), std::logic_error);
  CHECK_THAT(input_error([&] { Hdf5Writer nowhere(folder / "none/out.h5"); }), ContainsSubstring("none"));
}

TEST_CASE("each thing wrong with a file has a sentence that names it") {
  const TemporaryFolder folder;
  const auto opening = [&](const char* name) {
    return input_error([&] { Hdf5Reader reader(folder / name); });
  };
  CHECK_THAT(opening("none.h5"), ContainsSubstring("none.h5: cannot be opened"));
  write_text(folder / "text.h5", "not HDF5 at all");
  CHECK_THAT(opening("text.h5"), ContainsSubstring("text.h5: is not an HDF5 file"));
  write_text(folder / "empty.h5", "");
  CHECK_THAT(opening("empty.h5"), ContainsSubstring("is not an HDF5 file"));
  write_example<float>(folder / "a.h5");
  const Bytes bytes = read_bytes(folder / "a.h5");
  write_bytes(folder / "cut.h5", std::span(bytes).first(bytes.size() / 2));
  CHECK_THAT(opening("cut.h5"), ContainsSubstring("cut.h5: ") && ContainsSubstring("truncated"));

  const Hdf5Reader reader(folder / "a.h5");
  const auto reading = [&](const char* name) { return input_error([&] { reader.read<float>(name); }); };
  CHECK_THAT(reading("/exchange/theta"), ContainsSubstring("a.h5: has no dataset /exchange/theta"));
  CHECK_THAT(reading("/exchange"), ContainsSubstring("a.h5: /exchange is a group, not a dataset"));
  CHECK_THAT(input_error([&] { reader.read<std::complex<float>>("/energy"); }),
             ContainsSubstring("expected complex numbers"));
  CHECK_THAT(input_error([&] { reader.read_scalar<float>("/exchange/data"); }),
             ContainsSubstring("expected one value, found shape [2, 3, 4]"));
  CHECK_THAT(input_error([&] { reader.list("/none"); }), ContainsSubstring("a.h5: has no group /none"));
  std::vector<float> one(1);
  CHECK_THROWS_AS(reader.read<float>("/exchange/data", {{0, 0, 4}, {1, 1, 1}}, one), std::logic_error);
}

TEST_CASE("every byte of a file can be wrong without harm") {
  const TemporaryFolder folder;
  write_example<std::int16_t>(folder / "a.h5");
  const Bytes bytes = read_bytes(folder / "a.h5");
  for (std::size_t at = 8; at < bytes.size(); at += 3) {
    Bytes bad = bytes;
    bad[at] ^= 0xff;
    write_bytes(folder / "bad.h5", bad);
    try {
      const Hdf5Reader reader(folder / "bad.h5");
      const Hdf5Shape shape = reader.shape("/exchange/data");
      if (hdf5_elements(shape) == 24)
        reader.read<float>("/exchange/data");
    } catch (const InputError& error) {
      CHECK_THAT(error.what(), ContainsSubstring("bad.h5: "));
    }
  }
}

TEST_CASE("files are used by several threads at once") {
  const TemporaryFolder folder;
  write_example<float>(folder / "a.h5");
  const Hdf5Reader reader(folder / "a.h5");
  const auto work = [&](const char* name) {
    Hdf5Writer writer(folder / name);
    for (int i = 0; i < 50; ++i)
      writer.write<double>("/copy" + std::to_string(i), {24}, reader.read<double>("/exchange/data"));
    writer.commit();
  };
  std::thread other(work, "one.h5");
  work("two.h5");
  other.join();
  CHECK(Hdf5Reader(folder / "one.h5").read<double>("/copy49") == reader.read<double>("/exchange/data"));
}

TEST_CASE("real data") {
  const Hdf5Reader tooth(shared_data("tomography/tooth.h5"));
  CHECK(tooth.shape("/exchange/data") == Hdf5Shape{181, 2, 640});
  CHECK(tooth.read<double>("/exchange/theta").size() == 181);
}

TEST_CASE("files that an HDF5 file draws its values from are inputs, too") {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2, 3};
  for (const char* name : {"linked.h5", "virtual.h5"}) {
    Hdf5Writer file(folder / name);
    file.write<float>("/data", {3}, values);
    file.commit();
  }
  const fs::path master = folder / "master.h5";
  const hid_t file = H5Fcreate(master.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("linked.h5", "/data", file, "/linked", H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t three = 3;
  const hid_t space = H5Screate_simple(1, &three, nullptr), properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(properties, space, "virtual.h5", "/data", space);
  H5Dclose(H5Dcreate2(file, "/virtual", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
  const Hdf5Reader reader(master);
  for (const std::string name : {"linked", "virtual"}) {
    OutputFamily outputs({folder / (name + ".h5")});
    CHECK_THAT(input_error([&] { reader.read<float>("/" + name); }), ContainsSubstring("would overwrite"));
  }
  CHECK(reader.read<float>("/linked") == values);
  CHECK(reader.read<float>("/virtual") == values);
}

TEST_CASE(
    "values are not looked for where they refer to themselves, in pipes, or in sources that lack them") {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2, 3};
  Hdf5Writer part(folder / "part.h5");
  part.write<float>("/data", {3}, values);
  part.commit();
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const fs::path master = folder / "master.h5";
  const hid_t file = H5Fcreate(master.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("pipe", "/data", file, "/link", H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t three = 3, six = 6, none = 0;
  const auto made = [&](const char* name, const char* source, const char* dataset, hsize_t has,
                        hsize_t takes) {
    const hid_t whole = H5Screate_simple(1, &six, nullptr), from = H5Screate_simple(1, &has, nullptr),
                properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Sselect_hyperslab(whole, H5S_SELECT_SET, &none, nullptr, &takes, nullptr);
    H5Pset_virtual(properties, whole, source, dataset, from);
    H5Sselect_all(whole);
    H5Dclose(H5Dcreate2(file, name, H5T_NATIVE_FLOAT, whole, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Pclose(properties), H5Sclose(from), H5Sclose(whole);
  };
  made("/self", ".", "/self", 6, 6);
  made("/there", "master.h5", "/back", 6, 6);
  made("/back", "master.h5", "/there", 6, 6);
  made("/of_a_pipe", "pipe", "/data", 6, 6);
  made("/too_few", "part.h5", "/data", 6, 6);
  made("/not_there", "part.h5", "/other", 6, 6);
  made("/first_half", "part.h5", "/data", 3, 3);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &three, nullptr);
  H5Pset_external(properties, "pipe", 0, 12);
  H5Dclose(H5Dcreate2(file, "/raw_in_a_pipe", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties), H5Sclose(space), H5Fclose(file);
  const Hdf5Reader reader(master);
  const auto reading = [&](const char* name) { return input_error([&] { reader.read<float>(name); }); };
  for (const char* name : {"/self", "/there", "/back"})
    CHECK_THAT(reading(name), ContainsSubstring("is virtual, and refers to itself"));
  CHECK_THAT(reading("/of_a_pipe"), ContainsSubstring("pipe: is not a regular file"));
  CHECK_THAT(reading("/link"), ContainsSubstring("pipe: is not a regular file, and a link in"));
  CHECK_THAT(input_error([&] { reader.has("/link"); }), ContainsSubstring("pipe: is not a regular file"));
  CHECK_THAT(reading("/raw_in_a_pipe"), ContainsSubstring("pipe, which is not a regular file"));
  CHECK_THAT(reading("/too_few"), ContainsSubstring("its source part.h5 has too few values: /data is [3]"));
  CHECK_THAT(reading("/not_there"), ContainsSubstring("part.h5: has no dataset /other"));
  CHECK(reader.read<float>("/first_half") == std::vector<float>{1, 2, 3, 0, 0, 0});
  CHECK(reader.never_written("/first_half") == std::vector<std::int64_t>{3, 4, 5});
}

TEST_CASE("frames that were never written are told, in chunks of any shape, and where all are") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t shape[] = {7, 3, 4}, one[] = {1, 3, 4};
  const hid_t space = H5Screate_simple(3, shape, nullptr), frame = H5Screate_simple(3, one, nullptr);
  const std::vector<float> values(12, 1);
  const auto made = [&](const char* name, const std::vector<hsize_t>& chunk,
                        const std::vector<hsize_t>& written) {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk.empty())
      H5Pset_chunk(properties, 3, chunk.data());
    const hid_t dataset =
        H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    for (const hsize_t number : written) {
      const hsize_t first[] = {number, 0, 0};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, one, nullptr);
      H5Dwrite(dataset, H5T_NATIVE_FLOAT, frame, space, H5P_DEFAULT, values.data());
    }
    H5Sselect_all(space);
    H5Pclose(properties), H5Dclose(dataset);
  };
  made("/single", {1, 3, 4}, {0, 1, 3, 6});
  made("/parts", {1, 2, 3}, {5});
  made("/pairs", {2, 3, 4}, {0, 6});
  made("/all", {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6});
  made("/contiguous", {}, {2});
  made("/none", {}, {});
  H5Sclose(space), H5Sclose(frame), H5Fclose(file);
  using Numbers = std::vector<std::int64_t>;
  const Hdf5Reader reader(path);
  CHECK(reader.never_written("/single") == Numbers{2, 4, 5});
  CHECK(reader.never_written("/parts") == Numbers{0, 1, 2, 3, 4, 6});
  CHECK(reader.never_written("/pairs") == Numbers{2, 3, 4, 5});
  CHECK(reader.never_written("/all").empty());
  CHECK(reader.never_written("/contiguous").empty()); // which takes its place whole
  CHECK(reader.never_written("/none") == Numbers{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("shapes that a file has too few bytes for are refused") {
  const TemporaryFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  writer.create_dataset<float>("/large", {1 << 20, 1 << 20});
  writer.create_dataset<float>("/blank", {100, 100}); // small ones may be nowhere in the file
  writer.commit();
  const Hdf5Reader reader(folder / "a.h5");
  CHECK_THAT(input_error([&] { reader.shape("/large"); }),
             ContainsSubstring(
                 "a.h5: dataset /large: is damaged: it states [1048576, 1048576] values, in a file of "));
  CHECK(reader.read<float>("/blank") == std::vector<float>(10000));
}

namespace {

/// How a dataset of the test is stored.
struct Storage {
  const char* name;
  hid_t type;
  std::vector<hsize_t> chunk = {}; ///< empty: contiguous
  bool shuffle = false, deflate = false, fletcher = false;
  bool partly = false;    ///< the first half alone is written
  bool undefined = false; ///< there is no fill value
};

void write_stored(const fs::path& path, const Storage& storage, const Hdf5Shape& shape,
                  const std::vector<double>& values) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const hid_t space = H5Screate_simple(3, extents.data(), nullptr),
              properties = H5Pcreate(H5P_DATASET_CREATE);
  if (!storage.chunk.empty())
    H5Pset_chunk(properties, 3, storage.chunk.data());
  const double fill = 7;
  H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, storage.undefined ? nullptr : &fill);
  if (storage.shuffle)
    H5Pset_shuffle(properties);
  if (storage.deflate)
    H5Pset_deflate(properties, 4);
  if (storage.fletcher)
    H5Pset_fletcher32(properties);
  const hid_t dataset = H5Dcreate2(file, "data", storage.type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  std::vector<hsize_t> first(3, 0), count = extents;
  count[0] /= storage.partly ? 2 : 1;
  const hid_t memory = H5Screate_simple(3, count.data(), nullptr);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
  REQUIRE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values.data()) >= 0);
  H5Sclose(memory), H5Dclose(dataset), H5Pclose(properties), H5Sclose(space), H5Fclose(file);
}

hid_t half_type() {
  const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(half, 15, 10, 5, 0, 10), H5Tset_size(half, 2), H5Tset_ebias(half, 15);
  return half;
}

/// What convert(values, results) makes of values where kernels read and write them.
template <class To, class From, class Convert>
std::vector<To> converted(const std::vector<From>& values, std::size_t count, const Convert& convert) {
  const auto from = allocate<Kokkos::View<From*, Space>>("from", values.size());
  const auto to = allocate<Kokkos::View<To*, Space>>("to", count);
  Test::deep_copy(from, host_view(values));
  convert(from.data(), to.data());
  std::vector<To> results(count);
  Test::deep_copy(host_view(results), to);
  return results;
}

} // namespace

TEST_CASE("blocks of a dataset are read as they are stored, whatever its type and layout") {
  const Hdf5Shape shape{6, 7, 9};
  const std::vector<hsize_t> chunk{2, 3, 4};
  const Storage storage = GENERATE_COPY(
      Storage{"contiguous uint16", H5T_STD_U16LE}, Storage{"contiguous float", H5T_IEEE_F32LE},
      Storage{"big-endian int16", H5T_STD_I16BE}, Storage{"half precision", half_type()},
      Storage{"big-endian double", H5T_IEEE_F64BE}, Storage{"uint8 in chunks", H5T_STD_U8LE, chunk},
      Storage{"whole frames", H5T_STD_U16LE, {1, 7, 9}},
      Storage{"deflated", H5T_STD_I32LE, chunk, false, true},
      Storage{"shuffled and deflated", H5T_STD_U16BE, chunk, true, true},
      Storage{"partly written", H5T_IEEE_F32BE, chunk, true, true, false, true},
      Storage{"partly written, not compressed", H5T_STD_U16LE, chunk, false, false, false, true},
      Storage{"contiguous, no fill value", H5T_STD_U16LE, {}, false, false, false, false, true},
      Storage{"in chunks, no fill value", H5T_STD_I32LE, chunk, true, true, false, false, true},
      Storage{"with checksums", H5T_STD_U16LE, chunk, true, true, true}, Storage{"64 bits", H5T_STD_I64LE},
      Storage{"uint32 in chunks", H5T_STD_U32BE, chunk});
  CAPTURE(storage.name);
  const TemporaryFolder folder;
  std::vector<double> values(static_cast<std::size_t>(hdf5_elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = double(i * 37 % 251);
  write_stored(folder / "a.h5", storage, shape, values);
  const Hdf5Reader reader(folder / "a.h5");
  const Hdf5Blocks blocks(reader, "/data");
  CHECK(blocks.shape() == shape);
  CHECK(blocks.compressed_chunk() ==
        (storage.deflate ? Hdf5Shape(storage.chunk.begin(), storage.chunk.end()) : Hdf5Shape{}));
  const auto check = [&](const Hdf5Slab& slab) {
    std::vector<std::byte> stored(static_cast<std::size_t>(blocks.bytes(slab.count)));
    blocks.read(slab, stored);
    const auto count = static_cast<std::size_t>(hdf5_elements(slab.count));
    std::vector<float> expected(count);
    reader.read<float>("/data", slab, expected);
    return expected == converted<float>(stored, count, [&](const std::byte* from, float* to) {
             to_floats(Space(), blocks.format(), from, to, std::int64_t(count));
           });
  };
  CHECK(check({{0, 0, 0}, shape}));
  CHECK(check({{0, 2, 0}, {6, 3, 9}}));
  CHECK(check({{1, 1, 1}, {4, 5, 7}}));
  CHECK(check({{5, 6, 8}, {1, 1, 1}}));
  CHECK(check({{0, 3, 2}, {6, 1, 5}}));
  CHECK(check({{2, 2, 0}, {3, 0, 9}}));
  // Several threads at once.
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] { right += check({{0, thread, 0}, {6, 3, 9}}); });
  }
  CHECK(right == 4);
}

namespace {

/// A block of LZ4: runs of equal bytes are a copy from one byte before, all else is literal.
void append_lz4(const Bytes& bytes, Bytes& to) {
  const auto field = [](std::size_t length) { return std::uint8_t(std::min<std::size_t>(length, 15)); };
  const auto rest = [&to](std::size_t length) {
    for (length = length < 15 ? 0 : length - 14; length > 0; length -= std::min<std::size_t>(length, 255))
      to.push_back(std::uint8_t(std::min<std::size_t>(length - 1, 255)));
  };
  std::size_t begin = 0;
  for (std::size_t at = 1; at < bytes.size(); ++at) {
    std::size_t end = at;
    while (end < bytes.size() && bytes[end] == bytes[at - 1])
      ++end;
    if (end - at < 4)
      continue;
    to.push_back(std::uint8_t(field(at - begin) << 4 | field(end - at - 4)));
    rest(at - begin);
    to.insert(to.end(), bytes.begin() + std::ptrdiff_t(begin), bytes.begin() + std::ptrdiff_t(at));
    to.insert(to.end(), {1, 0});
    rest(end - at - 4);
    begin = at = end;
  }
  to.push_back(std::uint8_t(field(bytes.size() - begin) << 4));
  rest(bytes.size() - begin);
  to.insert(to.end(), bytes.begin() + std::ptrdiff_t(begin), bytes.end());
}

void append_integer(std::uint64_t value, int bytes, Bytes& to) {
  for (int i = bytes - 1; i >= 0; --i)
    to.push_back(std::uint8_t(value >> 8 * i));
}

/// A chunk as the filter stores it, bit by bit as its definition says.
Bytes bitshuffled(const Bytes& values, std::size_t size, std::size_t block) {
  Bytes packed;
  append_integer(values.size(), 8, packed);
  append_integer(block, 4, packed);
  std::size_t begin = 0;
  for (std::size_t left = values.size(); left >= 8 * size; left = values.size() - begin) {
    const std::size_t bytes = std::min(block, left / (8 * size) * 8 * size), count = bytes / size;
    Bytes planes(bytes), compressed;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t bit = 0; bit < 8 * size; ++bit)
        if (values[begin + i * size + bit / 8] >> bit % 8 & 1)
          planes[bit * (count / 8) + i / 8] |= std::uint8_t(1 << i % 8);
    append_lz4(planes, compressed);
    append_integer(compressed.size(), 4, packed);
    packed.insert(packed.end(), compressed.begin(), compressed.end());
    begin += bytes;
  }
  packed.insert(packed.end(), values.begin() + std::ptrdiff_t(begin), values.end());
  return packed;
}

} // namespace

TEST_CASE("bitshuffled chunks are read, damaged ones are an error") {
  const std::size_t size = GENERATE(1, 2, 4);
  const std::size_t pixels = 37 * 53; // not a multiple of eight
  Bytes values(pixels * size);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::uint8_t(i % size > 1 ? 0 : i < 900 ? 3 : i * i % 251 >> 4 * (i % size));
  Bytes packed = bitshuffled(values, size, 128 * size);
  const TemporaryFolder folder;
  const auto found = [&] {
    const hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                properties = H5Pcreate(H5P_DATASET_CREATE);
    const std::array<hsize_t, 3> extents{2, 37, 53}, chunk{1, 37, 53}, offset{1, 0, 0};
    const std::array<unsigned, 5> filter{0, 4, unsigned(size), 0, 2};
    const hid_t space = H5Screate_simple(3, extents.data(), nullptr);
    H5Pset_chunk(properties, 3, chunk.data());
    H5Pset_filter(properties, 32008, H5Z_FLAG_OPTIONAL, filter.size(), filter.data());
    const hid_t type = size == 1 ? H5T_STD_U8LE : size == 2 ? H5T_STD_U16LE : H5T_STD_U32LE;
    const hid_t dataset = H5Dcreate2(file, "data", type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    REQUIRE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), packed.size(), packed.data()) >= 0);
    H5Dclose(dataset), H5Sclose(space), H5Pclose(properties), H5Fclose(file);
    const Hdf5Reader reader(folder / "a.h5");
    const Hdf5Blocks blocks(reader, "/data");
    Bytes stored(2 * values.size());
    blocks.read({{0, 0, 0}, {2, 37, 53}}, std::as_writable_bytes(std::span(stored)));
    return stored;
  };
  Bytes expected(values.size()); // the first chunk was never written
  expected.insert(expected.end(), values.begin(), values.end());
  CHECK((found() == expected));
  const auto damage = [&](std::size_t at) {
    Bytes good = packed;
    packed[at] ^= 0xff;
    CHECK_THROWS_WITH(found(), ContainsSubstring("a.h5: dataset /data: cannot be read"));
    packed = good;
  };
  damage(0), damage(11), damage(12), damage(14), damage(16);
  packed.pop_back();
  CHECK_THROWS_WITH(found(), ContainsSubstring("a.h5: dataset /data: cannot be read"));
}

TEST_CASE("very many chunks are read as few are") {
  const TemporaryFolder folder;
  const Hdf5Shape shape{160, 140, 1};
  std::vector<double> values(160 * 140);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = double(i * 37 % 251);
  // A name, since nvcc does not take what it holds as an argument.
  const Storage pixel_by_pixel{"pixel by pixel", H5T_STD_U8LE, {1, 1, 1}};
  write_stored(folder / "a.h5", pixel_by_pixel, shape, values);
  const Hdf5Reader reader(folder / "a.h5");
  const Hdf5Blocks blocks(reader, "/data");
  CHECK(blocks.format().type == StoredType::UInt8); // not converted by the library
  std::vector<std::byte> stored(20 * 30);
  blocks.read({{140, 3, 0}, {20, 30, 1}}, stored);
  std::size_t wrong = 0;
  for (std::size_t y = 0; y < 20; ++y)
    for (std::size_t x = 0; x < 30; ++x)
      wrong += stored[y * 30 + x] != std::byte(((140 + y) * 140 + 3 + x) * 37 % 251);
  CHECK(wrong == 0);
}

TEST_CASE("damaged chunks are an error") {
  const TemporaryFolder folder;
  const Hdf5Shape shape{6, 7, 9};
  const std::vector<double> values(378, 3);
  const Storage deflated{"deflated", H5T_STD_I32LE, {2, 7, 9}, false, true};
  write_stored(folder / "a.h5", deflated, shape, values);
  std::string text = read_text(folder / "a.h5");
  // What zlib writes begins with these bytes at level 4.
  std::size_t damaged = 0;
  for (std::size_t at = text.find("\x78\x5e"); at != std::string::npos;
       at = text.find("\x78\x5e", at + 1), ++damaged)
    text[at + 2] = char(0xff);
  REQUIRE(damaged > 0);
  write_text(folder / "a.h5", text);
  const Hdf5Reader reader(folder / "a.h5");
  const Hdf5Blocks blocks(reader, "/data");
  std::vector<std::byte> stored(static_cast<std::size_t>(blocks.bytes(shape)));
  CHECK_THROWS_WITH(blocks.read({{0, 0, 0}, shape}, stored),
                    ContainsSubstring("a.h5: dataset /data: cannot be read"));
}

TEST_CASE("stored values are written beside the library") {
  const TemporaryFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  writer.create_stored("/exchange/data", {3, 4}, StoredType::Float16);
  writer.create_stored("/more", {2, 2}, StoredType::UInt16);
  writer.write_attribute("/exchange/data", "centre", 2.5);
  const std::vector<float> values{0,        1,     -2,  0.5f,     65504, 6.1e-5f,
                                  1.0f / 3, 1e-7f, 100, 5.96e-8f, 2049,  -3e-8f};
  const std::vector<std::uint16_t> counts{1, 2, 3, 65535};
  const auto halves =
      converted<std::uint16_t>(values, values.size(), [&](const float* from, std::uint16_t* to) {
        to_halves(Space(), from, to, std::int64_t(values.size()));
      });
  writer.write_stored("/exchange/data", 4, std::as_bytes(std::span(halves).subspan(4)));
  writer.write_stored("/exchange/data", 0, std::as_bytes(std::span(halves).first(4)));
  writer.write_stored("/more", 0, std::as_bytes(std::span(counts)));
  writer.commit();
  const Hdf5Reader reader(folder / "a.h5");
  CHECK(reader.read<std::uint16_t>("/more") == counts);
  CHECK(reader.attribute("/exchange/data", "centre") == 2.5);
  const auto found = reader.read<float>("/exchange/data"); // as the library converts
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(std::abs(found[i] - values[i]) <= std::max(std::abs(values[i]) * 0x1p-11f, 0x1p-25f));
  CHECK(found[10] == 2048); // to even
}
