// SPDX-License-Identifier: MIT
#include "star.hpp"

#include "atomic_file.hpp"
#include "input_error.hpp"
#include "input_file.hpp"
#include "mrc.hpp"
#include "output_family.hpp"
#include "provenance.hpp"
#include "star_grammar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace Bracewell::Examples {
namespace {

constexpr std::string_view blank = " \t\r\f\v";

bool is_blank(char letter) { return blank.find(letter) != std::string_view::npos; }

/// The values of one line, up to a comment; quoted ones count once.
std::vector<std::string_view> tokens(std::string_view line) {
  std::vector<std::string_view> found;
  for (std::size_t at = line.find_first_not_of(blank); at < line.size() && line[at] != '#';
       at = line.find_first_not_of(blank, at)) {
    const std::size_t begin = at;
    if (line[at] == '\'' || line[at] == '"') {
      // A quote closes only before a blank.
      do
        at = line.find(line[begin], at + 1);
      while (at < line.size() && at + 1 < line.size() && !is_blank(line[at + 1]));
      at = at < line.size() ? at + 1 : line.size();
    } else {
      at = std::min(line.find_first_of(blank, at), line.size());
    }
    found.push_back(line.substr(begin, at - begin));
  }
  return found;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::ranges::equal(text.substr(0, word.size()), word, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

bool starts_section(std::string_view token) {
  return token.starts_with('_') || starts_with_word(token, "data_") || starts_with_word(token, "loop_") ||
         starts_with_word(token, "save_") || starts_with_word(token, "stop_") ||
         starts_with_word(token, "global_");
}

enum class Letter : std::uint8_t { Other, Space, Visible, First }; ///< First: words may begin with it, too

constexpr std::array<Letter, 256> letters = [] {
  std::array<Letter, 256> kinds{};
  for (std::size_t letter = '!'; letter <= '~'; ++letter)
    kinds[letter] = std::string_view("_#$'\"[];").find(static_cast<char>(letter)) == std::string_view::npos
                        ? Letter::First
                        : Letter::Visible;
  kinds[' '] = kinds['\t'] = kinds['\r'] = Letter::Space;
  return kinds;
}();

Letter kind_of(char letter) { return letters[static_cast<unsigned char>(letter)]; }

/// Whether a value means itself wherever it stands: it needs no quotes, and is no word of the grammar.
bool is_plain(std::string_view value) {
  return !value.empty() && kind_of(value.front()) == Letter::First && !starts_section(value) &&
         std::ranges::all_of(value, [](char letter) { return kind_of(letter) >= Letter::Visible; });
}

/// The words of a line where all of them are plain; else false.
bool plain_words(std::string_view line, std::vector<std::string_view>& words) {
  words.clear();
  for (std::size_t at = 0, begin; at < line.size();) {
    if (kind_of(line[at]) == Letter::Space) {
      ++at;
      continue;
    }
    if (kind_of(line[at]) != Letter::First)
      return false;
    for (begin = at; at < line.size() && kind_of(line[at]) >= Letter::Visible;)
      ++at;
    words.push_back(line.substr(begin, at - begin));
    if ((at < line.size() && kind_of(line[at]) != Letter::Space) || starts_section(words.back()))
      return false;
  }
  return true;
}

/// What the CIF grammar does not see: lines as rows, and RELION's version comments.
struct LineScan {
  struct Block {
    int version = 0;
    std::size_t rows = 0;
    /// Of its only loop, where that has several rows and nothing but plain words in them; else empty.
    std::vector<std::string> values;
  };
  std::vector<Block> blocks;
  /// The text for the grammar: loops that have been split have empty lines after their first row.
  std::string grammar;
};

/// Goes through the lines of a text: as rows, each with one value per column. The grammar would count the values of the whole
/// table alone, and could not say which row is wrong.
class LineScanner {
public:
  LineScanner(const std::string& text, const std::string& file)
      : text_(text), file_(file), has_texts_(text.starts_with(';') || text.find("\n;") != std::string::npos) {
  }

  /// Throws InputError for a row that has more or fewer values than there are columns.
  LineScan scan() {
    while (next_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', next_), text_.size());
      const std::string_view line(text_.data() + next_, end - next_);
      next_ = end + 1;
      ++line_number_;
      scan(line);
    }
    end_block();
    scan_.grammar.append(text_, copied_);
    return std::move(scan_);
  }

private:
  void scan(std::string_view line) {
    const bool plain = place_ == Rows && plain_words(line, words_);
    if (!plain) {
      constexpr std::string_view version_comment = "# version ";
      if (line.starts_with(version_comment))
        std::from_chars(line.data() + version_comment.size(), line.data() + line.size(), version_);
      words_ = tokens(line);
    }
    if (words_.empty())
      return;
    const auto first = words_.front();
    if (!plain && (starts_with_word(first, "data_") || starts_with_word(first, "global_"))) {
      end_block();
      block_name_ = first;
      scan_.blocks.push_back({std::exchange(version_, 0), 0, {}});
      place_ = Outside;
    } else if (!plain && starts_with_word(first, "loop_")) {
      columns_.clear();
      place_ = Columns;
      split_ = !has_texts_ && ++loops_ == 1;
    } else if (place_ == Columns && first.starts_with('_')) {
      for (const auto& word : words_)
        if (word.starts_with('_'))
          columns_.emplace_back(word.substr(1));
    } else if (!plain && starts_section(first)) {
      place_ = Outside;
    } else if (place_ != Outside) {
      if (!scan_.blocks.empty()) // else the grammar says it better
        add_row(line, plain);
      place_ = Rows;
    }
  }

  /// The words of a line.
  void add_row(std::string_view line, bool plain) {
    auto& block = scan_.blocks.back();
    ++block.rows;
    if (words_.size() != columns_.size())
      throw InputError(
          file_ + ": table " + block_name_ + ", row " + std::to_string(block.rows) + " (line " +
          std::to_string(line_number_) + "): expected " + std::to_string(columns_.size()) +
          " values, found " + std::to_string(words_.size()) +
          (words_.size() < columns_.size() ? ", no value in column " + columns_[words_.size()] : ""));
    const std::size_t end = std::min(next_, text_.size());
    if (place_ == Columns) {
      split_ = split_ && plain_words(line, words_);
      cut_begin_ = end;
      first_row_ = line_number_;
    }
    split_ = split_ && (plain || place_ == Columns);
    cut_end_ = end;
    last_row_ = line_number_;
    if (!split_)
      return;
    if (constexpr std::size_t many = 1000; block.rows == many) // as if the others were as long
      block.values.reserve(block.values.size() * ((text_.size() - cut_begin_) / (cut_end_ - cut_begin_) + 2));
    block.values.insert(block.values.end(), words_.begin(), words_.end());
  }

  void end_block() {
    if (split_ && last_row_ > first_row_) {
      scan_.grammar.append(text_, copied_, cut_begin_ - copied_).append(last_row_ - first_row_, '\n');
      copied_ = cut_end_;
      if (auto& values = scan_.blocks.back().values; values.capacity() > 2 * values.size())
        values.shrink_to_fit();
    } else if (!scan_.blocks.empty()) {
      scan_.blocks.back().values = {};
    }
    loops_ = first_row_ = last_row_ = 0;
    split_ = false;
  }

  const std::string& text_;
  const std::string& file_;
  bool has_texts_; ///< of several lines, which begin with a semicolon: they can have what looks like a loop
  LineScan scan_;
  std::size_t next_ = 0, line_number_ = 0; ///< where the next line begins, and the number of this one
  std::vector<std::string_view> words_;    ///< of this line
  enum { Outside, Columns, Rows } place_ = Outside;
  int version_ = 0; ///< for the next block
  // Of this block: its loops, whether its rows are split, and the part of the text after the first of them.
  std::string block_name_;
  std::vector<std::string> columns_;
  std::size_t loops_ = 0, cut_begin_ = 0, cut_end_ = 0, first_row_ = 0, last_row_ = 0;
  bool split_ = false;
  std::size_t copied_ = 0; ///< of the text to the grammar's
};

std::string without_underscore(const std::string& tag) { return tag.substr(tag.starts_with('_') ? 1 : 0); }

/// Whether a value in such quotes ends with it: a quote closes before a blank or a comment only.
bool can_be_quoted(const std::string& value, char quote) {
  for (std::size_t at = value.find(quote); at != std::string::npos; at = value.find(quote, at + 1))
    if (at + 1 < value.size() && (is_blank(value[at + 1]) || value[at + 1] == '#'))
      return false;
  return true;
}

/// Whether a value can be written on a line.
bool is_writable(const std::string& value) {
  return std::ranges::none_of(value,
                              [](char letter) { return letter != '\t' && letter >= 0 && letter < ' '; }) &&
         (can_be_quoted(value, '"') || can_be_quoted(value, '\''));
}

std::string quoted(const std::string& value) {
  if (is_plain(value))
    return value;
  const char quote = can_be_quoted(value, '"') ? '"' : '\'';
  return quote + value + quote;
}

/// Letters of the widest value of every column. Throws InputError for a text that cannot be written.
std::vector<std::size_t> widest_values(const std::filesystem::path& path, const StarTable& table) {
  const std::size_t width = table.columns.size();
  std::vector<std::size_t> widest(width, 0);
  for (std::size_t i = 0, column = 0; i < table.values.size();
       ++i, column = column + 1 < width ? column + 1 : 0) {
    const std::string& value = table.values[i];
    const bool plain = is_plain(value);
    if (!plain && !is_writable(value))
      throw InputError(path.string() + ": not written: a STAR file has no place for the text " + value);
    widest[column] = std::max(widest[column], plain ? value.size() : quoted(value).size());
  }
  return widest;
}

/// The names of the columns and the rows, behind `text`, which is written before it becomes long.
void write_loop(AtomicFile& file, const StarTable& table, const std::vector<std::size_t>& widest,
                std::string& text) {
  const std::size_t width = table.columns.size();
  text += "loop_\n";
  for (std::size_t i = 0; i < width; ++i)
    text += "_" + table.columns[i] + " #" + std::to_string(i + 1) + "\n";
  std::string in_quotes;
  for (std::size_t i = 0, column = 0; i < table.values.size(); ++i) {
    const std::string& value = table.values[i];
    if (!is_plain(value))
      in_quotes = quoted(value);
    const std::string& cell = is_plain(value) ? value : in_quotes;
    text.append(widest[column] - cell.size() + (column == 0 ? 0 : 2), ' ').append(cell);
    if (++column < width)
      continue;
    text += '\n';
    column = 0;
    if (constexpr std::size_t enough = 1 << 20; text.size() > enough) {
      file.write(text);
      text.clear();
    }
  }
}

StarTable to_table(StarBlock& block, LineScan::Block& lines, const std::string& file) {
  StarTable table;
  table.name = block.name;
  table.version = lines.version;
  table.loop = std::ranges::any_of(block.items, [](const auto& item) { return item.kind == StarItem::Loop; });
  const auto place = file + ": table data_" + table.name;
  const bool split = !lines.values.empty();
  for (auto& item : block.items) {
    if (item.kind == StarItem::Pair && !table.loop) {
      table.columns.push_back(without_underscore(item.tags.front()));
      table.values.push_back(std::move(item.values.front()));
    } else if (item.kind == StarItem::Loop && block.items.size() == 1) {
      for (const auto& tag : item.tags)
        table.columns.push_back(without_underscore(tag));
      table.values = std::move(split ? lines.values : item.values);
    } else {
      throw InputError(place + ": expected one loop or name-value pairs, found more");
    }
  }
  if (table.loop && table.rows() != lines.rows)
    throw InputError(place + ": expected one row per line, found " + std::to_string(table.rows()) +
                     " rows in " + std::to_string(lines.rows) + " lines");
  for (std::size_t i = 0; !split && i < table.values.size(); ++i)
    if (!is_writable(table.values[i]))
      throw InputError(place + ", row " + std::to_string(i / table.columns.size() + 1) + ", column " +
                       table.columns[i % table.columns.size()] +
                       ": expected a text of one line in one kind of quotes");
  return table;
}

/// One table being read as numbers.
class NumberReader {
public:
  NumberReader(const std::filesystem::path& file, const StarTable& table) : file_(file), table_(table) {}

  const StarTable& table() const { return table_; }

  [[noreturn]] void fail(std::size_t row, std::string_view column, const std::string& what) const {
    throw InputError(file_.string() + ": table data_" + table_.name + ", row " + std::to_string(row + 1) +
                     ", column " + std::string(column) + ": " + what);
  }

  double real(std::size_t row, std::size_t column) const {
    return number(table_.value(row, column), row, column);
  }

  /// "[1,2.5,-3]", or one number.
  std::vector<double> list(std::size_t row, std::size_t column) const {
    std::string text = table_.value(row, column);
    if (text.starts_with('[') && text.ends_with(']'))
      text = text.substr(1, text.size() - 2);
    std::vector<double> values;
    for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find(',', begin), text.size());
      values.push_back(number(text.substr(begin, end - begin), row, column));
    }
    return values;
  }

  std::int64_t integer(std::size_t row, std::size_t column) const {
    const double value = real(row, column); // RELION writes some whole numbers as 1.000000
    if (value != std::floor(value) || std::abs(value) > 1e15)
      fail(row, table_.columns[column], "expected a whole number, found '" + table_.value(row, column) + "'");
    return static_cast<std::int64_t>(value);
  }

private:
  double number(const std::string& text, std::size_t row, std::size_t column) const {
    // std::from_chars knows no plus sign.
    const char* begin = text.data() + (text.starts_with('+') && !text.starts_with("+-") ? 1 : 0);
    const char* end = text.data() + text.size();
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (stop != end || error != std::errc() || !std::isfinite(value))
      fail(row, table_.columns[column], "expected a finite number, found '" + text + "'");
    return value;
  }

  const std::filesystem::path& file_;
  const StarTable& table_;
};

/// The particle table, and for every particle its row in the optics table.
class JoinedTables {
public:
  JoinedTables(const std::filesystem::path& file, const StarTable& particles, const StarTable* optics)
      : particles_(file, particles) {
    if (optics == nullptr || optics->rows() == 0)
      return;
    optics_.emplace(file, *optics);
    const auto group = particles.find("rlnOpticsGroup");
    const auto optics_group = optics->find("rlnOpticsGroup");
    if (!group || !optics_group) {
      if (optics->rows() > 1)
        throw InputError(file.string() + ": column rlnOpticsGroup is missing from table data_" +
                         (group ? optics->name : particles.name) + ", which has to say which of " +
                         std::to_string(optics->rows()) + " optics groups");
      optics_row_.assign(particles.rows(), 0);
      return;
    }
    std::unordered_map<std::int64_t, std::size_t> row_of_group;
    for (std::size_t row = 0; row < optics->rows(); ++row)
      if (!row_of_group.emplace(optics_->integer(row, *optics_group), row).second)
        optics_->fail(row, "rlnOpticsGroup",
                      "group " + optics->value(row, *optics_group) + " is there twice");
    for (std::size_t row = 0; row < particles.rows(); ++row) {
      const auto found = row_of_group.find(particles_.integer(row, *group));
      if (found == row_of_group.end())
        particles_.fail(row, "rlnOpticsGroup",
                        "table data_optics has no group " + particles.value(row, *group));
      optics_row_.push_back(found->second);
    }
  }

