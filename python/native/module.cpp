// SPDX-License-Identifier: MIT
// The extension module: takes arrays of any library (DLPack), says in one sentence what is wrong with them, releases the
// interpreter's lock and calls the operators. Keyword arguments, defaults and docstrings are those of the Python package.
#include "module.hpp"

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace Bracewell::Python;
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Bracewell::Error& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "bracewell: expected memory for the call, found too little.");
    } catch (const std::runtime_error& error) {
      // Kokkos' words: Host memory space failed to allocate 8 GiB (label="Bracewell::...").
      const std::string_view words = error.what();
      if (words.find("memory space failed to allocate") == words.npos)
        throw;
      const std::size_t label = words.find('"'), end = words.find('"', label + 1);
      const std::string of =
          end == words.npos ? "the call" : std::string(words.substr(label + 1, end - label - 1));
      PyErr_SetString(PyExc_MemoryError, ("bracewell: expected memory for " + of + ", found too little: " +
                                          std::string(words.substr(0, words.find(" (label"))) + ".")
                                             .c_str());
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
  define_tensors(module);
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
