// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/run.hpp"
#include "common/signals.hpp"
#include "common/views.hpp"

#include <filesystem>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

std::filesystem::path picture_path(const RunOptions& options);

/// A picture of the middle slice that is there while a run goes on: it goes with this, and by signals.
class FirstPicture {
public:
  /// Where it will be.
  static std::filesystem::path path(const RunOptions& options);

  FirstPicture(const RunOptions& options, const std::vector<float>& slice, int width);
  FirstPicture(const FirstPicture&) = delete;
  ~FirstPicture();

private:
  std::filesystem::path path_;
  RemovedOnSignals removed_on_signals_;
};

/// The picture of the middle slice, drawn beside the work; where there are several processes, by the first one at the end.
class MiddlePicture {
public:
  /// @param path  empty: there is none
  MiddlePicture(std::filesystem::path path, int width) : path_(std::move(path)), width_(width) {}

  /// The slice, in the process that has it.
  void take(std::vector<float> slice);
  /// After the work. Collective.
  void collect(const Space& space);
  /// In the first process, until it is drawn.
  void wait() { drawn_.get(); }

private:
  void draw(std::vector<float> slice);

  std::filesystem::path path_;
  int width_;
  std::vector<float> slice_; ///< of several processes, in one of them
  std::future<void> drawn_;
};

/// Writes slices at several centres or rolls in rows of panels, with the greys of the middle one.
void write_panels(const std::filesystem::path& path, const std::vector<std::vector<float>>& slices,
                  const std::vector<std::string>& captions, int width);

} // namespace Bracewell::Examples
