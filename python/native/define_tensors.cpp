// SPDX-License-Identifier: MIT
// Projection of PyTorch's tensors in one step, which reads them by PyTorch's table of C functions (DLPack 1.3) and makes the outputs. Calls that are
// not the usual ones give None: the functions of define_projection.cpp say what is wrong with them.
#include "module.hpp"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace Bracewell::Python {
namespace {

/// What `Tensor.__dlpack_c_exchange_api__` points to: the layout is DLPack's.
struct Exchange {
  std::uint32_t major, minor;
  const void *older, *allocate, *give, *take;
  int (*borrow)(void* object, nb::dlpack::dltensor* tensor);
  int (*stream)(int device_type, std::int32_t device, void** stream);
};

/// PyTorch, which stays for good.
struct Torch {
  const Exchange* exchange = nullptr; ///< null where PyTorch is older than 2.10
  nb::handle tensor, parameter, is_conj, is_neg, new_empty, new_zeros;

  static const Torch& get() {
    static const Torch torch;
    return torch;
  }

private:
  Torch() {
    const nb::module_ torch = nb::module_::import_("torch");
    tensor = nb::object(torch.attr("Tensor")).release();
    parameter = nb::object(torch.attr("nn").attr("Parameter")).release();
    for (auto& [name, place] : {std::pair{"is_conj", &is_conj}, std::pair{"is_neg", &is_neg},
                                std::pair{"new_empty", &new_empty}, std::pair{"new_zeros", &new_zeros}})
      *place = nb::object(tensor.attr(name)).release();
    if (!nb::hasattr(tensor, "__dlpack_c_exchange_api__"))
      return;
    const nb::object capsule = tensor.attr("__dlpack_c_exchange_api__");
    const auto* const found =
        static_cast<const Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (found != nullptr && found->major == 1 && found->borrow != nullptr && found->stream != nullptr)
      exchange = found;
    PyErr_Clear();
  }
};

/// The tensors of one call. The call is usual if they have no class of their own, are contiguous, and are of one precision and one device.
class Tensors {
public:
  bool usual = Torch::get().exchange != nullptr;

  Tensor read(nb::handle object, Values values) {
    Tensor tensor;
    if (!usual || object.is_none())
      return tensor;
    const Torch& torch = Torch::get();
    const PyObject* const type = object.type().ptr();
    nb::dlpack::dltensor found;
    usual = (type == torch.tensor.ptr() || type == torch.parameter.ptr()) &&
            !nb::cast<bool>(torch.is_neg(object)) &&
            (values != Values::Complex || !nb::cast<bool>(torch.is_conj(object)));
    if (usual && torch.exchange->borrow(object.ptr(), &found) != 0) {
      PyErr_Clear();
      usual = false;
    }
    if (!usual || !fits(found, values))
      return tensor;
    tensor.rank = found.ndim;
    std::int64_t step = 1;
    for (int axis = found.ndim - 1; axis >= 0; --axis) {
      tensor.extents[axis] = found.shape[axis];
      usual = usual && (found.shape[axis] <= 1 || found.strides == nullptr || found.strides[axis] == step);
      step *= found.shape[axis];
    }
    usual = usual && step > 0;
    tensor.data = static_cast<char*>(found.data) + found.byte_offset;
    tensor.given = true;
    return tensor;
  }

  /// A new tensor of that shape and width, in the type and on the device of another.
  nb::object make(nb::handle like, const Tensor& shape, Values values, Tensor& tensor, bool zero = false) {
    nb::list sizes;
    for (int axis = 0; axis < shape.rank; ++axis)
      sizes.append(shape.extents[axis]);
    nb::object made = (zero ? Torch::get().new_zeros : Torch::get().new_empty)(like, nb::tuple(sizes));
    tensor = read(made, values);
    tensor.width = shape.width;
    return made;
  }

  template <class Action>
  void run(const char* function, const Action& action) const {
    std::uintptr_t stream = 0;
    if (on_device_) {
      void* current = nullptr;
      if (Torch::get().exchange->stream(device_type_, device_, &current) != 0)
        throw nb::python_error();
      stream = reinterpret_cast<std::uintptr_t>(current);
    }
    const Arrays arrays(function, bits_ == 64, on_device_, device_);
    arrays.run(
        [&]<Backend backend, class T>() { action.template operator()<backend, T>(arrays.queue(stream)); });
  }

private:
  bool fits(const nb::dlpack::dltensor& found, Values values) {
    using Code = nb::dlpack::dtype_code;
    const bool complex = values == Values::Complex;
    const int bits = int(found.dtype.bits) / (complex ? 2 : 1), type = found.device.device_type;
    const bool host = type == nb::device::cpu::value,
               gpu = has_device && (type == nb::device::cuda::value || type == nb::device::rocm::value);
    if (bits_ == 0) {
      bits_ = bits;
      on_device_ = gpu;
      device_type_ = type;
      device_ = found.device.device_id;
    }
    usual = found.dtype.code == std::uint8_t(complex ? Code::Complex : Code::Float) &&
            (bits == 32 || bits == 64) && bits == bits_ && (host || gpu) && type == device_type_ &&
            found.device.device_id == device_ && found.ndim <= 6;
    return usual;
  }