  const NumberReader& particles() const { return particles_; }

  /// Numbers of a column by a member of NumberReader; empty where neither table has it.
  template <class Value>
  std::vector<Value> column(std::string_view name,
                            Value (NumberReader::*read)(std::size_t, std::size_t) const,
                            bool positive = false) const {
    std::vector<Value> values;
    const auto read_all = [&](const NumberReader& from, std::size_t column, std::size_t rows) {
      values.reserve(rows);
      for (std::size_t row = 0; row < rows; ++row) {
        values.push_back((from.*read)(row, column));
        if constexpr (std::is_arithmetic_v<Value>)
          if (positive && !(values.back() > 0))
            from.fail(row, name,
                      "expected a number above 0, found '" + from.table().value(row, column) + "'");
      }
    };
    if (const auto own = particles_.table().find(name)) {
      read_all(particles_, *own, particles_.table().rows());
    } else if (const auto shared = optics_ ? optics_->table().find(name) : std::nullopt) {
      read_all(*optics_, *shared, optics_->table().rows());
      std::vector<Value> spread;
      spread.reserve(optics_row_.size());
      for (const std::size_t row : optics_row_)
        spread.push_back(values[row]);
      values = std::move(spread);
    }
    return values;
  }

private:
  NumberReader particles_;
  std::optional<NumberReader> optics_;
  std::vector<std::size_t> optics_row_;
};

const StarTable& find_particle_table(const std::filesystem::path& file, const StarDocument& document) {
  if (const StarTable* named = document.find("particles"))
    return *named;
  const StarTable* only = nullptr;
  std::string names;
  std::size_t candidates = 0;
  for (const auto& table : document.tables) {
    if (table.name == "optics")
      continue;
    only = &table;
    ++candidates;
    names += (names.empty() ? "data_" : ", data_") + table.name;
  }
  if (candidates == 0)
    throw InputError(file.string() + ": has no table data_particles");
  if (candidates > 1)
    throw InputError(file.string() + ": has no table data_particles, but several others: " + names);
  return *only;
}

/// Pixel sizes from the file, by either of RELION's ways of stating them.
std::vector<double> read_pixel_sizes(const JoinedTables& tables) {
  auto sizes = tables.column("rlnImagePixelSize", &NumberReader::real, true);
  if (!sizes.empty())
    return sizes;
  sizes = tables.column("rlnDetectorPixelSize", &NumberReader::real, true); // micrometres
  const auto magnifications = tables.column("rlnMagnification", &NumberReader::real, true);
  if (sizes.empty() || magnifications.empty())
    return {};
  constexpr double angstrom_per_micrometre = 1e4;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = angstrom_per_micrometre * sizes[i] / magnifications[i];
  return sizes;
}

/// Origins in pixels, from the column in Angstrom or else from the one in pixels.
std::vector<double> read_origins(const JoinedTables& tables, const std::string& in_pixels,
                                 const std::vector<double>& pixel_sizes) {
  const std::string in_angstrom = in_pixels + "Angst";
  auto origins = tables.column(in_angstrom, &NumberReader::real);
  if (origins.empty())
    return tables.column(in_pixels, &NumberReader::real);
  for (std::size_t row = 0; row < origins.size(); ++row) {
    if (origins[row] == 0)
      continue; // no pixel size needed
    if (pixel_sizes.empty())
      tables.particles().fail(row, in_angstrom,
                              "is in Angstrom, but the file states no pixel size (rlnImagePixelSize)");
    origins[row] /= pixel_sizes[row];
  }
  return origins;
}

/// Finds the stacks of the particles, opens their headers, and checks that every image is there.
class ImageFinder {
public:
  ImageFinder(Particles& particles, const NumberReader& table) : particles_(particles), table_(table) {}

