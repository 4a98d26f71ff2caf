#include "trial_runner/collectives/gloo/group_confirmation.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
namespace {

std::string Confirmation(const GroupPlan& plan, int from, int to) {
  const std::string message = HmacSha256(
      plan.secret, absl::StrCat("espalier group member ", plan.generation, " ", from, " ", to));
  ESPALIER_CHECK(message.size() == kConfirmationBytes, "HMAC-SHA256 has 32 bytes");
  return message;
}

// "rank 1", "ranks 1, 4".
std::string Named(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    absl::StrAppend(&text, i > 0 ? ", " : "", ranks[i]);
  return text;
}

}  // namespace

std::vector<std::uint8_t> ConfirmationsOf(const GroupPlan& plan) {
  std::vector<std::uint8_t> said;
  for (int to = 0; to < plan.size; ++to) {
    const std::string message = Confirmation(plan, plan.rank, to);
    said.insert(said.end(), message.begin(), message.end());
  }
  return said;
}

Unconfirmed FindUnconfirmed(const GroupPlan& plan, const std::vector<std::uint8_t>& received) {
  ESPALIER_CHECK(received.size() == kConfirmationBytes * static_cast<std::size_t>(plan.size),
                 "a confirmation for each member");
  Unconfirmed unconfirmed;
  for (int from = 0; from < plan.size; ++from) {
    if (from == plan.rank) continue;
    const std::string_view message(reinterpret_cast<const char*>(received.data()) +
                                       kConfirmationBytes * static_cast<std::size_t>(from),
                                   kConfirmationBytes);
    if (SameText(message, Confirmation(plan, from, plan.rank))) continue;
    const bool none = std::all_of(message.begin(), message.end(), [](char c) { return c == 0; });
    (none ? unconfirmed.silent : unconfirmed.wrong).push_back(from);
  }
  return unconfirmed;
}

std::string Describe(const Unconfirmed& unconfirmed) {
  std::string text;
  if (!unconfirmed.wrong.empty()) {
    absl::StrAppend(&text, "the connection of ", Named(unconfirmed.wrong),
                    " is not that member's: its other end does not know the generation's secret");
  }
  if (!unconfirmed.silent.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "the other end of the connection of ",
                    Named(unconfirmed.silent), " has not confirmed that it is that member");
  }
  return text;
}

}  // namespace espalier
