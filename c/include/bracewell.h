/* SPDX-License-Identifier: MIT */
/* Bracewell's operators for C, and for all that calls C. docs/c.md has a program and a C++11 class around it.
 *
 * Arrays are the caller's. A bracewell_array says where one is, what it holds and how it lies; calls read and write it, and keep
 * nothing of it. A pointer to an array may be NULL where the argument is optional.
 *
 * Structs but bracewell_array and bracewell_queue begin with their size: `bracewell_nufft_options o = {sizeof o};`. A member
 * that is 0 or NULL has the default that stands beside it, and so has a pointer to options that is NULL.
 *
 * Functions return BRACEWELL_SUCCESS or another bracewell_result; bracewell_error_message() then has one sentence. Nothing was
 * written where it is BRACEWELL_INVALID. They may be called by several threads; calls that can overlap need a plan each.
 *
 * The first call starts Kokkos where the caller has not; then it ends with the process. */
#ifndef BRACEWELL_H
#define BRACEWELL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ---------------------------------------------------------------------------------------------------- */

typedef enum bracewell_result {
  BRACEWELL_SUCCESS = 0,
  BRACEWELL_INVALID = 1,   /* an argument is wrong: nothing was written */
  BRACEWELL_NO_MEMORY = 2, /* of the host or of the device */
  BRACEWELL_FAILURE = 3    /* what another library reported */
} bracewell_result;

/* What was wrong with the last call of this thread that failed, one sentence: "Bracewell::project: poses.matrices: expected ...,
 * found ...". It lasts until the next one fails. Never NULL. */
const char *bracewell_error_message(void);

/* "0.2.0", that of the library that runs. */
const char *bracewell_version(void);

/* ---- Where work is done ------------------------------------------------------------------------------------------ */

/* Every call takes one; NULL is the host, where a call returns when its work is done. */
typedef struct bracewell_queue {
  int device;   /* 0: all threads of the host; 1: the GPU, where the library was built for one (bracewell_has_device) */
  void *stream; /* cudaStream_t or hipStream_t of the GPU; NULL: its default stream. Calls are queued there, and do not wait
                   unless they say so, or arrays have gaps */
} bracewell_queue;

/* 1 where the library was built for GPUs, else 0. */
int bracewell_has_device(void);

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

typedef enum bracewell_type {
  BRACEWELL_FLOAT = 1,
  BRACEWELL_DOUBLE = 2,
  BRACEWELL_COMPLEX_FLOAT = 3,  /* real, imaginary */
  BRACEWELL_COMPLEX_DOUBLE = 4,
  BRACEWELL_INT = 5 /* of 32 bits */
} bracewell_type;

/* One precision is that of all arrays of a call, but where a comment says double. An axis of poses, weights and filters that has
 * extent 1 is shared by all batches or projections. */
typedef struct bracewell_array {
  void *data; /* the first element, in memory of the host or of the GPU, as the queue says; not written to where it is an input */
  bracewell_type type;
  int rank;           /* 0 to 6 axes, the slowest first */
  int64_t extents[6]; /* elements along every axis */
  int64_t strides[6]; /* elements from one to the next along every axis; all 0: rows without gaps. Arrays with gaps are copied,
                         which takes their memory again and waits */
  int64_t width;      /* of half spectra, which have width/2 + 1 columns: the columns of the image; 0: it is even */
} bracewell_array;

/* ---- Projection: cryo-EM ----------------------------------------------------------------------------------------- */

typedef enum bracewell_kernel {
  BRACEWELL_CATMULL_ROM = 0,
  BRACEWELL_LINEAR = 1,
  BRACEWELL_CUBIC_BSPLINE = 2
} bracewell_kernel;

typedef enum bracewell_strategy {
  BRACEWELL_AUTOMATIC = 0,
  BRACEWELL_ATOMIC = 1,
  BRACEWELL_OWNED = 2 /* the same bits in every run */
} bracewell_strategy;

