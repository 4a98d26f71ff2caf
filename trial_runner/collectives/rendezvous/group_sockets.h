#pragma once

#include <sys/socket.h>

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// This process's ends of a group's connections, which Gloo does not expose and closes only when the
// other ends close. Shutting them down ends whatever Gloo waits for, as if the other members had
// died. Any thread.
class GroupSockets {
 public:
  // Notes what a member told the others about itself, which contains its listening address (a
  // sockaddr).
  void Note(std::string_view told);
  // Shuts down the connected sockets of this process that begin or end at a noted address.
  void ShutDown() const;
  // Lets nobody else connect to the noted addresses of this process, once all members have: Gloo's
  // listener keeps whatever connects, and its descriptors would run out. The kernel drops what
  // comes; where it cannot, nothing is changed.
  void TurnNewcomersAway() const;

 private:
  // The socket's name is one of those noted.
  bool Noted(int socket, decltype(&getsockname) name_of) const;

  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

}  // namespace espalier
