// SPDX-License-Identifier: MIT
#include "bracewell-tomography/scan.hpp"

#include "common/angle_text.hpp"
#include "common/input_error.hpp"
#include "common/median.hpp"
#include "common/pipeline.hpp"
#include "common/progress.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <thread>
#include <utility>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

std::string parent_of(const std::string& name) { return name.substr(0, name.find_last_of('/')); }

/// The number at the end of a name without its ending, and what is before it; -1 where there is none.
std::pair<std::string, std::int64_t> numbered(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::size_t last = stem.find_last_not_of("0123456789"),
                    begin = last == std::string::npos ? 0 : last + 1;
  if (begin == stem.size() || stem.size() - begin > 15)
    return {stem, -1};
  return {stem.substr(0, begin), std::stoll(stem.substr(begin))};
}

bool has_word(std::string name, std::initializer_list<const char*> words) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return std::ranges::any_of(words, [&](const char* word) { return name.find(word) != std::string::npos; });
}

/// "3, 7 and 12"; at most eight.
std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, numbers.size()); ++i)
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  return numbers.size() > 8 ? text + " and others" : text;
}

constexpr double turn = 2 * std::numbers::pi;

/// Radians of a unit's name; nothing for a name that is none.
std::optional<double> radians_of(std::string unit) {
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  if (unit.ends_with('s'))
    unit.pop_back();
  constexpr std::pair<const char*, double> known[] = {{"", degree},
                                                      {"deg", degree},
                                                      {"degree", degree},
                                                      {"\xc2\xb0", degree},
                                                      {"rad", 1},
                                                      {"radian", 1},
                                                      {"mrad", 1e-3},
                                                      {"milliradian", 1e-3},
                                                      {"grad", 0.9 * degree},
                                                      {"gon", 0.9 * degree},
                                                      {"gradian", 0.9 * degree},
                                                      {"turn", turn}};
  for (const auto& [name, value] : known)
    if (unit == name)
      return value;
  return {};
}

} // namespace

Scan::Scan(const ScanOptions& options, Provenance& provenance) : options_(options) {
  std::error_code error;
  const ScanOptions usual;
  if (fs::is_directory(options_.file, error))
    open_series(provenance);
  if (may_be_hdf5(options_.file) && fs::is_regular_file(options_.file, error))
    open_hdf5();
  const bool is_hdf5 =
      may_be_hdf5(options_.file) && options_.file.string().find_first_of("*?[") == std::string::npos;
  const FramePlace place = is_hdf5 ? FramePlace::of(options_.data, options_.file) : FramePlace{options_.file};
  stack_ = std::make_shared<const FrameStack>(place, FrameRole::Projections);
  if (stack_->mrc())
    provenance.assume(stack_->mrc()->warnings().empty() ? std::vector<std::string>{} : [&] {
      std::vector<std::string> warnings = stack_->mrc()->warnings();
      for (std::string& warning : warnings)
        warning = path().string() + ": " + warning;
      return warnings;
    }());
  for (std::int64_t frame = 0; frame < stack_->count(); ++frame)
    scan_.frames.push_back({.place = frame, .time = double(frame)});
  const std::string key = parent_of(place.dataset) + "/image_key";
  if (stack_->hdf5() && stack_->hdf5()->has_dataset(key))
    read_image_key(key, provenance);
  open_frames(FrameKind::Flat, options_.flat, usual.flat,
              options_.flat_at.empty() ? Numbers{0} : options_.flat_at);
  open_frames(FrameKind::Dark, options_.dark, usual.dark, {0});
  if (!all(FrameKind::Dark).empty() && all(FrameKind::Flat).empty())
    throw InputError(path().string() + ": has " + (options_.dark.empty() ? "dark frames" : options_.dark) +
                     " but no " + (options_.flat.empty() ? "flat frames" : options_.flat));
  if (const auto angles = place_of_angles())
    take_angles(*angles, provenance);
  else
    make_angles(provenance);
  check_frames(provenance);
  leave_out(FrameKind::Projection, options_.leave_out, "--leave-out", provenance);
  leave_out_unwritten(provenance);
  sort_views(provenance);
}

