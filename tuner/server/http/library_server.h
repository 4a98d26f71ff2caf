#pragma once

// Where releases of cpp-httplib differ in what this folder uses: 0.11.4 (Debian 12) to 0.18.7
// (Debian 13). Which one it is shows in what compiles.

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "httplib.h"

namespace espalier {

// What a queue of the library answers when it takes a task: nothing or true, either of which is
// static_cast<QueueAnswer>(true).
using QueueAnswer =
    decltype(std::declval<httplib::TaskQueue&>().enqueue(std::declval<std::function<void()>>()));

// What the header "Content-Length" says; 0: nothing, or no number.
inline std::uint64_t ContentLength(const httplib::Request& request) {
  return std::strtoull(request.get_header_value("Content-Length").c_str(), nullptr, 10);
}

// The library's server, for classes that read their connections themselves.
class LibraryServer : public httplib::Server {
 protected:
  // Reads and answers one request. `closed`: the answer is the connection's last.
  template <typename Connection, typename SetUp>
  bool ProcessRequest(Connection& connection, bool& closed, const SetUp& set_up) {
    if constexpr (requires { this->process_request(connection, false, closed, set_up); }) {
      return this->process_request(connection, false, closed, set_up);
    } else {  // which is told the ends, and asks no connection
      std::string remote, local;
      int remote_port = 0, local_port = 0;
      connection.get_remote_ip_and_port(remote, remote_port);
      connection.get_local_ip_and_port(local, local_port);
      return this->process_request(connection, remote, remote_port, local, local_port, false,
                                   closed, set_up);
    }
  }
};

}  // namespace espalier
