// SPDX-License-Identifier: MIT
// The extension module: takes arrays of any library (DLPack), says in one sentence what is wrong with them, releases the
// interpreter's lock and calls the operators. Keyword arguments, defaults and docstrings are those of the Python package.
#include "operators.hpp"

#include <bracewell/error.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace nb = nanobind;

namespace Bracewell::Python {
namespace {

#if defined(BRACEWELL_PYTHON_DEVICE)
constexpr bool has_device = true;
#else
constexpr bool has_device = false;
#endif

bool finished = false; ///< Kokkos has ended

enum class Values { Real, Complex, Double, Integer };

/// A plan that Python holds. Kokkos cannot end before all plans have: at exit those that are left are emptied.
struct HandleBase {
  HandleBase() { all().insert(this); }
  virtual ~HandleBase() { all().erase(this); }
  HandleBase(const HandleBase&) = delete;
  HandleBase& operator=(const HandleBase&) = delete;
  virtual void clear() = 0;

  static std::set<HandleBase*>& all() {
    static std::set<HandleBase*> handles; // guarded by the interpreter's lock
    return handles;
  }

  bool is_double = false, on_device = false;
  int device = 0;
  std::mutex mutex; ///< a plan has one workspace: one call at a time
};

template <class PlanType>
struct Handle : HandleBase {
  std::unique_ptr<PlanType> plan;
  void clear() override { plan.reset(); }
  PlanType& get() const {
    if (!plan)
      throw std::runtime_error(
          "bracewell: the plan has ended, as Python exits or a PtychographySolver took it over.");
    return *plan;
  }
};

using Object = std::optional<nb::object>; ///< an array, or None

/// Whether an object is a PyTorch tensor. Types are asked once.
bool is_torch(nb::handle object) {
  static std::map<PyObject*, bool> known; // guarded by the interpreter's lock
  const nb::handle type = object.type();
  const auto [found, unknown] = known.try_emplace(type.ptr(), false);
  if (unknown) {
    found->second = nb::hasattr(type, "requires_grad") && nb::hasattr(type, "resolve_conj");
    type.inc_ref(); // keeps the address to itself
  }
  return found->second;
}

/// What of a tensor is exported: by PyTorch's own function, which takes a fifth of the time of Tensor.__dlpack__.
nb::object torch_capsule(nb::handle tensor) {
  static const nb::handle to_dlpack =
      nb::object(nb::module_::import_("torch.utils.dlpack").attr("to_dlpack")).release(); // stays for good
  return to_dlpack(tensor);
}

/// The arrays of one call: one precision, one device, rows without gaps.
class Arrays {
public:
  explicit Arrays(const char* function) : function_(function) {}
  /// Those of a plan's call, which are like the plan's.
  Arrays(const char* function, const HandleBase& plan) : function_(function) {
    precision_ = plan.is_double ? 64 : 32;
    precision_of_ = place_of_ = "the plan";
    on_device_ = plan.on_device;
    device_ = plan.device;
  }

  Tensor read(const char* name, const Object& object, Values values, std::int64_t width = 0) {
    return take<nb::ndarray<nb::ro>>(name, object, values, width, read_);
  }
  Tensor write(const char* name, const Object& object, Values values, std::int64_t width = 0) {
    return take<nb::ndarray<>>(name, object, values, width, written_);
  }

  bool is_double() const { return precision_ == 64; }
  bool on_device() const { return on_device_; }
  Queue queue(std::uintptr_t stream) const { return {stream, device_}; }

  /// Notes in a handle what its plan was made for.
  void describe(HandleBase& plan) const {
    plan.is_double = is_double();
    plan.on_device = on_device_;
    plan.device = device_;
  }

  /// Whether another plan that takes part in the call was made for the same as its own.
  void expect_same(const char* name, const HandleBase& plan, const HandleBase& other) const {
    const auto made_for = [](const HandleBase& handle) {
      return std::string(handle.is_double ? "float64 " : "float32 ") +
             (handle.on_device ? "on GPU " + std::to_string(handle.device) : "in host memory");
    };
    if (made_for(plan) != made_for(other))
      fail(name, "one for " + made_for(plan) + ", as the plan", "one for " + made_for(other));
  }

  /// action.operator()<backend, T>() without the interpreter's lock.
  template <class Action>
  void run(const Action& action) const {
    if (finished)
      throw std::runtime_error("bracewell: Kokkos has ended, as Python exits.");
    const nb::gil_scoped_release unlocked;
    if (!on_device_ && is_double())
      action.template operator()<Backend::Host, double>();
    else if (!on_device_)
      action.template operator()<Backend::Host, float>();
#if defined(BRACEWELL_PYTHON_DEVICE)
    else if (is_double())
      action.template operator()<Backend::Device, double>();
    else
      action.template operator()<Backend::Device, float>();
#endif
  }

private:
  template <class NdArray, class Kept>
  Tensor take(const char* name, const Object& given, Values values, std::int64_t width, Kept& kept) {
    Tensor tensor;
    if (!given || given->is_none())
      return tensor;
    nb::object object = *given;
    if (is_torch(object)) {
      if (nb::cast<bool>(object.attr("requires_grad")))
        fail(name,
             "an array that needs no gradient: bracewell.torch has differentiable functions, or detach() it",
             "a tensor that requires one");
      if (nb::cast<bool>(object.attr("is_conj")()) || nb::cast<bool>(object.attr("is_neg")()))
        fail(name, "values as they are in memory: resolve_conj() and resolve_neg() the tensor first",
             "a conjugate or negative view");
      object = torch_capsule(object);
    }
    NdArray array;
    if (!nb::try_cast(object, array, false)) {
      fail(name,
           std::is_same_v<NdArray, nb::ndarray<>> ? "an array (DLPack) that can be written"
                                                  : "an array (DLPack)",
           nb::cast<std::string>(nb::str(object.type().attr("__name__"))));
    }
    check_type(name, array.dtype(), values);
    check_place(name, array.device_type(), array.device_id());
    tensor.rank = int(array.ndim());
    if (tensor.rank > 6)
      fail(name, "at most six axes", std::to_string(tensor.rank));
    std::int64_t step = 1;
    bool gaps = false;
    for (int axis = tensor.rank - 1; axis >= 0; --axis) {
      tensor.extents[axis] = std::int64_t(array.shape(axis));
      gaps = gaps || (tensor.extents[axis] > 1 && array.stride(axis) != step);
      step *= tensor.extents[axis];
    }
    if (gaps && step > 0)
      throw nb::value_error((start(name) +
                             "expected rows without gaps (a C-contiguous array), found other strides: "
                             "make it contiguous first")
                                .c_str());
    tensor.data = const_cast<void*>(static_cast<const void*>(array.data()));
    tensor.width = width;
    tensor.given = true;
    kept.push_back(std::move(array));
    return tensor;
  }