  /// Images that nobody opens are not for overwriting, either.
  void remember_all() const {
    const auto column = table_.table().find(name);
    std::unordered_set<std::string> names;
    for (std::size_t row = 0; column && row < particles_.count; ++row) {
      const std::string& text = table_.table().value(row, *column);
      const std::string stack_name = text.substr(text.find('@') + 1);
      if (names.insert(stack_name).second)
        for (const auto& path : candidates(stack_name))
          OutputFamily::remember_input(path);
    }
  }

  void find_all() {
    const auto column = table_.table().find(name);
    if (!column)
      throw InputError(particles_.file.string() + ": column rlnImageName is missing from table data_" +
                       table_.table().name);
    for (std::size_t row = 0; row < particles_.count; ++row) {
      const std::string& text = table_.table().value(row, *column);
      const std::size_t at = text.find('@');
      const std::string stack_name = at == std::string::npos ? text : text.substr(at + 1);
      const std::int64_t number = at == std::string::npos ? 1 : image_number(row, text, at);
      if (stack_name.empty())
        table_.fail(row, name, "expected INDEX@STACK, found '" + text + "'");
      const std::size_t stack = stack_of(row, stack_name);
      if (at == std::string::npos && particles_.stacks[stack].images > 1)
        table_.fail(row, name,
                    "expected INDEX@STACK for one of the " + std::to_string(particles_.stacks[stack].images) +
                        " images of the stack, found '" + text + "'");
      if (number > particles_.stacks[stack].images)
        table_.fail(row, name,
                    "there is no image " + std::to_string(number) + " in " +
                        particles_.stacks[stack].path.string() + ", which has " +
                        std::to_string(particles_.stacks[stack].images));
      particles_.stack.push_back(stack);
      particles_.image.push_back(number - 1);
    }
    for (const auto& [warning, where] : warnings_)
      particles_.warnings.push_back(
          where.first.string() + ": " + warning +
          (where.second > 1 ? " (and " + std::to_string(where.second - 1) + " more stacks)" : ""));
  }

private:
  std::int64_t image_number(std::size_t row, const std::string& text, std::size_t at) const {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + at, number);
    if (stop != text.data() + at || error != std::errc())
      table_.fail(row, name, "expected INDEX@STACK, found '" + text + "'");
    if (number < 1)
      table_.fail(row, name, "images are counted from 1, found '" + text + "'");
    return number;
  }

