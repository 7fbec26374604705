// SPDX-License-Identifier: MIT
// The functions of bracewell.h: which precision and backend a call is for, and what becomes of exceptions.
#pragma GCC visibility push(default) // these functions alone
#include "bracewell.h"
#pragma GCC visibility pop

#include "operators.hpp"

#include <bracewell/error.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/version.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace Bracewell::C {
namespace {

thread_local char message[2048] = "";

int failed(bracewell_result result, const char* what) noexcept {
  std::snprintf(message, sizeof message, "%s", what);
  return result;
}

/// What a function of bracewell.h returns where `action` is what it does.
template <class Action>
int result_of(const Action& action) noexcept {
  try {
    start();
    action();
    return BRACEWELL_SUCCESS;
  } catch (const Error& error) {
    return failed(error.function().empty() ? BRACEWELL_FAILURE : BRACEWELL_INVALID, error.what());
  } catch (const std::bad_alloc&) {
    return failed(BRACEWELL_NO_MEMORY, "bracewell: there is not enough memory");
  } catch (const std::exception& error) {
    return failed(BRACEWELL_FAILURE, error.what());
  } catch (...) {
    return failed(BRACEWELL_FAILURE, "bracewell: an exception that is no std::exception");
  }
}

/// A struct that begins with its size, as a newer or an older library knows it: members beyond are 0.
template <class Struct>
Struct known(const char* function, const char* argument, const Struct* given) {
  Struct copy{};
  if (!given)
    return copy;
  const std::size_t size = given->size;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  // One that is much larger than any will be was not set.
  if (size < sizeof(std::size_t) || size > 65536)
    Impl::fail(function, argument, "its size in its first member (" + std::to_string(sizeof copy) + ")",
               std::to_string(size));
  for (std::size_t i = sizeof copy; i < size; ++i)
    if (bytes[i] != 0)
      Impl::fail(function, argument, "members that this version has", "others that are not 0");
  std::memcpy(&copy, given, std::min(size, sizeof copy));
  return copy;
}

template <class Value>
const Value& required(const char* function, const char* argument, const Value* value) {
  if (!value)
    Impl::fail(function, argument, "an argument", "NULL");
  return *value;
}

bracewell_queue place(const char* function, const bracewell_queue* queue) {
  if (!queue)
    return {0, nullptr};
  if (queue->device != 0 && queue->device != 1)
    Impl::fail(function, "queue.device", "0 or 1", std::to_string(queue->device));
  if (queue->device == 1 && !bracewell_has_device())
    Impl::fail(function, "queue.device", "0, as this library was built for hosts alone", "1");
  return *queue;
}

/// action.operator()<backend, Real>(), of the precision that a type has.
template <class Action>
void with(const char* function, const char* argument, const bracewell_queue& queue, bracewell_type type,
          const Action& action) {
  const auto of_precision = [&]<Backend backend>() {
    if (type == BRACEWELL_FLOAT || type == BRACEWELL_COMPLEX_FLOAT)
      action.template operator()<backend, float>();
    else if (type == BRACEWELL_DOUBLE || type == BRACEWELL_COMPLEX_DOUBLE)
      action.template operator()<backend, double>();
    else
      Impl::fail(function, argument, "values in float or double", "type " + std::to_string(int(type)));
  };
#ifdef BRACEWELL_C_DEVICE
  if (queue.device == 1)
    return of_precision.template operator()<Backend::Device>();
#endif
  (void)queue;
  of_precision.template operator()<Backend::Host>();
}

/// Makes a plan, which a null pointer stands for where that fails.
template <class Plan, class Make>
int create(const char* function, Plan** plan, const bracewell_queue* queue, bracewell_type real,
           const Make& make) noexcept {
  if (plan)
    *plan = nullptr;
  return result_of([&] {
    required(function, "plan", plan);
    const bracewell_queue where = place(function, queue);
    if (real != BRACEWELL_FLOAT && real != BRACEWELL_DOUBLE)
      Impl::fail(function, "real", "BRACEWELL_FLOAT or BRACEWELL_DOUBLE",
                 "type " + std::to_string(int(real)));
    with(function, "real", where, real,
         [&]<Backend backend, class Real>() { *plan = make.template operator()<backend, Real>(where); });
    (*plan)->device = where.device == 1;
  });
}

/// Calls a plan where it was made.
template <class Plan, class Action>
int call(const char* function, Plan* plan, const bracewell_queue* queue, const Action& action) noexcept {
  return result_of([&] {
    required(function, "plan", plan);
    const bracewell_queue where = place(function, queue);
    if (plan->device != (where.device == 1))
      Impl::fail(function, "queue.device",
                 plan->device ? "1, as the plan was made" : "0, as the plan was made",
                 std::to_string(where.device));
    action(where);
  });
}

/// Memory of Kokkos is not freed when Kokkos has ended.
template <class Plan>
void destroy(Plan* plan) noexcept {
  if (plan && running())
    result_of([&] { delete plan; });
}

} // namespace
} // namespace Bracewell::C