/// Sorts the files of a folder into projections, flat and dark frames by their names.
void Scan::open_series(Provenance& provenance) {
  std::map<std::string, std::int64_t> groups; // files of every name without its number
  for (const auto& entry : fs::directory_iterator(options_.file))
    if (is_tiff_name(entry.path()))
      ++groups[numbered(entry.path()).first];
  if (groups.size() < 2 || std::ranges::any_of(groups, [](const auto& group) {
        return group.first.find_first_of("*?[") != std::string::npos;
      }))
    return;
  std::vector<std::string> projections, flats, darks;
  for (const auto& [name, count] : groups)
    (has_word(name, {"dark"})                                       ? darks
     : has_word(name, {"flat", "white", "bright", "open", "blank"}) ? flats
                                                                    : projections)
        .push_back(name);
  if (projections.size() != 1 || flats.size() > 1 || darks.size() > 1) {
    std::string found;
    for (const auto& [name, count] : groups)
      found += (found.empty() ? "" : ", ") + std::to_string(count) + " of " + name + "*";
    throw InputError(path().string() +
                     ": expected files of one name beside the flat and dark frames, found " + found +
                     "; use a pattern (\"" + (path() / projections.front()).string() + "*.tif\")");
  }
  const fs::path folder = options_.file;
  const auto pattern = [&](const std::string& name) {
    std::string ending;
    for (const auto& entry : fs::directory_iterator(folder))
      if (is_tiff_name(entry.path()) && numbered(entry.path()).first == name)
        ending = entry.path().extension().string();
    return (folder / (name + "*" + ending)).string();
  };
  const ScanOptions usual;
  std::string said =
      "by their names " + std::to_string(groups[projections[0]]) + " projections (" + projections[0] + "*)";
  if (!flats.empty() && options_.flat == usual.flat) {
    options_.flat = pattern(flats[0]);
    said += ", " + std::to_string(groups[flats[0]]) + " flat frames (" + flats[0] + "*)";
  }
  if (!darks.empty() && options_.dark == usual.dark) {
    options_.dark = pattern(darks[0]);
    said += ", " + std::to_string(groups[darks[0]]) + " dark frames (" + darks[0] + "*)";
  }
  provenance.took(folder, said);
  options_.file = pattern(projections[0]);
}

/// Finds the datasets of other layouts where the usual ones are not there.
void Scan::open_hdf5() {
  const Hdf5Reader file(options_.file);
  const ScanOptions usual;
  const auto first_of = [&](std::string& name, const std::string& usual_name,
                            std::initializer_list<std::string> others) {
    if (name != usual_name || file.has(name))
      return;
    for (const std::string& other : others)
      if (file.has_dataset(other)) {
        name = other;
        return;
      }
  };
  if (options_.data == usual.data && !file.has(options_.data)) {
    std::vector<std::string> found; // datasets with an image_key beside them
    const auto look = [&](const std::string& group) {
      for (const char* const name : {"/instrument/detector", "/data"})
        if (file.has_dataset(group + name + "/image_key") && file.has_dataset(group + name + "/data")) {
          found.push_back(group + name + "/data");
          return;
        }
    };
    for (const std::string& entry : file.list()) {
      if (file.has_dataset("/" + entry))
        continue;
      look("/" + entry);
      for (const std::string& inner : file.list("/" + entry))
        if (!file.has_dataset("/" + entry + "/" + inner))
          look("/" + entry + "/" + inner);
    }
    if (found.size() > 1)
      throw InputError(path().string() + ": has several scans, " + found[0] + " and " + found[1] +
                       " among them: --data says which one");
    if (found.size() == 1)
      options_.data = found[0];
  }
  const std::string group = parent_of(options_.data), entry = parent_of(group), above = parent_of(entry);
  first_of(options_.flat, usual.flat, {"/exchange/data_flat", "/exchange/white", "/exchange/flat"});
  first_of(options_.dark, usual.dark, {"/exchange/dark"});
  first_of(options_.angles, usual.angles,
           {"/exchange/angles", "/exchange/angle", group + "/rotation_angle",
            entry + "/sample/rotation_angle", above + "/sample/rotation_angle",
            entry + "/data/rotation_angle", above + "/data/rotation_angle"});
}