  std::size_t stack_of(std::size_t row, const std::string& stack_name) {
    if (const auto known = known_.find(stack_name); known != known_.end())
      return known->second;
    add_stack(row, open(row, resolve(row, stack_name)));
    return known_[stack_name] = particles_.stacks.size() - 1;
  }

  MrcReader open(std::size_t row, const std::filesystem::path& path) const {
    try {
      return MrcReader(path);
    } catch (const InputError& error) {
      table_.fail(row, name, error.what());
    }
  }

  std::filesystem::path resolve(std::size_t row, const std::string& stack_name) const {
    const auto paths = candidates(stack_name);
    std::error_code ignored;
    for (const auto& path : paths)
      if (std::filesystem::exists(path, ignored))
        return path;
    const std::string also =
        paths[0] == paths[1] ? "" : " or " + std::filesystem::absolute(paths[1]).string();
    table_.fail(row, name, "there is no stack " + paths[0].string() + also);
  }

  /// Beside the STAR file, and from the current folder.
  std::array<std::filesystem::path, 2> candidates(const std::string& stack_name) const {
    return {particles_.file.parent_path() / stack_name, stack_name};
  }

  void add_stack(std::size_t row, const MrcReader& reader) {
    const auto& path = reader.path();
    if (particles_.stacks.empty()) {
      particles_.image_width = reader.width();
      particles_.image_height = reader.height();
    } else if (reader.width() != particles_.image_width || reader.height() != particles_.image_height) {
      table_.fail(row, name,
                  path.string() + " has images of " + std::to_string(reader.width()) + " x " +
                      std::to_string(reader.height()) + " pixels, those before have " +
                      std::to_string(particles_.image_width) + " x " +
                      std::to_string(particles_.image_height));
    }
    particles_.stacks.push_back({path, reader.images(), reader.header().voxel_size[0], reader.format()});
    for (const auto& warning : reader.warnings()) {
      auto& [first, stacks] = warnings_[warning];
      if (stacks++ == 0)
        first = path;
    }
  }

