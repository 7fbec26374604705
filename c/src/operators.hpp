// SPDX-License-Identifier: MIT
// What the functions of bracewell.h call: this header knows no Kokkos, so that what is behind it is compiled once per system,
// precision and backend, and what is before it once.
#pragma once

#include "bracewell.h"

#include <cstdint>

namespace Bracewell::C {

enum class Backend { Host, Device };

/// A plan behind which backend and precision are out of sight.
struct Plan {
  bool device = false; ///< where it was made
  virtual ~Plan() = default;
};

} // namespace Bracewell::C

struct bracewell_fft : Bracewell::C::Plan {
  virtual void forward(const bracewell_queue&, const bracewell_array* images,
                       const bracewell_array* spectra) const = 0;
  virtual void backward(const bracewell_queue&, const bracewell_array* spectra,
                        const bracewell_array* images) const = 0;
};

struct bracewell_nufft : Bracewell::C::Plan {
  virtual void adjoint(const bracewell_queue&, const bracewell_array* samples,
                       const bracewell_array* images) const = 0;
  virtual void forward(const bracewell_queue&, const bracewell_array* images,
                       const bracewell_array* samples) const = 0;
  virtual void point_gradients(const bracewell_queue&, const bracewell_array* images,
                               const bracewell_array* samples, const bracewell_array* gradients) const = 0;
};

struct bracewell_tomography : Bracewell::C::Plan {
  virtual void backproject(const bracewell_queue&, const bracewell_array* projections,
                           const bracewell_array* images) const = 0;
  virtual void project(const bracewell_queue&, const bracewell_array* images,
                       const bracewell_array* projections) const = 0;
};

struct bracewell_ptychography : Bracewell::C::Plan {
  virtual void set_patterns(const bracewell_queue&, std::int64_t first, const bracewell_array* patterns,
                            const bracewell_array* weights) = 0;
  virtual void evaluate(const bracewell_queue&, const bracewell_ptychography_inputs&,
                        const bracewell_ptychography_outputs&) const = 0;
};

namespace Bracewell::C {

template <Backend backend, class Real>
struct Projection {
  static void project(const bracewell_queue&, const bracewell_array* reconstruction, const bracewell_poses&,
                      const bracewell_array* projections, const bracewell_projection_options&);
  static void project_gradients(const bracewell_queue&, const bracewell_array* reconstruction,
                                const bracewell_poses&, const bracewell_array* cotangent,
                                const bracewell_project_gradient&, const bracewell_projection_options&);
  static void backproject(const bracewell_queue&, const bracewell_array* projections, const bracewell_poses&,
                          const bracewell_array* weights, const bracewell_array* data,
                          const bracewell_array* weight, const bracewell_projection_options&);
  static void backproject_gradients(const bracewell_queue&, const bracewell_array* projections,
                                    const bracewell_poses&, const bracewell_array* weights,
                                    const bracewell_array* data, const bracewell_array* weight,
                                    const bracewell_backproject_gradient&,
                                    const bracewell_projection_options&);
};

template <Backend backend, class Real>
struct Reconstruct {
  static void evaluate_ctf(const bracewell_queue&, const bracewell_ctf*, std::int64_t count,
                           double pixel_size, const bracewell_array* values);
  static void apply_ctf(const bracewell_queue&, const bracewell_ctf*, std::int64_t count, double pixel_size,
                        const bracewell_array* spectra, const bracewell_array* weights);
  static void normalise(const bracewell_queue&, const bracewell_array* data, const bracewell_array* weight,
                        const bracewell_array* volume, const bracewell_normalise_options&);
  static void pad_centre(const bracewell_queue&, const bracewell_array* centred,
                         const bracewell_array* padded);
  static void crop_centre(const bracewell_queue&, const bracewell_array* padded,
                          const bracewell_array* centred, double scale);
  static void correct_rolloff(const bracewell_queue&, const bracewell_array* volume, const int* padded,
                              bracewell_kernel);
  static bracewell_fft* fft(const bracewell_queue&, int dimensions, const int* shape, std::int64_t batch);
};

template <Backend backend, class Real>
struct Nonuniform {
  static bracewell_nufft* plan(const bracewell_queue&, const bracewell_array* points, int dimensions,
                               const int* shape, const bracewell_nufft_options&);
};

template <Backend backend, class Real>
struct Tomography {
  static bracewell_tomography* plan(const bracewell_queue&, const bracewell_tomography_options&);
  static void filter(const bracewell_queue&, const bracewell_array* projections,
                     const bracewell_array* filtered, bracewell_filter, bool edge);
};

template <Backend backend, class Real>
struct Ptychography {
  static bracewell_ptychography* plan(const bracewell_queue&, const bracewell_array* positions,
                                      const bracewell_ptychography_options&);
};

/// Starts Kokkos where nobody has. @throws Error where it has ended
void start();
/// Whether Kokkos runs: what it allocated is not to be freed after it.
bool running();

} // namespace Bracewell::C
