// SPDX-License-Identifier: MIT
// What the bindings call: Bracewell's operators for arrays whose rank is known at run time. This header knows neither
// Kokkos nor Python, so that each side compiles alone; a backend and a precision are compiled per file (instance_*.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Python {

/// Memory of a caller: rows without gaps. Not given where a default is made.
struct Tensor {
  void* data = nullptr;
  int rank = 0;
  std::int64_t extents[6] = {};
  std::int64_t width = 0; ///< full width of a half spectrum; 0: not stated
  bool given = false;
};

enum class Backend { Host, Device };

/// Where work is queued: a stream of a device; hosts have none.
struct Queue {
  std::uintptr_t stream = 0;
  int device = 0;
};

/// ProjectionOptions and the kernel, by name.
struct ProjectionSettings {
  std::string interpolation;
  std::optional<double> oversampling, radius, ewald_radius;
  bool absolute_weights = false, skip_redundant = false;
};

struct PoseTensors {
  Tensor matrices, shifts, filters;
};

/// A plan behind which the backend and the precision are out of sight. Its calls take the queue that they run on.
struct Plan {
  virtual ~Plan() = default;
  virtual std::size_t memory_bytes() const = 0;
};

struct ScoringSettings {
  std::int64_t images = 0;
  int shifts = 0, height = 0, width = 0, best = 0;
  std::string score; ///< squared_difference, correlation
};

struct ScoreTensors {
  Tensor all, best, poses, shifts;
};

struct ScoringPlan : Plan {
  virtual void set_images(Queue, const Tensor& images, const Tensor& filters, const Tensor& weights) = 0;
  virtual void set_shifts(Queue, const Tensor& shifts) = 0;
};

struct ExpectationSettings {
  std::int64_t images = 0, bytes = 0;
  int shifts = 0, height = 0, width = 0, best = 0;
  bool reproducible = false; ///< Strategy::Owned
};

struct ExpectationTensors {
  Tensor log_evidence, class_shares, posteriors, classes, poses, shifts, data, weight, shares, candidates,
      shift_sums, shell_sums;
};

struct ExpectationStep : Plan {
  virtual std::vector<std::int64_t> shell_sizes() const = 0;
  virtual void set_images(Queue, const Tensor& images, const Tensor& noise, const Tensor& filters,
                          const Tensor& origins) = 0;
  virtual void set_shifts(Queue, const Tensor& shifts, const Tensor& priors) = 0;
};

/// A PreparedReference of any kernel; the settings of its calls say nothing of one.
struct ReferencePlan : Plan {
  /// With a plan of the same backend and precision.
  virtual void score(Queue, const ScoringPlan&, const Tensor& matrices, const ScoreTensors&) const = 0;
  /// The same of an expectation. Waits.
  virtual void expect(Queue, ExpectationStep&, const Tensor& matrices, const std::vector<std::int64_t>& first,
                      const Tensor& priors, const Tensor& class_priors, const ExpectationTensors&,
                      double share) const = 0;
  /// The poses that have the posterior, and where those of each image begin. Waits.
  virtual std::pair<std::vector<std::int32_t>, std::vector<std::int64_t>>
  support(Queue, ExpectationStep&, const Tensor& matrices, const std::vector<std::int64_t>& first,
          const Tensor& priors, const Tensor& class_priors, const Tensor& means, double share,
          std::int64_t most) const = 0;
  virtual void project(Queue, const PoseTensors&, const Tensor& projections, const ProjectionSettings&) = 0;
  virtual void project_gradients(Queue, const PoseTensors&, const Tensor& cotangent, const Tensor& matrices,
                                 const Tensor& shifts, const ProjectionSettings&) = 0;
};

