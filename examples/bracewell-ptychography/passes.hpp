// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/solver_views.hpp"
#include "bracewell-ptychography/tiled_arrays.hpp"
#include "common/checkpoint.hpp"
#include "common/input_error.hpp"
#include "common/processes.hpp"
#include "common/progress.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// The passes so far, besides what the solver knows.
struct Passes {
  std::vector<double> losses; ///< mean of each
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> order; ///< of the batches in the latest
  std::mt19937_64 generator;
};

/// The patterns of every step of a pass.
struct Batches {
  std::optional<PatternBatches<Space>> lists; ///< of this process; absent: all patterns are one batch
  int first = 0;                              ///< of the lists
  std::vector<std::int64_t> sizes = {};       ///< in all processes

  Array<const int, Memory> patterns(int batch) const {
    return lists ? (*lists)[first + batch] : Array<const int, Memory>();
  }
};

/// The passes of a solver over the patterns, with checkpoints.
template <class Solver>
class PassLoop {
public:
  /// @param half  0 or 1: passes over one or the other half of the patterns, by chance
  PassLoop(const Space& space, const Job& job, Solver& solver, std::optional<int> half = {})
      : space_(space), job_(job), solver_(solver), half_(half),
        batches_(half ? std::max(1, job.batches() / 2) : job.batches()), arrays_(space, job) {}

  /// Mean loss of every pass, and that at the end, where the solver has the best state that a pass began with.
  /// @param checkpoint  or null: neither read nor written
  std::vector<double> iterate(Checkpoint* checkpoint) const {
    const Batches batches = make_batches();
    Passes passes{.losses = {},
                  .order = std::vector<int>(static_cast<std::size_t>(batches_)),
                  .generator = std::mt19937_64(job_.options().seed)};
    std::iota(passes.order.begin(), passes.order.end(), 0);
    const DeviceView<double> last("Bracewell::examples::loss");
    const auto present = [&] {
      double sum = 0;
      for (int batch = 0; batch < (half_ ? batches_ : 1); ++batch) {
        solver_.evaluate(space_, last, half_ ? batches.patterns(batch) : Array<const int, Memory>());
        sum += download(space_, last)[0];
      }
      return sum / (half_ ? batches_ : 1);
    };
    SolverViews before = own().like(), best = own().like();
    if (checkpoint && checkpoint->resumed())
      resume(*checkpoint->resumed(), passes, best);
    else if (job_.continued()) { // the start may stay the best state
      own().copy_to(space_, best);
      passes.least = present();
    }
    std::vector<double>& losses = passes.losses;
    {
      Progress progress(half_ ? "reconstructing a half of the scan" : "reconstructing", "passes",
                        job_.passes());
      progress.add(static_cast<std::int64_t>(losses.size()));
      while (std::ssize(losses) < job_.passes() && !stands_still(losses)) {
        own().copy_to(space_, before);
        make_pass(batches, passes);
        if (!std::isfinite(losses.back()))
          fail_not_finite(losses.size());
        if (losses.back() < passes.least) {
          passes.least = losses.back();
          std::swap(before, best);
        }
        if (checkpoint)
          save_if_due(*checkpoint, passes, best);
        progress.add(1, "loss " + four_digits(losses.back()));
      }
    }
    losses.push_back(present());
    for (const double loss : losses)
      if (!std::isfinite(loss))
        throw std::runtime_error("the loss is not a finite number: lower the learning rates");
    if (!half_ && losses.back() > losses.front())
      job_.provenance().assume("the loss grew from " + four_digits(losses.front()) + " to " +
                               four_digits(losses.back()) + ": lower --object-rate and --probe-rate");
    if (passes.least < losses.back()) {
      const double end = losses.back();
      own().copy_to(space_, before);
      best.copy_to(space_, own());
      losses.back() = present();
      if (losses.back() > end) {
        before.copy_to(space_, own());
        losses.back() = present();
      }
    }
    return losses;
  }

private:
  /// A loss of a pass, which no further pass mends.
  [[noreturn]] static void fail_not_finite(std::size_t pass) {
    throw std::runtime_error("the loss is not a finite number in pass " + std::to_string(pass) +
                             (pass == 1
                                  ? ": patterns or probe have values beyond single precision, or learning "
                                    "rates are too high (--object-rate, --probe-rate)"
                                  : ": lower the learning rates (--object-rate, --probe-rate)"));
  }