typedef struct bracewell_projection_options {
  size_t size;
  bracewell_kernel kernel; /* interpolates spectra */
  double oversampling;     /* padded over original box; 0: 1, for boxes whose smallest sides are the same */
  double radius;           /* frequencies beyond it are zero or left out, in periods per box; 0: all that both have */
  double ewald_radius;     /* of the Ewald sphere, in the same unit; 0: a plane */
  bracewell_strategy strategy; /* of insertion */
  int absolute_weights;        /* 1: kernels carry weights by their absolute values */
  int skip_redundant;          /* 1: bracewell_project_gradients leaves out mates that are stored twice */
} bracewell_projection_options;

typedef struct bracewell_poses {
  size_t size;
  const bracewell_array *matrices; /* [B|1, P|1, D, D]: frequencies (x, y[, z]) of a projection to those of the reconstruction */
  const bracewell_array *shifts;   /* [B|1, P|1, d], pixels ((depth,) row, column), towards higher indices; NULL: none */
  const bracewell_array *filters;  /* [B|1, P|1, (d,) h, w/2+1], real factors, CTFs for instance; NULL: none */
} bracewell_poses;

/* Spectra of projections [B, P, (d,) h, w/2+1], overwritten, from the spectrum of a reconstruction [B|1, (D,) H, W/2+1]: 2D to
 * 2D, 3D to 2D, 3D to 3D. Half spectra, zero frequency and origin of images at index 0. */
int bracewell_project(const bracewell_queue *queue, const bracewell_array *reconstruction, const bracewell_poses *poses,
                      const bracewell_array *projections, const bracewell_projection_options *options);

/* Outputs of bracewell_project_gradients, overwritten; NULL: not computed. */
typedef struct bracewell_project_gradient {
  size_t size;
  const bracewell_array *projections;    /* what bracewell_project gives */
  const bracewell_array *reconstruction; /* like the reconstruction */
  const bracewell_array *matrices;       /* like those of the poses */
  const bracewell_array *shifts;         /* likewise */
} bracewell_project_gradient;

/* Gradients of a real loss from its cotangent dL/dRe + i dL/dIm of every stored element of the projections. */
int bracewell_project_gradients(const bracewell_queue *queue, const bracewell_array *reconstruction,
                                const bracewell_poses *poses, const bracewell_array *cotangent,
                                const bracewell_project_gradient *gradients, const bracewell_projection_options *options);

/* The adjoint: adds projections to data [B|1, (D,) H, W/2+1] and, where both are given, weights [B|1, P|1, (d,) h, w/2+1], real
 * (CTF^2 for instance), to weight, which is real and like data. */
int bracewell_backproject(const bracewell_queue *queue, const bracewell_array *projections, const bracewell_poses *poses,
                          const bracewell_array *weights, const bracewell_array *data, const bracewell_array *weight,
                          const bracewell_projection_options *options);

/* Outputs of bracewell_backproject_gradients, overwritten; NULL: not computed. */
typedef struct bracewell_backproject_gradient {
  size_t size;
  const bracewell_array *projections; /* like the projections */
  const bracewell_array *weights;     /* [B, P, (d,) h, w/2+1], real */
  const bracewell_array *matrices;    /* like those of the poses */
  const bracewell_array *shifts;      /* likewise */
} bracewell_backproject_gradient;

/* Gradients of a real loss from its cotangents data and, where weights are given, weight. */
int bracewell_backproject_gradients(const bracewell_queue *queue, const bracewell_array *projections,
                                    const bracewell_poses *poses, const bracewell_array *weights,
                                    const bracewell_array *data, const bracewell_array *weight,
                                    const bracewell_backproject_gradient *gradients,
                                    const bracewell_projection_options *options);

/* ---- Around projection ------------------------------------------------------------------------------------------- */

/* Writes the matrix of a pose, row by row, from RELION's Euler angles in degrees. */
int bracewell_projection_matrix(double rot, double tilt, double psi, double matrix[9]);

