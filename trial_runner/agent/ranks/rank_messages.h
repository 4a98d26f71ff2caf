#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "trial_runner/agent/ranks/rank_end.h"

namespace espalier {

// What a rank's runner tells the supervisor of its trial's ranks, each a packet of a socket between
// two processes of one machine and one program.
struct RankMessage {
  enum class Kind : std::int32_t { kCame, kStarted, kEnded };
  Kind kind = Kind::kCame;
  std::int32_t rank = 0;
  std::int32_t ranks = 1;  // as its launcher says
  RankEnd end{};           // kEnded
};

// A message as it arrives: kStarted brings the pidfd of the rank's process.
struct HeardMessage {
  RankMessage said;
  FileDescriptor process{};
};

// What the supervisor tells a runner. When the socket closes, that is kKill too.
enum class RankOrder : char { kTerminate = 'T', kKill = 'K', kGo = 'G' };

// A name under which no other supervisor listens.
std::string NewRankAddress();
absl::StatusOr<FileDescriptor> ListenForRanks(const std::string& address);
// The next one that has come, if it is of this user; not open: there is none now.
FileDescriptor AcceptRank(const FileDescriptor& listener);
absl::StatusOr<FileDescriptor> ConnectToRanks(const std::string& address);

// False: the other end is gone.
bool SendMessage(const FileDescriptor& socket, const RankMessage& message,
                 const FileDescriptor& process = {});
bool SendOrder(const FileDescriptor& socket, RankOrder order);

// `gone`: nothing more comes. nullopt and not gone: nothing has come yet.
std::optional<HeardMessage> ReadMessage(const FileDescriptor& socket, bool& gone);
std::optional<RankOrder> ReadOrder(const FileDescriptor& socket, bool& gone);

}  // namespace espalier