  static constexpr std::string_view name = "rlnImageName";
  Particles& particles_;
  const NumberReader& table_;
  std::unordered_map<std::string, std::size_t> known_;
  std::map<std::string, std::pair<std::filesystem::path, std::size_t>>
      warnings_; // one per kind, however many stacks
};

/// What the file says about its images against what the stacks hold.
void check_images(Particles& particles, const JoinedTables& tables) {
  const auto dimensions = tables.column("rlnImageDimensionality", &NumberReader::integer);
  for (std::size_t row = 0; row < dimensions.size(); ++row)
    if (dimensions[row] != 2)
      tables.particles().fail(row, "rlnImageDimensionality",
                              "expected 2 (images), found " + std::to_string(dimensions[row]));
  for (const std::int64_t size : tables.column("rlnImageSize", &NumberReader::integer))
    if (size != particles.image_width) {
      particles.warnings.push_back(particles.file.string() + ": states images of " + std::to_string(size) +
                                   " pixels (rlnImageSize), the stacks have " +
                                   std::to_string(particles.image_width) + ": the latter are taken");
      break;
    }
  const bool ctf = particles.defocus_u.present() && particles.voltage.present();
  const auto name_unused = [&](const auto& column) {
    if (column.present() && !ctf)
      particles.warnings.push_back(particles.file.string() + ": has " + std::string(column.name) +
                                   " but no contrast transfer (rlnDefocusU, rlnVoltage): not used");
  };
  name_unused(particles.premultiplied);
  name_unused(particles.beam_tilt_x);
  name_unused(particles.beam_tilt_y);
  name_unused(particles.odd_zernike);
  name_unused(particles.even_zernike);
}

