#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

inline constexpr std::string_view kEngineNode = "pool-";

// The name of a template's node, which is all that a restarted service knows of it: "pool-7", or
// "pool-spot-7" of the template "spot".
std::string EngineNodeName(std::string_view node_template, std::int64_t number);
// The template of the node with that name, "" for the only template of a pool; none: the node is
// not the engine's.
std::optional<std::string> TemplateOf(std::string_view node_name);
inline bool IsEngineNode(std::string_view name) { return TemplateOf(name).has_value(); }

}  // namespace espalier
