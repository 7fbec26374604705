// SPDX-License-Identifier: MIT
#pragma once

/// \file
/// The whole library. Each header also stands alone.

/// \namespace Bracewell
/// What the library offers. The names of Bracewell::Impl are its own and can change at any time.

#include <bracewell/array.hpp>
#include <bracewell/error.hpp>
#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf.hpp>
#include <bracewell/geometry/ctf_gradients.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/pose_gradients.hpp>
#include <bracewell/geometry/quaternion.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/geometry/symmetrise.hpp>
#include <bracewell/geometry/symmetry.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/gridding.hpp>
#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/gridding/nonuniform_sums.hpp>
#include <bracewell/gridding/options.hpp>
#include <bracewell/gridding/toeplitz_normal.hpp>
#include <bracewell/half.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/kernel.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/optimize/adam.hpp>
#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/optimize/least_squares_options.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/building_blocks.hpp>
#include <bracewell/project/choose.hpp>
#include <bracewell/project/filter_gradients.hpp>
#include <bracewell/project/options.hpp>
#include <bracewell/project/points.hpp>
#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/score_poses.hpp>
#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/solver.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/mask.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>
#include <bracewell/reconstruct/shells.hpp>
#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/reconstruct/spectrum_gradients.hpp>
#include <bracewell/reconstruct/weight_equaliser.hpp>
#include <bracewell/rfft/layout.hpp>
#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/detector.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/fourier_normal.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/line_laminography.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/options.hpp>
#include <bracewell/tomography/outliers.hpp>
#include <bracewell/tomography/phase.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripe_options.hpp>
#include <bracewell/tomography/stripes.hpp>
#include <bracewell/tomography/view_slopes.hpp>
#include <bracewell/version.hpp>
