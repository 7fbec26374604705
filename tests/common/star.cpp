// SPDX-License-Identifier: MIT
#include "common/star.hpp"

#include "common/mrc.hpp"
#include "common/particle_images.hpp"
#include "support.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

using namespace Bracewell::Examples;
using namespace IoTest;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// A stack of `images` images whose pixels are all 100 times `series` plus the image's index.
void write_stack(const fs::path& path, int images, int series = 0, std::int64_t width = 4,
                 double pixel_size = 0) {
  MrcWriter writer(path, MrcWriter::Kind::Stack, width, 4, {.pixel_size = pixel_size});
  for (int i = 0; i < images; ++i)
    writer.write(
        std::vector<float>(static_cast<std::size_t>(4 * width), static_cast<float>(100 * series + i)));
  writer.close();
}

constexpr std::string_view optics_text = R"(
# version 30001

data_optics

loop_
_rlnOpticsGroup #1
_rlnOpticsGroupName #2
_rlnVoltage #3
_rlnSphericalAberration #4
_rlnAmplitudeContrast #5
_rlnImagePixelSize #6
7 "group seven" 300.0 2.7 0.1 2.0
3 group3 200 1.4 0.07 4.0

)";

constexpr std::string_view particles_text = R"(
# version 30001

data_particles

loop_
_rlnImageName #1
_rlnOpticsGroup #2
_rlnAngleRot #3
_rlnAngleTilt #4
_rlnAnglePsi #5
_rlnOriginXAngst #6
_rlnOriginYAngst #7
_rlnDefocusU #8
_rlnRandomSubset #9
000002@stack.mrcs 3 10.5 -20 +30.25 8 -4 1.5e4 1
1@stack.mrcs 7 0 0.0 -0 1 3 12000 2.000000 # the last one

)";

const std::string both = std::string(optics_text) + std::string(particles_text);

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

using Values = std::vector<double>;

} // namespace

TEST_CASE("optics and particles are joined, whichever comes first") {
  const TemporaryFolder folder;
  write_stack(folder / "stack.mrcs", 2, 0, 4, 1.25);
  const bool optics_first = GENERATE(true, false);
  std::string text = optics_first ? both : std::string(particles_text) + std::string(optics_text);
  if (GENERATE(false, true)) // line ends of Windows
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
      text.insert(at, "\r");
  write_text(folder / "particles.star", text);

  const Particles particles = read_particles(folder / "particles.star");
  CHECK(particles.count == 2);
  CHECK(particles.table == "particles");
  CHECK(particles.warnings.empty());
  REQUIRE(particles.stacks.size() == 1);
  CHECK(particles.stacks[0].path == folder / "stack.mrcs");
  CHECK(particles.stacks[0].images == 2);
  CHECK(particles.stacks[0].pixel_size == 1.25);
  CHECK(particles.stack == std::vector<std::size_t>{0, 0});
  CHECK(particles.image == std::vector<std::int64_t>{1, 0});
  CHECK(particles.image_width == 4);
  CHECK(particles.image_height == 4);
  CHECK(particles.rot.values == Values{10.5, 0});
  CHECK(particles.tilt.values == Values{-20, 0});
  CHECK(particles.psi.values == Values{30.25, 0});
  CHECK(particles.origin_x.values == Values{2, 0.5}); // 8 Angstrom of 4 per pixel, 1 of 2
  CHECK(particles.origin_y.values == Values{-1, 1.5});
  CHECK(particles.defocus_u.values == Values{15000, 12000});
  CHECK(particles.voltage.values == Values{200, 300});
  CHECK(particles.spherical_aberration.values == Values{1.4, 2.7});
  CHECK(particles.amplitude_contrast.values == Values{0.07, 0.1});
  CHECK(particles.pixel_size.values == Values{4, 2});
  CHECK(particles.random_subset.values == std::vector<std::int64_t>{1, 2});
  CHECK(particles.optics_group.values == std::vector<std::int64_t>{3, 7});
  for (const auto* absent : {&particles.defocus_v, &particles.defocus_angle, &particles.phase_shift,
                             &particles.ctf_b_factor, &particles.ctf_scale})
    CHECK_FALSE(absent->present());
  CHECK(particles.require(particles.voltage) == Values{200, 300});
  CHECK(input_error([&] { particles.require(particles.defocus_v); }) ==
        (folder / "particles.star").string() +
            ": column rlnDefocusV is missing from table data_particles and from table data_optics");

  const Particles other = read_particles(folder / "particles.star", {.images = false, .pixel_size = 8.0});
  CHECK(other.origin_x.values == Values{1, 0.125});
  CHECK(other.pixel_size.values == Values{8, 8});
  CHECK(other.stacks.empty());
}

