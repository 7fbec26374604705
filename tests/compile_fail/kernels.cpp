// What is refused of kernels of one's own: those that would end deep in the library, or in operators that are no adjoints.
#include "arguments.hpp"

#include <bracewell/reconstruct/rolloff.hpp>

/// A B-spline of `taps` taps by its weights at f, with the fault that `fault` names.
enum class Fault { None, Odd, Edge, Skewed, Slopes };
template <int taps, Fault fault = Fault::None>
struct Kernel {
  static constexpr int width = taps;
  template <class T>
  static constexpr void weights(T f, T (&w)[width]) {
    for (T& one : w)
      one = 0;
    if constexpr (width > 1) {
      w[width / 2 - 1] = fault == Fault::Edge ? T(1) : 1 - f;
      w[width / 2] = fault == Fault::Edge ? T(1) : f;
    }
    if constexpr (fault == Fault::Skewed) {
      w[width / 2 - 1] = 1 - f * f;
      w[width / 2] = f * f;
    }
  }
  template <class T>
  static constexpr void derivatives(T f, T (&d)[width]) {
    for (T& one : d)
      one = 0;
    if constexpr (width > 1) {
      d[width / 2 - 1] = fault == Fault::Edge ? T(0) : fault == Fault::Skewed ? -2 * f : T(-1);
      d[width / 2] = fault == Fault::Slopes ? T(-1) : -d[width / 2 - 1];
    }
  }
};
struct WidthAlone {
  static constexpr int width = 4;
};

template <class Kernel>
void project_by() {
  project<Kernel>(instance, volumes, {.matrices = matrices}, images);
}

// expect: Bracewell::project, project_gradients: Kernel::width: expected an even number of taps from 2 to 16, found another.
template void project_by<Kernel<1>>();
// expect: Bracewell::project, project_gradients: Kernel::width: expected an even number of taps from 2 to 16, found another.
template void project_by<Kernel<3>>();
// expect: Bracewell::project, project_gradients: Kernel::width: expected an even number of taps from 2 to 16, found another.
template void project_by<Kernel<5>>();
// expect: Bracewell::project, project_gradients: Kernel::width: expected an even number of taps from 2 to 16, found another.
template void project_by<Kernel<18>>();
// expect: Bracewell::project, project_gradients: Kernel: expected continuous weights that are zero at the edge, |x| = width/2, found others.
template void project_by<Kernel<2, Fault::Edge>>();
// expect: Bracewell::project, project_gradients: Kernel: expected an even kernel, weights(f)[i] = weights(1 - f)[width - 1 - i], found
template void project_by<Kernel<4, Fault::Skewed>>();
// expect: Bracewell::project, project_gradients: Kernel: expected derivatives that are the slopes of the weights, found others.
template void project_by<Kernel<6, Fault::Slopes>>();
// expect: Bracewell::project, project_gradients: Kernel: expected weights(T f, T (&w)[width]) and derivatives(T f, T (&d)[width]), found
template void project_by<WidthAlone>();
// expect: Bracewell::project, project_gradients: Kernel::width: expected an even number of taps from 2 to 16, found another.
void gradients() {
  project_gradients<Kernel<7>>(instance, volumes, {.matrices = matrices}, images, {.matrices = matrices});
}
// expect: Bracewell::backproject, backproject_gradients: Kernel: expected continuous weights that are zero at the edge, |x| = width/2, found others.
void insertion() {
  backproject<Kernel<4, Fault::Edge>>(instance, images, {.matrices = matrices}, {.data = volumes});
}
// expect: Bracewell::backproject, backproject_gradients: Kernel: expected an even kernel, weights(f)[i] = weights(1 - f)[width - 1
void insertion_gradients() {
  backproject_gradients<Kernel<4, Fault::Skewed>>(instance, images, {.matrices = matrices},
                                                  {.data = volumes});
}
// expect: Bracewell::correct_rolloff, apply_rolloff: Kernel: expected transform(T v), the Fourier transform of the kernel
void rolloff(const View<float****>& maps) { correct_rolloff<Kernel<4>>(instance, maps, {8, 8, 8}); }