/// Sorts the frames of NXtomo: 0 is a projection, 1 flat, 2 dark, everything else is left out.
void Scan::read_image_key(const std::string& name, Provenance& provenance) {
  const auto keys = stack_->hdf5()->read<std::int64_t>(name);
  if (std::int64_t(keys.size()) != stack_->count())
    stack_->hdf5()->fail(name, "expected " + std::to_string(stack_->count()) +
                                   " values, one per frame, found " + std::to_string(keys.size()));
  std::int64_t number = 0, others = 0; // of projections
  for (ScanFrame& frame : scan_.frames) {
    const std::int64_t key = keys[std::size_t(frame.place)];
    frame.kind = key >= 0 && key < 3 ? FrameKind(key) : FrameKind::Other;
    others += frame.kind == FrameKind::Other;
    // Frames of other kinds were taken before the projection of the next number.
    frame.time = key == 0 ? double(number++) : double(number) - 0.5;
  }
  if (number == 0)
    stack_->hdf5()->fail(name, "has no 0, which projections have");
  if (!all(FrameKind::Flat).empty())
    flat_.stack = stack_;
  if (!all(FrameKind::Dark).empty())
    dark_.stack = stack_;
  provenance.took(path(),
                  "from " + name + " " + std::to_string(number) + " projections" +
                      (others > 0 ? " and " + std::to_string(others) + " frames that are none of all" : ""));
}

std::vector<ScanFrame*> Scan::all(FrameKind kind) {
  std::vector<ScanFrame*> result;
  for (ScanFrame& frame : scan_.frames)
    if (frame.kind == kind)
      result.push_back(&frame);
  return result;
}

/// @param times  numbers of the projections before which frames were taken, as many each time
void Scan::open_frames(FrameKind kind, const std::string& name, const std::string& usual,
                       const std::vector<std::int64_t>& times) {
  const FramePlace place = name.empty() ? FramePlace{} : FramePlace::of(name, options_.file);
  if (!name.empty() && name == usual &&
      !(stack_->hdf5() && !place.dataset.empty() && Hdf5Reader(options_.file).has(name)))
    return; // those of an image_key, or none
  std::erase_if(scan_.frames, [&](const ScanFrame& frame) { return frame.kind == kind; });
  Frames& frames = kind == FrameKind::Flat ? flat_ : dark_;
  frames = {};
  if (name.empty())
    return;
  frames.stack =
      std::make_shared<const FrameStack>(place, rows() == 1 ? FrameRole::BesideRow : FrameRole::Beside);
  const FrameStack& stack = *frames.stack;
  const auto sets = std::int64_t(times.size());
  if (stack.rows() != rows() || stack.width() != width())
    throw InputError(place.text() + ": expected frames [any, " + std::to_string(rows()) + ", " +
                     std::to_string(width()) + "] as the projections have, found shape " +
                     hdf5_text({stack.count(), stack.rows(), stack.width()}));
  if (stack.count() % sets != 0)
    throw InputError(path().string() + ": expected a multiple of " + std::to_string(sets) +
                     " frames without object, as many at every time of --flat-at, found " +
                     std::to_string(stack.count()));
  const Numbers unwritten = stack.never_written();
  std::int64_t written = 0; // of a time
  for (std::int64_t frame = 0, of_time = stack.count() / sets; frame < stack.count(); ++frame) {
    const bool valid = !std::ranges::binary_search(unwritten, frame);
    scan_.frames.push_back({.place = frame,
                            .kind = kind,
                            .time = double(times[std::size_t(frame / of_time)]) - 0.5,
                            .valid = valid});
    written = (frame % of_time == 0 ? 0 : written) + valid;
    if (frame % of_time == of_time - 1 && written == 0)
      stack.hdf5()->fail(place.dataset, "has frames that were never written, which read as zeros");
  }
}