TEST_CASE("a value in the particle table comes before the one in the optics table") {
  const TemporaryFolder folder;
  write_text(
      folder / "p.star",
      replaced(replaced(replaced(both, "_rlnDefocusU #8", "_rlnVoltage #8"), "1.5e4", "120"), "12000", "80"));
  CHECK(read_particles(folder / "p.star", {.images = false}).voltage.values == Values{120, 80});
}

TEST_CASE("files before RELION 3.1 have one table, origins in pixels and a magnification") {
  const TemporaryFolder folder;
  const std::string name = GENERATE("", "images", "particles");
  write_text(folder / "old.star", "\ndata_" + name + R"(

loop_
_rlnOriginX
_rlnOriginY
_rlnMagnification
_rlnDetectorPixelSize
_rlnPhaseShift
  1.5 -2  50000  7   90
  0    1  20000  7    0
)");
  const Particles particles = read_particles(folder / "old.star", {.images = false});
  CHECK(particles.table == name);
  CHECK(particles.origin_x.values == Values{1.5, 0});
  CHECK(particles.origin_y.values == Values{-2, 1});
  CHECK(particles.pixel_size.values == Values{1.4, 3.5});
  CHECK(particles.phase_shift.values == Values{90, 0});
  CHECK_FALSE(particles.rot.present());
  CHECK(input_error([&] { particles.require(particles.voltage); }) ==
        (folder / "old.star").string() + ": column rlnVoltage is missing from table data_" + name);
}

TEST_CASE("one optics group needs no rlnOpticsGroup") {
  const TemporaryFolder folder;
  write_text(folder / "p.star",
             "data_optics\n_rlnVoltage 300\n\ndata_particles\nloop_\n_rlnAngleRot\n1\n2\n");
  CHECK(read_particles(folder / "p.star", {.images = false}).voltage.values == Values{300, 300});
}

TEST_CASE("stacks are found beside the STAR file, then from the current folder") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "job/sub");
  const auto star = [&](const std::string& name) {
    write_text(folder / "job/p.star", "data_\nloop_\n_rlnImageName\n1@" + name + "\n");
    return read_particles(folder / "job/p.star").stacks.at(0).path;
  };
  write_stack(folder / "here.mrcs", 1);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  CHECK(star("here.mrcs") == "here.mrcs");
  fs::current_path(before);
  CHECK(star((folder / "here.mrcs").string()) == folder / "here.mrcs");
  write_stack(folder / "job/sub/there.mrcs", 1);
  CHECK(star("sub/there.mrcs") == folder / "job/sub/there.mrcs");
  CHECK(input_error([&] { star("sub/nowhere.mrcs"); }) ==
        (folder / "job/p.star").string() + ": table data_, row 1, column rlnImageName: there is no stack " +
            (folder / "job/sub/nowhere.mrcs").string() + " or " + fs::absolute("sub/nowhere.mrcs").string());
  CHECK_THAT(input_error([&] { star("sub"); }), ContainsSubstring("is a directory"));

  // A name without an index is the first image of its file.
  write_text(folder / "p.star", "data_\nloop_\n_rlnImageName\nhere.mrcs\n");
  CHECK(read_particles(folder / "p.star").image == std::vector<std::int64_t>{0});
}

