// Definition of Test::operators_of.
#pragma once

#include "../../deep_copy.hpp"
#include "operators.hpp"

#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

namespace Test {

using Space = Kokkos::DefaultExecutionSpace;

template <class DataType>
using DeviceView = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

/// A View of the tensor's shape and values; unallocated for an empty tensor.
template <class DataType, class Value>
DeviceView<DataType> upload(const Tensor<Value>& tensor) {
  if (tensor.values.empty())
    return {};
  std::size_t extents[8];
  std::fill_n(extents, 8, KOKKOS_INVALID_INDEX);
  std::copy(tensor.extents.begin(), tensor.extents.end(), extents);
  const DeviceView<DataType> view("test", extents[0], extents[1], extents[2], extents[3], extents[4],
                                  extents[5], extents[6], extents[7]);
  const auto host = Kokkos::create_mirror_view(view);
  std::copy(tensor.values.begin(), tensor.values.end(), host.data());
  Test::deep_copy(view, host);
  return view;
}

template <class View, class Value>
void download(const View& view, Tensor<Value>& tensor) {
  if (tensor.values.empty())
    return;
  const auto host = Test::on_host(view);
  std::copy_n(host.data(), tensor.size(), tensor.values.begin());
}

template <class Kernel, class T, int M, int D>
struct OperatorsOf final : Operators<T> {
  using Base = Operators<T>;
  using typename Base::Reals;
  using typename Base::Spectra;
  using Volume = std::conditional_t<D == 2, complex<T>***, complex<T>****>;
  using RealVolume = std::conditional_t<D == 2, T***, T****>;
  using Images = std::conditional_t<M == 2, complex<T>****, complex<T>*****>;
  using RealImages = std::conditional_t<M == 2, T****, T*****>;

  /// A tensor on the device.
  template <class DataType, class Value>
  static auto half(const Tensor<Value>& tensor) {
    return Bracewell::HalfSpectrum{upload<DataType>(tensor), tensor.width};
  }

  /// Poses on the device; `arrays` refers to them.
  struct DevicePoses {
    DeviceView<T****> matrices;
    DeviceView<T***> shifts;
    Bracewell::HalfSpectrum<DeviceView<RealImages>> filters;

    explicit DevicePoses(const HostPoses<T>& poses)
        : matrices(upload<T****>(poses.matrices)), shifts(upload<T***>(poses.shifts)),
          filters(half<RealImages>(poses.filters)) {}

    Bracewell::Poses<T, typename Space::memory_space> arrays() const {
      return {.matrices = matrices, .shifts = shifts, .filters = filters};
    }
  };

  static DeviceView<T*> scratch(const Spectra& volume, bool weight, const ProjectionOptions& options) {
    return DeviceView<T*>(
        "scratch",
        Bracewell::scratch_size(Space(), options.strategy, static_cast<std::int64_t>(volume.size()), weight));
  }

  void project(const Spectra& reconstruction, const HostPoses<T>& poses, Spectra& projections,
               const ProjectionOptions& options) const override {
    const Space space;
    const DevicePoses on_device(poses);
    const auto output = half<Images>(projections);
    Bracewell::project<Kernel>(space, half<Volume>(reconstruction), on_device.arrays(), output, options);
    space.fence();
    download(output.view, projections);
  }

  void project_gradients(const Spectra& reconstruction, const HostPoses<T>& poses, const Spectra& cotangent,
                         typename Base::ProjectGradients& gradients,
                         const ProjectionOptions& options) const override {
    const Space space;
    const DevicePoses on_device(poses);
    const auto values = half<Images>(gradients.projections);
    const auto volume = half<Volume>(gradients.reconstruction);
    const auto matrix_gradient = upload<T****>(gradients.matrices);
    const auto shift_gradient = upload<T***>(gradients.shifts);
    const auto copies = scratch(reconstruction, false, options);
    Bracewell::project_gradients<Kernel>(space, half<Volume>(reconstruction), on_device.arrays(),
                                         half<Images>(cotangent),
                                         {.projections = values,
                                          .reconstruction = volume,
                                          .matrices = matrix_gradient,
                                          .shifts = shift_gradient,
                                          .scratch = copies},
                                         options);
    space.fence();
    download(values.view, gradients.projections);
    download(volume.view, gradients.reconstruction);
    download(matrix_gradient, gradients.matrices);
    download(shift_gradient, gradients.shifts);
  }

  void backproject(const Spectra& projections, const HostPoses<T>& poses, Spectra& data, Reals& weight,
                   const Reals& weights, const ProjectionOptions& options) const override {
    const Space space;
    const DevicePoses on_device(poses);
    const auto data_volume = half<Volume>(data);
    const auto weight_volume = half<RealVolume>(weight);
    const auto copies = scratch(data, weight.size() > 0, options);
    Bracewell::backproject<Kernel>(space, half<Images>(projections), on_device.arrays(),
                                   {.data = data_volume,
                                    .weight = weight_volume,
                                    .weights = half<RealImages>(weights),
                                    .scratch = copies},
                                   options);
    space.fence();
    download(data_volume.view, data);
    download(weight_volume.view, weight);
  }

  void backproject_gradients(const Spectra& projections, const HostPoses<T>& poses,
                             typename Base::BackprojectGradients& gradients,
                             const ProjectionOptions& options) const override {
    const Space space;
    const DevicePoses on_device(poses);
    const auto values = half<Images>(gradients.projections);
    const auto weights_gradient = half<RealImages>(gradients.projection_weights);
    const auto matrix_gradient = upload<T****>(gradients.matrices);
    const auto shift_gradient = upload<T***>(gradients.shifts);
    Bracewell::backproject_gradients<Kernel>(space, half<Images>(projections), on_device.arrays(),
                                             {.data = half<Volume>(gradients.data),
                                              .weight = half<RealVolume>(gradients.weight),
                                              .weights = half<RealImages>(gradients.weights),
                                              .projections = values,
                                              .projection_weights = weights_gradient,
                                              .matrices = matrix_gradient,
                                              .shifts = shift_gradient},
                                             options);
    space.fence();
    download(values.view, gradients.projections);
    download(weights_gradient.view, gradients.projection_weights);
    download(matrix_gradient, gradients.matrices);
    download(shift_gradient, gradients.shifts);
  }
};

template <class Kernel, class T, int M>
const Operators<T>& operators_of(int d) {
  static const OperatorsOf<Kernel, T, M, 3> volumes;
  if constexpr (M == 2) {
    static const OperatorsOf<Kernel, T, 2, 2> images;
    if (d == 2)
      return images;
  }
  return volumes;
}

} // namespace Test
