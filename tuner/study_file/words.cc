#include "tuner/study_file/words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kShellOnly = "|&;<>$`";
constexpr std::string_view kEscapedInDoubleQuotes = "\"\\$`";

absl::Status NeedsShell(char c) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(1, c), "' has no meaning without a shell: quote it, or give ",
                   R"(["sh", "-c", "..."])"));
}

class Splitter {
 public:
  explicit Splitter(std::string_view line) : line_(line) {}

  absl::StatusOr<std::vector<std::string>> Split() {
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (kBlanks.find(c) != std::string_view::npos) {
        EndWord();
      } else if (c == '\'') {
        ESPALIER_RETURN_IF_ERROR(TakeSingleQuoted());
      } else if (c == '"') {
        ESPALIER_RETURN_IF_ERROR(TakeDoubleQuoted());
      } else if (c == '\\') {
        if (++at_ == line_.size()) {
          return absl::InvalidArgumentError("ends with a backslash that escapes nothing");
        }
        Take(line_[at_]);
      } else if (kShellOnly.find(c) != std::string_view::npos) {
        return NeedsShell(c);
      } else {
        Take(c);
      }
    }
    EndWord();
    return std::move(words_);
  }

 private:
  void Take(char c) {
    word_.push_back(c);
    in_word_ = true;
  }

  void EndWord() {
    if (in_word_) words_.push_back(std::exchange(word_, {}));
    in_word_ = false;
  }

  absl::Status TakeSingleQuoted() {
    const std::size_t end = line_.find('\'', at_ + 1);
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError("has a ' without the closing one");
    }
    word_.append(line_.substr(at_ + 1, end - at_ - 1));
    in_word_ = true;  // '' is a word, though an empty one
    at_ = end;
    return absl::OkStatus();
  }

  absl::Status TakeDoubleQuoted() {
    in_word_ = true;
    for (++at_; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '"') return absl::OkStatus();
      if (c == '$' || c == '`') return NeedsShell(c);
      const bool escapes = c == '\\' && at_ + 1 < line_.size() &&
                           kEscapedInDoubleQuotes.find(line_[at_ + 1]) != std::string_view::npos;
      if (escapes) ++at_;
      word_.push_back(line_[at_]);
    }
    return absl::InvalidArgumentError("has a \" without the closing one");
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  std::vector<std::string> words_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line) {
  return Splitter(line).Split();
}

bool IsReadable(std::string_view name) {
  const auto controls = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return name.find_first_not_of(' ') != std::string_view::npos &&
         std::none_of(name.begin(), name.end(), controls);
}

bool IsPlainName(std::string_view name) {
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         name.find_first_not_of(kCharacters) == std::string_view::npos;
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && !HasNul(name) && name.find('=') == std::string_view::npos;
}

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace espalier
