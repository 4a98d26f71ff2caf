#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// This process's ends of a group's connections, which Gloo keeps to itself and lets go of only when
// the other ends close. Shut down under it, they end whatever it waits for, as if the other members
// had died. Any thread.
class GroupSockets {
 public:
  // What a member told the others about itself: has its listening address (a sockaddr) somewhere.
  void Note(std::string_view told);
  // Finds the connected sockets of this process that begin or end at a noted address.
  void ShutDown() const;

 private:
  bool Touches(int socket) const;

  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

}  // namespace espalier
