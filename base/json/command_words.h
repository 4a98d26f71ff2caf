#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace espalier {

// In a trial's command `{NAME}` stands for a parameter, by its flat name, or for one of the names
// below; `{NAME?WORD}`, which is a whole word, stands for WORD where that parameter is true, and
// for nothing where it is false. `{{` and `}}` are braces. Any other text stays as it is, in
// particular that of JSON, and `${NAME}`, which is for shells.

// What any trial's command may name beside its parameters, which come first.
inline constexpr std::array<std::string_view, 5> kTrialNames = {"trial", "study", "seed",
                                                                "trial_dir", "checkpoint_dir"};

// A trial, as its command may name it.
struct TrialOfCommand {
  std::string_view parameters_json = "{}";  // one object, nested as SearchSpace::NestedJson has it
  std::string_view study{};
  std::int64_t number = 0;
  std::int64_t seed = 0;
  std::string_view folder{};       // empty: not known, {trial_dir} stays
  std::string_view checkpoints{};  // a folder, likewise
};

// The command that a trial runs. Its first word, the program, is the same for all trials. In the
// others all is replaced in one pass, so that nothing within a value is, and a word stays one word.
// Of a value: a text is as it is, a number has no fraction if it is whole, true, false, lists and
// objects are JSON, and a nested choice is its option's name.
//
// A word that names a parameter which the trial does not have, because another option was chosen,
// or which is null, is left out; and with a word `{NAME}` so is the option before it
// ("--momentum"). An error names the word and what would be right.
absl::StatusOr<std::vector<std::string>> FillCommand(const std::vector<std::string>& command,
                                                     const TrialOfCommand& trial);

struct Placeholder {
  std::string name;
  bool is_flag = false;  // {NAME?WORD}

  std::string Text() const { return is_flag ? "{" + name + "?...}" : "{" + name + "}"; }
};
// Those of one word of a command, in their order.
std::vector<Placeholder> PlaceholdersOf(std::string_view word);

// The word without what it means in a command: with all braces doubled.
std::string LiteralWord(std::string_view word);

// Whether a parameter of that name can be named in a command.
bool IsPlaceholderName(std::string_view name);

}  // namespace espalier
