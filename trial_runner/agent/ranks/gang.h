#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/launch_kinds.h"
#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/ranks/end_order.h"
#include "trial_runner/agent/ranks/held_port.h"
#include "trial_runner/agent/ranks/node_link.h"
#include "trial_runner/agent/ranks/rank_end.h"
#include "trial_runner/agent/ranks/rank_files.h"
#include "trial_runner/agent/ranks/rank_messages.h"
#include "trial_runner/agent/ranks/ranks_order.h"
#include "trial_runner/agent/zygotes/zygote.h"

namespace espalier {

// The ranks of a trial on this machine, from their start to the end of all. Where it has others on
// other machines, they start when the service says where all meet, and it hears at once when one
// fails. Belongs to the one thread of its process, see supervisor.h.
class Gang {
 public:
  // `control` is the socket that leads to the service by way of the agent.
  Gang(RanksOrder order, int control);

  // Starts them, and waits until all have ended; how this process is to end then.
  RankEnd Run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    FileDescriptor runner;  // not open: it has not come, or is gone
    bool came = false;
    bool ended = false;
    bool lost = false;  // its runner was killed, and it with it
    RankEnd end{.exit_code = 0};
    Clock::time_point ended_at;
    int nth = 0;               // of those here whose processes have ended; 0: it runs, or not known
    std::int64_t seen_ns = 0;  // when this was seen

    bool runs() const { return came && !ended; }
  };
  struct Failure {
    Blame blame;
    RankEnd end;
  };
  // What this process has started: the launcher, or each rank's runner.
  struct Process {
    LaunchedProcess started;
    std::optional<RankEnd> end;
  };

  absl::Status Prepare();
  // False: it was told to end instead.
  bool AwaitOtherNodes();
  absl::Status Start();
  std::map<std::string, std::string> Environment() const;
  absl::Status StartLauncher(std::map<std::string, std::string> environment,
                             const std::vector<std::string>& runner);
  absl::Status StartRunners(const std::map<std::string, std::string>& environment,
                            const std::vector<std::string>& runner);
  void NameRank(int rank, std::map<std::string, std::string>& environment) const;
  absl::Status StartProcess(LaunchOrder order);
  bool Over() const;
  void Wait();
  int WaitMs() const;
  void TakeSignals();
  void TakeEnds();
  void Welcome();
  void Hear(int rank);
  void RankEnded(int rank, const RankEnd& end);
  void ReapProcesses();
  void ProcessEnded(std::size_t process);
  bool AwaitsHow() const;
  Clock::time_point TimeToTell() const;
  void KeepTime();
  // Tells all that run to end, and when they will be killed: never where there is no grace.
  void TellToEnd(std::optional<double> grace_s);
  void KillAll();
  void Fail(std::string why);
  std::optional<Failure> FailureHere() const;
  void NoteFailure();
  void TellOfThoseThatLeft();
  void Release();
  RankEnd Result();
  RankEnd EndOfLauncher() const;
  void PrintLauncher() const;
  bool HasLauncher() const { return !order_.kind->module.empty(); }
  bool LauncherEnded() const { return HasLauncher() && processes_.front().end.has_value(); }

  const RanksOrder order_;
  RankPlace place_;
  std::optional<NodeLink> other_nodes_;  // none: all ranks are here
  std::string address_;                  // of the listener
  std::optional<HeldPort> port_;
  std::unique_ptr<Zygote> zygote_ = Zygote::Own();  // until all is started
  FileDescriptor signals_;
  FileDescriptor listener_;
  std::vector<FileDescriptor> strangers_;  // that have not said yet which rank they run
  std::vector<Process> processes_;
  std::vector<Rank> ranks_;   // those here, from place_.first() on
  EndOrder order_of_ends_;    // of their processes
  int ended_ = 0;             // in that order
  bool terminated_ = false;   // by whoever runs this
  std::string failure_;       // why all are killed, where no rank's own end says so
  int late_ = -1;             // the rank that ended well long before the others
  std::int64_t told_ns_ = 0;  // when all were told to end; 0: they were not
  bool told_who_left_ = false;
  std::optional<Clock::time_point> tell_at_;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace espalier
