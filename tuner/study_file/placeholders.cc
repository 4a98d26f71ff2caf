// What a study's command may have in braces.

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json/command_words.h"
#include "base/near_name.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

bool IsTrueOrFalse(const Distribution& distribution) {
  const Choice* choice = std::get_if<Choice>(&distribution);
  return choice != nullptr &&
         std::all_of(choice->options.begin(), choice->options.end(),
                     [](const ParameterValue& each) { return std::holds_alternative<bool>(each); });
}

// A word in which names in braces stand, and the key of the study file that has it.
struct Word {
  const char* key;
  const std::string& text;
};

absl::Status Bad(const Word& word, const std::string& problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word.key, "\": \"", word.text, "\": ", problem));
}

absl::Status UnknownName(const Word& word, const std::string& name,
                         const std::vector<std::string_view>& known) {
  std::string all;
  for (const std::string_view each : known) {
    absl::StrAppend(&all, all.empty() ? "" : ", ", std::string(each));
  }
  const std::string_view near = NearName(name, known);
  const std::string meant =
      near.empty() ? "" : absl::StrCat(", did you mean {", std::string(near), "}?");
  return Bad(word,
             absl::StrCat("there is no parameter \"", name, "\"", meant.empty() ? ";" : meant,
                          " Known: ", all, ". For the braces themselves write {{", name, "}}"));
}

absl::Status CheckPlaceholder(const StudySpec& spec, const Word& word,
                              const Placeholder& placeholder,
                              const std::vector<std::string_view>& known) {
  const std::string& name = placeholder.name;
  const auto parameter = spec.space.Find(name);
  if (parameter) {
    const Distribution& distribution = spec.space.dimensions()[*parameter].distribution;
    if (!placeholder.is_flag || IsTrueOrFalse(distribution)) return absl::OkStatus();
    return Bad(word, absl::StrCat("{NAME?WORD} is for a choice of true and false, \"", name,
                                  "\" is another ", std::string(TypeName(distribution))));
  }
  if (std::find(kTrialNames.begin(), kTrialNames.end(), name) == kTrialNames.end()) {
    // Its trials may have any parameters.
    if (spec.queued() && spec.space.dimensions().empty()) return absl::OkStatus();
    return UnknownName(word, name, known);
  }
  if (!placeholder.is_flag) return absl::OkStatus();
  return Bad(word, absl::StrCat("{NAME?WORD} is for a choice of true and false, \"", name,
                                "\" is no parameter"));
}

// One that is put into braces would go on as it is, unseen.
absl::Status CheckUnfitNames(const StudySpec& spec, const Word& word) {
  for (const SearchSpace::Dimension& dimension : spec.space.dimensions()) {
    if (IsPlaceholderName(dimension.name)) continue;
    if (word.text.find(absl::StrCat("{", dimension.name, "}")) == std::string::npos) continue;
    return Bad(word, absl::StrCat("a parameter in braces has a name of letters, digits, \"_\", "
                                  "\"-\", \".\" and \"/\", the first a letter or \"_\", got \"",
                                  dimension.name, "\""));
  }
  return absl::OkStatus();
}

// What fills in a command fills in paths too.
absl::Status CheckWord(const StudySpec& spec, const Word& word,
                       const std::vector<std::string_view>& known) {
  for (const Placeholder& placeholder : PlaceholdersOf(word.text)) {
    ESPALIER_RETURN_IF_ERROR(CheckPlaceholder(spec, word, placeholder, known));
  }
  return CheckUnfitNames(spec, word);
}

}  // namespace

absl::Status CheckPlaceholders(const StudySpec& spec) {
  if (spec.by_clients()) return absl::OkStatus();
  std::vector<std::string_view> known;
  for (const SearchSpace::Dimension& dimension : spec.space.dimensions()) {
    known.push_back(dimension.name);
  }
  known.insert(known.end(), kTrialNames.begin(), kTrialNames.end());
  for (std::size_t i = 1; i < spec.command.size(); ++i) {
    ESPALIER_RETURN_IF_ERROR(CheckWord(spec, {"command", spec.command[i]}, known));
  }
  return CheckWord(spec, {"metric", spec.from_files.path}, known);
}

std::string ParameterNote(const StudySpec& spec) {
  if (spec.by_clients() || !spec.reads_values()) return "";
  std::vector<std::string> named;
  for (const std::string& word : spec.command) {
    if (word.find("ESPALIER_PARAM") != std::string::npos) return "";
    for (const Placeholder& each : PlaceholdersOf(word)) named.push_back(each.name);
  }
  std::string missing;
  bool any = false;
  for (const SearchSpace::Dimension& dimension : spec.space.dimensions()) {
    // Where a parameter of an option is there, the choice follows from it.
    const bool there = std::ranges::any_of(named, [&](const std::string& name) {
      return name == dimension.name || name.starts_with(dimension.name + "/");
    });
    any = any || there;
    if (!there) absl::StrAppend(&missing, missing.empty() ? "" : ", ", "\"", dimension.name, "\"");
  }
  if (!any || missing.empty()) return "";
  return absl::StrCat("no word of \"command\" has ", missing,
                      " in braces, as it has others: the program finds it in its environment "
                      "alone (ESPALIER_PARAMETERS)");
}

}  // namespace espalier