double Scan::brightness(const Frames& frames, std::int64_t number) const {
  std::vector<float> row(static_cast<std::size_t>(width()));
  frames.stack->read_floats(number, 1, rows() / 2, 1, row);
  std::vector<double> values;
  for (const float value : row)
    if (std::isfinite(value))
      values.push_back(value);
  return values.empty() ? 0 : median(values);
}

std::int64_t Scan::choose_frames(FrameKind kind, const std::vector<std::vector<ScanFrame>>& sets,
                                 const std::vector<std::vector<double>>& values, double most,
                                 Provenance& provenance) {
  const bool is_flat = kind == FrameKind::Flat;
  Frames& frames = is_flat ? flat_ : dark_;
  std::int64_t count = 0;
  Numbers left_out;
  for (std::size_t k = 0; k < sets.size(); ++k) {
    if (sets[k].empty())
      continue;
    Numbers set, kept, others;
    const double middle = median(values[k]);
    for (std::size_t i = 0; i < sets[k].size(); ++i) {
      set.push_back(sets[k][i].place);
      const bool differs = std::abs(values[k][i] - middle) > most;
      (sets[k].size() > 2 && most > 0 && differs ? others : kept).push_back(set.back());
    }
    if (3 * others.size() <= set.size()) { // few, which something went wrong with
      left_out.insert(left_out.end(), others.begin(), others.end());
      for (ScanFrame* const frame : all(kind))
        frame->valid = frame->valid && std::ranges::find(others, frame->place) == others.end();
      set = kept;
    } else {
      provenance.assume(frames.stack->place().text() + ": " + std::to_string(others.size()) + " of " +
                        std::to_string(set.size()) + (is_flat ? " flat" : " dark") +
                        " frames differ in brightness from the others: all are averaged" +
                        (is_flat ? "; --flat-at says when they were taken" : ""));
    }
    frames.sets.push_back(set);
    count += std::int64_t(set.size());
  }
  if (!left_out.empty())
    provenance.assume(frames.stack->place().text() + ": " + (is_flat ? "flat" : "dark") + " frame" +
                      (left_out.size() > 1 ? "s " : " ") + listed(left_out) +
                      (left_out.size() > 1 ? " are" : " is") +
                      " left out: other frames have another brightness");
  keep_means(frames);
  return count;
}

void Scan::keep_means(Frames& frames) const {
  if (frames.sets.empty() || frames.stack->hdf5())
    return;
  const auto pixels = std::size_t(rows() * width());
  std::vector<float> means(frames.sets.size() * pixels);
  for (std::size_t k = 0; k < frames.sets.size(); ++k)
    read_mean(frames, std::int64_t(k), 0, rows(), std::span(means).subspan(k * pixels, pixels));
  frames.means = std::move(means);
}