/* A microscope's parameters for one image, as in RELION's STAR files. */
typedef struct bracewell_ctf {
  double defocus_u, defocus_v; /* Angstrom, positive for underfocus */
  double defocus_angle;        /* degrees */
  double voltage;              /* kV */
  double spherical_aberration; /* mm */
  double amplitude_contrast;   /* fraction */
  double phase_shift;          /* degrees */
  double b_factor;             /* square Angstrom */
  double scale;                /* factor on all values: 1 is no factor */
} bracewell_ctf;

/* CTFs of `count` images: half spectra [count, h, w/2+1], real, overwritten. pixel_size is in Angstrom. Waits. */
int bracewell_evaluate_ctf(const bracewell_queue *queue, const bracewell_ctf *ctfs, int64_t count, double pixel_size,
                           const bracewell_array *values);

/* Multiplies half spectra [count, h, w/2+1] by them, in place. weights, real and like spectra, is overwritten with CTF^2; it may
 * be NULL. Waits. */
int bracewell_apply_ctf(const bracewell_queue *queue, const bracewell_ctf *ctfs, int64_t count, double pixel_size,
                        const bracewell_array *spectra, const bracewell_array *weights);

typedef struct bracewell_normalise_options {
  size_t size;
  double wiener; /* added to every weight */
  double floor;  /* least divisor, as a part of the mean of its shell; 0: 0.2; below 0: none */
  double radius; /* frequencies beyond it are set to zero, in periods per box; 0: half the width */
} bracewell_normalise_options;

/* The volume data / weight of what bracewell_backproject gathered, [B, (D,) H, W/2+1]; overwritten; may be data itself. Waits. */
int bracewell_normalise(const bracewell_queue *queue, const bracewell_array *data, const bracewell_array *weight,
                        const bracewell_array *volume, const bracewell_normalise_options *options);

/* Puts real boxes [B, (d,) h, w], whose centre is element floor(n/2), into larger ones [B, (D,) H, W] whose origin is element 0,
 * overwritten with zeros elsewhere. */
int bracewell_pad_centre(const bracewell_queue *queue, const bracewell_array *centred, const bracewell_array *padded);

/* The reverse, times scale: centred is overwritten. */
int bracewell_crop_centre(const bracewell_queue *queue, const bracewell_array *padded, const bracewell_array *centred,
                          double scale);

/* Divides a real centred box [B, (d,) h, w], in place, by what the kernel attenuates where spectra of boxes of padded[0 ...]
 * elements, a size per axis (D,) H, W, are interpolated. */
int bracewell_correct_rolloff(const bracewell_queue *queue, const bracewell_array *volume, const int padded[],
                              bracewell_kernel kernel);

/* A plan of `batch` Fourier transforms in 2 or 3 dimensions between real boxes of shape[0 ...] elements, the slowest axis first,
 * and half spectra. Never scaled: forward and backward multiply by the number of elements. */
typedef struct bracewell_fft bracewell_fft;
int bracewell_fft_create(const bracewell_queue *queue, bracewell_type real, int dimensions, const int shape[], int64_t batch,
                         bracewell_fft **plan);
/* images [..., (D,) H, W] to spectra [..., (D,) H, W/2+1], overwritten; leading axes make up the batch */
int bracewell_fft_forward(const bracewell_fft *plan, const bracewell_queue *queue, const bracewell_array *images,
                          const bracewell_array *spectra);
/* back; both are overwritten */
int bracewell_fft_backward(const bracewell_fft *plan, const bracewell_queue *queue, const bracewell_array *spectra,
                           const bracewell_array *images);
void bracewell_fft_destroy(bracewell_fft *plan); /* as all destroy: NULL is allowed; waits */

/* ---- Non-uniform Fourier transforms ------------------------------------------------------------------------------ */

typedef struct bracewell_nufft_options {
  size_t size;
  int64_t slices;      /* images that a call transforms at most; 0: 1 */
  double tolerance;    /* relative error (L2), 1e-2 to 1e-6 in float, to 1e-12 in double; 0: 1e-4 */
  double oversampling; /* grid over image, 1.2 to 8; 0: the fastest */
  int sign;            /* of the exponent of adjoint, 1 or -1, forward has the other; 0: 1 */
} bracewell_nufft_options;

