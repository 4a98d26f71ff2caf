#include "tuner/core/state/constraint.h"

#include <array>
#include <charconv>

namespace espalier {

std::string ToText(const Constraint& constraint) {
  std::array<char, 32> digits;  // of the longest double: 24
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), constraint.bound).ptr;
  return constraint.figure + (constraint.at_least ? " >= " : " <= ") +
         std::string(digits.data(), end);
}

}  // namespace espalier
