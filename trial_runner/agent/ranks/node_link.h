#pragma once

#include <optional>
#include <string>

#include "base/rank_blame.h"
#include "trial_runner/agent/processes/frames.h"

namespace espalier {

// What a supervisor says to the service, and hears from it, about the ranks of its trial that are
// on other nodes: by way of its agent, over the socket that other programs have for elastic
// training. Whatever cannot be said is of no use any more, because the agent is gone.
class NodeLink {
 public:
  explicit NodeLink(int socket) : socket_(socket) {}

  int fd() const { return socket_; }

  // The ranks here can be started. `address`: where all are to meet, HOST:PORT, if that is here.
  void TellWaiting(const std::string& address);
  // A rank here has failed like that, and the others are told to end. at_ns is of RankClock_ns.
  void TellFailed(const RankEnd& end);
  // Rank `rank`, which is here, has ended with 0 like that by itself.
  void TellLeft(int rank, const RankEnd& end);
  // Where all meet, if that was told since the last call. Does not wait.
  std::optional<std::string> TakeMeeting();
  // Nothing more will be heard.
  bool gone() const { return gone_; }

 private:
  void Send(const std::string& message);

  const int socket_;
  FrameReader reader_;
  bool gone_ = false;
};

}  // namespace espalier
