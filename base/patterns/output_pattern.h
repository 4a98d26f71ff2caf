#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

inline constexpr std::size_t kMaxPattern_bytes = 1024;
inline constexpr std::int64_t kMaxOutputStep = std::int64_t{1} << 53;

// How a value and its step are found in a line that a program prints: patterns of RE2's syntax
// (github.com/google/re2/wiki/Syntax), which take time linear in the line. A pattern matches
// anywhere in the line, and its groups are what is read: numbers as C writes them, nan and inf
// among them.
class OutputPattern {
 public:
  // `value` has one group, or two, of which the second is the step's unless one is named so:
  // (?P<step>...); and beside these one for each of `figures`, named as it is. `step` is empty or
  // has one group. The error says what would be right, or is RE2's; it does not repeat the pattern.
  static absl::StatusOr<OutputPattern> Make(const std::string& value, const std::string& step,
                                            std::span<const std::string> figures = {});

  OutputPattern(OutputPattern&&) noexcept;
  OutputPattern& operator=(OutputPattern&&) noexcept;
  ~OutputPattern();

  struct Line {
    std::optional<double> value;
    std::optional<std::int64_t> step;       // of the value's pattern, or of the step's own
    std::map<std::string, double> figures;  // those of the line that has the value
    // Where a pattern matched what is no number, or no step from 0 to kMaxOutputStep: what.
    std::string no_number;
  };
  // Requires UTF-8.
  Line Read(std::string_view line) const;

 private:
  struct Patterns;
  explicit OutputPattern(std::unique_ptr<Patterns> patterns);

  std::unique_ptr<Patterns> patterns_;
};

}  // namespace espalier