template <Backend backend, class T>
struct Projection {
  static void project(Queue, const Tensor& reconstruction, const PoseTensors&, const Tensor& projections,
                      const ProjectionSettings&);
  /// `half`: stored in half precision, which float alone has.
  static std::unique_ptr<ReferencePlan> prepare(Queue, const Tensor& reconstruction,
                                                const std::string& interpolation, bool half);
  static std::unique_ptr<ScoringPlan> scoring(Queue, const ScoringSettings&, const ProjectionSettings&);
  static std::unique_ptr<ExpectationStep> expectation(Queue, const ExpectationSettings&,
                                                      const ProjectionSettings&);
  static void project_gradients(Queue, const Tensor& reconstruction, const PoseTensors&,
                                const Tensor& cotangent, const Tensor& reconstruction_gradient,
                                const Tensor& matrices, const Tensor& shifts, const ProjectionSettings&);
  static void backproject(Queue, const Tensor& projections, const PoseTensors&, const Tensor& weights,
                          const Tensor& data, const Tensor& weight, const ProjectionSettings&);
  static void backproject_gradients(Queue, const Tensor& projections, const PoseTensors&,
                                    const Tensor& weights, const Tensor& data, const Tensor& weight,
                                    const Tensor& projections_gradient, const Tensor& weights_gradient,
                                    const Tensor& matrices, const Tensor& shifts, const ProjectionSettings&);
};

/// The parameters of CTFs, nine numbers each in the order of CTFParameters.
using ContrastParameters = std::vector<double>;

/// The grid's type of values, the kernel and the mates, by name.
struct PointSettings {
  bool complex = true;
  std::string interpolation, mates;
};

template <Backend backend, class T>
struct Points {
  static void sample(Queue, const Tensor& grid, const Tensor& points, const Tensor& values,
                     const PointSettings&);
  static void insert(Queue, const Tensor& values, const Tensor& points, const Tensor& grid,
                     const PointSettings&);
  static void sample_gradients(Queue, const Tensor& grid, const Tensor& points, const Tensor& cotangent,
                               const Tensor& of_grid, const Tensor& of_points, const PointSettings&);
  static void insert_gradients(Queue, const Tensor& values, const Tensor& points, const Tensor& cotangent,
                               const Tensor& of_values, const Tensor& of_points, const PointSettings&);
};

/// Sums along lines in real space.
template <Backend backend, class T>
struct Lines {
  static void project(Queue, const Tensor& volume, const PoseTensors&, const Tensor& images);
  static void backproject(Queue, const Tensor& images, const PoseTensors&, const Tensor& volume);
  static void gradients(Queue, const Tensor& volume, const PoseTensors&, const Tensor& cotangent,
                        const Tensor& of_volume, const Tensor& of_matrices, const Tensor& of_shifts);
};

template <Backend backend, class T>
struct Contrast {
  static void evaluate(Queue, const ContrastParameters&, double pixel_size, const Tensor& values);
  /// Of every parameter. Waits.
  static ContrastParameters gradients(Queue, const ContrastParameters&, double pixel_size,
                                      const Tensor& value_gradients);
  static void filter_gradients(Queue, const Tensor& projections, const Tensor& cotangent,
                               const Tensor& gradients);
};

struct NormaliseSettings {
  double wiener = 0, edge = 0;
  std::optional<double> floor, radius;
  std::string interpolation;
};

struct EqualiseSettings {
  std::vector<int> box;
  int steps = 20;
  double even = 0;
  bool keep_power = false;
  std::optional<double> radius;
};