  void check_type(const char* name, nb::dlpack::dtype type, Values values) {
    using Code = nb::dlpack::dtype_code;
    const bool is_real = type.code == std::uint8_t(Code::Float),
               is_complex = type.code == std::uint8_t(Code::Complex);
    const std::string found = (is_real                                ? "float"
                               : is_complex                           ? "complex"
                               : type.code == std::uint8_t(Code::Int) ? "int"
                                                                      : "another type of ") +
                              std::to_string(int(type.bits));
    const int parts = values == Values::Complex ? 2 : 1;
    if (values == Values::Integer) {
      if (type.code != std::uint8_t(Code::Int) || type.bits != 32)
        fail(name, "int32", found);
      return;
    }
    if (values == Values::Double) {
      if (!is_real || type.bits != 64)
        fail(name, "float64", found);
      return;
    }
    const bool right = values == Values::Complex ? is_complex : is_real;
    const int bits = int(type.bits) / parts;
    const std::string kind = values == Values::Complex ? "complex" : "float";
    if (!right || (bits != 32 && bits != 64) || (precision_ != 0 && bits != precision_)) {
      if (precision_ == 0)
        fail(name, kind + std::to_string(32 * parts) + " or " + kind + std::to_string(64 * parts), found);
      fail(name, kind + std::to_string(precision_ * parts) + ", the precision of " + precision_of_, found);
    }
    if (precision_ == 0) {
      precision_ = bits;
      precision_of_ = name;
    }
  }

  void check_place(const char* name, int type, int device) {
    const bool host = type == nb::device::cpu::value || type == nb::device::cuda_host::value;
    const bool gpu = type == nb::device::cuda::value || type == nb::device::cuda_managed::value ||
                     type == nb::device::rocm::value;
    const std::string found = host ? "host memory" : gpu ? "GPU " + std::to_string(device) : "another device";
    if (!host && !(gpu && has_device))
      fail(name,
           has_device ? "an array in host memory or on a GPU"
                      : "an array in host memory (bracewell was built without a GPU)",
           "one on " + found);
    if (place_of_ == nullptr) {
      place_of_ = name;
      on_device_ = !host;
      device_ = device;
    } else if (on_device_ == host || (on_device_ && device != device_)) {
      fail(name,
           std::string("an array ") + (on_device_ ? "on GPU " + std::to_string(device_) : "in host memory") +
               " as " + place_of_,
           "one " + std::string(host ? "in " : "on ") + found);
    }
  }

  std::string start(const char* name) const {
    return "bracewell." + std::string(function_) + ": " + name + ": ";
  }
  [[noreturn]] void fail(const char* name, const std::string& expected, const std::string& found) const {
    throw nb::type_error((start(name) + "expected " + expected + ", found " + found).c_str());
  }

  const char* function_;
  int precision_ = 0, device_ = 0;
  bool on_device_ = false;
  const char *precision_of_ = nullptr, *place_of_ = nullptr;
  std::vector<nb::ndarray<nb::ro>> read_;
  std::vector<nb::ndarray<>> written_;
};

// ---- Projection -------------------------------------------------------------------------------------------------

void define_projection(nb::module_& module) {
  module.def("rotation_grid", &rotation_grid);
  nb::class_<ProjectionSettings>(module, "ProjectionSettings")
      .def(
          "__init__",
          [](ProjectionSettings* self, std::string interpolation, std::optional<double> oversampling,
             std::optional<double> radius, std::optional<double> ewald_radius, bool absolute_weights,
             bool skip_redundant) {
            new (self) ProjectionSettings{std::move(interpolation), oversampling,  radius, ewald_radius,
                                          absolute_weights,         skip_redundant};
          },
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());

  const auto poses = [](Arrays& arrays, const Object& matrices, const Object& shifts, const Object& filters,
                        std::int64_t width) {
    return PoseTensors{arrays.read("matrices", matrices, Values::Real),
                       arrays.read("shifts", shifts, Values::Real),
                       arrays.read("filters", filters, Values::Real, width)};
  };

  module.def("project", [poses](const Object& reconstruction, std::int64_t width, const Object& matrices,
                                const Object& shifts, const Object& filters, const Object& projections,
                                std::int64_t projections_width, const ProjectionSettings& settings,
                                std::uintptr_t stream) {
    Arrays arrays("project");
    const Tensor in = arrays.read("reconstruction", reconstruction, Values::Complex, width);
    const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
    const Tensor out = arrays.write("projections", projections, Values::Complex, projections_width);
    arrays.run([&]<Backend backend, class T>() {
      Projection<backend, T>::project(arrays.queue(stream), in, at, out, settings);
    });
  });
  module.def("project_gradients", [poses](const Object& reconstruction, std::int64_t width,
                                          const Object& matrices, const Object& shifts, const Object& filters,
                                          const Object& cotangent, std::int64_t projections_width,
                                          const Object& reconstruction_gradient,
                                          const Object& matrix_gradients, const Object& shift_gradients,
                                          const ProjectionSettings& settings, std::uintptr_t stream) {
    Arrays arrays("project_gradients");
    const Tensor in = arrays.read("reconstruction", reconstruction, Values::Complex, width);
    const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
    const Tensor slopes = arrays.read("cotangent", cotangent, Values::Complex, projections_width);
    const Tensor volume =
                     arrays.write("reconstruction gradient", reconstruction_gradient, Values::Complex, width),
                 turns = arrays.write("gradient of matrices", matrix_gradients, Values::Real),
                 moves = arrays.write("gradient of shifts", shift_gradients, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Projection<backend, T>::project_gradients(arrays.queue(stream), in, at, slopes, volume, turns, moves,
                                                settings);
    });
  });
  module.def("backproject", [poses](const Object& projections, std::int64_t projections_width,
                                    const Object& matrices, const Object& shifts, const Object& filters,
                                    const Object& weights, const Object& data, const Object& weight,
                                    std::int64_t width, const ProjectionSettings& settings,
                                    std::uintptr_t stream) {
    Arrays arrays("backproject");
    const Tensor in = arrays.read("projections", projections, Values::Complex, projections_width);
    const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
    const Tensor worth = arrays.read("weights", weights, Values::Real, projections_width),
                 sum = arrays.write("data", data, Values::Complex, width),
                 sum_of_weights = arrays.write("weight", weight, Values::Real, width);
    arrays.run([&]<Backend backend, class T>() {
      Projection<backend, T>::backproject(arrays.queue(stream), in, at, worth, sum, sum_of_weights, settings);
    });
  });
  module.def("backproject_gradients",
             [poses](const Object& projections, std::int64_t projections_width, const Object& matrices,
                     const Object& shifts, const Object& filters, const Object& weights, const Object& data,
                     const Object& weight, std::int64_t width, const Object& projection_gradients,
                     const Object& weight_gradients, const Object& matrix_gradients,
                     const Object& shift_gradients, const ProjectionSettings& settings,
                     std::uintptr_t stream) {
               Arrays arrays("backproject_gradients");
               const Tensor in = arrays.read("projections", projections, Values::Complex, projections_width);
               const PoseTensors at = poses(arrays, matrices, shifts, filters, projections_width);
               const Tensor worth = arrays.read("weights", weights, Values::Real, projections_width),
                            slopes = arrays.read("cotangent of data", data, Values::Complex, width),
                            weight_slopes = arrays.read("cotangent of weight", weight, Values::Real, width);
               const Tensor images = arrays.write("gradient of projections", projection_gradients,
                                                  Values::Complex, projections_width),
                            worths = arrays.write("gradient of weights", weight_gradients, Values::Real,
                                                  projections_width),
                            turns = arrays.write("gradient of matrices", matrix_gradients, Values::Real),
                            moves = arrays.write("gradient of shifts", shift_gradients, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Projection<backend, T>::backproject_gradients(arrays.queue(stream), in, at, worth, slopes,
                                                               weight_slopes, images, worths, turns, moves,
                                                               settings);
               });
             });
}

