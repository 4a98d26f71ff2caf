// Which environment variables the parameters of a space, or of a trial, are in.

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "search_spaces/search_space.h"

namespace espalier {

namespace {

bool HasOwnVariable(const std::string& name) {
  return std::all_of(name.begin(), name.end(), absl::ascii_isascii);
}

absl::Status BothIn(const std::string& variable, const std::string& one, const std::string& other) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", one, "\" and \"", other, "\" would both be ", variable, ": rename one"));
}

}  // namespace

bool SearchSpace::Exclude(std::size_t i, std::size_t j) const {
  std::map<std::size_t, std::size_t> option_of;  // by choice
  for (auto at = dimensions_[i].condition; at; at = dimensions_[at->parent].condition) {
    option_of.emplace(at->parent, at->option);
  }
  for (auto at = dimensions_[j].condition; at; at = dimensions_[at->parent].condition) {
    const auto found = option_of.find(at->parent);
    if (found != option_of.end() && found->second != at->option) return true;
  }
  return false;
}

absl::Status SearchSpace::CheckVariables() const {
  std::multimap<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const std::string& name = dimensions_[i].name;
    if (!HasOwnVariable(name)) continue;
    const std::string variable = ParameterVariable(name);
    const auto [first, last] = seen.equal_range(variable);
    for (auto other = first; other != last; ++other) {
      if (Exclude(i, other->second)) continue;
      return BothIn(variable, dimensions_[other->second].name, name);
    }
    seen.emplace(variable, i);
  }
  return absl::OkStatus();
}

absl::Status CheckVariables(const Parameters& parameters) {
  std::map<std::string, std::string> seen;
  for (const auto& [name, value] : parameters) {
    if (!HasOwnVariable(name)) continue;
    const std::string variable = ParameterVariable(name);
    const auto [other, is_new] = seen.emplace(variable, name);
    if (!is_new) return BothIn(variable, other->second, name);
  }
  return absl::OkStatus();
}

}  // namespace espalier