template <Backend backend, class T>
struct Reconstruct {
  static void pad_centre(Queue, const Tensor& centred, const Tensor& padded);
  static void crop_centre(Queue, const Tensor& padded, const Tensor& centred, double scale);
  static void correct_rolloff(Queue, const Tensor& volume, const std::vector<int>& padded,
                              const std::string& interpolation);
  static void normalise(Queue, const Tensor& data, const Tensor& weight, const Tensor& volume,
                        const Tensor& averages, const Tensor& prior, const NormaliseSettings&);
  /// Operators: nine numbers of R, row by row, and three of t.
  static void symmetrise(Queue, const Tensor& spectrum, const Tensor& scratch, bool complex,
                         const std::vector<double>& operators, const std::string& interpolation,
                         std::optional<double> radius);
  static void half_set_moments(Queue, const Tensor& first_data, const Tensor& first_weight,
                               const Tensor& second_data, const Tensor& second_weight, const Tensor& moments,
                               const Tensor& prior);
  /// `even`: how far from one weights may stay; 0: all steps. Returns how far they are from one before the last step. Waits.
  static double equalise(Queue, const Tensor& weight, const Tensor& divisor, const Tensor& averages,
                         const Tensor& spectrum, const Tensor& volume, const Tensor& error,
                         const Tensor& prior, const EqualiseSettings&);
  /// Of numbers on the host: [signal, noise, weight], a shell each.
  static std::vector<std::vector<double>> signal_and_noise(const std::vector<double>& moments,
                                                           const std::string& interpolation,
                                                           std::optional<std::size_t> whole);
  static std::vector<double> wiener_prior(const std::vector<std::vector<double>>& powers, double oversampling,
                                          double part);
  static std::vector<double> symmetry_operators(const std::string& name);
  static std::vector<double> helical_operators(double rise, double twist, int count,
                                               const std::string& group);
  static void fourier_shell_correlation(Queue, const Tensor& first, const Tensor& second,
                                        const Tensor& correlation);
};

struct NonuniformPlan : Plan {
  virtual void set_points(Queue, const Tensor& points) = 0; ///< as many as before
  virtual void adjoint(Queue, const Tensor& samples, const Tensor& images) = 0;
  virtual void forward(Queue, const Tensor& images, const Tensor& samples) = 0;
  virtual void point_gradients(Queue, const Tensor& images, const Tensor& samples, const Tensor& gradients,
                               const Tensor& scratch) = 0;
};

struct ToeplitzPlan : Plan {
  virtual void execute(Queue, const Tensor& images, const Tensor& results) = 0;
};

struct SumsPlan : Plan {
  virtual void set_points(Queue, const Tensor& points, const Tensor& targets) = 0;
  virtual void forward(Queue, const Tensor& values, const Tensor& sums) = 0;
  virtual void adjoint(Queue, const Tensor& sums, const Tensor& values) = 0;
};

struct NonuniformSettings {
  std::vector<int> shape; ///< of images; of sums none
  std::int64_t slices = 1;
  double tolerance = 1e-4;
  std::optional<double> oversampling;
};

struct TomographyPlan : Plan {
  virtual void backproject(Queue, const Tensor& projections, const Tensor& images) = 0;
  virtual void project(Queue, const Tensor& images, const Tensor& projections) = 0;
  /// Of FourierNormal.
  virtual void normal(Queue, const Tensor& images, const Tensor& results) = 0;
  /// Of ViewSlopes.
  virtual void slopes(Queue, const Tensor& images, const Tensor& of_angles, const Tensor& of_shifts) = 0;
};

struct TomographySettings {
  std::string method; ///< fourier, line, log_polar; fourier_normal, view_slopes
  std::vector<double> angles, weights, shifts;
  int width = 0, image = 0;
  std::optional<double> centre;
  std::int64_t slices = 1;
  bool line_integrals = false;
  double tolerance = 1e-4;
};

struct LaminographySettings {
  std::string method; ///< fourier, line
  std::vector<double> angles, weights;
  int width = 0, rows = 0, image = 0, depth = 0;
  double tilt = 0;
  std::optional<double> centre, row_centre;
  bool line_integrals = false;
  double tolerance = 1e-4;
};

struct RowPlan : Plan {
  /// @param valid  a mask of sinograms, of the removal of stripes; or none
  virtual void execute(Queue, const Tensor& in, const Tensor& out, const Tensor& valid) = 0;
};

struct FilterSettings {
  std::string filter;
  bool edge = false;
  std::int64_t rows = 1;
  int width = 0;
  double shift = 0;
};

struct StripeSettings {
  int angles = 0, width = 0;
  std::string method; ///< sorting, offset, all, wavelet
  double strength = 1;
  int window = 5, levels = 3;
  double damping = 1, dead = 3;
};