// ---- Contrast transfer functions ---------------------------------------------------------------------------------

void define_contrast(nb::module_& module) {
  module.def("evaluate_ctf", [](const ContrastParameters& parameters, double pixel_size, const Object& values,
                                std::int64_t width, std::uintptr_t stream) {
    Arrays arrays("evaluate_ctf");
    const Tensor out = arrays.write("values", values, Values::Real, width);
    arrays.run([&]<Backend backend, class T>() {
      Contrast<backend, T>::evaluate(arrays.queue(stream), parameters, pixel_size, out);
    });
  });
  module.def("ctf_gradients", [](const ContrastParameters& parameters, double pixel_size,
                                 const Object& value_gradients, std::int64_t width, std::uintptr_t stream) {
    Arrays arrays("ctf_gradients");
    const Tensor in = arrays.read("value_gradients", value_gradients, Values::Real, width);
    ContrastParameters gradients;
    arrays.run([&]<Backend backend, class T>() {
      gradients = Contrast<backend, T>::gradients(arrays.queue(stream), parameters, pixel_size, in);
    });
    return gradients;
  });
  module.def("filter_gradients", [](const Object& projections, const Object& cotangent,
                                    const Object& gradients, std::uintptr_t stream) {
    Arrays arrays("filter_gradients");
    const Tensor values = arrays.read("projections", projections, Values::Complex),
                 slopes = arrays.read("cotangent", cotangent, Values::Complex),
                 out = arrays.write("gradients", gradients, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Contrast<backend, T>::filter_gradients(arrays.queue(stream), values, slopes, out);
    });
  });
}

// ---- Reconstruction ---------------------------------------------------------------------------------------------

void define_reconstruct(nb::module_& module) {
  module.def("pad_centre", [](const Object& centred, const Object& padded, std::uintptr_t stream) {
    Arrays arrays("pad_centre");
    const Tensor in = arrays.read("centred", centred, Values::Real),
                 out = arrays.write("padded", padded, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Reconstruct<backend, T>::pad_centre(arrays.queue(stream), in, out);
    });
  });
  module.def("crop_centre",
             [](const Object& padded, const Object& centred, double scale, std::uintptr_t stream) {
               Arrays arrays("crop_centre");
               const Tensor in = arrays.read("padded", padded, Values::Real),
                            out = arrays.write("centred", centred, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Reconstruct<backend, T>::crop_centre(arrays.queue(stream), in, out, scale);
               });
             });
  module.def("correct_rolloff", [](const Object& volume, const std::vector<int>& padded,
                                   const std::string& interpolation, std::uintptr_t stream) {
    Arrays arrays("correct_rolloff");
    const Tensor values = arrays.write("volume", volume, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Reconstruct<backend, T>::correct_rolloff(arrays.queue(stream), values, padded, interpolation);
    });
  });
  module.def(
      "normalise",
      [](const Object& data, const Object& weight, std::int64_t width, const Object& volume,
         const Object& averages, double wiener, double floor, std::optional<double> radius,
         std::uintptr_t stream) {
        Arrays arrays("normalise");
        const Tensor in = arrays.read("data", data, Values::Complex, width),
                     weights = arrays.read("weight", weight, Values::Real, width),
                     out = arrays.write("volume", volume, Values::Complex, width),
                     means = arrays.write("averages", averages, Values::Double);
        arrays.run([&]<Backend backend, class T>() {
          Reconstruct<backend, T>::normalise(arrays.queue(stream), in, weights, out, means, wiener, floor,
                                             radius);
        });
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
      nb::arg());
  module.def("fourier_shell_correlation", [](const Object& first, const Object& second, std::int64_t width,
                                             const Object& correlation, std::uintptr_t stream) {
    Arrays arrays("fourier_shell_correlation");
    const Tensor one = arrays.read("first", first, Values::Complex, width),
                 other = arrays.read("second", second, Values::Complex, width),
                 out = arrays.write("correlation", correlation, Values::Double);
    arrays.run([&]<Backend backend, class T>() {
      Reconstruct<backend, T>::fourier_shell_correlation(arrays.queue(stream), one, other, out);
    });
  });
}

