// SPDX-License-Identifier: MIT
// Arrays and plans of Python's, for the files that define the module's functions.
#pragma once

#include "listener.hpp"
#include "operators.hpp"

#include <bracewell/error.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace Bracewell::Python {

namespace nb = nanobind;

#if defined(BRACEWELL_PYTHON_DEVICE)
inline constexpr bool has_device = true;
#else
inline constexpr bool has_device = false;
#endif

inline bool finished = false; ///< Kokkos has ended

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
  ~Handle() override { Handle::clear(); }
  void clear() override {
    if (life() == Life::Forked)
      static_cast<void>(
          plan.release()); // of the process that was forked, as are a device's memory and Kokkos' threads
    plan.reset();
  }
  PlanType& get() const {
    if (!plan)
      throw std::runtime_error(
          "bracewell: the plan has ended, as Python exits or a PtychographySolver took it over.");
    return *plan;
  }
};

using Object = std::optional<nb::object>; ///< an array, or None

/// What is to be known of an array's type: PyTorch's tensors, and NumPy's arrays with masks. Types are asked once.
enum class Kind { Any, Torch, Masked };
inline Kind kind_of(nb::handle object) {
  static std::map<PyObject*, Kind> known; // guarded by the interpreter's lock
  const nb::handle type = object.type();
  const auto [found, unknown] = known.try_emplace(type.ptr(), Kind::Any);
  if (unknown) {
    if (nb::hasattr(type, "requires_grad") && nb::hasattr(type, "resolve_conj"))
      found->second = Kind::Torch;
    else if (nb::hasattr(type, "mask") && nb::hasattr(type, "fill_value"))
      found->second = Kind::Masked;
    type.inc_ref(); // keeps the address to itself
  }
  return found->second;
}

/// Why an object is no array that operators take.
inline std::string strangeness(nb::handle object) {
  const std::string name = nb::cast<std::string>(nb::str(object.type().attr("__name__")));
  try {
    const nb::object type = object.attr("dtype");
    const std::string type_name = nb::cast<std::string>(nb::str(type));
    if (nb::hasattr(type, "isnative") && !nb::cast<bool>(type.attr("isnative")))
      return "one whose bytes are in the other order (" + type_name +
             "): astype(array.dtype.newbyteorder('='))";
    if (nb::hasattr(object, "flags") && nb::hasattr(object.attr("flags"), "writeable") &&
        !nb::cast<bool>(object.attr("flags").attr("writeable")) && type_name != "object")
      return "one that is read-only";
    return name + " of type " + type_name;
  } catch (const nb::python_error&) {
    return name;
  }
}

/// Hears Ctrl-C while the main thread works without the interpreter's lock: asks ten times a second.
class Keyboard : public Listener {
public:
  inline static unsigned long main_thread =
      0; ///< as threading.main_thread().ident; set with the interpreter's lock

  bool asked() override {
    if (heard_.load(std::memory_order_relaxed))
      return true;
    if (std::this_thread::get_id() != caller_)
      return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100))
      return false;
    last_ = now;
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) {
      PyErr_Fetch(&type_, &value_, &trace_);
      heard_ = true;
    }
    return heard_;
  }
  void leave() override {
    if (heard_)
      throw Left();
  }
  /// With the interpreter's lock: what the signal's handler raised.
  void raise() {
    if (!heard_)
      return;
    PyErr_Restore(type_, value_, trace_);
    throw nb::python_error();
  }
  struct Left {}; ///< is thrown through the operators

private:
  std::atomic<bool> heard_ = false;
  std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

/// What of a tensor is exported: by PyTorch's own function, which takes a fifth of the time of Tensor.__dlpack__.
inline nb::object torch_capsule(nb::handle tensor) {
  static const nb::handle to_dlpack =
      nb::object(nb::module_::import_("torch.utils.dlpack").attr("to_dlpack")).release(); // stays for good
  return to_dlpack(tensor);
}

/// The arrays of one call: one precision, one device, rows without gaps.
class Arrays {
public:
  explicit Arrays(const char* function) : function_(function) {}
  /// Those that were read elsewhere.
  Arrays(const char* function, bool is_double, bool on_device, int device)
      : function_(function), precision_(is_double ? 64 : 32), device_(device), on_device_(on_device) {}
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

  /// action.operator()<backend, T>() without the interpreter's lock. Begins Kokkos with the first.
  template <class Action>
  void run(const Action& action) const {
    if (finished)
      throw std::runtime_error("bracewell: Kokkos has ended, as Python exits.");
    if (life() == Life::Forked)
      throw std::runtime_error(
          "bracewell: expected calls in a process that was forked before the first call or "
          "spawned, found one that was forked after it, without the threads that compute: "
          "use multiprocessing's start method spawn or forkserver");
    initialize();
    Keyboard keyboard;
    try {
      const bool listens = PyThread_get_thread_ident() == Keyboard::main_thread;
      const nb::gil_scoped_release unlocked;
      const Heard heard(listens ? &keyboard : nullptr);
      run_unlocked(action);
    } catch (const Keyboard::Left&) {
    }
    keyboard.raise();
  }

private:
  template <class Action>
  void run_unlocked(const Action& action) const {
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

  template <class NdArray, class Kept>
  Tensor take(const char* name, const Object& given, Values values, std::int64_t width, Kept& kept) {
    Tensor tensor;
    if (!given || given->is_none())
      return tensor;
    nb::object object = *given;
    const Kind kind = kind_of(object);
    if (kind == Kind::Masked)
      fail(name, "an array without a mask",
           "a masked one: fill it (filled()), or give weights of 0 where there are some");
    if (kind == Kind::Torch) {
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
           strangeness(object));
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

} // namespace Bracewell::Python
