#include "tuner/core/state/engine_node_names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace espalier {

std::string EngineNodeName(std::string_view node_template, std::int64_t number) {
  std::string name(kEngineNode);
  if (!node_template.empty()) name.append(node_template).append("-");
  return absl::StrCat(name, number);
}

std::optional<std::string> TemplateOf(std::string_view node_name) {
  if (!node_name.starts_with(kEngineNode)) return std::nullopt;
  node_name.remove_prefix(kEngineNode.size());
  const std::size_t hyphen = node_name.rfind('-');
  std::string_view digits = node_name;
  std::string_view node_template;
  if (hyphen != std::string_view::npos) {
    node_template = node_name.substr(0, hyphen);
    digits = node_name.substr(hyphen + 1);
    if (node_template.empty()) return std::nullopt;
  }
  std::int64_t number = 0;
  const bool is_number =
      absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &number) && number > 0;
  return is_number ? std::optional(std::string(node_template)) : std::nullopt;
}

}  // namespace espalier