template <Backend backend, class T>
struct Tomography {
  static std::unique_ptr<NonuniformPlan> nonuniform(Queue, const Tensor& points, const NonuniformSettings&);
  static std::unique_ptr<SumsPlan> sums(Queue, const Tensor& points, const Tensor& targets,
                                        const NonuniformSettings&);
  /// Of complex or real images.
  static std::unique_ptr<ToeplitzPlan> toeplitz(Queue, const Tensor& points, const Tensor& weights,
                                                const NonuniformSettings&, bool is_complex);
  static void sum_views(Queue, const Tensor& slopes, const Tensor& cotangents, const Tensor& sums);
  static std::unique_ptr<TomographyPlan> plan(Queue, const TomographySettings&);
  static std::unique_ptr<TomographyPlan> laminography(Queue, const LaminographySettings&);
  static std::unique_ptr<RowPlan> filter(Queue, const FilterSettings&);
  static std::unique_ptr<RowPlan> stripes(Queue, const StripeSettings&);
  static double find_centre(Queue, const Tensor& sinogram, const std::vector<double>& angles,
                            std::optional<double> first, std::optional<double> last, const Tensor& valid);
  static void normalise(Queue, const Tensor& raw, const Tensor& dark, const Tensor& flat,
                        const Tensor& sinograms, const Tensor& valid, bool logarithm, int air_begin,
                        int air_end);
};

std::vector<double> angular_density_weights(const std::vector<double>& angles);

struct PhaseSettings {
  std::string method; ///< paganin, generalised_paganin, weak_object
  std::int64_t angles = 1;
  int rows = 0, width = 0;
  double wavelength = 0, distance = 0, pixel_size = 0, delta_beta = 0, regularisation = 1e-2;
  std::optional<int> padding;
  bool attenuation = true;
};

struct LeastSquaresSettings {
  std::string method;                     ///< conjugate_gradients, sirt, total_variation
  std::vector<std::int64_t> data, images; ///< three extents each
  bool independent = true, normal = false;
};

struct LeastSquaresRun {
  int iterations = 20;
  double discrepancy = 0, relaxation = 1;
  bool nonnegative = false;
  double total_variation = 0;
  int inner_iterations = 4;
};

struct LeastSquaresPlan : Plan {
  /// With a plan of the same backend and precision. Returns the number of iterations.
  virtual int solve(Queue, TomographyPlan& pair, const Tensor& data, const Tensor& images,
                    const Tensor& weights, const Tensor& mask, const LeastSquaresRun&) = 0;
  virtual std::vector<double> residuals(Queue) = 0;
};

/// What comes before a reconstruction, and iterations.
template <Backend backend, class T>
struct Beamline {
  static std::unique_ptr<RowPlan> phase(Queue, const PhaseSettings&);
  static void remove_outliers(Queue, const Tensor& sinograms, const Tensor& cleaned, int window,
                              double threshold);
  static double find_overlap(Queue, const Tensor& sinogram, const std::vector<double>& angles, int least,
                             const Tensor& valid);
  static void weigh_half_acquisition(Queue, const Tensor& sinograms, const Tensor& wider, double centre);
  static void bin_frames(Queue, const Tensor& frames, const Tensor& binned, int bin);
  static void turn_detector(Queue, const Tensor& sinograms, const Tensor& turned, double angle, double row,
                            double column);
  static std::unique_ptr<LeastSquaresPlan> least_squares(Queue, const LeastSquaresSettings&);
};

/// Rotation matrices, row by row, one after another: see rotation_grid_size.
std::vector<double> rotation_grid(double degrees);

/// Width and axis of the rows that a row of half acquisition is part of.
std::pair<int, double> half_acquisition(int width, double centre);

struct PtychographySettings {
  std::int64_t rows = 0, columns = 0;
  int probe = 0, detector = 0, modes = 1;
  std::string loss, weights;
  bool scale_per_pattern = true;
  double counts = 1, background = 1e-3;
  std::optional<double> fresnel_number;
  bool refine_positions = false;
  std::vector<double> slice_fresnel_numbers; ///< one less than there are slices
  int relaxation = 0;
  bool pattern_factors = false, detector_background = false;
  std::vector<std::vector<double>> slice_shifts = {}; ///< none, or one less than there are slices
  bool refine_slice_shifts = false, reduced_grid = false;
};

