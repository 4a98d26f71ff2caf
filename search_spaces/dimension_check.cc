// What is wrong with the dimensions of a search space to be.

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "search_spaces/search_space.h"

namespace espalier {
namespace {

using Dimensions = std::vector<SearchSpace::Dimension>;

// The part of the name before a child's own: "n/A/".
std::string PrefixOf(const Dimensions& dimensions, const SearchSpace::Condition& condition) {
  const auto& parent = dimensions[condition.parent];
  const auto* choice = std::get_if<Choice>(&parent.distribution);
  if (choice == nullptr || condition.option >= choice->options.size()) return "";
  const auto* option = std::get_if<std::string>(&choice->options[condition.option]);
  return option == nullptr ? "" : absl::StrCat(parent.name, "/", *option, "/");
}

std::string NameFlaw(const Dimensions& dimensions, std::size_t i) {
  const auto& [name, distribution, condition] = dimensions[i];
  std::string prefix;
  if (condition) {
    if (condition->parent >= i) return "comes before the choice that it depends on";
    prefix = PrefixOf(dimensions, *condition);
    if (prefix.empty() || !absl::StartsWith(name, prefix)) {
      return absl::StrCat("depends on a choice, so its name must start with \"", prefix, "\"");
    }
  }
  const std::string own = name.substr(prefix.size());
  if (own.empty()) return "a parameter needs a name that is not empty";
  if (own == "_name") {
    return "\"_name\" is the key of an option's name and cannot be a parameter's";
  }
  if (own.size() > kMaxParameterNameBytes) {
    return absl::StrCat("names have at most ", kMaxParameterNameBytes, " bytes, got ", own.size());
  }
  if (name.size() <= kMaxFlatNameBytes) return "";
  return absl::StrCat("names have at most ", kMaxFlatNameBytes,
                      " bytes with the options they depend on, got ", name.size());
}

// "n/A/p" of a parameter that is not p of option A of choice n.
std::string MistakenFor(const Dimensions& dimensions, std::size_t i,
                        const std::map<std::string, std::size_t>& by_name) {
  const std::string& name = dimensions[i].name;
  const auto depends_on = [&](const SearchSpace::Condition& condition) {
    for (std::size_t at = i; dimensions[at].condition; at = dimensions[at].condition->parent) {
      const SearchSpace::Condition& own = *dimensions[at].condition;
      // An option that is there twice is a flaw of the choice alone.
      if (own.parent == condition.parent &&
          PrefixOf(dimensions, own) == PrefixOf(dimensions, condition)) {
        return true;
      }
    }
    return false;
  };
  for (std::size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const auto other = by_name.find(name.substr(0, slash));
    if (other == by_name.end()) continue;
    const auto* choice = std::get_if<Choice>(&dimensions[other->second].distribution);
    if (choice == nullptr) continue;
    for (std::size_t option = 0; option < choice->options.size(); ++option) {
      const SearchSpace::Condition condition{other->second, option};
      const std::string prefix = PrefixOf(dimensions, condition);
      if (prefix.empty() || !absl::StartsWith(name, prefix) || depends_on(condition)) continue;
      return absl::StrCat("this name is that of a parameter of option \"",
                          prefix.substr(slash + 1, prefix.size() - slash - 2), "\" of choice \"",
                          other->first, "\"; rename one of them");
    }
  }
  return "";
}

}  // namespace

std::vector<DimensionFlaw> FlawsOf(const Dimensions& dimensions) {
  std::vector<DimensionFlaw> flaws;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    std::string flaw = NameFlaw(dimensions, i);
    if (flaw.empty() && !by_name.emplace(dimensions[i].name, i).second) {
      flaw = "this name appears twice";
    }
    if (!flaw.empty()) flaws.push_back({i, std::nullopt, std::move(flaw)});
    if (auto wrong = FlawOf(dimensions[i].distribution)) {
      flaws.push_back({i, wrong->value, std::move(wrong->what)});
    }
  }
  const bool in_order = std::all_of(flaws.begin(), flaws.end(), [&](const DimensionFlaw& flaw) {
    const auto& condition = dimensions[flaw.dimension].condition;
    return !condition || condition->parent < flaw.dimension;
  });
  for (std::size_t i = 0; in_order && i < dimensions.size(); ++i) {
    std::string flaw = MistakenFor(dimensions, i, by_name);
    if (!flaw.empty()) flaws.push_back({i, std::nullopt, std::move(flaw)});
  }
  return flaws;
}

}  // namespace espalier
