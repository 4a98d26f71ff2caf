#include "trial_runner/agent/ranks/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/launch_kinds.h"
#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/ranks/gang.h"
#include "trial_runner/agent/ranks/rank_runner.h"
#include "trial_runner/agent/ranks/ranks_order.h"

namespace espalier {
namespace {

// Whether all ranks that are to be here have a slot. An older service knows of one node alone.
absl::Status CheckShare(const v1::StartReplica& start) {
  const v1::Launch& launch = start.launch();
  const int slots = 1 + start.more_slots_size();
  if (launch.ranks_of_nodes().empty()) {
    if (slots >= launch.least()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot start the trial: its ", launch.least(), " ranks are to be on one machine, and ",
        slots, slots == 1 ? " of its slots is" : " of its slots are",
        " here: lower \"slots\" of the study, or have a machine join that has as many"));
  }
  const int node = launch.node_rank();
  const bool known = node >= 0 && node < launch.ranks_of_nodes_size() &&
                     std::ranges::all_of(launch.ranks_of_nodes(), [](int n) { return n >= 1; });
  if (known && launch.ranks_of_nodes(node) == slots) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot start the trial: as node ", node, " of ", launch.ranks_of_nodes_size(),
                   " it cannot have ", slots, slots == 1 ? " slot" : " slots"));
}

}  // namespace

absl::Status SuperviseRanks(const v1::StartReplica& start, const PortRange& ports,
                            LaunchOrder& replica) {
  if (!start.has_launch()) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(FindProgram(replica).status());
  const v1::Launch& launch = start.launch();
  ESPALIER_RETURN_IF_ERROR(CheckShare(start));
  const std::vector<std::string> words(launch.words().begin(), launch.words().end());
  const LaunchKind* const kind = FindLaunchKind(words.empty() ? "" : words.front());
  if (kind == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot start the trial: its \"launch\", \"", words.empty() ? "" : words[0],
        "\", is none that this agent knows: upgrade it; it knows ", NamesOfLaunchKinds()));
  }
  if (start.preload_size() > 0) replica.rank_command = replica.command;
  RankPlace place = RanksHere(start);
  const RanksOrder order{.launch = words,
                         .ranks_of_nodes = std::move(place.ranks_of_nodes),
                         .node_rank = place.node_rank,
                         .grace_s = launch.grace_s(),
                         .apart_s = launch.apart_s(),
                         .ports = ports,
                         .replica_log = replica.log_path,
                         .command = std::move(replica.command)};
  // The program of this very agent, also where another one is in its place by now.
  replica.command = order.Words(absl::StrCat("/proc/", getpid(), "/exe"));
  return absl::OkStatus();
}

RankPlace RanksHere(const v1::StartReplica& start) {
  const v1::Launch& launch = start.launch();
  RankPlace place{
      .ranks_of_nodes = {launch.ranks_of_nodes().begin(), launch.ranks_of_nodes().end()},
      .node_rank = launch.node_rank()};
  if (place.ranks_of_nodes.empty()) place.ranks_of_nodes = {1 + start.more_slots_size()};
  if (place.node_rank < 0 || place.node_rank >= place.nodes()) place.node_rank = 0;
  const LaunchKind* const kind = FindLaunchKind(launch.words().empty() ? "" : launch.words(0));
  if (kind != nullptr && kind->one_a_node) std::ranges::fill(place.ranks_of_nodes, 1);
  return place;
}

std::optional<int> RunRanks(int argc, const char* const* argv) {
  if (const std::optional<int> code = RunRank(argc, argv)) return code;
  const std::optional<RanksOrder> order = RanksOrder::From(argc, argv);
  if (!order) return std::nullopt;
  prctl(PR_SET_NAME, "espalier-ranks");
  fcntl(kControlFd, F_SETFD, FD_CLOEXEC);  // it is this process's alone: ranks speak over HTTP
  Gang gang(*order, kControlFd);
  const RankEnd end = gang.Run();
  std::fflush(stdout);
  if (end.signal != 0) EndBySignal(end.signal);
  return end.exit_code;
}

}  // namespace espalier