/// Leaves out flat and dark frames whose brightness is not that of the others: the shutter was closed, or open.
void Scan::check_frames(Provenance& provenance) {
  leave_out(FrameKind::Flat, options_.leave_out_flats, "--leave-out-flats", provenance);
  std::vector<std::vector<ScanFrame>> sets[2] = {scan_.flats(), {scan_.valid(FrameKind::Dark)}};
  if (options_.flat_at.size() > 1 && sets[0].size() != options_.flat_at.size())
    throw InputError(path().string() + ": expected flat frames at each of the " +
                     std::to_string(options_.flat_at.size()) +
                     " times of --flat-at, and projections between them, found flat frames of " +
                     std::to_string(sets[0].size()) + (sets[0].size() == 1 ? " time" : " times"));
  std::vector<std::vector<double>> values[2];
  double typical[2] = {0, 0};
  for (int kind = 0; kind < 2; ++kind) {
    std::vector<double> together;
    for (const auto& set : sets[kind]) {
      values[kind].emplace_back();
      for (const ScanFrame& frame : set)
        values[kind].back().push_back(brightness(kind == 0 ? flat_ : dark_, frame.place));
      together.insert(together.end(), values[kind].back().begin(), values[kind].back().end());
    }
    typical[kind] = together.empty() ? 0 : median(together);
  }
  const double contrast = typical[0] - typical[1];
  const std::int64_t counts[2] = {
      choose_frames(FrameKind::Flat, sets[0], values[0], 0.2 * contrast, provenance),
      choose_frames(FrameKind::Dark, sets[1], values[1], 0.05 * contrast, provenance)};
  if (has_flat())
    provenance.took(path(), std::to_string(counts[0]) + " flat and " + std::to_string(counts[1]) +
                                " dark frames" +
                                (flat_sets() > 1 ? ", of " + std::to_string(flat_sets()) + " times" : ""));
}

std::optional<FramePlace> Scan::place_of_angles() const {
  if (options_.span)
    return {};
  const FramePlace place = FramePlace::of(options_.angles, options_.file);
  if (options_.angles != ScanOptions{}.angles)
    return place;
  if (stack_->hdf5() && Hdf5Reader(options_.file).has(options_.angles))
    return place;
  if (is_tilt_series())
    for (const char* const ending : {".tlt", ".rawtlt", ".mdoc"})
      for (const fs::path& text :
           {fs::path(path()).replace_extension(ending), fs::path(path().string() + ending)})
        if (fs::exists(text))
          return FramePlace{text};
  return {};
}

std::vector<double> Scan::angles_of(const std::vector<ScanFrame*>& views, std::vector<double> angles,
                                    Provenance& provenance) const {
  const std::size_t count = views.size();
  if (angles.size() == std::size_t(stack_->count()) && angles.size() != count) { // of all frames
    for (std::size_t p = 0; p < count; ++p)
      angles[p] = angles[std::size_t(views[p]->place)];
    angles.resize(count);
    return angles;
  }
  const TiffReader* const tiff = stack_->tiff();
  if (!tiff || !tiff->series() || angles.size() <= count)
    return angles;
  // Files are missing: their numbers say which angles are those of the others.
  const std::int64_t first = numbered(tiff->file_of(0)).second;
  std::vector<double> some;
  for (std::size_t p = 0; p < count; ++p) {
    const std::int64_t at = numbered(tiff->file_of(std::int64_t(p))).second - first;
    if (first >= 0 && at >= 0 && at < std::int64_t(angles.size()))
      some.push_back(angles[std::size_t(at)]);
  }
  const std::int64_t last = numbered(tiff->file_of(std::int64_t(count) - 1)).second;
  if (some.size() != count || last - first + 1 != std::int64_t(angles.size()))
    return angles;
  provenance.assume(path().string() + ": " + std::to_string(angles.size() - count) +
                    " numbers are missing among its files: angles are taken by number");
  return some;
}

