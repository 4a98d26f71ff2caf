#pragma once

#include "base/port_range.h"

namespace espalier {

// While such an object lives, each socket that its thread binds to "any port" gets a port of the
// range, whichever library binds it: Gloo listens where the system says and has no option for it.
// For this the program's bind() is ours; without a range it does what the system's does.
//
// Ports are taken in turn, so that a port is not used again soon: sockets of an abandoned group are
// recognised by their ports. Objects of one thread may nest.
class ListeningPorts {
 public:
  explicit ListeningPorts(const PortRange& range);
  ~ListeningPorts();
  ListeningPorts(const ListeningPorts&) = delete;
  ListeningPorts& operator=(const ListeningPorts&) = delete;

  // Whether ports are served as asked: true without a range, else once a socket was given a port of
  // it. If it is still false after a bind, bind() is not ours in this program.
  bool served() const { return range_.any() || bound_ > 0; }

 private:
  friend int BindInTurn(int socket, const void* address, unsigned size) noexcept;

  const PortRange range_;
  ListeningPorts* const outer_;
  int bound_ = 0;
};

}  // namespace espalier
