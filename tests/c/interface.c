/* What bracewell.h says, called from C: adjoint pairs, sums of a handful of terms, differences, gaps, and errors. */
#include <bracewell.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                                                              \
  do                                                                                                                   \
    if (!(condition)) {                                                                                                \
      ++failures;                                                                                                      \
      printf("line %d: %s (the last error: %s)\n", __LINE__, #condition, bracewell_error_message());                   \
    }                                                                                                                  \
  while (0)

static const double pi = 3.14159265358979323846;

/* Numbers between -1 and 1. */
static double number(void) {
  static unsigned state = 1956;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) / 8388608.0 - 1;
}

static double *numbers(int count) {
  double *values = malloc(sizeof(double) * (size_t)count);
  int i;
  for (i = 0; i < count; ++i)
    values[i] = number();
  return values;
}

/* The inner product of spectra of real images over all frequencies: columns in between stand for their mates, too. */
static double product(const double *a, const double *b, int rows, int columns, int width) {
  double sum = 0;
  int row, column;
  for (row = 0; row < rows; ++row)
    for (column = 0; column < columns; ++column) {
      const int i = 2 * (row * columns + column), alone = column == 0 || 2 * column == width;
      sum += (alone ? 1 : 2) * (a[i] * b[i] + a[i + 1] * b[i + 1]);
    }
  return sum;
}

static bracewell_array array(void *data, bracewell_type type, int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  bracewell_array result = {data, type, rank, {a, b, c, d}, {0}, 0};
  return result;
}

/* Spectra of random images. */
static void spectra_of_images(int dimensions, int size, int64_t batch, double *spectra) {
  const int shape[3] = {size, size, size};
  const int64_t a = dimensions == 2 ? batch : size;
  double *values = numbers((int)a * size * size);
  bracewell_array images = {values, BRACEWELL_DOUBLE, 3, {a, size, size}, {0}, 0};
  bracewell_array transforms = {spectra, BRACEWELL_COMPLEX_DOUBLE, 3, {a, size, size / 2 + 1}, {0}, 0};
  bracewell_fft *plan;
  EXPECT(bracewell_fft_create(NULL, BRACEWELL_DOUBLE, dimensions, shape, batch, &plan) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_fft_forward(plan, NULL, &images, &transforms) == BRACEWELL_SUCCESS);
  bracewell_fft_destroy(plan);
  free(values);
}

