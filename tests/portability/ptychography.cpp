// Every kernel of ptychography and of Adam; of the fused kernel, one size of each kind.

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/propagator.hpp>
#include <bracewell/ptychography/solver.hpp>

namespace Ptychography {
namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

template <class T, class Storage, class Sizes>
void launch(const Space& space, const Impl::FusedKernel<Space, T, Storage, Sizes>& kernel) {
  using Kernel = Impl::FusedKernel<Space, T, Storage, Sizes>;
  typename Kernel::Policy policy(space, 1, +Kernel::team_size);
  policy.set_scratch_size(+Kernel::scratch_level,
                          Kokkos::PerTeam(static_cast<std::size_t>(Kernel::scratch_bytes())));
  Kokkos::parallel_for("fused", policy, kernel);
}
template <class T, class Storage, class Sizes>
void launch(const Space& space, const Impl::FusedKernel<Space, T, Storage, Sizes, true>& kernel) {
  Impl::launch_on_chip(space, "fused on the chip", 1, kernel.chip_bytes(1), kernel);
}

template void launch(const Space&,
                     const Impl::FusedKernel<Space, float, float, Impl::FusedSizes<16, 16, 5>>&);
template void launch(const Space&,
                     const Impl::FusedKernel<Space, float, float, Impl::FusedSizes<16, 16, 5>, true>&);
template void launch(const Space&, const Impl::FusedKernel<Space, float, Half, Impl::FusedSizes<8, 20, 10>>&);
template void launch(const Space&,
                     const Impl::FusedKernel<Space, double, double, Impl::FusedSizes<4, 12, 12>>&);

template <class Kernel>
void launch_lines(const Space& space, const Kernel& kernel) {
  Kokkos::parallel_for("lines", Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<256, 2>>(space, 1, 256),
                       kernel);
}
template void launch_lines(const Space&, const Impl::CompareLines<Space, float, float, false>&);
template void launch_lines(const Space&,
                           const Impl::TransformLines<Space, float, true, false, Impl::LoadExitWaves<float>,
                                                      Impl::WaveLines<float, true>, true>&);
template void
launch_lines(const Space&,
             const Impl::TransformLines<Space, float, false, true, Impl::LoadShiftedSpectrum<float>,
                                        Impl::StoreWaveGradients<float>>&);

using KnownRows = Impl::RowSizes<8, 16>;
using KnownColumns = Impl::ColumnSizes<16, 16>;
template void launch_lines(const Space&, const Impl::ShiftRows<Space, float, KnownRows>&);
template void launch_lines(const Space&, const Impl::ExitWaveColumns<Space, float, KnownColumns, true>&);
template void launch_lines(const Space&,
                           const Impl::CompareRows<Space, float, float, KnownRows, PatternLoss::Amplitude>&);
template void launch_lines(const Space&, const Impl::GradientColumns<Space, float, KnownColumns, false>&);
template void launch_lines(const Space&, const Impl::GradientColumns<Space, float, KnownColumns, true>&);
template void launch_lines(const Space&, const Impl::SumShiftedRows<Space, float, KnownRows>&);

/// Without PatternPath::Lines, whose kernels take long: those above are of every kind.
struct GeneralAlone : Impl::FusedDetectors<> {
  template <class>
  static constexpr bool lines = false;
};

} // namespace

void every_operator(const Space& space, const ScanPositions<Space>& scan, const View<float**>& real,
                    const View<Kokkos::complex<float>**>& object,
                    const View<Kokkos::complex<float>***>& probe,
                    const View<Kokkos::complex<float>****>& waves, const View<float***>& targets,
                    const View<double*>& losses) {
  complex_object(space, real, real, object);
  complex_object_gradients(space, real, real, object, {.amplitude = real});
  exit_waves(space, scan, object, probe, waves);
  Propagator<Space, float>(space, 8, 1, 2.0).propagate(space, waves);
  compare_patterns(space, waves, targets, losses);
  (void)choose_pattern_loss(space, targets);
  exit_wave_gradients(space, scan, object, probe, waves, {.object = object, .probe = probe});
}

} // namespace Ptychography

template class Bracewell::Adam<Ptychography::Space, float>;
template class Bracewell::AberratedProbe<Ptychography::Space, float>;
template class Bracewell::Impl::ReducedGrid<Ptychography::Space, float>;
template class Bracewell::PtychographySolver<
    Ptychography::Space, float, Bracewell::Impl::CompiledWith<float, Ptychography::GeneralAlone>>;