  int bits_ = 0, device_type_ = 0, device_ = 0;
  bool on_device_ = false;
};

/// What calls say: the kernel, the limits, and sizes where they differ from those of the arrays.
struct Call { // without axes where it is not usual
  ProjectionSettings settings;
  std::int64_t sizes[3] = {};
  int axes = 0;
};

bool is_half(const Tensor& tensor, int leading, const Tensor& of) {
  return tensor.rank == of.rank &&
         std::equal(tensor.extents + leading, tensor.extents + tensor.rank, of.extents + leading);
}

bool one_or(std::int64_t extent, std::int64_t most) { return extent == 1 || extent == most; }

/// Whether poses fit spectra [B, P, sizes], and the volumes' dimensions.
bool poses_fit(const PoseTensors& at, const Tensor& spectra, int dimensions) {
  const std::int64_t batches = spectra.extents[0], poses = spectra.extents[1];
  const auto leads = [&](const Tensor& tensor) {
    return !tensor.given ||
           (tensor.rank >= 2 && one_or(tensor.extents[0], batches) && one_or(tensor.extents[1], poses));
  };
  return at.matrices.given && at.matrices.rank == 4 && at.matrices.extents[2] == dimensions &&
         at.matrices.extents[3] == dimensions && leads(at.matrices) && leads(at.shifts) &&
         leads(at.filters) &&
         (!at.shifts.given || (at.shifts.rank == 3 && at.shifts.extents[2] == spectra.rank - 2)) &&
         (!at.filters.given || is_half(at.filters, 2, spectra));
}

/// The shape [B, P, sizes] of projections.
Tensor projections_shape(const Tensor& volume, const PoseTensors& at, const Call& call) {
  Tensor shape;
  shape.rank = 2 + call.axes;
  shape.width = call.sizes[call.axes - 1];
  shape.extents[0] = shape.extents[1] = 1;
  for (const Tensor* const tensor : {&volume, &at.matrices, &at.shifts, &at.filters})
    for (int axis = 0; axis < (tensor == &volume ? 1 : 2); ++axis)
      if (tensor->given)
        shape.extents[axis] = std::max(shape.extents[axis], tensor->extents[axis]);
  for (int axis = 0; axis < call.axes; ++axis)
    shape.extents[2 + axis] = axis + 1 < call.axes ? call.sizes[axis] : shape.width / 2 + 1;
  return shape;
}

/// Whether a width belongs to a spectrum, which then states it.
bool takes_width(Tensor& spectrum, std::int64_t width) {
  spectrum.width = width;
  return spectrum.rank > 0 && width > 0 && width / 2 + 1 == spectrum.extents[spectrum.rank - 1];
}

Call call_of(const std::vector<std::int64_t>& shape, std::string interpolation,
             std::optional<double> oversampling, std::optional<double> radius,
             std::optional<double> ewald_radius, std::string_view kernel_weights, bool skip_redundant) {
  const bool absolute = kernel_weights == "absolute";
  Call call{{std::move(interpolation), oversampling, radius, ewald_radius, absolute, skip_redundant}};
  call.axes = shape.size() <= 3 ? int(shape.size()) : 0;
  for (int axis = 0; axis < call.axes; ++axis)
    call.sizes[axis] = shape[std::size_t(axis)];
  if (!(absolute || kernel_weights == "signed") ||
      std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 1; }))
    call.axes = 0;
  return call;
}

using Sizes = std::vector<std::int64_t>;
using Limit = std::optional<double>;

struct Poses {
  nb::handle matrices, shifts, filters;
};
PoseTensors read(Tensors& tensors, const Poses& poses, std::int64_t width) {
  PoseTensors at{tensors.read(poses.matrices, Values::Real), tensors.read(poses.shifts, Values::Real),
                 tensors.read(poses.filters, Values::Real)};
  at.filters.width = width;
  return at;
}

