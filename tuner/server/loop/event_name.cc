#include "tuner/server/loop/event_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <variant>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

std::string NameOf(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  const std::string text = name ? name.get() : type.name();
  return text.substr(text.rfind(':') + 1);
}

template <typename Variant>
std::string NameOfHeld(const Variant& variant) {
  return std::visit([]<typename T>(const T&) { return NameOf(typeid(T)); }, variant);
}

}  // namespace

std::string NameOf(const Event& event) {
  return std::visit(
      []<typename E>(const E& e) {
        std::string text = NameOf(typeid(E));
        if constexpr (requires { e.replica.value; })
          absl::StrAppend(&text, " replica=", e.replica.value);
        if constexpr (requires { e.trial.value; }) absl::StrAppend(&text, " trial=", e.trial.value);
        if constexpr (requires { e.study.value; }) absl::StrAppend(&text, " study=", e.study.value);
        if constexpr (requires { e.node.value; }) absl::StrAppend(&text, " node=", e.node.value);
        if constexpr (requires { std::string(e.node_name); }) {
          absl::StrAppend(&text, " node=\"", e.node_name, "\"");
        }
        if constexpr (requires { std::string(e.name); }) {
          absl::StrAppend(&text, " name=\"", e.name, "\"");
        }
        if constexpr (requires { e.spec.name; }) {
          absl::StrAppend(&text, " study=\"", e.spec.name, "\"");
        }
        if constexpr (requires { e.message.index(); }) {
          absl::StrAppend(&text, " message=", NameOfHeld(e.message));
        }
        return text;
      },
      event);
}

}  // namespace espalier
