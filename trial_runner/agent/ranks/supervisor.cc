#include "trial_runner/agent/ranks/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/ranks/gang.h"
#include "trial_runner/agent/ranks/rank_runner.h"
#include "trial_runner/agent/ranks/ranks_order.h"

namespace espalier {

absl::Status SuperviseRanks(const v1::StartReplica& start, const PortRange& ports,
                            LaunchOrder& replica) {
  if (!start.has_launch()) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(FindProgram(replica).status());
  const v1::Launch& launch = start.launch();
  const int ranks = 1 + start.more_slots_size();
  if (ranks < launch.least()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot start the trial: its ", launch.least(), " ranks are to be on one machine, and ",
        ranks, ranks == 1 ? " of its slots is" : " of its slots are",
        " here: lower \"slots\" of the study, or have a machine join that has as many"));
  }
  if (start.preload_size() > 0) replica.rank_command = replica.command;
  const RanksOrder order{.launch = {launch.words().begin(), launch.words().end()},
                         .ranks = ranks,
                         .grace_s = launch.grace_s(),
                         .apart_s = launch.apart_s(),
                         .ports = ports,
                         .replica_log = replica.log_path,
                         .command = std::move(replica.command)};
  // The program of this very agent, also where another one is in its place by now.
  replica.command = order.Words(absl::StrCat("/proc/", getpid(), "/exe"));
  return absl::OkStatus();
}

std::optional<int> RunRanks(int argc, const char* const* argv) {
  if (const std::optional<int> code = RunRank(argc, argv)) return code;
  const std::optional<RanksOrder> order = RanksOrder::From(argc, argv);
  if (!order) return std::nullopt;
  prctl(PR_SET_NAME, "espalier-ranks");
  fcntl(kControlFd, F_SETFD, FD_CLOEXEC);  // ranks speak over HTTP
  Gang gang(*order);
  const RankEnd end = gang.Run();
  std::fflush(stdout);
  if (end.signal != 0) EndBySignal(end.signal);
  return end.exit_code;
}

}  // namespace espalier