nb::object project(nb::handle reconstruction, const Poses& poses, const Call& call, std::int64_t width) {
  Tensors tensors;
  Tensor in = tensors.read(reconstruction, Values::Complex);
  const int dimensions = in.rank - 1;
  if (!tensors.usual || !in.given || call.axes < 2 || call.axes > dimensions || dimensions > 3 ||
      !takes_width(in, width))
    return nb::none();
  const PoseTensors at = read(tensors, poses, call.sizes[call.axes - 1]);
  if (!tensors.usual)
    return nb::none();
  const Tensor shape = projections_shape(in, at, call);
  if (!poses_fit(at, shape, dimensions) || !one_or(in.extents[0], shape.extents[0]))
    return nb::none();
  Tensor out;
  nb::object made = tensors.make(reconstruction, shape, Values::Complex, out);
  if (!tensors.usual)
    return nb::none();
  tensors.run("project", [&]<Backend backend, class T>(Queue queue) {
    Projection<backend, T>::project(queue, in, at, out, call.settings);
  });
  return made;
}

nb::object project_gradients(nb::handle cotangent, nb::handle reconstruction, const Poses& poses,
                             const std::array<bool, 3>& needed, const Call& call, std::int64_t width) {
  Tensors tensors;
  Tensor in = tensors.read(reconstruction, Values::Complex),
         slopes = tensors.read(cotangent, Values::Complex);
  const int dimensions = in.rank - 1;
  if (!tensors.usual || !in.given || !slopes.given || call.axes < 2 || call.axes > dimensions ||
      dimensions > 3 || !takes_width(in, width) || !takes_width(slopes, call.sizes[call.axes - 1]))
    return nb::none();
  const PoseTensors at = read(tensors, poses, slopes.width);
  if (!tensors.usual || (needed[2] && !at.shifts.given))
    return nb::none();
  const Tensor shape = projections_shape(in, at, call);
  if (!is_half(slopes, 0, shape) || !poses_fit(at, shape, dimensions) ||
      !one_or(in.extents[0], shape.extents[0]))
    return nb::none();
  Tensor volume, turns, moves;
  const nb::object given[3] = {
      needed[0] ? tensors.make(reconstruction, in, Values::Complex, volume) : nb::none(),
      needed[1] ? tensors.make(poses.matrices, at.matrices, Values::Real, turns) : nb::none(),
      needed[2] ? tensors.make(poses.shifts, at.shifts, Values::Real, moves) : nb::none()};
  if (!tensors.usual)
    return nb::none();
  tensors.run("project_gradients", [&]<Backend backend, class T>(Queue queue) {
    Projection<backend, T>::project_gradients(queue, in, at, slopes, volume, turns, moves, call.settings);
  });
  return nb::make_tuple(given[0], given[1], given[2]);
}

/// The shape [B, sizes] of volumes.
Tensor volumes_shape(const Tensor& projections, const Call& call) {
  Tensor shape;
  shape.rank = 1 + call.axes;
  shape.width = call.sizes[call.axes - 1];
  shape.extents[0] = projections.extents[0];
  for (int axis = 0; axis < call.axes; ++axis)
    shape.extents[1 + axis] = axis + 1 < call.axes ? call.sizes[axis] : shape.width / 2 + 1;
  return shape;
}

/// What both `backproject` and its gradients read.
struct Inserted {
  Tensors tensors;
  Tensor projections, weights;
  PoseTensors at;
  bool usual;

  Inserted(nb::handle spectra, const Poses& poses, nb::handle weighted, const Call& call, std::int64_t width)
      : projections(tensors.read(spectra, Values::Complex)) {
    usual = tensors.usual && projections.given && projections.rank >= 4 && takes_width(projections, width) &&
            call.axes >= 2 && projections.rank - 2 <= call.axes;
    if (!usual)
      return;
    at = read(tensors, poses, width);
    weights = tensors.read(weighted, Values::Real);
    weights.width = width;
    usual = tensors.usual && poses_fit(at, projections, call.axes) &&
            (!weights.given ||
             (is_half(weights, 2, projections) && one_or(weights.extents[0], projections.extents[0]) &&
              one_or(weights.extents[1], projections.extents[1])));
  }
};

nb::object backproject(nb::handle projections, const Poses& poses, nb::handle weights, const Call& call,
                       std::int64_t width) {
  Inserted in(projections, poses, weights, call, width);
  if (!in.usual)
    return nb::none();
  const Tensor shape = volumes_shape(in.projections, call);
  Tensor data, weight, nothing;
  const nb::object sum = in.tensors.make(projections, shape, Values::Complex, data, true),
                   sum_of_weights = in.weights.given
                                        ? in.tensors.make(weights, shape, Values::Real, weight, true)
                                        : nb::object(Torch::get().new_empty(poses.matrices, 0));
  if (!in.tensors.usual)
    return nb::none();
  in.tensors.run("backproject", [&]<Backend backend, class T>(Queue queue) {
    Projection<backend, T>::backproject(queue, in.projections, in.at, in.weights, data, weight,
                                        call.settings);
  });
  return nb::make_tuple(sum, sum_of_weights);
}