  /// Whether passes whose number nobody asked for bring nothing any more, as rates have fallen.
  bool stands_still(const std::vector<double>& losses) const {
    constexpr std::size_t few = 5;
    if (job_.options().passes || !job_.decays() || losses.size() <= few ||
        job_.schedule().rate_factor(static_cast<int>(losses.size())) > 0.5)
      return false;
    return *(losses.end() - 1) > (1 - 2e-4) * *(losses.end() - 1 - few);
  }

  SolverViews own() const { return SolverViews::of(solver_); }

  Batches make_batches() const {
    Batches batches;
    if (half_)
      batches.first = *half_ * batches_;
    if (half_ || batches_ > 1)
      batches.lists.emplace(space_, job_.own_count(), (half_ ? 2 : 1) * batches_, job_.options().seed);
    for (int batch = 0; batch < batches_; ++batch)
      batches.sizes.push_back(std::int64_t(
          sum_over_processes(double(batches.lists ? batches.patterns(batch).size() : job_.own_count()))));
    return batches;
  }

  /// A step with every batch, in the order of `passes`, which gets the mean of their losses.
  void make_pass(const Batches& batches, Passes& passes) const {
    const auto pass = static_cast<int>(passes.losses.size());
    if (job_.decays())
      solver_.set_rate_factor(job_.schedule().rate_factor(pass));
    solver_.move_windows(space_);
    auto& order = passes.order;
    std::shuffle(order.begin(), order.end(), passes.generator);
    for (std::size_t b = 0; b < order.size(); ++b) {
      try {
        solver_.step(space_, batches.patterns(order[b]), batches.sizes[std::size_t(order[b])]);
      } catch (const Error& error) { // on hosts
        if (error.argument() == "loss")
          fail_not_finite(passes.losses.size() + 1);
        throw;
      }
      if (b + 1 < order.size())
        solver_.prefetch(batches.patterns(order[b + 1]));
    }
    const auto steps = solver_.losses(space_);
    passes.losses.push_back(std::accumulate(steps.end() - batches_, steps.end(), 0.0) / batches_);
  }

  /// visit(name, values, of) for all that further passes depend on, but for counts and losses.
  template <class SolverState, class Visit>
  void for_each_array(SolverState& state, const Visit& visit) const {
    visit("/solver/amplitude", std::span(state.amplitude), Of::Object);
    visit("/solver/phase", std::span(state.phase), Of::Object);
    visit("/solver/probe", std::span(state.probe), Of::All);
    visit("/solver/aberrations", std::span(state.aberrations), Of::All);
    visit("/solver/displacements", std::span(state.displacements), Of::Patterns);
    if (job_.has_more()) {
      visit("/solver/coefficients", std::span(state.coefficients), Of::All);
      visit("/solver/relaxation", std::span(state.relaxation), Of::All);
      visit("/solver/factors", std::span(state.factors), Of::All);
      visit("/solver/background_roots", std::span(state.background_roots), Of::All);
    }
    visit("/solver/windows", std::span(state.windows), Of::Patterns);
    // In the order of Adam's arrays.
    const auto averages = [&](const std::string& name, auto& values) {
      std::span rest(values);
      const auto next = [&](const char* part, std::size_t count, Of of) {
        visit(name + part, rest.first(count), of);
        rest = rest.subspan(count);
      };
      if (job_.by_adam()) {
        next("/amplitude", state.amplitude.size(), Of::Object);
        next("/phase", state.phase.size(), Of::Object);
      }
      const std::size_t more = 2 * state.coefficients.size() + 2 * state.relaxation.size() +
                               state.factors.size() + state.background_roots.size();
      next("/probe", rest.size() - state.displacements.size() - more, Of::All);
      next("/displacements", state.displacements.size(), Of::Patterns);
      if (more > 0)
        next("/more", more, Of::All);
    };
    averages("/solver/means", state.adam.means);
    averages("/solver/squares", state.adam.squares);
    visit("/solver/losses", std::span(state.losses), Of::All);
  }
  /// The same for one of the best state.
  template <class Visit>
  void for_each_view(const SolverViews& best, const Visit& visit) const {
    visit("/best/amplitude", best.amplitude, Of::Object);
    visit("/best/phase", best.phase, Of::Object);
    visit("/best/probe", best.probe, Of::All);
    visit("/best/aberrations", best.aberrations, Of::All);
    visit("/best/displacements", best.displacements, Of::Patterns);
    if (job_.has_more()) {
      visit("/best/coefficients", best.coefficients, Of::All);
      visit("/best/relaxation", best.relaxation, Of::All);
      visit("/best/factors", best.factors, Of::All);
      visit("/best/background_roots", best.background_roots, Of::All);
    }
  }