/// Keeps the particles of a class; without one all are kept, and a mixture is a warning.
void select_class(Particles& particles, std::optional<std::int64_t> wanted) {
  const auto classes = particles.class_number.values;
  if (!wanted) {
    const std::set<std::int64_t> all(classes.begin(), classes.end());
    if (all.size() > 1)
      particles.warnings.push_back(particles.file.string() + ": has " + std::to_string(all.size()) +
                                   " classes (rlnClassNumber): taken together; --class selects one");
    return;
  }
  particles.require(particles.class_number);
  const auto keep = [&](auto& values, std::size_t columns = 1) {
    std::size_t at = 0;
    std::erase_if(values, [&](const auto&) { return classes[at++ / columns] != *wanted; });
  };
  StarTable& table = particles.particle_table();
  keep(table.values, table.columns.size());
  particles.count = table.rows();
  if (particles.count == 0)
    throw InputError(particles.file.string() + ": has no particles of class " + std::to_string(*wanted));
  const auto keep_all = [&](auto&... columns) {
    const auto keep_present = [&](auto& column) {
      if (column.present())
        keep(column.values);
    };
    (keep_present(columns), ...);
  };
  auto& p = particles;
  keep_all(p.rot, p.tilt, p.psi, p.origin_x, p.origin_y, p.defocus_u, p.defocus_v, p.defocus_angle,
           p.phase_shift, p.voltage, p.spherical_aberration, p.amplitude_contrast, p.ctf_b_factor,
           p.ctf_scale, p.pixel_size, p.premultiplied, p.beam_tilt_x, p.beam_tilt_y, p.odd_zernike,
           p.even_zernike, p.magnification[0], p.magnification[1], p.magnification[2], p.magnification[3],
           p.class_number, p.random_subset, p.optics_group);
  if (!p.stack.empty()) {
    keep(p.stack);
    keep(p.image);
  }
}

} // namespace

