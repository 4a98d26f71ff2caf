#include "tuner/cli/views/space_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "tuner/cli/views/csv.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

using Condition = SearchSpace::Condition;
using Rows = std::vector<std::vector<std::string>>;

std::string Indent(std::size_t depth) { return std::string(2 * depth, ' '); }

// "1e-05 to 1" of "loguniform 1e-05 to 1".
std::string ValuesOf(const Distribution& distribution) {
  std::string text = Describe(distribution).substr(TypeName(distribution).size() + 1);
  if (text.starts_with("of ")) text = text.substr(3);
  return Cut(text, 60);
}

std::string CountOf(const Distribution& distribution) {
  const std::optional<std::uint64_t> count = Cardinality(distribution);
  return count ? std::to_string(*count) : "not finite";
}

void AddRows(const SearchSpace& space, const std::optional<Condition>& condition, std::size_t depth,
             Rows& rows) {
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    if (space.dimensions()[i].condition != condition) continue;
    const Distribution& distribution = space.dimensions()[i].distribution;
    rows.push_back({Indent(depth) + std::string(space.OwnName(i)),
                    std::string(TypeName(distribution)), ValuesOf(distribution),
                    CountOf(distribution)});
    const auto* choice = std::get_if<Choice>(&distribution);
    if (choice == nullptr || !choice->nested) continue;
    for (std::size_t option = 0; option < choice->options.size(); ++option) {
      rows.push_back({Indent(depth + 1) + ToDisplay(choice->options[option]) + ":", "", "", ""});
      AddRows(space, Condition{i, option}, depth + 2, rows);
    }
  }
}

std::string Configurations(const SearchSpace& space) {
  const std::optional<std::uint64_t> count = space.Cardinality();
  if (!count) return "not finitely many configurations";
  if (*count == std::numeric_limits<std::uint64_t>::max()) return "more than 10^19 configurations";
  return fmt::format("{} configuration{}", *count, *count == 1 ? "" : "s");
}

}  // namespace

std::string SpaceTable(const SearchSpace& space) {
  Rows rows = {{"PARAMETER", "TYPE", "VALUES", "COUNT"}};
  AddRows(space, std::nullopt, 0, rows);
  std::string text;
  for (const std::string& line : Columns(rows)) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + "\n" + SpaceSummary(space) + "\n";
}

std::string SpaceSummary(const SearchSpace& space) {
  const auto& dimensions = space.dimensions();
  const auto conditional = std::count_if(dimensions.begin(), dimensions.end(),
                                         [](const auto& d) { return d.condition.has_value(); });
  std::string text = Count(std::ssize(dimensions), "parameter");
  if (conditional > 0) text += fmt::format(", {} of them in options of choices", conditional);
  return text + "; " + Configurations(space);
}

std::string SamplesCsv(const SearchSpace& space, const std::vector<Parameters>& samples) {
  std::vector<std::string> fields;
  for (const auto& dimension : space.dimensions()) fields.push_back(dimension.name);
  std::string csv = CsvRow(fields);
  for (const Parameters& sample : samples) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const ParameterValue* value = Find(sample, space.dimensions()[i].name);
      const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
      fields[i] = value == nullptr ? "" : text != nullptr ? *text : ToJson(*value);
    }
    csv += CsvRow(fields);
  }
  return csv;
}

std::string SamplesJson(const SearchSpace& space, const std::vector<Parameters>& samples) {
  std::string lines;
  for (const Parameters& sample : samples) lines += space.NestedJson(sample) + "\n";
  return lines;
}

}  // namespace espalier