TEST_CASE("images are read by ranges of particles, whatever stacks they lie in") {
  const TemporaryFolder folder;
  write_stack(folder / "a.mrcs", 5, 1);
  write_stack(folder / "b.mrcs", 5, 2);
  const std::vector<std::pair<std::string, float>> rows{
      {"1@a.mrcs", 100}, {"2@a.mrcs", 101}, {"3@a.mrcs", 102}, {"3@a.mrcs", 102},
      {"4@b.mrcs", 203}, {"5@b.mrcs", 204}, {"1@b.mrcs", 200}, {"2@a.mrcs", 101}};
  std::string text = "data_\nloop_\n_rlnImageName\n";
  for (const auto& row : rows)
    text += row.first + "\n";
  write_text(folder / "p.star", text);
  const Particles particles = read_particles(folder / "p.star");
  CHECK(particles.stacks.size() == 2);
  ParticleImages images(particles);
  REQUIRE(images.image_bytes() == 64);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int tries = 0; tries < 20; std::ranges::next_permutation(order), ++tries)
    for (std::size_t count = 0; count <= rows.size(); ++count) {
      std::vector<float> pixels(count * 16, -1.0f);
      images.read(std::span(order).last(count), std::as_writable_bytes(std::span(pixels)));
      for (std::size_t i = 0; i < pixels.size(); ++i)
        REQUIRE(pixels[i] == rows[order[rows.size() - count + i / 16]].second);
    }
  std::vector<float> pixels(16);
  CHECK_THROWS_AS(images.read(std::span(order).first(2), std::as_writable_bytes(std::span(pixels))),
                  std::invalid_argument);
  CHECK_THAT(images.not_finite(4, 6),
             ContainsSubstring(
                 "b.mrcs: image 4 (counting from 1) has a value that is not finite at column 3, row 2"));
}

TEST_CASE("many stacks are read by several threads, a changed one is told") {
  const TemporaryFolder folder;
  constexpr int stacks = 40; // more than stay open
  std::string text = "data_\nloop_\n_rlnImageName\n";
  for (int stack = 0; stack < stacks; ++stack) {
    const std::string name = "s" + std::to_string(stack) + ".mrcs";
    write_stack(folder / name, 2, stack);
    text += "2@" + name + "\n1@" + name + "\n";
  }
  write_text(folder / "p.star", text);
  const Particles particles = read_particles(folder / "p.star");
  ParticleImages images(particles);
  std::vector<float> pixels(std::size_t(2 * stacks * 16), -1.0f);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::size_t row = thread; row < 2 * stacks; row += 4)
          images.read(std::span(&row, 1), std::as_writable_bytes(std::span(pixels).subspan(16 * row, 16)));
      });
  }
  for (std::size_t i = 0; i < pixels.size(); ++i)
    REQUIRE(pixels[i] == static_cast<float>(100 * (i / 32) + (i / 16 + 1) % 2));
  write_stack(folder / "s0.mrcs", 1);
  const std::size_t row = 0;
  ParticleImages later(particles);
  CHECK_THROWS_WITH(later.read(std::span(&row, 1), std::as_writable_bytes(std::span(pixels))),
                    ContainsSubstring("s0.mrcs: was changed while it was in use"));
}

