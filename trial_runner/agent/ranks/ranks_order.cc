#include "trial_runner/agent/ranks/ranks_order.h"

#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace espalier {
namespace {

constexpr std::string_view kRunRanks = "--run-ranks";
constexpr std::string_view kAnyPort = "any";
constexpr std::size_t kFirstOfLaunch = 8;

// "2,2@1"
bool ReadNodes(const std::string& text, RanksOrder& order) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, '@');
  order.ranks_of_nodes.clear();
  for (const std::string& number : std::vector<std::string>(absl::StrSplit(parts.first, ','))) {
    int ranks = 0;
    if (!absl::SimpleAtoi(number, &ranks) || ranks < 1) return false;
    order.ranks_of_nodes.push_back(ranks);
  }
  return absl::SimpleAtoi(parts.second, &order.node_rank) && order.node_rank >= 0 &&
         order.node_rank < std::ssize(order.ranks_of_nodes);
}

}  // namespace

std::vector<std::string> RanksOrder::Words(const std::string& program) const {
  std::vector<std::string> words{program,
                                 std::string(kRunRanks),
                                 absl::StrCat(absl::StrJoin(ranks_of_nodes, ","), "@", node_rank),
                                 absl::StrCat(grace_s),
                                 absl::StrCat(apart_s),
                                 ports.any() ? std::string(kAnyPort) : ports.text(),
                                 replica_log,
                                 absl::StrCat(launch.size())};
  words.insert(words.end(), launch.begin(), launch.end());
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::optional<RanksOrder> RanksOrder::From(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() <= kFirstOfLaunch || words[1] != kRunRanks) return std::nullopt;
  RanksOrder order;
  std::size_t of_launch = 0;
  if (!ReadNodes(words[2], order) || !absl::SimpleAtod(words[3], &order.grace_s) ||
      !absl::SimpleAtod(words[4], &order.apart_s) || !absl::SimpleAtoi(words[7], &of_launch) ||
      of_launch < 1 || of_launch >= words.size() - kFirstOfLaunch) {
    return std::nullopt;
  }
  if (words[5] != kAnyPort) {
    const auto ports = ParsePortRange(words[5]);
    if (!ports.ok()) return std::nullopt;
    order.ports = *ports;
  }
  order.replica_log = words[6];
  const auto first_of_command =
      words.begin() + static_cast<std::ptrdiff_t>(kFirstOfLaunch + of_launch);
  order.launch.assign(words.begin() + kFirstOfLaunch, first_of_command);
  order.command.assign(first_of_command, words.end());
  order.kind = FindLaunchKind(order.launch.front());
  if (order.kind == nullptr) return std::nullopt;
  return order;
}

}  // namespace espalier