// ---- Plans ------------------------------------------------------------------------------------------------------

/// A plan for arrays like `like`, in precision and device: make.operator()<backend, T>(queue).
template <class PlanType, class Make>
std::unique_ptr<Handle<PlanType>> make_plan(const char* function, const Object& like, std::uintptr_t stream,
                                            const Make& make) {
  Arrays arrays(function);
  arrays.read("like", like, Values::Real);
  auto handle = std::make_unique<Handle<PlanType>>();
  arrays.describe(*handle);
  arrays.run([&]<Backend backend, class T>() {
    handle->plan = make.template operator()<backend, T>(arrays.queue(stream));
  });
  return handle;
}

/// One call of a plan: call(plan) without the interpreter's lock, and alone.
template <class PlanType, class Call>
void use_plan(Handle<PlanType>& handle, const Arrays& arrays, const Call& call) {
  PlanType& plan = handle.get();
  arrays.run([&]<Backend, class>() {
    const std::lock_guard lock(handle.mutex);
    call(plan);
  });
}

template <class PlanType>
nb::class_<Handle<PlanType>> plan_class(nb::module_& module, const char* name) {
  nb::class_<Handle<PlanType>> type(module, name);
  type.def_prop_ro("memory_bytes", [](const Handle<PlanType>& self) { return self.get().memory_bytes(); });
  return type;
}