TEST_CASE("what is wrong with particles is told with file, row and column") {
  const TemporaryFolder folder;
  write_stack(folder / "stack.mrcs", 2);
  const fs::path path = folder / "p.star";
  const auto message = [&](const std::string& text) {
    write_text(path, text);
    const std::string found = input_error([&] { read_particles(path); });
    CHECK_THAT(found, StartsWith(path.string() + ": "));
    return found.substr(std::min(found.size(), path.string().size() + 2));
  };
  const std::string row = "table data_particles, row ";

  CHECK(message(replaced(both, "-20", "abc")) ==
        row + "1, column rlnAngleTilt: expected a finite number, found 'abc'");
  for (const std::string bad :
       {"nan", "inf", "-inf", "1e999", "1.5x", "0x10", "?", ".", "''", "+-3", "+", "--3", "1,5"})
    CHECK(message(replaced(both, "12000", bad)) ==
          row + "2, column rlnDefocusU: expected a finite number, found '" + (bad == "''" ? "" : bad) + "'");
  CHECK(message(replaced(both, "2.000000", "1.5")) ==
        row + "2, column rlnRandomSubset: expected a whole number, found '1.5'");
  CHECK(message(replaced(both, "1.5e4 1", "1.5e4")) ==
        row + "1 (line 31): expected 9 values, found 8, no value in column rlnRandomSubset");
  CHECK(message(replaced(both, "1.5e4 1", "1.5e4 1 5")) == row + "1 (line 31): expected 9 values, found 10");
  // Two wrongs that would add up to whole rows.
  CHECK(message(replaced(replaced(both, "1.5e4 1", "1.5e4"), "12000 2.000000", "12000 2 2")) ==
        row + "1 (line 31): expected 9 values, found 8, no value in column rlnRandomSubset");
  CHECK(message(replaced(both, "000002@", "000003@")) ==
        row + "1, column rlnImageName: there is no image 3 in " + (folder / "stack.mrcs").string() +
            ", which has 2");
  CHECK(message(replaced(both, "000002@", "000000@")) ==
        row + "1, column rlnImageName: images are counted from 1, found '000000@stack.mrcs'");
  CHECK(message(replaced(both, "000002@", "-1@")) ==
        row + "1, column rlnImageName: images are counted from 1, found '-1@stack.mrcs'");
  for (const std::string bad : {"x@", "@", "1.5@", "99999999999999999999@"})
    CHECK(message(replaced(both, "000002@", bad)) ==
          row + "1, column rlnImageName: expected INDEX@STACK, found '" + bad + "stack.mrcs'");
  CHECK_THAT(message(replaced(both, "000002@stack.mrcs", "000002@")),
             ContainsSubstring("expected INDEX@STACK"));
  CHECK(message(replaced(both, "_rlnImageName", "_rlnName")) ==
        "column rlnImageName is missing from table data_particles");
  CHECK(message(replaced(both, "stack.mrcs 3", "stack.mrcs 5")) ==
        row + "1, column rlnOpticsGroup: table data_optics has no group 5");
  CHECK(message(replaced(both, "3 group3", "7 group3")) ==
        "table data_optics, row 2, column rlnOpticsGroup: group 7 is there twice");
  CHECK(message(replaced(both, "0.07 4.0", "0.07 0")) ==
        "table data_optics, row 2, column rlnImagePixelSize: expected a number above 0, found '0'");
  CHECK(message(replaced(both, "200 1.4", "-200 1.4")) ==
        "table data_optics, row 2, column rlnVoltage: expected a number above 0, found '-200'");
  CHECK(message(replaced(both, "_rlnOpticsGroup #2", "_rlnGroup #2")) ==
        "column rlnOpticsGroup is missing from table data_particles, which has to say which of 2 optics "
        "groups");
  CHECK(message(replaced(both, "_rlnOpticsGroup #1", "_rlnGroup #1")) ==
        "column rlnOpticsGroup is missing from table data_optics, which has to say which of 2 optics groups");
  CHECK(
      message(replaced(both, "_rlnImagePixelSize", "_rlnSize")) ==
      row +
          "1, column rlnOriginXAngst: is in Angstrom, but the file states no pixel size (rlnImagePixelSize)");
  CHECK(message(std::string(particles_text).substr(0, particles_text.find("000002@"))) ==
        "has no particles: table data_particles is empty");
  CHECK(message(std::string(optics_text)) == "has no table data_particles");
  CHECK(message("data_a\nloop_\n_x\n1\ndata_b\nloop_\n_x\n1\n") ==
        "has no table data_particles, but several others: data_a, data_b");

  write_stack(folder / "wide.mrcs", 3, 0, 6);
  CHECK(message(replaced(both, "1@stack.mrcs", "1@wide.mrcs")) ==
        row + "2, column rlnImageName: " + (folder / "wide.mrcs").string() +
            " has images of 6 x 4 pixels, those before have 4 x 4; only square ones are brought to one box: "
            "do it "
            "before (relion_image_handler --new_box)");
  HandMadeMrc().size(4, 4, 2, 2).write(folder / "short.mrcs");
  CHECK(message(replaced(both, "1@stack.mrcs", "1@short.mrcs")) ==
        row + "2, column rlnImageName: " + (folder / "short.mrcs").string() +
            ": is truncated: expected 1152 bytes for size 4 x 4 x 2 and mode 2, found 1024");
}

