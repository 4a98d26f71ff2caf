#include "tuner/core/samplers/sampler.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/samplers/table.h"

namespace espalier {
namespace {

using samplers::Option;
using samplers::Row;

const std::vector<Row>& Table() {
  static const std::vector<Row> table = {samplers::RandomRow(), samplers::GridRow(),
                                         samplers::TpeRow(), samplers::QueueRow()};
  return table;
}

std::string OptionNames(const Row& row) {
  std::vector<std::string> names;
  for (const Option& option : row.options) names.emplace_back(option.name);
  return names.empty() ? "it has none" : "known: " + absl::StrJoin(names, ", ");
}

absl::Status CheckOption(const Row& row, const Option& option, double value) {
  const bool in_range = value >= option.least && value <= option.most;
  if (in_range && (!option.whole || value == std::floor(value))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sampler \"", std::string(row.name), "\": option \"", std::string(option.name),
                   "\" needs ", option.whole ? "a whole number" : "a number", " from ",
                   option.least, " to ", option.most, ", got ", value));
}

absl::StatusOr<Options> Complete(const Row& row, const Options& given) {
  Options complete;
  for (const Option& option : row.options) complete[std::string(option.name)] = option.standard;
  for (const auto& [name, value] : given) {
    const Option* known = nullptr;
    for (const Option& option : row.options) {
      if (option.name == name) known = &option;
    }
    if (known == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("sampler \"", std::string(row.name),
                                                     "\": unknown option \"", name, "\"; ",
                                                     OptionNames(row)));
    }
    ESPALIER_RETURN_IF_ERROR(CheckOption(row, *known, value));
    complete[name] = value;
  }
  return complete;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(std::string_view name,
                                                     const Options& options) {
  for (const Row& row : Table()) {
    if (row.name != name) continue;
    ESPALIER_ASSIGN_OR_RETURN(const Options complete, Complete(row, options));
    return row.make(complete);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown sampler \"", std::string(name), "\"; known: ", absl::StrJoin(SamplerNames(), ", ")));
}

std::vector<std::string> SamplerNames() {
  std::vector<std::string> names;
  for (const Row& row : Table()) names.emplace_back(row.name);
  return names;
}

}  // namespace espalier
