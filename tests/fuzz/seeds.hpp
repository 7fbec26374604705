// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5.hpp"
#include "common/mrc.hpp"
#include "common/tiff.hpp"

#include "bracewell-ptychography/measurement.hpp"
#include "bracewell-ptychography/object_file.hpp"

#include <tiffio.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

/// Small files of every kind, from which fuzzing starts.
namespace Fuzz {

inline std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

inline void write_mrc_seeds(const std::filesystem::path& folder) {
  using namespace Bracewell::Examples;
  for (const auto mode : {MrcMode::Float32, MrcMode::Float16}) {
    MrcWriter writer(folder / (mode == MrcMode::Float32 ? "float32.mrc" : "float16.mrcs"),
                     MrcWriter::Kind::Stack, 3, 2, {.mode = mode, .pixel_size = 1.5});
    writer.write(counting(12));
    writer.close();
  }
  // A map whose columns are along z; its words are in the order of the MRC2014 specification.
  std::vector<std::int32_t> words(256);
  const std::vector<std::int32_t> first{2, 3, 2, 1, 0, 0, 0, 2, 3, 2};
  std::ranges::copy(first, words.begin());
  words[16] = 3, words[17] = 2, words[18] = 1, words[52] = 0x2050414d, words[53] = 0x4444;
  words.insert(words.end(), 6, 0x00020001);
  std::ofstream(folder / "int16.map", std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(4 * words.size()));
}

inline void write_star_seeds(const std::filesystem::path& folder) {
  std::ofstream(folder / "relion31.star")
      << "# version 30001\n\ndata_optics\n\nloop_\n_rlnOpticsGroup #1\n_rlnOpticsGroupName #2\n_rlnVoltage "
         "#3\n"
         "_rlnSphericalAberration #4\n_rlnAmplitudeContrast #5\n_rlnImagePixelSize #6\n_rlnImageSize #7\n"
         "_rlnImageDimensionality #8\n_rlnOddZernike #9\n1 'group 1' 300.0 2.7 0.1 1.5 64 2 [0.1,-2,3e-4]\n\n"
         "# version 30001\n\ndata_particles\n\nloop_\n_rlnOpticsGroup #1\n_rlnAngleRot #2\n_rlnAngleTilt #3\n"
         "_rlnAnglePsi #4\n_rlnOriginXAngst #5\n_rlnOriginYAngst #6\n_rlnDefocusU #7\n_rlnDefocusV #8\n"
         "_rlnDefocusAngle #9\n_rlnImageName #10\n_rlnRandomSubset #11\n_rlnClassNumber #12\n"
         "1 10.5 -20 +30 1.5 -2.5 12000 11000 45 000001@stack.mrcs 1 1\n"
         "1 1e2 0 180 0 0 12000 11000 45 2@stack.mrcs 2 3.000000 # the last one\n";
  std::ofstream(folder / "older.star")
      << "data_\nloop_\n_rlnImageName\n_rlnAngleRot\n_rlnOriginX\n_rlnMagnification\n_rlnDetectorPixelSize\n"
         "a.mrcs 1 2 10000 5\n\"b c.mrcs\" 2 3 10000 5\n";
  std::ofstream(folder / "pairs.star")
      << "data_general\n_rlnVoltage 300\n_rlnName \"it's\"\n\ndata_images\nloop_\n_a\n;text\nof lines\n;\n";
}

inline void write_tiff_seeds(const std::filesystem::path& folder) {
  using namespace Bracewell::Examples;
  TiffWriter pages(folder / "pages.tif", 3, 2, 2);
  for (int page = 0; page < 2; ++page)
    pages.write(counting(6), "a page");
  pages.commit();
  const auto write = [&](const char* name, const char* mode, int bits, int compression, bool tiled) {
    TIFF* const tiff = TIFFOpen((folder / name).c_str(), mode);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 20);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 5);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    if (tiled) {
      TIFFSetField(tiff, TIFFTAG_TILEWIDTH, 16);
      TIFFSetField(tiff, TIFFTAG_TILELENGTH, 16);
    } else {
      TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 2);
    }
    std::vector<std::uint8_t> values(16 * 16 * 4, 7);
    for (std::uint32_t block = 0; block < (tiled ? 2u : 3u); ++block)
      tiled ? TIFFWriteEncodedTile(tiff, block, values.data(), TIFFTileSize(tiff))
            : TIFFWriteEncodedStrip(tiff, block, values.data(), TIFFVStripSize(tiff, block < 2 ? 2u : 1u));
    TIFFClose(tiff);
  };
  write("deflate.tif", "w", 16, COMPRESSION_ADOBE_DEFLATE, false);
  write("lzw_big_endian.tif", "wb", 8, COMPRESSION_LZW, false);
  write("tiles_of_12_bits.tif", "w8", 12, COMPRESSION_NONE, true);
  write("fax.tif", "w", 1, COMPRESSION_CCITTFAX4, false);
}