TEST_CASE("rows mean the same with plain words, quotes, comments and texts, in files of several tables") {
  const TemporaryFolder folder;
  const fs::path path = folder / "p.star";
  using Columns = std::vector<std::vector<std::string>>;
  const auto values = [&](const std::string& text) {
    write_text(path, text);
    Columns all;
    for (const StarTable& table : read_star(path).tables)
      all.push_back(table.values);
    return all;
  };
  const std::string one = "data_a\nloop_\n_x #1\n_y #2\n", two = "data_b\nloop_\n_z\n";
  CHECK(values(one + "1 2\n\n3 4 # 5\n# 6\n 7\t8\r\n" + two + "a\nb#\nc'd\n") ==
        Columns{{"1", "2", "3", "4", "7", "8"}, {"a", "b#", "c'd"}});
  CHECK(values(one + "1 2\n3 4\n" + two) == Columns{{"1", "2", "3", "4"}, {}});
  CHECK(values(one + "1 2\n3 4\n" + two + "5\ndata_c\nloop_\n_z\n6\n8") ==
        Columns{{"1", "2", "3", "4"}, {"5"}, {"6", "8"}});
  CHECK(values(one + "1 2\n3 '4 #'\n5 6\n" + two + "7\n\"8\"\n9\n") ==
        Columns{{"1", "2", "3", "4 #", "5", "6"}, {"7", "8", "9"}});
  CHECK(values(one + "[1,2] 2\n3 [4]\n5 6\n") == Columns{{"[1,2]", "2", "3", "[4]", "5", "6"}});
  CHECK(values("data_a\n_t\n;a text\n;\n" + two + "1\n2\n3\n")[1] == std::vector<std::string>{"1", "2", "3"});
  std::string many = one;
  std::vector<std::string> expected;
  for (int row = 0; row < 3000; ++row) {
    expected.insert(expected.end(),
                    {std::to_string(row), std::string(static_cast<std::size_t>(row % 40 + 1), 'v')});
    many += expected[expected.size() - 2] + "  " + expected.back() + "\n";
  }
  CHECK(values(many + two + "1\n") == Columns{expected, {"1"}});
  write_text(path, one + "1 2\n3 4\n5 6\ndata_b\nloop_\n");
  CHECK_THAT(input_error([&] { read_star(path); }), ContainsSubstring("p.star: is not a STAR file: 10:1"));
}

TEST_CASE("files that are not STAR are refused") {
  const TemporaryFolder folder;
  const fs::path path = folder / "p.star";
  const auto message = [&](std::string_view text) {
    write_text(path, text);
    const std::string found = input_error([&] { read_star(path); });
    CHECK_THAT(found, StartsWith(path.string() + ": "));
    return found;
  };
  CHECK_THAT(message(""), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("  \n# only a comment\n"), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("hello world\n"), ContainsSubstring("expected block header (data_)"));
  CHECK_THAT(message(std::string_view("\0\1\2\3\xff\xfe", 6)), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("data_particles\nloop_\n"), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("data_particles\n_a 'unterminated\n"), ContainsSubstring("unterminated"));
  CHECK_THAT(message("data_particles\n_a\n_b 2\n"), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("data_particles\nloop_\n_a\n_a\n1 2\n"), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("data_p\n_a 1\ndata_p\n_a 1\n"), ContainsSubstring("is not a STAR file"));
  CHECK_THAT(message("data_p\n_b 1\nloop_\n_a\n1\n"),
             ContainsSubstring("expected one loop or name-value pairs"));
  CHECK_THAT(message("data_p\nloop_\n_a\n1\nloop_\n_b\n1\n"),
             ContainsSubstring("expected one loop or name-value pairs"));
  CHECK_THAT(message("data_p\nloop_\n_a\n;text\n;\n1\n"), ContainsSubstring("expected one row per line"));
  CHECK_THAT(message("data_p\nloop_\n_a 1\n2\n"), ContainsSubstring("expected one row per line"));
  CHECK_THAT(message("data_p _a 1 data_q _b 1\n"),
             ContainsSubstring("expected every data_ at the beginning"));
  CHECK_THAT(input_error([&] { read_star(folder.path()); }), ContainsSubstring("is a directory"));
  CHECK_THAT(input_error([&] { read_star(folder / "missing.star"); }), ContainsSubstring("No such file"));
}

