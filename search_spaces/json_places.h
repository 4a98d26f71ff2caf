#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// One step further in a JSON pointer (RFC 6901): "/a" and "b/c" give "/a/b~1c".
std::string PointerTo(const std::string& parent, std::string_view key);
std::string PointerTo(const std::string& parent, std::size_t index);

// Says in which lines of a text the values of its JSON are, for messages.
class JsonPlaces {
 public:
  // A text that is not JSON is read as far as it is.
  explicit JsonPlaces(std::string_view text) : text_(text) { Value(""); }

  // The line, counted from 1, in which the value begins; where there is no such value, the line of
  // the nearest value around it.
  std::size_t LineOf(std::string pointer) const;

  // Values whose key occurred in their object before, with their lines.
  struct Place {
    std::string pointer;
    std::size_t line;
  };
  const std::vector<Place>& repeated_keys() const { return repeated_keys_; }

 private:
  bool Value(const std::string& pointer);
  bool Object(const std::string& pointer);
  bool Array(const std::string& pointer);
  bool Text(std::string& decoded);
  void SkipSpace();
  bool Take(char c);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  int depth_ = 0;
  std::map<std::string, std::size_t> lines_;
  std::vector<Place> repeated_keys_;
};

}  // namespace espalier