/* A plan for points [N, dimensions] of double, in cycles per pixel, column 0 is x, and images of shape[0 ...] pixels, the slowest
 * axis first, in 1 to 3 dimensions. `real` is the precision, BRACEWELL_FLOAT or BRACEWELL_DOUBLE. Pixel index - size/2 (rounded
 * down) of every axis is its position. Waits. */
typedef struct bracewell_nufft bracewell_nufft;
int bracewell_nufft_create(const bracewell_queue *queue, bracewell_type real, const bracewell_array *points, int dimensions,
                           const int shape[], const bracewell_nufft_options *options, bracewell_nufft **plan);
/* images [slices, ((D,) H,) W], overwritten, of samples [slices, N]: sum_j sample_j exp(+2 pi i x_j . X), "type 1" */
int bracewell_nufft_adjoint(const bracewell_nufft *plan, const bracewell_queue *queue, const bracewell_array *samples,
                            const bracewell_array *images);
/* samples, overwritten, of images: sum_X image(X) exp(-2 pi i x_j . X), "type 2" */
int bracewell_nufft_forward(const bracewell_nufft *plan, const bracewell_queue *queue, const bracewell_array *images,
                            const bracewell_array *samples);
/* gradients [N, dimensions], real, overwritten, of a real loss with respect to the points. Of forward, images are its input and
 * samples the cotangent of its output; of adjoint, samples are its input and images the cotangent of its output. Waits. */
int bracewell_nufft_point_gradients(const bracewell_nufft *plan, const bracewell_queue *queue, const bracewell_array *images,
                                    const bracewell_array *samples, const bracewell_array *gradients);
void bracewell_nufft_destroy(bracewell_nufft *plan);

/* ---- Tomography --------------------------------------------------------------------------------------------------- */

/* A parallel beam: the pixel (X, Y) = (column, row) - floor(n/2) of a slice of n x n pixels is seen by view p at detector
 * coordinate X cos(angle) + Y sin(angle) + centre + shift of p. */
typedef struct bracewell_tomography_options {
  size_t size;
  const double *angles;  /* radians, in memory of the host, as those below */
  int angle_count;       /* views */
  int width;             /* pixels of the detector */
  const double *centre;  /* one number; NULL: floor(width / 2) */
  const double *weights; /* of the views, 1 on average; NULL: 1 */
  const double *shifts;  /* of the views, pixels; NULL: 0 */
  int image;             /* n; 0: width */
  int64_t slices;        /* that a pass works on, calls take any number; 0: 1 */
  int line_integrals;    /* 1: project gives line integrals; 0: it is the transpose of backproject */
  double tolerance;      /* relative error (L2); 0: 1e-4 */
} bracewell_tomography_options;

/* A plan of projection through Fourier space. Waits. */
typedef struct bracewell_tomography bracewell_tomography;
int bracewell_tomography_create(const bracewell_queue *queue, bracewell_type real, const bracewell_tomography_options *options,
                                bracewell_tomography **plan);
/* images [slices, n, n], overwritten: pi over views times the sum over views of projections [slices, views, width] */
int bracewell_tomography_backproject(const bracewell_tomography *plan, const bracewell_queue *queue,
                                     const bracewell_array *projections, const bracewell_array *images);
/* projections, overwritten */
int bracewell_tomography_project(const bracewell_tomography *plan, const bracewell_queue *queue, const bracewell_array *images,
                                 const bracewell_array *projections);
void bracewell_tomography_destroy(bracewell_tomography *plan);

typedef enum bracewell_filter {
  BRACEWELL_RAMP = 0,
  BRACEWELL_SHEPP = 1,
  BRACEWELL_COSINE = 2,
  BRACEWELL_COSINE2 = 3,
  BRACEWELL_HAMMING = 4,
  BRACEWELL_HANN = 5,
  BRACEWELL_PARZEN = 6
} bracewell_filter;

