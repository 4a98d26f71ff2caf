#pragma once

#include <string>

namespace espalier {

// Calls see(name, value) for each parameter of a JSON object by its flat name: a nested choice,
// {"n": {"_name": "A", "p": 0.3}}, gives n with the JSON string "A", and n/A/p. Other objects, and
// lists, are values. Any JSON library of nlohmann's interface.
template <typename Json, typename See>
void ForEachParameter(const Json& object, See see, const std::string& prefix = "") {
  for (const auto& [key, value] : object.items()) {
    if (!prefix.empty() && key == "_name") continue;
    const std::string name = prefix + key;
    const auto option = value.is_object() ? value.find("_name") : value.end();
    if (option == value.end() || !option->is_string()) {
      see(name, value);
      continue;
    }
    see(name, *option);
    ForEachParameter(value, see, name + "/" + option->template get<std::string>() + "/");
  }
}

}  // namespace espalier