void define_nonuniform(nb::module_& module) {
  using Self = Handle<NonuniformPlan>;
  plan_class<NonuniformPlan>(module, "NonuniformPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& points, const std::vector<int>& shape, std::int64_t slices,
             double tolerance, const std::string& kernel, std::optional<double> oversampling,
             std::uintptr_t stream) {
            Arrays arrays("NonuniformFFT");
            arrays.read("like", like, Values::Real);
            const Tensor at = arrays.read("points", points, Values::Double);
            return make_plan<NonuniformPlan>(
                "NonuniformFFT", like, stream, [&]<Backend backend, class T>(Queue queue) {
                  return Tomography<backend, T>::nonuniform(queue, at,
                                                            {shape, slices, tolerance, kernel, oversampling});
                });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def("adjoint",
           [](Self& self, const Object& samples, const Object& images, std::uintptr_t stream) {
             Arrays arrays("NonuniformFFT.adjoint", self);
             const Tensor in = arrays.read("samples", samples, Values::Complex),
                          out = arrays.write("images", images, Values::Complex);
             use_plan(self, arrays,
                      [&](NonuniformPlan& plan) { plan.adjoint(arrays.queue(stream), in, out); });
           })
      .def("forward",
           [](Self& self, const Object& images, const Object& samples, std::uintptr_t stream) {
             Arrays arrays("NonuniformFFT.forward", self);
             const Tensor in = arrays.read("images", images, Values::Complex),
                          out = arrays.write("samples", samples, Values::Complex);
             use_plan(self, arrays,
                      [&](NonuniformPlan& plan) { plan.forward(arrays.queue(stream), in, out); });
           })
      .def("point_gradients", [](Self& self, const Object& images, const Object& samples,
                                 const Object& gradients, const Object& scratch, std::uintptr_t stream) {
        Arrays arrays("NonuniformFFT.point_gradients", self);
        const Tensor in = arrays.read("images", images, Values::Complex),
                     values = arrays.read("samples", samples, Values::Complex),
                     out = arrays.write("gradients", gradients, Values::Real),
                     slopes = arrays.write("scratch", scratch, Values::Complex);
        use_plan(self, arrays, [&](NonuniformPlan& plan) {
          plan.point_gradients(arrays.queue(stream), in, values, out, slopes);
        });
      });
}

void define_toeplitz(nb::module_& module) {
  using Self = Handle<ToeplitzPlan>;
  plan_class<ToeplitzPlan>(module, "ToeplitzPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& points, const Object& weights, bool is_complex,
             const std::vector<int>& shape, std::int64_t slices, double tolerance, const std::string& kernel,
             std::optional<double> oversampling, std::uintptr_t stream) {
            Arrays arrays("ToeplitzNormal");
            arrays.read("like", like, Values::Real);
            const Tensor at = arrays.read("points", points, Values::Double),
                         worth = arrays.read("weights", weights, Values::Real);
            return make_plan<ToeplitzPlan>(
                "ToeplitzNormal", like, stream, [&]<Backend backend, class T>(Queue queue) {
                  return Tomography<backend, T>::toeplitz(
                      queue, at, worth, {shape, slices, tolerance, kernel, oversampling}, is_complex);
                });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg())
      .def("execute", [](Self& self, const Object& images, const Object& results, bool is_complex,
                         std::uintptr_t stream) {
        Arrays arrays("ToeplitzNormal.execute", self);
        const Values values = is_complex ? Values::Complex : Values::Real;
        const Tensor in = arrays.read("images", images, values),
                     out = arrays.write("results", results, values);
        use_plan(self, arrays, [&](ToeplitzPlan& plan) { plan.execute(arrays.queue(stream), in, out); });
      });
}

void define_sums(nb::module_& module) {
  using Self = Handle<SumsPlan>;
  plan_class<SumsPlan>(module, "SumsPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& points, const Object& targets, std::int64_t slices,
             double tolerance, const std::string& kernel, std::optional<double> oversampling,
             std::uintptr_t stream) {
            Arrays arrays("NonuniformSums");
            arrays.read("like", like, Values::Real);
            const Tensor from = arrays.read("points", points, Values::Double),
                         to = arrays.read("targets", targets, Values::Double);
            return make_plan<SumsPlan>("NonuniformSums", like, stream,
                                       [&]<Backend backend, class T>(Queue queue) {
                                         return Tomography<backend, T>::sums(
                                             queue, from, to, {{}, slices, tolerance, kernel, oversampling});
                                       });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def("forward",
           [](Self& self, const Object& values, const Object& sums, std::uintptr_t stream) {
             Arrays arrays("NonuniformSums.forward", self);
             const Tensor in = arrays.read("values", values, Values::Complex),
                          out = arrays.write("sums", sums, Values::Complex);
             use_plan(self, arrays, [&](SumsPlan& plan) { plan.forward(arrays.queue(stream), in, out); });
           })
      .def("adjoint", [](Self& self, const Object& sums, const Object& values, std::uintptr_t stream) {
        Arrays arrays("NonuniformSums.adjoint", self);
        const Tensor in = arrays.read("sums", sums, Values::Complex),
                     out = arrays.write("values", values, Values::Complex);
        use_plan(self, arrays, [&](SumsPlan& plan) { plan.adjoint(arrays.queue(stream), in, out); });
      });
}

void define_reference(nb::module_& module) {
  using Self = Handle<ReferencePlan>;
  const auto poses = [](Arrays& arrays, const Object& matrices, const Object& shifts, const Object& filters,
                        std::int64_t width) {
    return PoseTensors{arrays.read("matrices", matrices, Values::Real),
                       arrays.read("shifts", shifts, Values::Real),
                       arrays.read("filters", filters, Values::Real, width)};
  };
  plan_class<ReferencePlan>(module, "ReferencePlan")
      .def_static("make",
                  [](const Object& like, const Object& reconstruction, std::int64_t width,
                     const std::string& interpolation, bool half, std::uintptr_t stream) {
                    Arrays arrays("PreparedReference");
                    arrays.read("like", like, Values::Real);
                    const Tensor in = arrays.read("reconstruction", reconstruction, Values::Complex, width);
                    return make_plan<ReferencePlan>(
                        "PreparedReference", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Projection<backend, T>::prepare(queue, in, interpolation, half);
                        });
                  })
      .def("project",
           [poses](Self& self, const Object& matrices, const Object& shifts, const Object& filters,
                   const Object& projections, std::int64_t width, const ProjectionSettings& settings,
                   std::uintptr_t stream) {
             Arrays arrays("PreparedReference.project", self);
             const PoseTensors at = poses(arrays, matrices, shifts, filters, width);
             const Tensor out = arrays.write("projections", projections, Values::Complex, width);
             use_plan(self, arrays,
                      [&](ReferencePlan& plan) { plan.project(arrays.queue(stream), at, out, settings); });
           })
      .def("project_gradients",
           [poses](Self& self, const Object& matrices, const Object& shifts, const Object& filters,
                   const Object& cotangent, std::int64_t width, const Object& matrix_gradients,
                   const Object& shift_gradients, const ProjectionSettings& settings, std::uintptr_t stream) {
             Arrays arrays("PreparedReference.project_gradients", self);
             const PoseTensors at = poses(arrays, matrices, shifts, filters, width);
             const Tensor slopes = arrays.read("cotangent", cotangent, Values::Complex, width);
             const Tensor turns = arrays.write("gradient of matrices", matrix_gradients, Values::Real),
                          moves = arrays.write("gradient of shifts", shift_gradients, Values::Real);
             use_plan(self, arrays, [&](ReferencePlan& plan) {
               plan.project_gradients(arrays.queue(stream), at, slopes, turns, moves, settings);
             });
           });
}

void define_scoring(nb::module_& module) {
  using Self = Handle<ScoringPlan>;
  plan_class<ScoringPlan>(module, "ScoringPlan")
      .def_static("make",
                  [](const Object& like, std::int64_t images, int shifts, int height, int width, int best,
                     const std::string& score, const ProjectionSettings& options, std::uintptr_t stream) {
                    const ScoringSettings settings{images, shifts, height, width, best, score};
                    return make_plan<ScoringPlan>(
                        "PoseScoring", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Projection<backend, T>::scoring(queue, settings, options);
                        });
                  })
      .def("set_images",
           [](Self& self, const Object& images, const Object& filters, const Object& weights,
              std::int64_t width, std::uintptr_t stream) {
             Arrays arrays("PoseScoring.set_images", self);
             const Tensor in = arrays.read("images", images, Values::Complex, width),
                          factors = arrays.read("filters", filters, Values::Real, width),
                          worth = arrays.read("weights", weights, Values::Real, width);
             use_plan(self, arrays,
                      [&](ScoringPlan& plan) { plan.set_images(arrays.queue(stream), in, factors, worth); });
           })
      .def("set_shifts",
           [](Self& self, const Object& shifts, std::uintptr_t stream) {
             Arrays arrays("PoseScoring.set_shifts", self);
             const Tensor in = arrays.read("shifts", shifts, Values::Real);
             use_plan(self, arrays, [&](ScoringPlan& plan) { plan.set_shifts(arrays.queue(stream), in); });
           })
      .def("score", [](Self& self, const Handle<ReferencePlan>& reference, const Object& matrices,
                       const Object& all, const Object& best, const Object& poses, const Object& shifts,
                       std::uintptr_t stream) {
        Arrays arrays("PoseScoring.score", self);
        arrays.expect_same("reference", self, reference);
        const Tensor at = arrays.read("matrices", matrices, Values::Real);
        const ScoreTensors scores{
            arrays.write("all", all, Values::Real), arrays.write("best", best, Values::Real),
            arrays.write("poses", poses, Values::Integer), arrays.write("shifts", shifts, Values::Integer)};
        const ReferencePlan& source = reference.get();
        use_plan(self, arrays,
                 [&](ScoringPlan& plan) { source.score(arrays.queue(stream), plan, at, scores); });
      });
}

