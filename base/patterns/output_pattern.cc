#include "base/patterns/output_pattern.h"

#include <re2/re2.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr char kStepName[] = "step";
constexpr int kMostGroups = 2;  // of value and step

std::unique_ptr<re2::RE2> Compiled(const std::string& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return std::make_unique<re2::RE2>(pattern, options);
}

// Each group of the match; nullopt: there is no match. A group that took no part is empty.
std::optional<std::vector<std::string_view>> Match(const re2::RE2& pattern, std::string_view line) {
  std::vector<re2::StringPiece> found(
      static_cast<std::size_t>(1 + pattern.NumberOfCapturingGroups()));
  const re2::StringPiece text(line.data(), line.size());
  if (!pattern.Match(text, 0, text.size(), re2::RE2::UNANCHORED, found.data(),
                     static_cast<int>(found.size()))) {
    return std::nullopt;
  }
  std::vector<std::string_view> groups;
  for (const re2::StringPiece& group : found) groups.emplace_back(group.data(), group.size());
  return groups;
}

std::optional<double> NumberIn(std::string_view text) {
  double number = 0;
  if (absl::SimpleAtod(std::string(text), &number)) return number;
  return std::nullopt;
}

std::optional<std::int64_t> StepIn(std::string_view text) {
  const std::optional<double> number = NumberIn(text);
  if (!number || *number < 0 || *number > static_cast<double>(kMaxOutputStep) ||
      *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

absl::Status Unfit(const std::string& what) { return absl::InvalidArgumentError(what); }

}  // namespace

struct OutputPattern::Patterns {
  std::unique_ptr<re2::RE2> value;
  std::unique_ptr<re2::RE2> step;  // null: none
  std::size_t value_group = 0;
  std::size_t step_group = 0;  // of the value's pattern; 0: none
  std::map<std::string, std::size_t> figure_groups;

  absl::Status FindGroups(std::span<const std::string> figures);
};

OutputPattern::OutputPattern(std::unique_ptr<Patterns> patterns) : patterns_(std::move(patterns)) {}
OutputPattern::OutputPattern(OutputPattern&&) noexcept = default;
OutputPattern& OutputPattern::operator=(OutputPattern&&) noexcept = default;
OutputPattern::~OutputPattern() = default;

// Finds which groups of the value's pattern are what.
absl::Status OutputPattern::Patterns::FindGroups(std::span<const std::string> figures) {
  const auto& names = value->NamedCapturingGroups();
  std::set<std::size_t> of_figures;
  for (const std::string& figure : figures) {
    const auto group = names.find(figure);
    if (group == names.end()) {
      return Unfit(absl::StrCat("needs a group for \"", figure, "\", as in \"", figure, "=(?P<",
                                figure, ">[0-9.e+-]+)\", in the line that has the value; ",
                                "names of groups are letters, digits and _"));
    }
    const auto at = static_cast<std::size_t>(group->second);
    figure_groups.emplace(figure, at);
    of_figures.insert(at);
  }
  std::vector<std::size_t> rest;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(value->NumberOfCapturingGroups()); ++i) {
    if (!of_figures.contains(i)) rest.push_back(i);
  }
  if (rest.empty() || rest.size() > kMostGroups) {
    return Unfit(
        absl::StrCat("needs one group, for the value, as in \"val_loss=([0-9.e+-]+)\", or "
                     "a second one for the step, got ",
                     rest.size(), "; (?:...) groups without being one"));
  }
  const auto named = figure_groups.contains(kStepName) ? names.end() : names.find(kStepName);
  if (named != names.end() && rest.size() == 1) {
    return Unfit("its one group is named \"step\": needs one for the value too");
  }
  if (rest.size() == 2) step_group = rest[1];
  if (named != names.end()) step_group = static_cast<std::size_t>(named->second);
  value_group = step_group == rest[0] ? rest[1] : rest[0];
  return absl::OkStatus();
}

absl::StatusOr<OutputPattern> OutputPattern::Make(const std::string& value, const std::string& step,
                                                  std::span<const std::string> figures) {
  auto made = std::make_unique<Patterns>();
  if (value.size() > kMaxPattern_bytes || step.size() > kMaxPattern_bytes) {
    return Unfit(absl::StrCat("a pattern has at most ", kMaxPattern_bytes, " bytes"));
  }
  made->value = Compiled(value);
  if (!made->value->ok()) return Unfit(made->value->error());
  ESPALIER_RETURN_IF_ERROR(made->FindGroups(figures));
  if (step.empty()) return OutputPattern(std::move(made));
  if (made->step_group > 0) {
    return Unfit("has a group for the step, and \"step\" is another pattern for it");
  }
  made->step = Compiled(step);
  if (!made->step->ok()) return Unfit(absl::StrCat("\"step\": ", made->step->error()));
  if (made->step->NumberOfCapturingGroups() != 1) {
    return Unfit(absl::StrCat("\"step\": needs one group, as in \"Epoch ([0-9]+)\", got ",
                              made->step->NumberOfCapturingGroups()));
  }
  return OutputPattern(std::move(made));
}

OutputPattern::Line OutputPattern::Read(std::string_view line) const {
  Line read;
  const auto take_step = [&read](std::string_view text) {
    read.step = StepIn(text);
    if (!read.step) read.no_number = absl::StrCat("\"", std::string(text), "\" is no step");
  };
  if (patterns_->step != nullptr) {
    if (const auto groups = Match(*patterns_->step, line)) take_step((*groups)[1]);
  }
  const auto groups = Match(*patterns_->value, line);
  if (!groups) return read;
  if (patterns_->step_group > 0) take_step((*groups)[patterns_->step_group]);
  const std::string_view text = (*groups)[patterns_->value_group];
  read.value = NumberIn(text);
  if (!read.value) read.no_number = absl::StrCat("\"", std::string(text), "\" is no number");
  // Told of another step it would be wrong.
  if (patterns_->step_group > 0 && !read.step) read.value.reset();
  for (const auto& [name, group] : patterns_->figure_groups) {
    if (const auto figure = NumberIn((*groups)[group])) read.figures.emplace(name, *figure);
  }
  return read;
}

}  // namespace espalier