using namespace Bracewell::C; // NOLINT: the functions of bracewell.h lie in no namespace

const char* bracewell_error_message(void) { return message; }

const char* bracewell_version(void) { return BRACEWELL_VERSION; }

int bracewell_has_device(void) {
#ifdef BRACEWELL_C_DEVICE
  return 1;
#else
  return 0;
#endif
}

int bracewell_project(const bracewell_queue* queue, const bracewell_array* reconstruction,
                      const bracewell_poses* poses, const bracewell_array* projections,
                      const bracewell_projection_options* options) {
  constexpr const char* name = "project";
  return result_of([&] {
    const auto where = place(name, queue);
    const auto settings = known(name, "options", options);
    const auto at = known(name, "poses", &required(name, "poses", poses));
    with(name, "projections", where, required(name, "projections", projections).type,
         [&]<Backend backend, class Real>() {
           Projection<backend, Real>::project(where, reconstruction, at, projections, settings);
         });
  });
}

int bracewell_project_gradients(const bracewell_queue* queue, const bracewell_array* reconstruction,
                                const bracewell_poses* poses, const bracewell_array* cotangent,
                                const bracewell_project_gradient* gradients,
                                const bracewell_projection_options* options) {
  constexpr const char* name = "project_gradients";
  return result_of([&] {
    const auto where = place(name, queue);
    const auto settings = known(name, "options", options);
    const auto at = known(name, "poses", &required(name, "poses", poses));
    const auto outputs = known(name, "gradients", &required(name, "gradients", gradients));
    with(name, "cotangent", where, required(name, "cotangent", cotangent).type,
         [&]<Backend backend, class Real>() {
           Projection<backend, Real>::project_gradients(where, reconstruction, at, cotangent, outputs,
                                                        settings);
         });
  });
}

int bracewell_backproject(const bracewell_queue* queue, const bracewell_array* projections,
                          const bracewell_poses* poses, const bracewell_array* weights,
                          const bracewell_array* data, const bracewell_array* weight,
                          const bracewell_projection_options* options) {
  constexpr const char* name = "backproject";
  return result_of([&] {
    const auto where = place(name, queue);
    const auto settings = known(name, "options", options);
    const auto at = known(name, "poses", &required(name, "poses", poses));
    with(name, "projections", where, required(name, "projections", projections).type,
         [&]<Backend backend, class Real>() {
           Projection<backend, Real>::backproject(where, projections, at, weights, data, weight, settings);
         });
  });
}

int bracewell_backproject_gradients(const bracewell_queue* queue, const bracewell_array* projections,
                                    const bracewell_poses* poses, const bracewell_array* weights,
                                    const bracewell_array* data, const bracewell_array* weight,
                                    const bracewell_backproject_gradient* gradients,
                                    const bracewell_projection_options* options) {
  constexpr const char* name = "backproject_gradients";
  return result_of([&] {
    const auto where = place(name, queue);
    const auto settings = known(name, "options", options);
    const auto at = known(name, "poses", &required(name, "poses", poses));
    const auto outputs = known(name, "gradients", &required(name, "gradients", gradients));
    with(name, "projections", where, required(name, "projections", projections).type,
         [&]<Backend backend, class Real>() {
           Projection<backend, Real>::backproject_gradients(where, projections, at, weights, data, weight,
                                                            outputs, settings);
         });
  });
}

