// The same in C++11: reconstruct FOLDER OUT.
#include "particles.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// What reports an error of libbracewell.
inline void check(int result) {
  if (result != BRACEWELL_SUCCESS)
    throw std::runtime_error(bracewell_error_message());
}

/// A plan of Fourier transforms.
class Transform {
public:
  Transform(const std::vector<int>& shape, int64_t batch) : plan_(nullptr, bracewell_fft_destroy) {
    bracewell_fft* plan;
    check(bracewell_fft_create(nullptr, BRACEWELL_FLOAT, int(shape.size()), shape.data(), batch, &plan));
    plan_.reset(plan);
  }
  void forward(const bracewell_array& images, const bracewell_array& spectra) const {
    check(bracewell_fft_forward(plan_.get(), nullptr, &images, &spectra));
  }
  void backward(const bracewell_array& spectra, const bracewell_array& images) const {
    check(bracewell_fft_backward(plan_.get(), nullptr, &spectra, &images));
  }

private:
  std::unique_ptr<bracewell_fft, void (*)(bracewell_fft*)> plan_;
};

/// A map of images whose poses are known.
class Reconstruction {
public:
  Reconstruction(int64_t box, double pixel_size)
      : n(box), N(2 * box), pixel_size_(pixel_size), data_(N * N * (N + 2)), weight_(N * N * (N / 2 + 1)) {}

  /// Adds images [particles, n, n].
  void insert(std::vector<float>& images, const std::vector<particle>& particles) {
    const auto count = int64_t(particles.size());
    std::vector<float> spectra(count * n * (n + 2)), weights(count * n * (n / 2 + 1)), matrices, shifts;
    std::vector<bracewell_ctf> ctfs;
    for (const particle& p : particles) {
      double matrix[9];
      check(bracewell_projection_matrix(p.rot, p.tilt, p.psi, matrix));
      matrices.insert(matrices.end(), matrix, matrix + 9);
      shifts.push_back(float(n / 2 - p.origin_y));
      shifts.push_back(float(n / 2 - p.origin_x));
      ctfs.push_back(p.ctf);
    }
    const bracewell_array transforms = {spectra.data(), BRACEWELL_COMPLEX_FLOAT, 3, {count, n, n / 2 + 1}},
                          squares = {weights.data(), BRACEWELL_FLOAT, 3, {count, n, n / 2 + 1}},
                          projections = {spectra.data(),
                                         BRACEWELL_COMPLEX_FLOAT,
                                         4,
                                         {1, count, n, n / 2 + 1}},
                          ctf2 = {weights.data(), BRACEWELL_FLOAT, 4, {1, count, n, n / 2 + 1}},
                          rotations = {matrices.data(), BRACEWELL_FLOAT, 4, {1, count, 3, 3}},
                          places = {shifts.data(), BRACEWELL_FLOAT, 3, {1, count, 2}};
    const bracewell_array volume = this->volume(), weight = this->weight();
    const bracewell_poses poses = {sizeof poses, &rotations, &places};
    bracewell_projection_options options = {sizeof options};
    options.kernel = BRACEWELL_LINEAR;
    options.oversampling = 2;
    options.strategy = BRACEWELL_OWNED; // the same bits in every run
    Transform({int(n), int(n)}, count)
        .forward({images.data(), BRACEWELL_FLOAT, 3, {count, n, n}}, transforms);
    check(bracewell_apply_ctf(nullptr, ctfs.data(), count, pixel_size_, &transforms, &squares));
    check(bracewell_backproject(nullptr, &projections, &poses, &ctf2, &volume, &weight, &options));
  }

  /// The map [n, n, n] of all that was inserted.
  std::vector<float> map() const {
    std::vector<float> spectrum(data_.size()), padded(N * N * N), values(n * n * n);
    const std::vector<int> shape(3, int(N));
    const bracewell_array volume = this->volume(), weight = this->weight(),
                          quotient = {spectrum.data(), BRACEWELL_COMPLEX_FLOAT, 4, {1, N, N, N / 2 + 1}},
                          padded_box = {padded.data(), BRACEWELL_FLOAT, 4, {1, N, N, N}},
                          box = {values.data(), BRACEWELL_FLOAT, 4, {1, n, n, n}};
    bracewell_normalise_options options = {sizeof options};
    options.floor = 1e-3;
    check(bracewell_normalise(nullptr, &volume, &weight, &quotient, &options));
    Transform(shape, 1).backward(quotient, padded_box);
    check(bracewell_crop_centre(nullptr, &padded_box, &box, 1 / (double(N) * N * N)));
    check(bracewell_correct_rolloff(nullptr, &box, shape.data(), BRACEWELL_LINEAR));
    return values;
  }

private:
  bracewell_array volume() const {
    return {(void*)data_.data(), BRACEWELL_COMPLEX_FLOAT, 4, {1, N, N, N / 2 + 1}};
  }
  bracewell_array weight() const { return {(void*)weight_.data(), BRACEWELL_FLOAT, 4, {1, N, N, N / 2 + 1}}; }

  int64_t n, N;
  double pixel_size_;
  std::vector<float> data_, weight_;
};

int main(int argc, char** argv) try {
  if (argc != 3)
    fail("expected FOLDER OUT", "reconstruct");
  const particles all = read_particles(argv[1]);
  const int batch = 500;
  for (int half = 0; half < 2; ++half) {
    Reconstruction reconstruction(all.box, all.pixel_size);
    for (int first = 0; first < all.count; first += batch) {
      std::vector<particle> chosen;
      for (int i = first; i < first + batch && i < all.count; ++i)
        if (all.list[i].half == half)
          chosen.push_back(all.list[i]);
      std::vector<float> images(chosen.size() * size_t(all.box * all.box));
      for (size_t i = 0; i < chosen.size(); ++i)
        read_image(&all, chosen[i].image, images.data() + i * size_t(all.box * all.box));
      reconstruction.insert(images, chosen);
    }
    const std::string path = std::string(argv[2]) + "_half" + std::to_string(half + 1) + ".mrc";
    write_map(path.c_str(), all.box, all.pixel_size, reconstruction.map().data());
  }
  free(all.list);
  fclose(all.stack);
  return 0;
} catch (const std::exception& error) {
  fail(error.what(), "reconstruct");
}
