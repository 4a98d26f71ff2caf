#include "base/port_range.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr int kFirstPort = 1024;  // those below belong to root
constexpr int kLastPort = 65535;

}  // namespace

std::string PortRange::text() const { return any() ? "" : absl::StrCat(low, "-", high); }

absl::StatusOr<PortRange> ParsePortRange(const std::string& text) {
  const std::size_t dash = text.find('-');
  PortRange range;
  if (dash == std::string::npos || !absl::SimpleAtoi(text.substr(0, dash), &range.low) ||
      !absl::SimpleAtoi(text.substr(dash + 1), &range.high) || range.low < kFirstPort ||
      range.high > kLastPort || range.low > range.high) {
    return absl::InvalidArgumentError(absl::StrCat("port range \"", text,
                                                   "\": want LOW-HIGH within ", kFirstPort, "-",
                                                   kLastPort, ", such as 7100-7163"));
  }
  return range;
}

}  // namespace espalier