  /// Windows of the tile as windows of the whole object, or back.
  void move_windows(std::vector<int>& windows, int sign) const {
    for (std::size_t i = 0; i < windows.size(); ++i)
      windows[i] += sign * static_cast<int>(job_.tile().object.begin[i % 2]);
  }

  /// A checkpoint: all that the passes to come depend on, in the first process' file. Collective.
  void save(Hdf5Writer* file, const Passes& passes, const SolverViews& best) const {
    auto state = solver_.state(space_);
    move_windows(state.windows, 1);
    for_each_array(state, [&]<class Value>(const std::string& name, std::span<Value> values, Of of) {
      arrays_.write<Value>(file, name, values, of);
    });
    for_each_view(best, [&](const char* name, const auto& view, Of of) {
      const auto values = download(space_, view);
      arrays_.write(file, name, std::span(values), of);
    });
    if (!file)
      return;
    file->write_scalar<std::int64_t>("/solver/steps", state.adam.steps);
    arrays_.write(file, "/losses", std::span(passes.losses), Of::All);
    file->write_scalar<double>("/least", passes.least);
    arrays_.write(file, "/order", std::span(passes.order), Of::All);
    std::ostringstream generator;
    generator << passes.generator;
    const std::string text = generator.str();
    const std::vector<std::uint8_t> letters(text.begin(), text.end());
    arrays_.write(file, "/generator", std::span(letters), Of::All);
  }

  void save_if_due(Checkpoint& checkpoint, const Passes& passes, const SolverViews& best) const {
    if (sum_over_processes(is_first_process() && checkpoint.due() ? 1 : 0) == 0)
      return;
    if (is_first_process())
      checkpoint.save([&](Hdf5Writer& file) { save(&file, passes, best); });
    else
      save(nullptr, passes, best);
  }

  void resume(const Hdf5Reader& file, Passes& passes, const SolverViews& best) const {
    auto state = solver_.state(space_); // for its sizes
    passes.losses = file.read<double>("/losses");
    const std::size_t done = passes.losses.size(), batches = passes.order.size();
    state.losses.resize(done * batches);
    for_each_array(state, [&]<class Value>(const std::string& name, std::span<Value> values, Of of) {
      arrays_.read(file, name, values, of);
    });
    move_windows(state.windows, -1);
    state.adam.steps = file.read_scalar<std::int64_t>("/solver/steps");
    for_each_view(best, [&](const char* name, const auto& view, Of of) {
      std::vector<typename std::decay_t<decltype(view)>::non_const_value_type> values(view.size());
      arrays_.read(file, name, std::span(values), of);
      upload(space_, view, values);
    });
    passes.least = file.read_scalar<double>("/least");
    passes.order = read_exactly<int>(file, "/order", batches);
    const auto text = file.read<std::uint8_t>("/generator");
    std::istringstream generator(std::string(text.begin(), text.end()));
    generator >> passes.generator;
    auto sorted = passes.order;
    std::ranges::sort(sorted);
    if (done > static_cast<std::size_t>(job_.passes()))
      throw InputError(file.path().string() + ": --passes " + std::to_string(job_.passes()) + ": " +
                       std::to_string(done) + " were made already; expected as many or more");
    bool sound = generator && done <= static_cast<std::size_t>(job_.passes()) &&
                 state.adam.steps == static_cast<std::int64_t>(done * batches);
    for (std::size_t b = 0; b < batches; ++b)
      sound = sound && sorted[b] == static_cast<int>(b);
    if (!sound)
      throw InputError(file.path().string() + ": is damaged: its passes make no sense");
    solver_.restore(space_, state);
    job_.provenance().took(file.path(), std::to_string(done) + " passes");
  }

  const Space& space_;
  const Job& job_;
  Solver& solver_;
  std::optional<int> half_;
  int batches_; ///< of a pass
  TiledArrays arrays_;
};

} // namespace Bracewell::Examples
