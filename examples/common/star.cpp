// SPDX-License-Identifier: MIT
// STAR files as tables of texts. The particles in them: star_particles.cpp.
#include "star.hpp"

#include "atomic_file.hpp"
#include "input_error.hpp"
#include "input_file.hpp"
#include "star_grammar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
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
  for (std::size_t letter = 0x80; letter < kinds.size(); ++letter) // UTF-8 beyond ASCII
    kinds[letter] = Letter::First;
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

/// Letters beyond ASCII as escape and two digits each, for a grammar that knows none of them.
class AsciiText {
public:
  explicit AsciiText(std::string& text) {
    const auto beyond = [](char letter) { return (static_cast<unsigned char>(letter) & 0x80) != 0; };
    if (std::ranges::none_of(text, beyond))
      return;
    for (escape_ = "~8"; text.find(escape_) != std::string::npos;)
      escape_ += '8';
    std::string ascii;
    ascii.reserve(text.size() + 64);
    for (const char letter : text)
      if (beyond(letter)) {
        const auto code = static_cast<unsigned char>(letter);
        ascii.append(escape_) += digits[code / 16];
        ascii += digits[code % 16];
      } else {
        ascii += letter;
      }
    text = std::move(ascii);
  }

  /// A part of the text as it was.
  std::string original(std::string part) const {
    for (std::size_t at = 0; !escape_.empty() && (at = part.find(escape_, at)) != std::string::npos; ++at) {
      const auto digit = [&](std::size_t i) { return digits.find(part[at + escape_.size() + i]); };
      const auto code = static_cast<unsigned char>(16 * digit(0) + digit(1));
      part.replace(at, escape_.size() + 2, 1, static_cast<char>(code));
    }
    return part;
  }
  void restore(StarBlock& block) const {
    if (escape_.empty())
      return;
    block.name = original(block.name);
    for (auto& item : block.items)
      for (auto* const texts : {&item.tags, &item.values})
        for (auto& text : *texts)
          text = original(std::move(text));
  }

private:
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string escape_; ///< empty: there are no such letters
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
  std::string text = InputFile(path).read_text();
  if (const std::string other = other_format(text, path); !other.empty())
    throw InputError(file + ": is not a STAR file: " + other);
  if (constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF"; text.starts_with(byte_order_mark))
    text.erase(0, byte_order_mark.size());
  LineScan scan = LineScanner(text, file).scan();
  const AsciiText ascii(scan.grammar);
  std::vector<StarBlock> blocks;
  try {
    blocks = parse_star(scan.grammar, file);
  } catch (const InputError& error) {
    throw InputError(ascii.original(error.what()));
  }
  for (auto& block : blocks)
    ascii.restore(block);
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
  if (comments.empty() && !creator().empty())
    file.write("# " + creator() + "\n");
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

} // namespace Bracewell::Examples