inline void write_hdf5_seeds(const std::filesystem::path& folder) {
  using namespace Bracewell::Examples;
  Hdf5Writer writer(folder / "everything.h5");
  writer.write<float>("/data", {2, 3, 2}, counting(12));
  writer.write<std::complex<float>>("/probe", {2}, std::vector<std::complex<float>>{{1, 2}, {3, 4}});
  writer.write_scalar<std::int16_t>("/scalar", 12);
  writer.write_attribute("/data", "scale", 0.25);
  writer.write_attribute("/data", "units", std::string("counts"));
  writer.soft_link("/data", "/link");
  writer.commit();
}

inline void write_cxi_seeds(const std::filesystem::path& folder) {
  using namespace Bracewell::Examples;
  const std::array<std::array<double, 2>, 2> positions{{{0, 0}, {1, 2}}};
  MeasurementWriter cxi(folder / "measurement.cxi", 4, positions,
                        {.wavelength = 1e-10, .distance = 1, .detector_pixel = 1e-4, .object_pixel = 2.5e-7});
  cxi.write(0, 2, std::vector<std::uint16_t>(32, 3));
  cxi.commit();
  Hdf5Writer plain(folder / "plain.h5");
  plain.write<float>("/data", {2, 4, 4}, counting(32));
  plain.write<double>("/scan", {2, 2}, std::vector<double>{0, 0, 1, 2});
  plain.write<std::uint32_t>("/mask", {4, 4}, std::vector<std::uint32_t>(16));
  plain.write<std::complex<float>>("/probe", {4, 4}, std::vector<std::complex<float>>(16, 1));
  plain.write_scalar("/energy", 1e-15);
  plain.write_scalar("/distance", 1.0);
  plain.commit();
}

inline void write_object_seeds(const std::filesystem::path& folder) {
  using namespace Bracewell::Examples;
  Reconstruction result;
  result.rows = 5, result.columns = 6, result.modes = 1, result.probe_size = 4;
  result.amplitude = result.phase = counting(30);
  for (const float value : counting(16))
    result.probe.emplace_back(value, 2);
  result.positions = {{0, 0}, {1, 2}};
  write_reconstruction(folder / "object.h5", result);
  result.positions = {{0, 0}, {1e300, 1e300}};
  write_reconstruction(folder / "far_away.h5", result);
}

inline void write_scan_seeds(const std::filesystem::path& folder) {
  using namespace Bracewell::Examples;
  Hdf5Writer scan(folder / "scan.h5");
  scan.write<float>("/exchange/data", {3, 2, 4}, counting(24));
  scan.write<float>("/exchange/data_white", {1, 2, 4}, counting(8));
  scan.write<float>("/exchange/data_dark", {1, 2, 4}, std::vector<float>(8));
  scan.write<double>("/exchange/theta", {3}, std::vector<double>{0, 60, 120});
  scan.write_attribute("/exchange/theta", "units", std::string("degrees"));
  scan.commit();
  TiffWriter pages(folder / "scan.tif", 4, 2, 3);
  for (int page = 0; page < 3; ++page)
    pages.write(counting(8));
  pages.commit();
}

/// Command lines, an argument per line, of each of the programs.
inline void write_options_seeds(const std::filesystem::path& folder, const std::string& program) {
  const auto write = [&](const char* name, const std::string& lines) {
    std::ofstream(folder / (program + "-" + name)) << lines;
  };
  write("help", "--help");
  write("version", "--version");
  write("files", "--map\nmap.mrc\n--star\np.star\n--out\nout.mrc\n--data=a.cxi\n--scan\ns.h5");
  write("numbers", "--demo\nfolder\n--batch\n3\n--pixel-size=1.5\n--class\n2\n--memory-limit\n100\n--strict");
  write("kernel",
        "--star\np.star\n--out\no.mrc\n--kernel\nlinear\n--oversampling\n1.5\n--correction\nradial\n"
        "--symmetry\nD7\n--normalise\n--wiener\n0.1\n--floor\n1e-3\n--no-ctf");
  write("refine",
        "--map\nm\n--star\np\n--out\no\n--radius\n12.5\n--iterations\n10\n--no-ctf\n--ctf\n--noise\n2\n"
        "--seed\n7");
  write("tomography",
        "--scan\ns.h5\n--out\no.h5\n--rows\n1:5\n--air\n0:-3\n--centre\nauto\n--try-centres\n1:9:0.5\n--"
        "span\n180\n"
        "--first-angle\n-90\n--angle-unit\nradians\n--both-ends\n--stripes\nsorting\n--stripe-window\n21\n"
        "--method\nline\n--filter\nhann\n--padding\nzero\n--tolerance\n1e-3\n--corners\n--density-weights");
  write(
      "ptychography",
      "--data\na.cxi\n--out\no.h5\n--passes\n3\n--batches\n2\n--loss\npoisson\n--train\naberrations\n--"
      "start\n"
      "random\n--storage\nhalf\n--defocus\n-12.5\n--cs-rate\n0.1\n--convergence-angle\n0.02\n--centre\n3\n4\n"
      "--axes=-yx\n--rotation\n5\n--detector\n64\n--every\n2\n--modes\n3\n--no-decay\n--no-scale-patterns");
}

} // namespace Fuzz