struct PtychographyTensors {
  Tensor object, probe, positions, factors, detector_background, coefficients, relaxation, slice_shifts;
  Tensor loss, pattern_losses, object_gradient, probe_gradient, position_gradient, factor_gradient,
      background_gradient, coefficient_gradient, relaxation_gradient, slice_shift_gradient;
  Tensor subset;
};

struct PtychographyPlan : Plan {
  virtual void set_patterns(Queue, std::int64_t first, const Tensor& patterns, const Tensor& weights) = 0;
  virtual void evaluate(Queue, const PtychographyTensors&) = 0;
};

struct SolverSettings {
  std::string steps; ///< adam, projections, least_squares
  double object_rate = 0.01, probe_rate = 0.001, position_rate = 0, position_limit = 5, regularisation = 1;
  std::int64_t projections_first = 0;
  double coefficient_rate = 0.01, relaxation_rate = 0.001, factor_rate = 0.01, background_rate = 0.1;
  std::string position_moves = "single";     ///< single, affine, both
  std::vector<double> amplitude_limits = {}; ///< two, or none
  std::optional<double> probe_support = {};
  double total_variation = 0;
};

/// Of PtychographySchedule: passes, batches, passes of projections, rates of object and probe, then a factor for each pass.
std::vector<double> ptychography_schedule(std::int64_t patterns, int passes, int batches);

struct SolverPlan : Plan {
  /// What is sought.
  enum Part { Amplitude, Phase, Probe, Displacements, Coefficients, Relaxation, Factors, BackgroundRoots };
  /// Copies a part of it.
  virtual void set(Queue, Part, const Tensor&) = 0;
  virtual void get(Queue, Part, const Tensor&) const = 0;
  virtual void step(Queue, const Tensor& subset) = 0;
  virtual void move_windows(Queue) = 0;
  virtual void set_rate_factor(double) = 0;
  virtual void set_object_support(Queue, const Tensor& support, double beyond) = 0;
  /// Waits.
  virtual std::vector<double> losses(Queue) const = 0;
};

struct AdamPlan : Plan {
  struct Group {
    Tensor values, gradients;
    double learning_rate;
  };
  virtual void step(Queue, const std::vector<Group>&) = 0;
};

/// Optics in one unit of lengths: wavelength, pixel size, and the unit of the spherical aberration in it; radians.
struct LensSettings {
  int probe = 0, detector = 0;
  double wavelength = 0, pixel_size = 0, convergence_angle = 0, cs_to_length = 1e6;
};

struct AberratedProbePlan : Plan {
  virtual void evaluate(Queue, const Tensor& parameters, const Tensor& probe) = 0;
  virtual void gradients(Queue, const Tensor& parameters, const Tensor& probe_gradient,
                         const Tensor& parameter_gradient) = 0;
};

template <Backend backend, class T>
struct Ptychography {
  static std::unique_ptr<AberratedProbePlan> lens(Queue, const LensSettings&);
  static std::unique_ptr<PtychographyPlan> loss(Queue, const Tensor& positions, const PtychographySettings&);
  /// choose_pattern_loss: whether it is Poisson's, else the amplitudes'. Waits.
  static bool few_counts(Queue, const Tensor& patterns, const Tensor& weights);
  /// Takes the loss, of the same backend and precision, over: no call of it may follow.
  static std::unique_ptr<SolverPlan> solver(Queue, PtychographyPlan& loss, const SolverSettings&);
  static std::unique_ptr<AdamPlan> adam(Queue, const std::vector<std::size_t>& sizes, double beta1,
                                        double beta2, double epsilon);
};

/// Kokkos' life in this process. All plans have to be gone before it ends.
void initialize();
void finalize();
/// Name of the backend of devices, "cuda" or "hip"; empty where there is none.
std::string device_backend();
std::string kokkos_version();
std::string bracewell_version();

} // namespace Bracewell::Python
