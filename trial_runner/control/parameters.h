#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// The values that the tuner gave a trial, by name. A program asks for the parameters that it knows,
// and gives the value to use otherwise. An integer serves where a real number is asked for, and a
// real number without a fraction serves where an integer is.
class Parameters {
 public:
  // std::monostate: null, which is of no type that a program asks for.
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

  // A JSON object; `origin` names it in errors. Nested choices are flattened: of {"n": {"_name":
  // "A", "p": 0.3}}, "n" is "A" and "n/A/p" is 0.3. Other objects, and lists, are kept as text.
  static absl::StatusOr<Parameters> FromJson(std::string_view json, std::string_view origin);
  // Takes "name=value"; the value is JSON if it reads as such, else text.
  absl::Status Set(std::string_view assignment);

  // Returns the parameter, or `otherwise` if there is none of that name.
  absl::StatusOr<double> Get(const std::string& name, double otherwise) const;
  absl::StatusOr<std::int64_t> Get(const std::string& name, std::int64_t otherwise) const;
  absl::StatusOr<bool> Get(const std::string& name, bool otherwise) const;
  absl::StatusOr<std::string> Get(const std::string& name, const std::string& otherwise) const;

  // Counts as asked for.
  void Ask(const std::string& name) const { asked_.insert(name); }
  // All of them, as a JSON object.
  std::string Json() const;

  // Names given but never asked for: often a misspelling on one side.
  std::vector<std::string> Unused() const;

 private:
  const Value* Find(const std::string& name) const;

  std::map<std::string, Value> values_;
  mutable std::set<std::string> asked_;
};

}  // namespace espalier
