// SPDX-License-Identifier: MIT
#include "common/hdf5.hpp"
#include "common/output_family.hpp"
#include "support.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <hdf5.h>

#include <numeric>
#include <thread>

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