void define_tomography(nb::module_& module) {
  using Self = Handle<TomographyPlan>;
  plan_class<TomographyPlan>(module, "TomographyPlan")
      .def_static(
          "make",
          [](const Object& like, const std::string& method, const std::vector<double>& angles, int width,
             std::optional<double> centre, const std::vector<double>& weights,
             const std::vector<double>& shifts, int image, std::int64_t slices, bool line_integrals,
             double tolerance, std::uintptr_t stream) {
            const TomographySettings settings{method, angles, weights, shifts,         width,
                                              image,  centre, slices,  line_integrals, tolerance};
            return make_plan<TomographyPlan>("Tomography", like, stream,
                                             [&]<Backend backend, class T>(Queue queue) {
                                               return Tomography<backend, T>::plan(queue, settings);
                                             });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def_static(
          "laminography",
          [](const Object& like, const std::string& method, const std::vector<double>& angles, int width,
             int rows, double tilt, std::optional<double> centre, std::optional<double> row_centre,
             const std::vector<double>& weights, int image, int depth, bool line_integrals, double tolerance,
             std::uintptr_t stream) {
            const LaminographySettings settings{method, angles,     weights,        width,
                                                rows,   image,      depth,          tilt,
                                                centre, row_centre, line_integrals, tolerance};
            return make_plan<TomographyPlan>("Laminography", like, stream,
                                             [&]<Backend backend, class T>(Queue queue) {
                                               return Tomography<backend, T>::laminography(queue, settings);
                                             });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
          nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def("backproject",
           [](Self& self, const Object& projections, const Object& images, std::uintptr_t stream) {
             Arrays arrays("Tomography.backproject", self);
             const Tensor in = arrays.read("projections", projections, Values::Real),
                          out = arrays.write("images", images, Values::Real);
             use_plan(self, arrays,
                      [&](TomographyPlan& plan) { plan.backproject(arrays.queue(stream), in, out); });
           })
      .def("project",
           [](Self& self, const Object& images, const Object& projections, std::uintptr_t stream) {
             Arrays arrays("Tomography.project", self);
             const Tensor in = arrays.read("images", images, Values::Real),
                          out = arrays.write("projections", projections, Values::Real);
             use_plan(self, arrays,
                      [&](TomographyPlan& plan) { plan.project(arrays.queue(stream), in, out); });
           })
      .def("normal",
           [](Self& self, const Object& images, const Object& results, std::uintptr_t stream) {
             Arrays arrays("FourierNormal.normal", self);
             const Tensor in = arrays.read("images", images, Values::Real),
                          out = arrays.write("results", results, Values::Real);
             use_plan(self, arrays,
                      [&](TomographyPlan& plan) { plan.normal(arrays.queue(stream), in, out); });
           })
      .def("slopes", [](Self& self, const Object& images, const Object& of_angles, const Object& of_shifts,
                        std::uintptr_t stream) {
        Arrays arrays("ViewSlopes.slopes", self);
        const Tensor in = arrays.read("images", images, Values::Real),
                     turns = arrays.write("slopes of angles", of_angles, Values::Real),
                     moves = arrays.write("slopes of shifts", of_shifts, Values::Real);
        use_plan(self, arrays,
                 [&](TomographyPlan& plan) { plan.slopes(arrays.queue(stream), in, turns, moves); });
      });
  module.def("sum_views",
             [](const Object& slopes, const Object& cotangents, const Object& sums, std::uintptr_t stream) {
               Arrays arrays("sum_views");
               const Tensor a = arrays.read("slopes", slopes, Values::Real),
                            b = arrays.read("cotangents", cotangents, Values::Real),
                            out = arrays.write("sums", sums, Values::Double);
               arrays.run([&]<Backend backend, class T>() {
                 Tomography<backend, T>::sum_views(arrays.queue(stream), a, b, out);
               });
             });

  using Rows = Handle<RowPlan>;
  plan_class<RowPlan>(module, "RowPlan")
      .def_static("filter",
                  [](const Object& like, const std::string& filter, bool edge, std::int64_t rows, int width,
                     double shift, std::uintptr_t stream) {
                    return make_plan<RowPlan>(
                        "ProjectionFilter", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Tomography<backend, T>::filter(queue, {filter, edge, rows, width, shift});
                        });
                  })
      .def_static("stripes",
                  [](const Object& like, int angles, int width, const std::string& method, double strength,
                     int window, int levels, double damping, double dead, std::uintptr_t stream) {
                    const StripeSettings settings{angles, width,  method,  strength,
                                                  window, levels, damping, dead};
                    return make_plan<RowPlan>("StripeRemoval", like, stream,
                                              [&]<Backend backend, class T>(Queue queue) {
                                                return Tomography<backend, T>::stripes(queue, settings);
                                              });
                  })
      .def_static(
          "phase",
          [](const Object& like, const std::string& method, std::int64_t angles, int rows, int width,
             double wavelength, double distance, double pixel_size, double delta_beta, double regularisation,
             std::optional<int> padding, bool attenuation, std::uintptr_t stream) {
            const PhaseSettings settings{method,         angles,   rows,       width,
                                         wavelength,     distance, pixel_size, delta_beta,
                                         regularisation, padding,  attenuation};
            return make_plan<RowPlan>("PhaseRetrieval", like, stream,
                                      [&]<Backend backend, class T>(Queue queue) {
                                        return Beamline<backend, T>::phase(queue, settings);
                                      });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
      .def("execute", [](Rows& self, const Object& in, const Object& out, std::uintptr_t stream) {
        Arrays arrays("RowPlan.execute", self);
        const Tensor from = arrays.read("sinograms", in, Values::Real),
                     to = arrays.write("result", out, Values::Real);
        use_plan(self, arrays, [&](RowPlan& plan) { plan.execute(arrays.queue(stream), from, to); });
      });

  module.def(
      "find_centre",
      [](const Object& sinogram, const std::vector<double>& angles, std::optional<double> first,
         std::optional<double> last, std::uintptr_t stream) {
        Arrays arrays("find_centre");
        const Tensor in = arrays.read("sinogram", sinogram, Values::Real);
        double centre = 0;
        arrays.run([&]<Backend backend, class T>() {
          centre = Tomography<backend, T>::find_centre(arrays.queue(stream), in, angles, first, last);
        });
        return centre;
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg());
  module.def("normalise_projections", [](const Object& raw, const Object& dark, const Object& flat,
                                         const Object& sinograms, bool logarithm, int air_begin, int air_end,
                                         std::uintptr_t stream) {
    Arrays arrays("normalise_projections");
    const Tensor in = arrays.read("raw", raw, Values::Real), shade = arrays.read("dark", dark, Values::Real),
                 light = arrays.read("flat", flat, Values::Real),
                 out = arrays.write("sinograms", sinograms, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Tomography<backend, T>::normalise(arrays.queue(stream), in, shade, light, out, logarithm, air_begin,
                                        air_end);
    });
  });
  module.def("angular_density_weights", &angular_density_weights);
}

void define_beamline(nb::module_& module) {
  module.def("remove_outliers", [](const Object& sinograms, const Object& cleaned, int window,
                                   double threshold, std::uintptr_t stream) {
    Arrays arrays("remove_outliers");
    const Tensor in = arrays.read("sinograms", sinograms, Values::Real),
                 out = arrays.write("cleaned", cleaned, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Beamline<backend, T>::remove_outliers(arrays.queue(stream), in, out, window, threshold);
    });
  });
  module.def("find_overlap",
             [](const Object& sinogram, const std::vector<double>& angles, int least, std::uintptr_t stream) {
               Arrays arrays("find_overlap");
               const Tensor in = arrays.read("sinogram", sinogram, Values::Real);
               double centre = 0;
               arrays.run([&]<Backend backend, class T>() {
                 centre = Beamline<backend, T>::find_overlap(arrays.queue(stream), in, angles, least);
               });
               return centre;
             });
  module.def("half_acquisition", &half_acquisition);
  module.def("weigh_half_acquisition",
             [](const Object& sinograms, const Object& wider, double centre, std::uintptr_t stream) {
               Arrays arrays("weigh_half_acquisition");
               const Tensor in = arrays.read("sinograms", sinograms, Values::Real),
                            out = arrays.write("wider", wider, Values::Real);
               arrays.run([&]<Backend backend, class T>() {
                 Beamline<backend, T>::weigh_half_acquisition(arrays.queue(stream), in, out, centre);
               });
             });
  module.def("bin_frames", [](const Object& frames, const Object& binned, int bin, std::uintptr_t stream) {
    Arrays arrays("bin_frames");
    const Tensor in = arrays.read("frames", frames, Values::Real),
                 out = arrays.write("binned", binned, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Beamline<backend, T>::bin_frames(arrays.queue(stream), in, out, bin);
    });
  });
  module.def("turn_detector", [](const Object& sinograms, const Object& turned, double angle, double row,
                                 double column, std::uintptr_t stream) {
    Arrays arrays("turn_detector");
    const Tensor in = arrays.read("sinograms", sinograms, Values::Real),
                 out = arrays.write("turned", turned, Values::Real);
    arrays.run([&]<Backend backend, class T>() {
      Beamline<backend, T>::turn_detector(arrays.queue(stream), in, out, angle, row, column);
    });
  });

  using Self = Handle<LeastSquaresPlan>;
  plan_class<LeastSquaresPlan>(module, "LeastSquaresPlan")
      .def_static(
          "make",
          [](const Object& like, const std::string& method, const std::vector<std::int64_t>& data,
             const std::vector<std::int64_t>& images, bool independent, bool normal, std::uintptr_t stream) {
            return make_plan<LeastSquaresPlan>("LeastSquaresSolver", like, stream,
                                               [&]<Backend backend, class T>(Queue queue) {
                                                 return Beamline<backend, T>::least_squares(
                                                     queue, {method, data, images, independent, normal});
                                               });
          })
      .def("solve",
           [](Self& self, Handle<TomographyPlan>& pair, const Object& data, const Object& images,
              const Object& weights, const Object& mask, int iterations, double discrepancy,
              double relaxation, bool nonnegative, double total_variation, int inner_iterations,
              std::uintptr_t stream) {
             Arrays arrays("LeastSquaresSolver.solve", self);
             arrays.expect_same("pair", self, pair);
             const Tensor in = arrays.read("data", data, Values::Real),
                          out = arrays.write("images", images, Values::Real),
                          worth = arrays.read("weights", weights, Values::Real),
                          where = arrays.read("mask", mask, Values::Real);
             const LeastSquaresRun run{iterations,  discrepancy,     relaxation,
                                       nonnegative, total_variation, inner_iterations};
             TomographyPlan& projector = pair.get();
             int made = 0;
             use_plan(self, arrays, [&](LeastSquaresPlan& plan) {
               const std::lock_guard lock(pair.mutex);
               made = plan.solve(arrays.queue(stream), projector, in, out, worth, where, run);
             });
             return made;
           })
      .def("residuals", [](Self& self, std::uintptr_t stream) {
        const Arrays arrays("LeastSquaresSolver.residuals", self);
        std::vector<double> values;
        use_plan(self, arrays,
                 [&](LeastSquaresPlan& plan) { values = plan.residuals(arrays.queue(stream)); });
        return values;
      });
}

void define_ptychography(nb::module_& module) {
  using Self = Handle<PtychographyPlan>;
  plan_class<PtychographyPlan>(module, "PtychographyPlan")
      .def_static(
          "make",
          [](const Object& like, const Object& positions, std::int64_t rows, std::int64_t columns, int probe,
             int detector, int modes, const std::string& loss, const std::string& weights,
             bool scale_per_pattern, double counts, double background, std::optional<double> fresnel_number,
             bool refine_positions, std::uintptr_t stream) {
            Arrays arrays("PtychographyLoss"); // positions are read on the host
            const Tensor at = arrays.read("positions", positions, Values::Double);
            const PtychographySettings settings{rows,   columns,    probe,          detector,
                                                modes,  loss,       weights,        scale_per_pattern,
                                                counts, background, fresnel_number, refine_positions};
            return make_plan<PtychographyPlan>("PtychographyLoss", like, stream,
                                               [&]<Backend backend, class T>(Queue queue) {
                                                 return Ptychography<backend, T>::loss(queue, at, settings);
                                               });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
      .def("set_patterns",
           [](Self& self, std::int64_t first, const Object& patterns, const Object& weights,
              std::uintptr_t stream) {
             Arrays arrays("PtychographyLoss.set_patterns", self);
             const Tensor in = arrays.read("patterns", patterns, Values::Real),
                          worth = arrays.read("weights", weights, Values::Real);
             use_plan(self, arrays, [&](PtychographyPlan& plan) {
               plan.set_patterns(arrays.queue(stream), first, in, worth);
             });
           })
      .def("evaluate", [](Self& self, const Object& object, const Object& probe, const Object& positions,
                          const Object& loss, const Object& pattern_losses, const Object& object_gradient,
                          const Object& probe_gradient, const Object& position_gradient, const Object& subset,
                          std::uintptr_t stream) {
        Arrays arrays("PtychographyLoss.evaluate", self);
        const PtychographyTensors tensors{
            arrays.read("object", object, Values::Complex),
            arrays.read("probe", probe, Values::Complex),
            arrays.read("positions", positions, Values::Double),
            arrays.write("loss", loss, Values::Double),
            arrays.write("pattern_losses", pattern_losses, Values::Double),
            arrays.write("gradient of object", object_gradient, Values::Complex),
            arrays.write("gradient of probe", probe_gradient, Values::Complex),
            arrays.write("gradient of positions", position_gradient, Values::Real),
            arrays.read("subset", subset, Values::Integer),
        };
        use_plan(self, arrays, [&](PtychographyPlan& plan) { plan.evaluate(arrays.queue(stream), tensors); });
      });

  using Solver = Handle<SolverPlan>;
  plan_class<SolverPlan>(module, "SolverPlan")
      .def_static(
          "make",
          [](const Object& like, Self& loss, const std::string& steps, double object_rate, double probe_rate,
             double position_rate, double position_limit, double regularisation, std::uintptr_t stream) {
            const SolverSettings settings{steps,         object_rate,    probe_rate,
                                          position_rate, position_limit, regularisation};
            PtychographyPlan& taken = loss.get();
            Arrays("PtychographySolver", loss).read("probe", like, Values::Real);
            const struct Leave {
              Self& loss;
              ~Leave() { loss.clear(); } // what was taken is of no use, be the solver made or refused
            } leave{loss};
            return make_plan<SolverPlan>("PtychographySolver", like, stream,
                                         [&]<Backend backend, class T>(Queue queue) {
                                           const std::lock_guard lock(loss.mutex);
                                           return Ptychography<backend, T>::solver(queue, taken, settings);
                                         });
          })
      .def("set",
           [](Solver& self, const Object& amplitude, const Object& phase, const Object& probe,
              std::uintptr_t stream) {
             Arrays arrays("PtychographySolver", self);
             const Tensor modulus = arrays.read("amplitude", amplitude, Values::Real),
                          angle = arrays.read("phase", phase, Values::Real),
                          light = arrays.read("probe", probe, Values::Complex);
             use_plan(self, arrays,
                      [&](SolverPlan& plan) { plan.set(arrays.queue(stream), modulus, angle, light); });
           })
      .def("get",
           [](Solver& self, const Object& amplitude, const Object& phase, const Object& probe,
              const Object& displacements, std::uintptr_t stream) {
             Arrays arrays("PtychographySolver", self);
             const Tensor modulus = arrays.write("amplitude", amplitude, Values::Real),
                          angle = arrays.write("phase", phase, Values::Real),
                          light = arrays.write("probe", probe, Values::Complex),
                          moves = arrays.write("displacements", displacements, Values::Real);
             use_plan(self, arrays, [&](SolverPlan& plan) {
               plan.get(arrays.queue(stream), modulus, angle, light, moves);
             });
           })
      .def("step",
           [](Solver& self, const Object& subset, std::uintptr_t stream) {
             Arrays arrays("PtychographySolver.step", self);
             const Tensor some = arrays.read("subset", subset, Values::Integer);
             use_plan(self, arrays, [&](SolverPlan& plan) { plan.step(arrays.queue(stream), some); });
           })
      .def("losses", [](Solver& self, std::uintptr_t stream) {
        const Arrays arrays("PtychographySolver.losses", self);
        std::vector<double> values;
        use_plan(self, arrays, [&](SolverPlan& plan) { values = plan.losses(arrays.queue(stream)); });
        return values;
      });

  using Optimiser = Handle<AdamPlan>;
  plan_class<AdamPlan>(module, "AdamPlan")
      .def_static("make",
                  [](const Object& like, const std::vector<std::size_t>& sizes, double beta1, double beta2,
                     double epsilon, std::uintptr_t stream) {
                    return make_plan<AdamPlan>(
                        "Adam", like, stream, [&]<Backend backend, class T>(Queue queue) {
                          return Ptychography<backend, T>::adam(queue, sizes, beta1, beta2, epsilon);
                        });
                  })
      .def("step", [](Optimiser& self, const std::vector<nb::object>& values,
                      const std::vector<nb::object>& gradients, const std::vector<bool>& is_complex,
                      const std::vector<double>& rates, std::uintptr_t stream) {
        Arrays arrays("Adam.step", self);
        std::vector<AdamPlan::Group> groups;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const Values type = is_complex[i] ? Values::Complex : Values::Real;
          AdamPlan::Group group{arrays.write("parameters", values[i], type),
                                arrays.read("gradients", gradients[i], type), rates[i]};
          for (Tensor* tensor : {&group.values, &group.gradients}) { // complex numbers are pairs of real ones
            if (tensor->rank == 0)
              tensor->extents[0] = 1;
            tensor->rank = std::max(tensor->rank, 1);
            tensor->extents[0] *= is_complex[i] ? 2 : 1;
          }
          groups.push_back(group);
        }
        use_plan(self, arrays, [&](AdamPlan& plan) { plan.step(arrays.queue(stream), groups); });
      });
}

} // namespace
} // namespace Bracewell::Python

NB_MODULE(_core, module) {
  using namespace Bracewell::Python;
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Bracewell::Error& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
  nb::set_leak_warnings(false); // what others keep to the end has been emptied by then
  initialize();
  module.attr("__version__") = bracewell_version();
  module.attr("kokkos_version") = kokkos_version();
  module.attr("device_backend") = device_backend();
  module.def("_finalize", [] {
    finished = true;
    for (HandleBase* const handle : HandleBase::all())
      handle->clear();
    finalize();
  });
  define_projection(module);
  define_contrast(module);
  define_reconstruct(module);
  define_reference(module);
  define_scoring(module);
  define_nonuniform(module);
  define_toeplitz(module);
  define_sums(module);
  define_tomography(module);
  define_beamline(module);
  define_ptychography(module);
}