void Scan::take_angles(const FramePlace& place, Provenance& provenance) {
  if (options_.first_angle)
    throw InputError(path().string() + ": has angles of its own: --first-angle goes with --span");
  std::optional<Hdf5Reader> hdf5;
  if (!place.dataset.empty())
    hdf5.emplace(place.file);
  const auto fail = [&](const std::string& message) { throw InputError(place.text() + ": " + message); };
  const std::vector<ScanFrame*> views = all(FrameKind::Projection);
  const std::size_t count = views.size();
  const std::vector<double> angles =
      angles_of(views, hdf5 ? hdf5->read<double>(place.dataset) : read_angle_text(place.file), provenance);
  if (angles.size() != count)
    fail("expected " + std::to_string(count) + " angles, one per projection, found " +
         std::to_string(angles.size()));
  for (const double angle : angles)
    if (!std::isfinite(angle))
      fail("has an angle that is not finite");
  const auto [least, most] = std::ranges::minmax(angles);
  const std::string range = shortest(least) + " to " + shortest(most),
                    unit = hdf5 ? hdf5->text_attribute(place.dataset, "units") : "";
  std::optional<double> factor = radians_of(unit);
  if (options_.angle_unit)
    factor = options_.angle_unit == AngleUnit::Radians ? 1 : degree;
  if (!factor)
    fail("expected units of degrees or radians, found \"" + unit + "\"; --angle-unit says what they are");
  if (most == least && count > 1)
    fail("all " + std::to_string(count) + " angles are " + shortest(least) + ", which is no scan");
  if (!options_.angle_unit && unit.empty() && most - least > 1 && most - least < 6.5 && count > 8) {
    factor = 1; // so few degrees are no scan
    provenance.assume(
        path().string() + ": angles from " + range +
        " are taken as radians, as they would be too few degrees; --angle-unit says what they are");
  }
  provenance.took(place.file, std::to_string(count) + " angles from " + range +
                                  (*factor == 1        ? " radians"
                                   : *factor == degree ? " degrees"
                                                       : ' ' + unit));
  double largest_step = 0;
  for (std::size_t p = 0; p < count; ++p) {
    views[p]->angle = angles[p] * *factor;
    if (p > 0)
      largest_step = std::max(largest_step, std::abs(views[p]->angle - views[p - 1]->angle));
  }
  if (largest_step > turn)
    provenance.assume(
        place.text() + ": angles are up to " + shortest(std::round(largest_step / degree)) +
        " degrees from one projection to the next, more than a turn: are they counts of an encoder?");
}

void Scan::make_angles(Provenance& provenance) {
  if (options_.span && !(std::abs(*options_.span) > 0 && std::abs(*options_.span) < 1e6))
    throw InputError("--span: expected degrees other than 0, found " + shortest(*options_.span));
  const std::vector<ScanFrame*> views = all(FrameKind::Projection);
  const std::size_t projections = views.size();
  std::int64_t count = std::int64_t(projections);
  // Numbers that are missing among files are views that are missing.
  const TiffReader* const tiff = stack_->tiff();
  if (tiff && tiff->series() && projections > 1) {
    const std::int64_t first = numbered(tiff->file_of(0)).second,
                       last = numbered(tiff->file_of(count - 1)).second;
    bool increasing = first >= 0;
    for (std::int64_t p = 1; p < count; ++p)
      increasing = increasing && numbered(tiff->file_of(p)).second > numbered(tiff->file_of(p - 1)).second;
    if (increasing && last - first + 1 > count && last - first + 1 < 2 * count) {
      provenance.assume(path().string() + ": " + std::to_string(last - first + 1 - count) +
                        " numbers are missing among its files: even angles leave them out");
      for (ScanFrame* const view : views)
        view->time = double(numbered(tiff->file_of(view->place)).second - first);
      count = last - first + 1;
    }
  }
  if (!options_.span)
    provenance.assume(path().string() + ": has no angles: " + std::to_string(count) +
                      " even ones over 180 degrees are assumed; use --span and --first-angle");
  const double span = options_.span.value_or(180), first = options_.first_angle.value_or(0); // degrees
  const auto steps = static_cast<double>(options_.both_ends ? std::max<std::int64_t>(1, count - 1) : count);
  for (ScanFrame* const view : views)
    view->angle = (first + span * view->time / steps) * degree; // to the last bit those of a file
}