int bracewell_projection_matrix(double rot, double tilt, double psi, double matrix[9]) {
  return result_of([&] {
    required("projection_matrix", "matrix", matrix);
    const auto values = Bracewell::projection_matrix(Bracewell::EulerAngles<double>{rot, tilt, psi});
    for (int i = 0; i < 9; ++i)
      matrix[i] = values(i / 3, i % 3);
  });
}

int bracewell_evaluate_ctf(const bracewell_queue* queue, const bracewell_ctf* ctfs, int64_t count,
                           double pixel_size, const bracewell_array* values) {
  constexpr const char* name = "evaluate_ctf";
  return result_of([&] {
    const auto where = place(name, queue);
    with(name, "values", where, required(name, "values", values).type, [&]<Backend backend, class Real>() {
      Reconstruct<backend, Real>::evaluate_ctf(where, ctfs, count, pixel_size, values);
    });
  });
}

int bracewell_apply_ctf(const bracewell_queue* queue, const bracewell_ctf* ctfs, int64_t count,
                        double pixel_size, const bracewell_array* spectra, const bracewell_array* weights) {
  constexpr const char* name = "apply_ctf";
  return result_of([&] {
    const auto where = place(name, queue);
    with(name, "spectra", where, required(name, "spectra", spectra).type, [&]<Backend backend, class Real>() {
      Reconstruct<backend, Real>::apply_ctf(where, ctfs, count, pixel_size, spectra, weights);
    });
  });
}

int bracewell_normalise(const bracewell_queue* queue, const bracewell_array* data,
                        const bracewell_array* weight, const bracewell_array* volume,
                        const bracewell_normalise_options* options) {
  constexpr const char* name = "normalise";
  return result_of([&] {
    const auto where = place(name, queue);
    const auto settings = known(name, "options", options);
    with(name, "data", where, required(name, "data", data).type, [&]<Backend backend, class Real>() {
      Reconstruct<backend, Real>::normalise(where, data, weight, volume, settings);
    });
  });
}

int bracewell_pad_centre(const bracewell_queue* queue, const bracewell_array* centred,
                         const bracewell_array* padded) {
  constexpr const char* name = "pad_centre";
  return result_of([&] {
    const auto where = place(name, queue);
    with(name, "centred", where, required(name, "centred", centred).type, [&]<Backend backend, class Real>() {
      Reconstruct<backend, Real>::pad_centre(where, centred, padded);
    });
  });
}

int bracewell_crop_centre(const bracewell_queue* queue, const bracewell_array* padded,
                          const bracewell_array* centred, double scale) {
  constexpr const char* name = "crop_centre";
  return result_of([&] {
    const auto where = place(name, queue);
    with(name, "padded", where, required(name, "padded", padded).type, [&]<Backend backend, class Real>() {
      Reconstruct<backend, Real>::crop_centre(where, padded, centred, scale);
    });
  });
}

int bracewell_correct_rolloff(const bracewell_queue* queue, const bracewell_array* volume, const int padded[],
                              bracewell_kernel kernel) {
  constexpr const char* name = "correct_rolloff";
  return result_of([&] {
    const auto where = place(name, queue);
    with(name, "volume", where, required(name, "volume", volume).type, [&]<Backend backend, class Real>() {
      Reconstruct<backend, Real>::correct_rolloff(where, volume, padded, kernel);
    });
  });
}

int bracewell_fft_create(const bracewell_queue* queue, bracewell_type real, int dimensions, const int shape[],
                         int64_t batch, bracewell_fft** plan) {
  return create("fft_create", plan, queue, real, [&]<Backend backend, class Real>(const auto& where) {
    return Reconstruct<backend, Real>::fft(where, dimensions, shape, batch);
  });
}

int bracewell_fft_forward(const bracewell_fft* plan, const bracewell_queue* queue,
                          const bracewell_array* images, const bracewell_array* spectra) {
  return call("fft_forward", plan, queue, [&](const auto& where) { plan->forward(where, images, spectra); });
}

int bracewell_fft_backward(const bracewell_fft* plan, const bracewell_queue* queue,
                           const bracewell_array* spectra, const bracewell_array* images) {
  return call("fft_backward", plan, queue,
              [&](const auto& where) { plan->backward(where, spectra, images); });
}

void bracewell_fft_destroy(bracewell_fft* plan) { destroy(plan); }