/* Filters rows of projections [slices, views, width] by the ramp times a window; in and out may be one. edge: 1: the outermost
 * values go on beyond the detector; 0: nothing is there. The backprojection of the result is the attenuation per pixel. Makes a
 * plan and waits. */
int bracewell_filter_projections(const bracewell_queue *queue, const bracewell_array *projections,
                                 const bracewell_array *filtered, bracewell_filter filter, int edge);

/* ---- Ptychography ------------------------------------------------------------------------------------------------- */

typedef enum bracewell_loss {
  BRACEWELL_LEAST_SQUARES = 0, /* (J - t)^2 */
  BRACEWELL_AMPLITUDE = 1,     /* (sqrt J - sqrt t)^2 */
  BRACEWELL_POISSON = 2        /* half the deviance */
} bracewell_loss;

typedef enum bracewell_pixel_weights {
  BRACEWELL_NO_WEIGHTS = 0,
  BRACEWELL_MASK = 1,     /* 0 and 1 */
  BRACEWELL_PER_PIXEL = 2 /* any from 0 on, per pattern */
} bracewell_pixel_weights;

typedef struct bracewell_ptychography_options {
  size_t size;
  int64_t object[2]; /* rows, columns */
  int probe;         /* m: probes have m x m pixels */
  int detector;      /* n: patterns have n x n */
  int modes;         /* of the probe, mutually incoherent; 0: 1 */
  bracewell_loss loss;
  bracewell_pixel_weights weights;
  int absolute_counts;   /* 1: intensities are compared as they are; 0: both are scaled to the mean `counts` */
  double counts;         /* 0: 1 */
  double background;     /* of BRACEWELL_POISSON; 0: 1e-3 */
  double fresnel_number; /* near field; 0: far field */
  int refine_positions;  /* 1: positions are inputs of evaluate */
} bracewell_ptychography_options;

/* A plan for positions [N, 2] of double, (row, column) of the first pixel of every window, in memory of the host. Waits. */
typedef struct bracewell_ptychography bracewell_ptychography;
int bracewell_ptychography_create(const bracewell_queue *queue, bracewell_type real, const bracewell_array *positions,
                                  const bracewell_ptychography_options *options, bracewell_ptychography **plan);
/* Stores measured intensities [K, n, n] of patterns first, first + 1, ..., zero frequency at [0, 0], and their weights [n, n] or
 * [K, n, n], where options tell of them. Waits. */
int bracewell_ptychography_set_patterns(bracewell_ptychography *plan, const bracewell_queue *queue, int64_t first,
                                        const bracewell_array *patterns, const bracewell_array *weights);

typedef struct bracewell_ptychography_inputs {
  size_t size;
  const bracewell_array *object;    /* [rows, columns], complex */
  const bracewell_array *probe;     /* [m, m] or [modes, m, m], complex */
  const bracewell_array *positions; /* [N, 2] of double, with refine_positions; NULL: those of the plan */
  const bracewell_array *subset;    /* [K] of int: the patterns, each at most once; NULL: all */
} bracewell_ptychography_inputs;

/* Outputs, overwritten; NULL: not computed. Gradients are dL/dRe + i dL/dIm. */
typedef struct bracewell_ptychography_outputs {
  size_t size;
  const bracewell_array *loss;           /* [1] of double: the mean over patterns and pixels */
  const bracewell_array *pattern_losses; /* [K] of double: their sum is the loss */
  const bracewell_array *object;         /* gradient, like the object */
  const bracewell_array *probe;          /* gradient, like the probe */
  const bracewell_array *positions;      /* gradient [N, 2], real, with refine_positions */
} bracewell_ptychography_outputs;

int bracewell_ptychography_evaluate(const bracewell_ptychography *plan, const bracewell_queue *queue,
                                    const bracewell_ptychography_inputs *inputs,
                                    const bracewell_ptychography_outputs *outputs);
void bracewell_ptychography_destroy(bracewell_ptychography *plan);

#ifdef __cplusplus
}
#endif

#endif
