#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace espalier {

// What the ranks of a replica leave beside its log, replica-7.log: each rank but 0, whose output is
// the replica's own, has a log, replica-7.rank-1.log; what the launcher itself prints is in
// replica-7.launcher.log; and which rank is to blame where one has failed, in replica-7.blame.

std::string RankLog(const std::string& replica_log, int rank);
// Where torch.distributed.elastic's `record` notes a rank's exception (TORCHELASTIC_ERROR_FILE).
std::string RankErrorFile(const std::string& replica_log, int rank);
std::string LauncherLog(const std::string& replica_log);
std::string LauncherConfigFile(const std::string& replica_log);
std::string LauncherFolder(const std::string& replica_log);  // for what else it writes

struct Blame {
  int rank = -1;    // -1: none, but the launcher
  int of = 0;       // how many there are
  std::string why;  // empty: its exit code or signal, which is the replica's, says so

  friend bool operator==(const Blame&, const Blame&) = default;
};

absl::Status WriteBlame(const std::string& replica_log, const Blame& blame);
// nullopt: nobody is to blame, or what is there is none.
std::optional<Blame> ReadBlame(const std::string& replica_log);

}  // namespace espalier