int bracewell_nufft_create(const bracewell_queue* queue, bracewell_type real, const bracewell_array* points,
                           int dimensions, const int shape[], const bracewell_nufft_options* options,
                           bracewell_nufft** plan) {
  return create("nufft_create", plan, queue, real, [&]<Backend backend, class Real>(const auto& where) {
    return Nonuniform<backend, Real>::plan(where, points, dimensions, shape,
                                           known("nufft_create", "options", options));
  });
}

int bracewell_nufft_adjoint(const bracewell_nufft* plan, const bracewell_queue* queue,
                            const bracewell_array* samples, const bracewell_array* images) {
  return call("nufft_adjoint", plan, queue,
              [&](const auto& where) { plan->adjoint(where, samples, images); });
}

int bracewell_nufft_forward(const bracewell_nufft* plan, const bracewell_queue* queue,
                            const bracewell_array* images, const bracewell_array* samples) {
  return call("nufft_forward", plan, queue,
              [&](const auto& where) { plan->forward(where, images, samples); });
}

int bracewell_nufft_point_gradients(const bracewell_nufft* plan, const bracewell_queue* queue,
                                    const bracewell_array* images, const bracewell_array* samples,
                                    const bracewell_array* gradients) {
  return call("nufft_point_gradients", plan, queue,
              [&](const auto& where) { plan->point_gradients(where, images, samples, gradients); });
}

void bracewell_nufft_destroy(bracewell_nufft* plan) { destroy(plan); }

int bracewell_tomography_create(const bracewell_queue* queue, bracewell_type real,
                                const bracewell_tomography_options* options, bracewell_tomography** plan) {
  return create("tomography_create", plan, queue, real, [&]<Backend backend, class Real>(const auto& where) {
    return Tomography<backend, Real>::plan(where, known("tomography_create", "options", options));
  });
}

int bracewell_tomography_backproject(const bracewell_tomography* plan, const bracewell_queue* queue,
                                     const bracewell_array* projections, const bracewell_array* images) {
  return call("tomography_backproject", plan, queue,
              [&](const auto& where) { plan->backproject(where, projections, images); });
}

int bracewell_tomography_project(const bracewell_tomography* plan, const bracewell_queue* queue,
                                 const bracewell_array* images, const bracewell_array* projections) {
  return call("tomography_project", plan, queue,
              [&](const auto& where) { plan->project(where, images, projections); });
}

void bracewell_tomography_destroy(bracewell_tomography* plan) { destroy(plan); }

int bracewell_filter_projections(const bracewell_queue* queue, const bracewell_array* projections,
                                 const bracewell_array* filtered, bracewell_filter filter, int edge) {
  constexpr const char* name = "filter_projections";
  return result_of([&] {
    const auto where = place(name, queue);
    with(name, "projections", where, required(name, "projections", projections).type,
         [&]<Backend backend, class Real>() {
           Tomography<backend, Real>::filter(where, projections, filtered, filter, edge != 0);
         });
  });
}

int bracewell_ptychography_create(const bracewell_queue* queue, bracewell_type real,
                                  const bracewell_array* positions,
                                  const bracewell_ptychography_options* options,
                                  bracewell_ptychography** plan) {
  constexpr const char* name = "ptychography_create";
  return create(name, plan, queue, real, [&]<Backend backend, class Real>(const auto& where) {
    return Ptychography<backend, Real>::plan(where, positions,
                                             known(name, "options", &required(name, "options", options)));
  });
}

int bracewell_ptychography_set_patterns(bracewell_ptychography* plan, const bracewell_queue* queue,
                                        int64_t first, const bracewell_array* patterns,
                                        const bracewell_array* weights) {
  return call("ptychography_set_patterns", plan, queue,
              [&](const auto& where) { plan->set_patterns(where, first, patterns, weights); });
}

int bracewell_ptychography_evaluate(const bracewell_ptychography* plan, const bracewell_queue* queue,
                                    const bracewell_ptychography_inputs* inputs,
                                    const bracewell_ptychography_outputs* outputs) {
  constexpr const char* name = "ptychography_evaluate";
  return call(name, plan, queue, [&](const auto& where) {
    plan->evaluate(where, known(name, "inputs", &required(name, "inputs", inputs)),
                   known(name, "outputs", &required(name, "outputs", outputs)));
  });
}

void bracewell_ptychography_destroy(bracewell_ptychography* plan) { destroy(plan); }