static void projection(int odd) {
  enum { N = 12, P = 3 };
  const int n = N + odd, columns = n / 2 + 1, padded = 2 * n, wide = n + 1; /* padded is even */
  double *data = calloc((size_t)(2 * padded * padded * wide), sizeof(double)), *images = numbers(2 * P * n * columns);
  double *sampled = calloc((size_t)(2 * P * n * columns), sizeof(double)), *random = numbers(2 * padded * padded * wide);
  double matrices[9 * P], shifts[2 * P], gradient[2 * P], *cotangent = numbers(2 * P * n * columns);
  bracewell_array volume = array(data, BRACEWELL_COMPLEX_DOUBLE, 4, 1, padded, padded, wide);
  bracewell_array other = array(random, BRACEWELL_COMPLEX_DOUBLE, 4, 1, padded, padded, wide);
  bracewell_array in = array(images, BRACEWELL_COMPLEX_DOUBLE, 4, 1, P, n, columns);
  bracewell_array out = array(sampled, BRACEWELL_COMPLEX_DOUBLE, 4, 1, P, n, columns);
  bracewell_array slopes = array(cotangent, BRACEWELL_COMPLEX_DOUBLE, 4, 1, P, n, columns);
  const bracewell_array rotations = array(matrices, BRACEWELL_DOUBLE, 4, 1, P, 3, 3);
  const bracewell_array places = array(shifts, BRACEWELL_DOUBLE, 3, 1, P, 2, 0);
  const bracewell_array of_shifts = array(gradient, BRACEWELL_DOUBLE, 3, 1, P, 2, 0);
  bracewell_poses poses = {sizeof poses, NULL, NULL, NULL};
  bracewell_projection_options options = {sizeof options, BRACEWELL_CATMULL_ROM, 2, 0, 0, BRACEWELL_AUTOMATIC, 0, 0};
  bracewell_project_gradient wanted = {sizeof wanted, NULL, NULL, NULL, NULL};
  double first, second, losses[2];
  int kernel, p, i;
  spectra_of_images(2, n, P, images);
  spectra_of_images(3, padded, 1, random);
  in.width = out.width = slopes.width = n;
  poses.matrices = &rotations;
  poses.shifts = &places;
  for (p = 0; p < P; ++p) {
    EXPECT(bracewell_projection_matrix(40 * p, 30 + 20 * p, 10 * p, matrices + 9 * p) == BRACEWELL_SUCCESS);
    shifts[2 * p] = number();
    shifts[2 * p + 1] = number();
  }
  for (kernel = 0; kernel < 3; ++kernel) {
    options.kernel = (bracewell_kernel)kernel;
    memset(data, 0, sizeof(double) * (size_t)(2 * padded * padded * wide));
    EXPECT(bracewell_project(NULL, &other, &poses, &out, &options) == BRACEWELL_SUCCESS);
    EXPECT(bracewell_backproject(NULL, &in, &poses, NULL, &volume, NULL, &options) == BRACEWELL_SUCCESS);
    first = product(sampled, images, P * n, columns, n);
    second = product(random, data, padded * padded, wide, padded);
    EXPECT(fabs(first - second) < 1e-12 * fabs(first) + 1e-9 * padded * padded);
  }
  wanted.shifts = &of_shifts;
  EXPECT(bracewell_project_gradients(NULL, &other, &poses, &slopes, &wanted, &options) == BRACEWELL_SUCCESS);
  for (p = 0; p < 2; ++p) {
    const double step = p == 0 ? 1e-5 : -1e-5;
    shifts[3] += step;
    EXPECT(bracewell_project(NULL, &other, &poses, &out, &options) == BRACEWELL_SUCCESS);
    shifts[3] -= step;
    for (losses[p] = 0, i = 0; i < 2 * P * n * columns; ++i)
      losses[p] += sampled[i] * cotangent[i];
  }
  EXPECT(fabs((losses[0] - losses[1]) / 2e-5 - gradient[3]) < 1e-6 * fabs(gradient[3]) + 1e-6);
  free(data), free(images), free(sampled), free(random), free(cotangent);
}