std::optional<std::size_t> StarTable::find(std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  if (found == columns.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

void StarTable::set_column(std::string_view column, std::vector<std::string> column_values) {
  if (!columns.empty() && column_values.size() != rows())
    throw std::invalid_argument("StarTable::set_column: expected " + std::to_string(rows()) + " values for " +
                                std::string(column) + ", found " + std::to_string(column_values.size()));
  if (const auto index = find(column)) {
    for (std::size_t row = 0; row < column_values.size(); ++row)
      values[row * columns.size() + *index] = std::move(column_values[row]);
    return;
  }
  const std::size_t width = columns.size();
  std::vector<std::string> wider;
  wider.reserve(values.size() + column_values.size());
  for (std::size_t row = 0; row < column_values.size(); ++row) {
    for (std::size_t i = 0; i < width; ++i)
      wider.push_back(std::move(values[row * width + i]));
    wider.push_back(std::move(column_values[row]));
  }
  values = std::move(wider);
  columns.emplace_back(column);
}

void StarTable::remove_columns(std::span<const std::string_view> names) {
  const auto removed = [&](const std::string& column) {
    return std::ranges::find(names, column) != names.end();
  };
  std::vector<bool> remove;
  for (const std::string& column : columns)
    remove.push_back(removed(column));
  if (std::erase_if(columns, removed) == 0)
    return;
  std::size_t column = 0;
  std::erase_if(values, [&](const std::string&) {
    const bool gone = remove[column];
    column = column + 1 < remove.size() ? column + 1 : 0;
    return gone;
  });
}

StarTable* StarDocument::find(std::string_view name) {
  const auto found = std::ranges::find(tables, name, &StarTable::name);
  return found == tables.end() ? nullptr : &*found;
}

const StarTable* StarDocument::find(std::string_view name) const {
  return const_cast<StarDocument*>(this)->find(name);
}

StarDocument read_star(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string text = InputFile(path).read_text();
  LineScan scan = LineScanner(text, file).scan();
  auto blocks = parse_star(scan.grammar, file);
  if (blocks.empty())
    throw InputError(file + ": is not a STAR file: it has no table");
  StarDocument document;
  if (blocks.size() != scan.blocks.size())
    throw InputError(file + ": is not a STAR file: expected every data_ at the beginning of its line");
  for (std::size_t i = 0; i < blocks.size(); ++i)
    document.tables.push_back(to_table(blocks[i], scan.blocks[i], file));
  return document;
}

void write_star(const std::filesystem::path& path, const StarDocument& document,
                std::span<const std::string> comments) {
  AtomicFile file(path);
  for (const auto& comment : comments)
    file.write("# " + comment + "\n");
  for (const auto& table : document.tables) {
    std::string text = "\n";
    if (table.version != 0)
      text += "# version " + std::to_string(table.version) + "\n\n";
    text += "data_" + table.name + "\n\n";
    const std::vector<std::size_t> widest = widest_values(path, table);
    if (table.loop)
      write_loop(file, table, widest, text);
    else
      for (std::size_t i = 0; i < table.columns.size(); ++i)
        text += "_" + table.columns[i] + "  " + quoted(table.values[i]) + "\n";
    file.write(text + "\n");
  }
  file.commit();
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value))
    throw std::invalid_argument("fixed: the value is not finite");
  std::array<char, 400> text; // the largest double has 309 digits
  const int length = std::snprintf(text.data(), text.size(), "%.*f", std::min(decimals, 20), value);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

void Particles::fail_missing(std::string_view column) const {
  std::string what(column);
  if (column == origin_x.name)
    what += " (or rlnOriginX)";
  if (column == origin_y.name)
    what += " (or rlnOriginY)";
  if (column == pixel_size.name)
    what += " (or rlnDetectorPixelSize and rlnMagnification)";
  throw InputError(file.string() + ": column " + what + " is missing from table data_" + table +
                   (document.find("optics") != nullptr ? " and from table data_optics" : ""));
}

Particles read_particles(const std::filesystem::path& path, const ParticleOptions& options) {
  Particles particles;
  particles.file = path;
  particles.document = read_star(path);
  const StarTable& table = find_particle_table(path, particles.document);
  particles.table = table.name;
  particles.count = table.rows();
  if (particles.count == 0)
    throw InputError(path.string() + ": has no particles: table data_" + table.name + " is empty");

  const JoinedTables tables(path, table, particles.document.find("optics"));
  for (auto* column :
       {&particles.rot, &particles.tilt, &particles.psi, &particles.defocus_u, &particles.defocus_v,
        &particles.defocus_angle, &particles.phase_shift, &particles.spherical_aberration,
        &particles.amplitude_contrast, &particles.ctf_b_factor, &particles.ctf_scale, &particles.beam_tilt_x,
        &particles.beam_tilt_y, &particles.magnification[0], &particles.magnification[1],
        &particles.magnification[2], &particles.magnification[3]})
    column->values = tables.column(column->name, &NumberReader::real);
  particles.voltage.values = tables.column(particles.voltage.name, &NumberReader::real, true);
  for (auto* column :
       {&particles.random_subset, &particles.optics_group, &particles.class_number, &particles.premultiplied})
    column->values = tables.column(column->name, &NumberReader::integer);
  for (auto* column : {&particles.odd_zernike, &particles.even_zernike})
    column->values = tables.column(column->name, &NumberReader::list);
  if (options.pixel_size)
    particles.pixel_size.values.assign(particles.count, *options.pixel_size);
  else
    particles.pixel_size.values = read_pixel_sizes(tables);
  for (const double size : particles.pixel_size.values)
    if (!(size >= 1e-3 && size <= 1e6))
      throw InputError(path.string() + ": expected pixels of 0.001 to 1000000 Angstrom, found " +
                       shortest(size));
  particles.origin_x.values = read_origins(tables, "rlnOriginX", particles.pixel_size.values);
  particles.origin_y.values = read_origins(tables, "rlnOriginY", particles.pixel_size.values);
  ImageFinder images(particles, tables.particles());
  if (options.images)
    images.find_all();
  else
    images.remember_all();
  if (options.images)
    check_images(particles, tables);
  select_class(particles, options.class_number);
  return particles;
}

void move_image_names(Particles& particles, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  const auto column = particles.particle_table().find("rlnImageName");
  const fs::path from = particles.file.parent_path(), to = fs::absolute(file).parent_path();
  std::error_code ignored;
  if (!column || particles.stack.empty() || fs::equivalent(from.empty() ? "." : from, to, ignored))
    return;
  std::vector<std::string> names;
  for (std::size_t row = 0; row < particles.count; ++row) {
    std::string name = particles.particle_table().value(row, *column);
    const std::size_t begin = name.find('@') + 1; // 0 where there is none
    const fs::path stack = name.substr(begin);
    if (stack.is_relative() && particles.stacks[particles.stack[row]].path == from / stack)
      name = name.substr(0, begin) + fs::proximate(fs::absolute(from / stack), to).string();
    names.push_back(std::move(name));
  }
  particles.particle_table().set_column("rlnImageName", std::move(names));
}

void set_pixel_size(Particles& particles, double pixel_size) {
  constexpr std::array<std::string_view, 3> stated{"rlnImagePixelSize", "rlnDetectorPixelSize",
                                                   "rlnMagnification"};
  auto* const optics = particles.document.find("optics");
  for (auto* const table : {&particles.particle_table(), optics})
    if (table != nullptr)
      table->remove_columns(stated);
  auto& table = optics != nullptr ? *optics : particles.particle_table();
  table.set_column("rlnImagePixelSize", std::vector<std::string>(table.rows(), fixed(pixel_size)));
}

} // namespace Bracewell::Examples
