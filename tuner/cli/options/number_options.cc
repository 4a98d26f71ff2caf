#include "tuner/cli/options/number_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tuner/cli/options/command.h"

namespace espalier {
namespace {

enum class NumberKind { kNone, kWhole, kUnsigned, kReal };

// CLI11 keeps no more of an option's type than the name that help texts show, with the checks after
// it: "INT:NONNEGATIVE".
NumberKind KindOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  if (name == "INT" || name == kTrialNumberType) return NumberKind::kWhole;
  if (name == "UINT") return NumberKind::kUnsigned;
  return name == "FLOAT" ? NumberKind::kReal : NumberKind::kNone;
}

template <typename Number>
bool ToDecimal(std::string& text) {
  Number number = 0;
  if (!absl::SimpleAtoi(text, &number)) return false;
  text = absl::StrCat(number);
  return true;
}

// Leaves in `text` what CLI11 reads as the same number. False: it is none.
bool ToDecimal(NumberKind kind, std::string& text) {
  if (kind == NumberKind::kWhole) return ToDecimal<std::int64_t>(text);
  if (kind == NumberKind::kUnsigned) return ToDecimal<std::uint64_t>(text);
  double number = 0;
  return absl::SimpleAtod(text, &number);
}

}  // namespace

void ReadNumbersAsDecimals(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const NumberKind kind = KindOf(*option);
    if (kind == NumberKind::kNone) continue;
    option->transform([option, kind](std::string text) {
      if (ToDecimal(kind, text)) return text;
      throw CLI::ConversionError(option->get_name(), std::vector<std::string>{text});
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    ReadNumbersAsDecimals(*command);
  }
}

std::string WantedNumber(const CLI::Option& option) {
  const NumberKind kind = KindOf(option);
  const bool whole = kind == NumberKind::kWhole || kind == NumberKind::kUnsigned;
  const std::string number = whole ? "a whole number" : "a number";
  const std::string type = option.get_type_name();
  const auto has = [&type](std::string_view check) {
    return type.find(check) != std::string::npos;
  };
  if (has(":NONNEGATIVE") || kind == NumberKind::kUnsigned) return number + ", 0 or more";
  if (has(":POSITIVE")) return number + (whole ? ", 1 or more" : " above 0");
  // "INT:INT in [1 - 256]"
  const std::size_t open = type.find(" in [");
  if (open == std::string::npos) return number;
  const std::string range = type.substr(open + 5, type.find(']', open) - open - 5);
  const std::size_t dash = range.find(" - ");
  return absl::StrCat(number, " from ", range.substr(0, dash), " to ", range.substr(dash + 3));
}

}  // namespace espalier
