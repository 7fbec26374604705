/* reconstruct FOLDER OUT: the half maps of FOLDER/particles.star, OUT_half1.mrc and OUT_half2.mrc. */
#include "particles.h"

static void check(int result) {
  if (result != BRACEWELL_SUCCESS)
    fail(bracewell_error_message(), "reconstruct");
}

int main(int argc, char **argv) {
  enum { batch = 500 };
  if (argc != 3)
    fail("expected FOLDER OUT", "reconstruct");
  const struct particles particles = read_particles(argv[1]);
  const int64_t n = particles.box, N = 2 * n; /* pixels of an image, and of the padded map */
  const int shape[3] = {(int)N, (int)N, (int)N};

  const bracewell_projection_options options = {.size = sizeof options,
                                                .kernel = BRACEWELL_LINEAR,
                                                .oversampling = 2,
                                                .strategy = BRACEWELL_OWNED}; /* the same bits in every run */
  const bracewell_normalise_options floor = {.size = sizeof floor, .floor = 1e-3};

  float *images = malloc(sizeof(float) * batch * n * n), *spectra = malloc(sizeof(float) * batch * n * (n + 2));
  float *weights = malloc(sizeof(float) * batch * n * (n / 2 + 1)), *matrices = malloc(sizeof(float) * batch * 9);
  float *shifts = malloc(sizeof(float) * batch * 2), *data = malloc(sizeof(float) * N * N * (N + 2));
  float *sums = malloc(sizeof(float) * N * N * (N / 2 + 1)), *padded = malloc(sizeof(float) * N * N * N);
  float *map = malloc(sizeof(float) * n * n * n);
  bracewell_ctf *ctfs = malloc(sizeof(bracewell_ctf) * batch);
  const bracewell_array volume = {data, BRACEWELL_COMPLEX_FLOAT, 4, {1, N, N, N / 2 + 1}},
                        weight = {sums, BRACEWELL_FLOAT, 4, {1, N, N, N / 2 + 1}},
                        padded_box = {padded, BRACEWELL_FLOAT, 4, {1, N, N, N}},
                        box = {map, BRACEWELL_FLOAT, 4, {1, n, n, n}};

  for (int half = 0; half < 2; ++half) {
    memset(data, 0, sizeof(float) * N * N * (N + 2));
    memset(sums, 0, sizeof(float) * N * N * (N / 2 + 1));
    for (int first = 0; first < particles.count; first += batch) {
      int64_t count = 0;
      for (int i = first; i < first + batch && i < particles.count; ++i) {
        const struct particle *p = particles.list + i;
        double matrix[9];
        if (p->half != half)
          continue;
        read_image(&particles, p->image, images + count * n * n);
        check(bracewell_projection_matrix(p->rot, p->tilt, p->psi, matrix));
        for (int k = 0; k < 9; ++k)
          matrices[9 * count + k] = (float)matrix[k];
        shifts[2 * count] = (float)(n / 2 - p->origin_y); /* row, column */
        shifts[2 * count + 1] = (float)(n / 2 - p->origin_x);
        ctfs[count++] = p->ctf;
      }
      const bracewell_array stack = {images, BRACEWELL_FLOAT, 3, {count, n, n}},
                            transforms = {spectra, BRACEWELL_COMPLEX_FLOAT, 3, {count, n, n / 2 + 1}},
                            squares = {weights, BRACEWELL_FLOAT, 3, {count, n, n / 2 + 1}},
                            projections = {spectra, BRACEWELL_COMPLEX_FLOAT, 4, {1, count, n, n / 2 + 1}},
                            ctf2 = {weights, BRACEWELL_FLOAT, 4, {1, count, n, n / 2 + 1}},
                            rotations = {matrices, BRACEWELL_FLOAT, 4, {1, count, 3, 3}},
                            places = {shifts, BRACEWELL_FLOAT, 3, {1, count, 2}};
      const bracewell_poses poses = {.size = sizeof poses, .matrices = &rotations, .shifts = &places};
      bracewell_fft *fft;
      check(bracewell_fft_create(NULL, BRACEWELL_FLOAT, 2, (int[]){(int)n, (int)n}, count, &fft));
      check(bracewell_fft_forward(fft, NULL, &stack, &transforms));
      bracewell_fft_destroy(fft);
      check(bracewell_apply_ctf(NULL, ctfs, count, particles.pixel_size, &transforms, &squares));
      check(bracewell_backproject(NULL, &projections, &poses, &ctf2, &volume, &weight, &options));
    }

    bracewell_fft *fft;
    char path[1024];
    check(bracewell_normalise(NULL, &volume, &weight, &volume, &floor));
    check(bracewell_fft_create(NULL, BRACEWELL_FLOAT, 3, shape, 1, &fft));
    check(bracewell_fft_backward(fft, NULL, &volume, &padded_box));
    bracewell_fft_destroy(fft);
    check(bracewell_crop_centre(NULL, &padded_box, &box, 1.0 / ((double)N * N * N)));
    check(bracewell_correct_rolloff(NULL, &box, shape, BRACEWELL_LINEAR));
    snprintf(path, sizeof path, "%s_half%d.mrc", argv[2], half + 1);
    write_map(path, (int)n, particles.pixel_size, map);
  }
  free(images), free(spectra), free(weights), free(matrices), free(shifts), free(data), free(sums), free(padded);
  free(map), free(ctfs), free(particles.list);
  fclose(particles.stack);
  return 0;
}