void Scan::leave_out(FrameKind kind, const std::vector<IndexRange>& ranges, const std::string& option,
                     Provenance& provenance) {
  const std::vector<ScanFrame*> frames = all(kind);
  const bool projections = kind == FrameKind::Projection;
  const auto count = std::int64_t(frames.size());
  for (const IndexRange& range : ranges) {
    if (range.begin < 0 || range.end <= range.begin || range.end > count)
      throw InputError(path().string() + ": expected " + option + " within 0:" + std::to_string(count) +
                       ", found " + std::to_string(range.begin) + ":" + std::to_string(range.end));
    for (std::int64_t i = 0; i < count; ++i) {
      ScanFrame& frame = *frames[std::size_t(i)];
      const double number = projections ? frame.time : double(i);
      frame.valid = frame.valid && !(number >= double(range.begin) && number < double(range.end));
    }
  }
  if (ranges.empty())
    return;
  const auto left = std::ranges::count_if(frames, &ScanFrame::valid);
  if (left == 0)
    throw InputError(path().string() + ": " + option + " leaves no " +
                     (projections ? "projection" : "flat frame"));
  provenance.took(path(), std::to_string(left) + " of " + std::to_string(count) +
                              (projections ? " projections" : " flat frames"));
}

/// Leaves out frames that the file has room for and no values: the scan stopped early.
void Scan::leave_out_unwritten(Provenance& provenance) {
  const FramePlace& place = stack_->place();
  if (!stack_->hdf5())
    return;
  const Numbers unwritten = stack_->hdf5()->never_written(place.dataset);
  std::vector<ScanFrame*> views;
  for (ScanFrame* const view : all(FrameKind::Projection))
    if (view->valid)
      views.push_back(view);
  const auto of = std::int64_t(views.size());
  std::erase_if(views,
                [&](const ScanFrame* view) { return !std::ranges::binary_search(unwritten, view->place); });
  if (views.empty())
    return;
  for (ScanFrame* const view : views)
    view->valid = false;
  const auto number = [](const ScanFrame* view) { return std::int64_t(view->time); };
  const std::string first = std::to_string(number(views.front()));
  provenance.unusable({.file = path().string() + ": " + place.dataset,
                       .count = std::int64_t(views.size()),
                       .of = of,
                       .what = "frames",
                       .why = "were never written (projection " + first + " is the first)",
                       .done = "they are left out",
                       .remedy = "did the scan stop early? --leave-out " + first + ":" +
                                 std::to_string(number(views.back()) + 1) + " goes on without them"});
}

void Scan::drop(const std::vector<bool>& views) {
  const std::size_t frame = unpacked_.size() / std::max<std::size_t>(1, views_.size());
  std::size_t kept = 0;
  const std::vector<ScanFrame*> frames = all(FrameKind::Projection);
  for (std::size_t p = 0; p < views.size(); ++p) {
    if (views[p]) {
      (*std::ranges::find(frames, views_[p].place, &ScanFrame::place))->valid = false;
      continue;
    }
    views_[kept] = views_[p];
    angles_[kept] = angles_[p];
    if (kept < p)
      std::copy_n(unpacked_.begin() + std::ptrdiff_t(p * frame), frame,
                  unpacked_.begin() + std::ptrdiff_t(kept * frame));
    ++kept;
  }
  views_.resize(kept);
  angles_.resize(kept);
  unpacked_.resize(kept * frame);
}

void Scan::sort_views(Provenance& provenance) {
  views_ = scan_.valid(FrameKind::Projection);
  if (sort_by_angle(views_))
    provenance.took(path(), "projections that were not taken in the order of their angles; they are sorted");
  for (const ScanFrame& view : views_)
    angles_.push_back(view.angle);
}

std::int64_t Scan::bytes_per_row() const {
  return static_cast<std::int64_t>(angles_.size()) * width() * bytes_of(format().type);
}

