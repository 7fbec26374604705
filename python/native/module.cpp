// SPDX-License-Identifier: MIT
// The extension module: takes arrays of any library (DLPack), says in one sentence what is wrong with them, releases the
// interpreter's lock and calls the operators. Keyword arguments, defaults and docstrings are those of the Python package.
#include "module.hpp"

namespace nb = nanobind;

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
  module.attr("__version__") = bracewell_version();
  module.attr("kokkos_version") = kokkos_version();
  module.attr("device_backend") = device_backend();
  module.def("_set_main_thread", [](unsigned long ident) { Keyboard::main_thread = ident; });
  module.def("_finalize", [] {
    finished = true;
    for (HandleBase* const handle : HandleBase::all())
      handle->clear();
    finalize();
  });
  define_projection(module);
  define_points(module);
  define_contrast(module);
  define_reconstruct(module);
  define_reference(module);
  define_scoring(module);
  define_expectation(module);
  define_nonuniform(module);
  define_toeplitz(module);
  define_sums(module);
  define_tomography(module);
  define_beamline(module);
  define_ptychography(module);
}