nb::object backproject_gradients(nb::handle data, nb::handle weight, nb::handle projections,
                                 const Poses& poses, nb::handle weights, const std::array<bool, 4>& needed,
                                 const Call& call, std::int64_t width) {
  Inserted in(projections, poses, weights, call, width);
  if (!in.usual)
    return nb::none();
  Tensor slopes = in.tensors.read(data, Values::Complex),
         weight_slopes = in.tensors.read(weight, Values::Real);
  const Tensor shape = volumes_shape(in.projections, call);
  slopes.width = weight_slopes.width = shape.width;
  if (!in.tensors.usual || !slopes.given || !is_half(slopes, 0, shape) ||
      (weight_slopes.given && !is_half(weight_slopes, 0, shape)) || weight_slopes.given != in.weights.given ||
      (needed[1] && !in.weights.given) || (needed[3] && !in.at.shifts.given))
    return nb::none();
  Tensor images, worths, turns, moves;
  const nb::object given[4] = {
      needed[0] ? in.tensors.make(projections, in.projections, Values::Complex, images) : nb::none(),
      needed[1] ? in.tensors.make(weights, in.projections, Values::Real, worths) : nb::none(),
      needed[2] ? in.tensors.make(poses.matrices, in.at.matrices, Values::Real, turns) : nb::none(),
      needed[3] ? in.tensors.make(poses.shifts, in.at.shifts, Values::Real, moves) : nb::none()};
  if (!in.tensors.usual)
    return nb::none();
  in.tensors.run("backproject_gradients", [&]<Backend backend, class T>(Queue queue) {
    Projection<backend, T>::backproject_gradients(queue, in.projections, in.at, in.weights, slopes,
                                                  weight_slopes, images, worths, turns, moves, call.settings);
  });
  return nb::make_tuple(given[0], given[1], given[2], given[3]);
}

} // namespace

void define_tensors(nb::module_& module) {
  module.def(
      "project_tensors",
      [](nb::handle reconstruction, nb::handle matrices, nb::handle shifts, nb::handle filters,
         const Sizes& shape, std::int64_t width, std::string interpolation, Limit oversampling, Limit radius,
         Limit ewald_radius, bool) {
        return project(
            reconstruction, {matrices, shifts, filters},
            call_of(shape, std::move(interpolation), oversampling, radius, ewald_radius, "signed", false),
            width);
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
      nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
  module.def(
      "project_gradients_tensors",
      [](nb::handle cotangent, nb::handle reconstruction, nb::handle matrices, nb::handle shifts,
         nb::handle filters, bool of_reconstruction, bool of_matrices, bool of_shifts, const Sizes& shape,
         std::int64_t width, std::string interpolation, Limit oversampling, Limit radius, Limit ewald_radius,
         bool skip_redundant) {
        return project_gradients(cotangent, reconstruction, {matrices, shifts, filters},
                                 {of_reconstruction, of_matrices, of_shifts},
                                 call_of(shape, std::move(interpolation), oversampling, radius, ewald_radius,
                                         "signed", skip_redundant),
                                 width);
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
  module.def(
      "backproject_tensors",
      [](nb::handle projections, nb::handle matrices, nb::handle shifts, nb::handle filters,
         nb::handle weights, const Sizes& shape, std::int64_t width, std::string interpolation,
         Limit oversampling, Limit radius, Limit ewald_radius, std::string_view kernel_weights) {
        return backproject(projections, {matrices, shifts, filters}, weights,
                           call_of(shape, std::move(interpolation), oversampling, radius, ewald_radius,
                                   kernel_weights, false),
                           width);
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
      nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg());
  module.def(
      "backproject_gradients_tensors",
      [](nb::handle data, nb::handle weight, nb::handle projections, nb::handle matrices, nb::handle shifts,
         nb::handle filters, nb::handle weights, bool of_projections, bool of_weights, bool of_matrices,
         bool of_shifts, const Sizes& shape, std::int64_t width, std::string interpolation,
         Limit oversampling, Limit radius, Limit ewald_radius, std::string_view kernel_weights) {
        return backproject_gradients(data, weight, projections, {matrices, shifts, filters}, weights,
                                     {of_projections, of_weights, of_matrices, of_shifts},
                                     call_of(shape, std::move(interpolation), oversampling, radius,
                                             ewald_radius, kernel_weights, false),
                                     width);
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
      nb::arg().none(), nb::arg().none(), nb::arg());
}

} // namespace Bracewell::Python