void Scan::unpack(std::int64_t first, std::int64_t count) {
  const auto angles = static_cast<std::int64_t>(angles_.size()), together = stack_->packed_frames(),
             frame = count * width() * bytes_of(format().type);
  unpacked_.resize(static_cast<std::size_t>(angles * frame));
  first_unpacked_ = first;
  Progress progress("unpacking", "projections", angles);
  Stage stage{.name = "unpack", .threads = std::max(1, int(std::thread::hardware_concurrency()))};
  stage.work = [&](std::int64_t item) {
    // Parts of the file begin at multiples of their frames, views perhaps not.
    const std::int64_t shift = views_.front().place % together,
                       begin = std::max<std::int64_t>(0, item * together - shift),
                       number = std::min((item + 1) * together - shift, angles) - begin;
    if (number <= 0)
      return;
    read_views(begin, number, first, count,
               std::span(unpacked_).subspan(std::size_t(begin * frame), std::size_t(number * frame)));
    progress.add(number);
  };
  run_stages((angles + together - 1) / together + 1, {stage});
}

void Scan::read(std::int64_t first, std::int64_t count, std::span<std::byte> bytes) const {
  const auto angles = static_cast<std::int64_t>(angles_.size());
  if (unpacked_.empty())
    return read_views(0, angles, first, count, bytes);
  const auto row = bytes.size() / std::size_t(angles * count), frame = unpacked_.size() / std::size_t(angles);
  for (std::size_t p = 0; p < angles_.size(); ++p)
    std::ranges::copy(std::span(unpacked_).subspan(p * frame + std::size_t(first - first_unpacked_) * row,
                                                   std::size_t(count) * row),
                      bytes.subspan(p * std::size_t(count) * row).begin());
}

void Scan::read_views(std::int64_t begin, std::int64_t number, std::int64_t first, std::int64_t count,
                      std::span<std::byte> bytes) const {
  const auto frame = bytes.size() / std::size_t(number);
  for (std::int64_t view = 0; view < number;) { // those that follow each other in the file at once
    std::int64_t run = 1;
    const std::int64_t place = views_[std::size_t(begin + view)].place;
    while (view + run < number && views_[std::size_t(begin + view + run)].place == place + run)
      ++run;
    stack_->read(place, run, first, count,
                 bytes.subspan(std::size_t(view) * frame, std::size_t(run) * frame));
    view += run;
  }
}

void Scan::read_flat(std::int64_t set, std::int64_t first, std::int64_t count,
                     std::span<float> values) const {
  read_mean(flat_, set, first, count, values);
}

std::vector<float> Scan::flat_places() const {
  if (flat_.sets.size() < 2)
    return {};
  const std::vector<double> places = scan_.flat_places(views_, options_.nearest_flat);
  return {places.begin(), places.end()};
}

void Scan::read_dark(std::int64_t first, std::int64_t count, std::span<float> values) const {
  read_mean(dark_, 0, first, count, values);
}

void Scan::read_mean(const Frames& frames, std::int64_t set, std::int64_t first, std::int64_t count,
                     std::span<float> values) const {
  if (values.empty())
    return;
  if (!frames.means.empty()) {
    std::copy_n(frames.means.begin() + (set * rows() + first) * width(), values.size(), values.begin());
    return;
  }
  const Numbers& numbers = frames.sets[std::size_t(set)];
  constexpr std::int64_t values_at_once = 1 << 22;
  const std::int64_t pixels = count * width(), most = std::max<std::int64_t>(1, values_at_once / pixels);
  std::vector<double> sum(values.size());
  std::vector<float> block;
  for (std::size_t f = 0; f < numbers.size();) { // frames that follow each other at once
    std::size_t run = 1;
    while (f + run < numbers.size() && std::int64_t(run) < most &&
           numbers[f + run] == numbers[f] + std::int64_t(run))
      ++run;
    block.resize(run * values.size());
    frames.stack->read_floats(numbers[f], std::int64_t(run), first, count, block);
    for (std::size_t i = 0; i < block.size(); ++i)
      sum[i % sum.size()] += block[i];
    f += run;
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    values[i] = static_cast<float>(sum[i] / double(numbers.size()));
}

} // namespace Bracewell::Examples