TEST_CASE("changed bytes never do worse than an InputError") {
  const TemporaryFolder folder;
  write_stack(folder / "stack.mrcs", 2);
  const fs::path path = folder / "p.star";
  std::mt19937 random(20240608);
  const auto below = [&random](std::size_t end) { return random() % end; };
  constexpr std::string_view interesting = "_#'\";@\n\r\t $[]{}.-+?0919eEnd\x7f\x80\xff";
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = both;
    for (std::size_t change = 1 + below(3); change > 0; --change) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
      case 0:
        text[at] = interesting[below(interesting.size())];
        break;
      case 1:
        text.insert(at, 1, interesting[below(interesting.size())]);
        break;
      case 2:
        text.erase(at, 1 + below(20));
        break;
      default:
        text[at] = static_cast<char>(random());
        break;
      }
    }
    if (below(10) == 0)
      text.resize(below(text.size()));
    write_text(path, text);
    try {
      const Particles particles = read_particles(path);
      REQUIRE(particles.count >= 1);
      ++read;
    } catch (const InputError& error) {
      REQUIRE_THAT(error.what(), StartsWith(path.string() + ": "));
      ++refused;
    }
  }
  CHECK(read > 400);
  CHECK(refused > 400);
}

TEST_CASE("a STAR file is written again whole, with columns replaced, added and removed") {
  const TemporaryFolder folder;
  write_text(folder / "in.star",
             both + "data_general\n\n_rlnName 'a b'\n_rlnEmpty \"\"\n_rlnQuote \"it's\"\n");
  StarDocument document = read_star(folder / "in.star");
  REQUIRE(document.tables.size() == 3);
  CHECK(document.find("optics")->version == 30001);
  CHECK(document.find("optics")->value(0, 1) == "group seven");
  CHECK(document.find("general")->version == 0);
  CHECK_FALSE(document.find("general")->loop);
  CHECK(document.find("general")->values == std::vector<std::string>{"a b", "", "it's"});
  CHECK(document.find("nothing") == nullptr);

  StarTable& table = *document.find("particles");
  table.set_column("rlnAngleRot", {fixed(1.23456789), fixed(-1e3, 2)});
  table.set_column("rlnNew", {"x y", "_z"});
  table.remove_columns(std::array<std::string_view, 2>{"rlnDefocusU", "rlnNotThere"});
  CHECK_THROWS_AS(table.set_column("rlnOther", {"1"}), std::invalid_argument);
  CHECK_FALSE(table.find("rlnDefocusU").has_value());
  write_star(folder / "out.star", document);
  CHECK(folder.files() == 2);

  const std::string text = read_text(folder / "out.star");
  CHECK(text == R"(
# version 30001

data_optics

loop_
_rlnOpticsGroup #1
_rlnOpticsGroupName #2
_rlnVoltage #3
_rlnSphericalAberration #4
_rlnAmplitudeContrast #5
_rlnImagePixelSize #6
7  "group seven"  300.0  2.7   0.1  2.0
3         group3    200  1.4  0.07  4.0


# version 30001

data_particles

loop_
_rlnImageName #1
_rlnOpticsGroup #2
_rlnAngleRot #3
_rlnAngleTilt #4
_rlnAnglePsi #5
_rlnOriginXAngst #6
_rlnOriginYAngst #7
_rlnRandomSubset #8
_rlnNew #9
000002@stack.mrcs  3  1.234568  -20  +30.25  8  -4         1  "x y"
     1@stack.mrcs  7  -1000.00  0.0      -0  1   3  2.000000   "_z"


data_general

_rlnName  "a b"
_rlnEmpty  ""
_rlnQuote  it's

)");
  const StarDocument again = read_star(folder / "out.star");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(again.tables[i].values == document.tables[i].values);
    CHECK(again.tables[i].columns == document.tables[i].columns);
    CHECK(again.tables[i].version == document.tables[i].version);
  }
  CHECK_THROWS_AS(fixed(std::nan("")), std::invalid_argument);
}

