#pragma once

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

 private:
  bool Touches(int socket) const;

  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

}  // namespace espalier