/* Projections that lie in a larger array are those of one without gaps, and what lies between them stays. */
static void gaps(void) {
  enum { n = 8, columns = 5 };
  float volume[2 * n * n * columns], packed[2 * n * columns], wider[2 * (n + 1) * (columns + 2)];
  float matrix[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const bracewell_array map = array(volume, BRACEWELL_COMPLEX_FLOAT, 4, 1, n, n, columns);
  const bracewell_array rotation = array(matrix, BRACEWELL_FLOAT, 4, 1, 1, 3, 3);
  const bracewell_array plain = array(packed, BRACEWELL_COMPLEX_FLOAT, 4, 1, 1, n, columns);
  bracewell_array spaced = array(wider, BRACEWELL_COMPLEX_FLOAT, 4, 1, 1, n, columns);
  bracewell_poses poses = {sizeof poses, NULL, NULL, NULL};
  int i, row;
  poses.matrices = &rotation;
  for (i = 0; i < 2 * n * n * columns; ++i)
    volume[i] = (float)number();
  for (i = 0; i < 2 * (n + 1) * (columns + 2); ++i)
    wider[i] = 7;
  spaced.strides[0] = spaced.strides[1] = (n + 1) * (columns + 2);
  spaced.strides[2] = columns + 2;
  spaced.strides[3] = 1;
  EXPECT(bracewell_project(NULL, &map, &poses, &plain, NULL) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_project(NULL, &map, &poses, &spaced, NULL) == BRACEWELL_SUCCESS);
  for (row = 0; row < n; ++row)
    for (i = 0; i < 2 * (columns + 2); ++i)
      EXPECT(wider[2 * row * (columns + 2) + i] == (i < 2 * columns ? packed[2 * row * columns + i] : 7));
}

static void around(void) {
  enum { n = 5, N = 8 };
  float box[n * n], padded[N * N], spectrum[2 * N * (N / 2 + 1)], back[n * n], value[3 * 3 * 2];
  const int shape[2] = {N, N};
  const bracewell_array centred = array(box, BRACEWELL_FLOAT, 3, 1, n, n, 0);
  const bracewell_array wide = array(padded, BRACEWELL_FLOAT, 3, 1, N, N, 0);
  const bracewell_array half = array(spectrum, BRACEWELL_COMPLEX_FLOAT, 3, 1, N, N / 2 + 1, 0);
  const bracewell_array result = array(back, BRACEWELL_FLOAT, 3, 1, n, n, 0);
  bracewell_array ctf = array(value, BRACEWELL_FLOAT, 3, 1, 3, 2, 0);
  const bracewell_ctf microscope = {10000, 10000, 0, 300, 0, 0.1, 0, 0, 1};
  const double wavelength = 12.2643247 / sqrt(3e5 * (1 + 0.978466e-6 * 3e5)), k = 1 / (3 * 1.5);
  bracewell_fft *fft;
  float sum = 0;
  int i;
  for (i = 0; i < n * n; ++i)
    sum += box[i] = (float)number();
  EXPECT(bracewell_pad_centre(NULL, &centred, &wide) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_fft_create(NULL, BRACEWELL_FLOAT, 2, shape, 1, &fft) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_fft_forward(fft, NULL, &wide, &half) == BRACEWELL_SUCCESS);
  EXPECT(fabs(spectrum[0] - sum) < 1e-5);
  EXPECT(bracewell_fft_backward(fft, NULL, &half, &wide) == BRACEWELL_SUCCESS);
  bracewell_fft_destroy(fft);
  EXPECT(bracewell_crop_centre(NULL, &wide, &result, 1.0 / (N * N)) == BRACEWELL_SUCCESS);
  for (i = 0; i < n * n; ++i)
    EXPECT(fabs(back[i] - box[i]) < 1e-6);
  EXPECT(bracewell_correct_rolloff(NULL, &result, shape, BRACEWELL_LINEAR) == BRACEWELL_SUCCESS);
  EXPECT(fabs(back[12] - box[12]) < 1e-6); /* its centre */
  EXPECT(fabs(back[13] - box[13] / pow(sin(pi / N) / (pi / N), 2)) < 1e-6);
  ctf.width = 3;
  EXPECT(bracewell_evaluate_ctf(NULL, &microscope, 1, 1.5, &ctf) == BRACEWELL_SUCCESS);
  EXPECT(fabs(value[0] - 0.1) < 1e-6);
  EXPECT(fabs(value[1] - sin(pi * wavelength * 10000 * k * k + asin(0.1))) < 1e-5);
}

static void nufft(bracewell_type real) {
  enum { points = 7, H = 6, W = 9 };
  const int is_double = real == BRACEWELL_DOUBLE, shape[2] = {H, W};
  const bracewell_type complex_type = is_double ? BRACEWELL_COMPLEX_DOUBLE : BRACEWELL_COMPLEX_FLOAT;
  const double tolerance = is_double ? 1e-10 : 1e-5;
  double places[2 * points], samples[2 * points], sums[2 * H * W], error = 0, norm = 0;
  float in[2 * points], out[2 * H * W];
  bracewell_nufft_options options = {sizeof options, 0, 0, 0, 0};
  bracewell_nufft *plan = NULL;
  bracewell_array where = array(places, BRACEWELL_DOUBLE, 2, points, 2, 0, 0), from, to;
  int i, row, column, j;
  options.tolerance = tolerance;
  for (i = 0; i < 2 * points; ++i) {
    places[i] = number() / 2;
    in[i] = (float)(samples[i] = number());
    if (!is_double)
      samples[i] = in[i];
  }
  from = array(is_double ? (void *)samples : (void *)in, complex_type, 2, 1, points, 0, 0);
  to = array(is_double ? (void *)sums : (void *)out, complex_type, 3, 1, H, W, 0);
  EXPECT(bracewell_nufft_create(NULL, real, &where, 2, shape, &options, &plan) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_nufft_adjoint(plan, NULL, &from, &to) == BRACEWELL_SUCCESS);
  for (row = 0; row < H; ++row)
    for (column = 0; column < W; ++column) {
      double re = 0, im = 0;
      const double *found = sums + 2 * (row * W + column);
      const float *found_float = out + 2 * (row * W + column);
      for (j = 0; j < points; ++j) {
        const double phase = 2 * pi * (places[2 * j] * (column - W / 2) + places[2 * j + 1] * (row - H / 2));
        re += samples[2 * j] * cos(phase) - samples[2 * j + 1] * sin(phase);
        im += samples[2 * j] * sin(phase) + samples[2 * j + 1] * cos(phase);
      }
      norm += re * re + im * im;
      re -= is_double ? found[0] : found_float[0];
      im -= is_double ? found[1] : found_float[1];
      error += re * re + im * im;
    }
  EXPECT(error < 4 * tolerance * tolerance * norm);
  bracewell_nufft_destroy(plan);
}

static void tomography(void) {
  enum { views = 12, n = 16 };
  double angles[views], *projections = numbers(views * n), *images = numbers(n * n);
  double *back = numbers(n * n), *forth = numbers(views * n), first = 0, second = 0;
  bracewell_tomography_options options = {sizeof options};
  bracewell_tomography *plan;
  const bracewell_array p = array(projections, BRACEWELL_DOUBLE, 3, 1, views, n, 0);
  const bracewell_array q = array(forth, BRACEWELL_DOUBLE, 3, 1, views, n, 0);
  const bracewell_array x = array(images, BRACEWELL_DOUBLE, 3, 1, n, n, 0);
  const bracewell_array y = array(back, BRACEWELL_DOUBLE, 3, 1, n, n, 0);
  int i;
  for (i = 0; i < views; ++i)
    angles[i] = pi * i / views;
  options.angles = angles;
  options.angle_count = views;
  options.width = n;
  EXPECT(bracewell_tomography_create(NULL, BRACEWELL_DOUBLE, &options, &plan) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_tomography_backproject(plan, NULL, &p, &y) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_tomography_project(plan, NULL, &x, &q) == BRACEWELL_SUCCESS);
  for (i = 0; i < n * n; ++i)
    first += images[i] * back[i];
  for (i = 0; i < views * n; ++i)
    second += projections[i] * forth[i];
  EXPECT(fabs(first - second) < 1e-10 * n * n);
  bracewell_tomography_destroy(plan);

  /* The ramp of a point: 1/4, then -1 / (pi m)^2 at odd distances m. */
  memset(projections, 0, sizeof(double) * views * n);
  projections[n / 2] = 1;
  EXPECT(bracewell_filter_projections(NULL, &p, &q, BRACEWELL_RAMP, 0) == BRACEWELL_SUCCESS);
  EXPECT(fabs(forth[n / 2] - 0.25) < 1e-12);
  EXPECT(fabs(forth[n / 2 + 1] + 1 / (pi * pi)) < 1e-12);
  EXPECT(fabs(forth[n / 2 + 2]) < 1e-12);
  free(projections), free(images), free(back), free(forth);
}

static void ptychography(void) {
  enum { patterns = 3, n = 8, object = 14 };
  double positions[2 * patterns] = {0, 1, 3, 4, 6, 2}, *o = numbers(2 * object * object), *p = numbers(2 * n * n);
  double *measured = numbers(patterns * n * n), *gradient = numbers(2 * object * object), loss, losses[2];
  bracewell_ptychography_options options = {sizeof options, {object, object}, n, n};
  bracewell_ptychography_inputs inputs = {sizeof inputs, NULL, NULL, NULL, NULL};
  bracewell_ptychography_outputs outputs = {sizeof outputs, NULL, NULL, NULL, NULL, NULL};
  bracewell_ptychography *plan;
  const bracewell_array where = array(positions, BRACEWELL_DOUBLE, 2, patterns, 2, 0, 0);
  const bracewell_array counts = array(measured, BRACEWELL_DOUBLE, 3, patterns, n, n, 0);
  const bracewell_array transmission = array(o, BRACEWELL_COMPLEX_DOUBLE, 2, object, object, 0, 0);
  const bracewell_array probe = array(p, BRACEWELL_COMPLEX_DOUBLE, 2, n, n, 0, 0);
  const bracewell_array total = array(&loss, BRACEWELL_DOUBLE, 1, 1, 0, 0, 0);
  const bracewell_array of_object = array(gradient, BRACEWELL_COMPLEX_DOUBLE, 2, object, object, 0, 0);
  const int pixel = 2 * (6 * object + 6);
  int i;
  for (i = 0; i < patterns * n * n; ++i)
    measured[i] = measured[i] * measured[i];
  EXPECT(bracewell_ptychography_create(NULL, BRACEWELL_DOUBLE, &where, &options, &plan) == BRACEWELL_SUCCESS);
  EXPECT(bracewell_ptychography_set_patterns(plan, NULL, 0, &counts, NULL) == BRACEWELL_SUCCESS);
  inputs.object = &transmission;
  inputs.probe = &probe;
  outputs.loss = &total;
  outputs.object = &of_object;
  EXPECT(bracewell_ptychography_evaluate(plan, NULL, &inputs, &outputs) == BRACEWELL_SUCCESS);
  outputs.object = NULL;
  for (i = 0; i < 2; ++i) {
    o[pixel] += i == 0 ? 1e-5 : -2e-5;
    EXPECT(bracewell_ptychography_evaluate(plan, NULL, &inputs, &outputs) == BRACEWELL_SUCCESS);
    losses[i] = loss;
  }
  EXPECT(fabs((losses[0] - losses[1]) / 2e-5 - gradient[pixel]) < 1e-6 * fabs(gradient[pixel]) + 1e-8);
  bracewell_ptychography_destroy(plan);
  free(o), free(p), free(measured), free(gradient);
}

/* The sentence of a call that fails has these words in it. */
static void says(int result, int expected, const char *words) {
  EXPECT(result == expected);
  if (!strstr(bracewell_error_message(), words)) {
    ++failures;
    printf("expected \"%s\" in \"%s\"\n", words, bracewell_error_message());
  }
}

static void errors(void) {
  enum { n = 4 };
  float volume[2 * n * n * 3] = {0}, image[2 * n * 3] = {0};
  double matrix[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  bracewell_array map = array(volume, BRACEWELL_COMPLEX_FLOAT, 4, 1, n, n, 3);
  bracewell_array projection = array(image, BRACEWELL_COMPLEX_FLOAT, 4, 1, 1, n, 3);
  bracewell_array rotation = array(matrix, BRACEWELL_DOUBLE, 4, 1, 1, 3, 3);
  bracewell_poses poses = {sizeof poses, NULL, NULL, NULL};
  bracewell_projection_options options = {sizeof options};
  bracewell_queue gpu = {1, NULL};
  bracewell_nufft *plan = (bracewell_nufft *)&options;
  const int shape[4] = {n, n, n, n};
  struct {
    bracewell_projection_options known;
    double later;
  } newer = {{sizeof newer}, 1};
  says(bracewell_project(NULL, &map, NULL, &projection, NULL), BRACEWELL_INVALID, "poses: expected an argument, found NULL");
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "poses.matrices");
  poses.matrices = &rotation;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID,
       "project: poses.matrices: expected values of type float, found double");
  rotation.type = BRACEWELL_FLOAT;
  poses.size = 0;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "poses: expected its size");
  poses.size = sizeof poses;
  says(bracewell_project(NULL, &map, &poses, &map, NULL), BRACEWELL_INVALID, "project");
  options.kernel = (bracewell_kernel)9;
  says(bracewell_project(NULL, &map, &poses, &projection, &options), BRACEWELL_INVALID, "options.kernel");
  says(bracewell_project(NULL, &map, &poses, &projection, &newer.known), BRACEWELL_INVALID, "members that this version has");
  newer.later = 0;
  EXPECT(bracewell_project(NULL, &map, &poses, &projection, &newer.known) == BRACEWELL_SUCCESS);
  projection.data = NULL;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "projections: expected memory, found NULL");
  projection.data = image;
  projection.extents[1] = -1;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "projections: expected extents");
  projection.extents[1] = 1;
  projection.rank = 7;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "a rank from 0 to 6, found 7");
  projection.rank = 4;
  projection.width = 9;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "a width of a half spectrum");
  projection.width = 0;
  projection.strides[2] = -3;
  says(bracewell_project(NULL, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "strides above 0");
  if (!bracewell_has_device())
    says(bracewell_project(&gpu, &map, &poses, &projection, NULL), BRACEWELL_INVALID, "built for hosts alone");
  says(bracewell_nufft_create(NULL, BRACEWELL_DOUBLE, NULL, 2, shape, NULL, &plan), BRACEWELL_INVALID, "points: expected an array");
  EXPECT(plan == NULL);
  says(bracewell_nufft_create(NULL, BRACEWELL_INT, &rotation, 2, shape, NULL, &plan), BRACEWELL_INVALID, "real");
  says(bracewell_nufft_forward(NULL, NULL, &map, &map), BRACEWELL_INVALID, "plan: expected an argument, found NULL");
  bracewell_nufft_destroy(NULL);
}

int main(void) {
  EXPECT(strcmp(bracewell_version(), "") != 0);
  errors();
  projection(0);
  projection(1);
  gaps();
  around();
  nufft(BRACEWELL_FLOAT);
  nufft(BRACEWELL_DOUBLE);
  tomography();
  ptychography();
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