TEST_CASE("a STAR file that cannot be written leaves the old one in place") {
  const TemporaryFolder folder;
  write_text(folder / "p.star", "old");
  StarDocument document;
  document.tables.push_back({.name = "p", .columns = {"a"}, .values = {"both \" and ' inside"}});
  CHECK_THROWS_AS(write_star(folder / "p.star", document), InputError);
  CHECK(read_text(folder / "p.star") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("the public STAR files are read with their values") {
  // First and last rows as they are in the files.
  SECTION("simulated ribosomes") {
    const Particles p = read_particles(shared_data("cryoem/sim70S_particles.star"));
    CHECK(p.warnings.empty());
    REQUIRE(p.count == 600);
    CHECK(p.image_width == 64);
    CHECK(p.image[599] == 599);
    CHECK(p.rot[0] == 54.852607);
    CHECK(p.tilt[599] == 150.963659);
    CHECK(p.psi[599] == -11.297475);
    CHECK(p.origin_x[0] == 8.40639 / 5.078125);
    CHECK(p.origin_y[599] == -11.41427 / 5.078125);
    CHECK(p.defocus_u[0] == 13803.71);
    CHECK(p.defocus_v[599] == 19053.21);
    CHECK(p.defocus_angle[599] == 68.484);
    CHECK(p.phase_shift[599] == 0);
    CHECK(p.voltage[599] == 300);
    CHECK(p.spherical_aberration[599] == 2.7);
    CHECK(p.amplitude_contrast[599] == 0.1);
    CHECK(p.pixel_size[599] == 5.078125);
    CHECK(p.random_subset[0] == 1);
    CHECK(p.random_subset[599] == 2);
  }
  SECTION("RELION's projections: origins in pixels although there is an optics table") {
    const Particles p = read_particles(shared_data("cryoem/rln_proj_64_shifted.star"));
    CHECK(p.origin_x.values == Values{6, 10, -8, -13});
    CHECK(p.origin_y.values == Values{10, -5, 11, -3});
    CHECK(p.pixel_size.values == Values(4, 1.0));
    const Particles centred = read_particles(shared_data("cryoem/rln_proj_64_centered.star"));
    CHECK(centred.rot.values == p.rot.values);
    CHECK(centred.origin_x.values == Values(4, 0.0));
  }
  SECTION("RELION's projections of the odd box: no optics table, no pixel size, origins of zero Angstrom") {
    const Particles p = read_particles(shared_data("cryoem/rln_proj_65.star"));
    CHECK(p.count == 5);
    CHECK(p.image_width == 65);
    CHECK(p.psi[4] == 270.791295);
    CHECK(p.origin_x.values == Values(5, 0.0));
    CHECK_FALSE(p.pixel_size.present());
    CHECK(p.optics_group.values == std::vector<std::int64_t>(5, 1));
  }
  SECTION("tilt images of RELION 3.0: one stack with an image more than there are rows") {
    const Particles p = read_particles(shared_data("cryoem/sta_testing_bin8.star"));
    REQUIRE(p.count == 219);
    CHECK(p.table.empty());
    CHECK(p.stacks.at(0).images == 220);
    CHECK(p.image[218] == 218);
    CHECK(p.pixel_size[218] == 1.96);
    CHECK(p.rot[218] == -55.2448);
    CHECK(p.defocus_u[218] == 21336);
    CHECK(p.defocus_angle[218] == -5.8);
    CHECK(p.ctf_b_factor[218] == 312); // all are below 0, as Warp writes them
    CHECK(p.ctf_scale[218] == 0.809);
    CHECK(p.amplitude_contrast[0] == 0.07);
    CHECK_FALSE(p.origin_x.present());
    REQUIRE(p.warnings.size() == 2);
    const std::string both = p.warnings[0] + p.warnings[1];
    CHECK_THAT(both, ContainsSubstring(p.stacks[0].path.string() +
                                       ": the header has no 'MAP ' tag and no machine stamp"));
    CHECK_THAT(both, ContainsSubstring("has B factors below 0"));
  }
  SECTION("real particles, with either table first") {
    for (const auto* name : {"cryoem/relion31.star", "cryoem/relion31.v2.star"}) {
      const Particles p = read_particles(shared_data(name));
      REQUIRE(p.count == 5);
      CHECK(p.image == std::vector<std::int64_t>{0, 1, 2, 3, 4});
      CHECK(p.image_width == 256);
      CHECK(p.pixel_size.values == Values(5, 2.806));
      CHECK(p.voltage.values == Values(5, 300.0));
      CHECK(p.spherical_aberration.values == Values(5, 0.01));
      CHECK(p.defocus_v[0] == 12845.582418);
      CHECK(p.rot[4] == 162.855018);
      CHECK(p.origin_y[0] == -0.64686 / 2.806);
      CHECK(p.origin_x[4] == -0.33773 / 2.806);
      CHECK(p.ctf_scale.values == Values(5, 1.0));
    }
  }
  SECTION("toy projections without poses") {
    const Particles p = read_particles(shared_data("cryoem/toy_projections.star"));
    REQUIRE(p.count == 1000);
    CHECK(p.table == "images");
    CHECK_FALSE(p.rot.present());
    CHECK(p.phase_shift[999] == 90);
    CHECK(p.spherical_aberration[999] == 0.001);
    const StarTable& table = *p.document.find("images");
    CHECK(table.value(999, table.find("dummyVariable").value()) == "42");
    const Particles poses = read_particles(shared_data("cryoem/toy_projections_poses.star"));
    CHECK(poses.count == 1000);
    CHECK(poses.tilt[999] == 166.656675);
  }
}

TEST_CASE("the public STAR files come back the same after writing") {
  const auto* name =
      GENERATE("sim70S_particles", "rln_proj_64_centered", "rln_proj_64_shifted", "rln_proj_65",
               "sta_testing_bin8", "relion31", "relion31.v2", "toy_projections", "toy_projections_poses");
  const StarDocument original = read_star(shared_data("cryoem/" + std::string(name) + ".star"));
  const TemporaryFolder folder;
  write_star(folder / "copy.star", original);
  const StarDocument copy = read_star(folder / "copy.star");
  REQUIRE(copy.tables.size() == original.tables.size());
  for (std::size_t i = 0; i < copy.tables.size(); ++i) {
    CHECK(copy.tables[i].name == original.tables[i].name);
    CHECK(copy.tables[i].version == original.tables[i].version);
    CHECK(copy.tables[i].columns == original.tables[i].columns);
    CHECK(copy.tables[i].values == original.tables[i].values);
  }
}

TEST_CASE("comments are written first and do not matter in reading") {
  const TemporaryFolder folder;
  const fs::path path = folder / "table.star";
  StarTable table;
  table.name = "particles";
  table.version = 30001;
  table.columns = {"rlnAngleRot"};
  table.values = {"1.5"};
  const std::vector<std::string> comments{"bracewell-refine 1", "p.star: data_ loop_ 'quote"};
  write_star(path, {{table}}, comments);
  CHECK(read_text(path).starts_with("# bracewell-refine 1\n# p.star: data_ loop_ 'quote\n"));
  const StarDocument again = read_star(path);
  REQUIRE(again.tables.size() == 1);
  CHECK(again.tables[0].version == 30001);
  CHECK(again.tables[0].values == table.values);
}

TEST_CASE("values are the same when a STAR file is written and read again, or refused") {
  const TemporaryFolder folder;
  const StarDocument document{
      {{.name = "p",
        .columns = {"a"},
        .values = {"both \" and '", "it's", "\xc3\xa9", "'", "#", "a\"#b", "", "?"}}}};
  write_star(folder / "p.star", document);
  CHECK(read_star(folder / "p.star").tables[0].values == document.tables[0].values);
  for (const std::string value : {"two\nlines", "an end \x01 of text", "a \" and a ' b"}) {
    write_text(folder / "q.star", "data_q\n_a\n;" + value + "\n;\n");
    CHECK_THAT(input_error([&] { read_star(folder / "q.star"); }),
               ContainsSubstring("q.star: table data_q, row 1, column a: expected a text of one line"));
  }
}
