#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace espalier {

// Where the members of a group find each other's addresses: a table of byte strings by
// (generation, key), served over TCP on a thread of its own. Tables of old generations are dropped
// as newer ones come.
//
// LibTorch's TCPStore does the same, but looks every address up by name on connecting, which takes
// seconds a connection where the name server does not answer.
class RendezvousServer {
 public:
  // Binds to a free port of `host`.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Listen(const std::string& host);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  const std::string& address() const { return address_; }  // host:port

 private:
  RendezvousServer(int listener, int stop_read, int stop_write, std::string address);

  const int stop_write_;  // closing it ends the thread
  const std::string address_;
  std::thread thread_;
};

// One member's connection to a server, for one generation. One thread uses it; Cancel() may be
// called by any other, and ends a waiting Get and all later calls with an error.
class RendezvousClient {
 public:
  static absl::StatusOr<std::unique_ptr<RendezvousClient>> Connect(const std::string& address,
                                                                   std::int64_t generation);
  ~RendezvousClient();
  RendezvousClient(const RendezvousClient&) = delete;
  RendezvousClient& operator=(const RendezvousClient&) = delete;

  absl::Status Set(std::string_view key, std::string_view value);
  // Waits until some member has set the key.
  absl::StatusOr<std::string> Get(std::string_view key);
  void Cancel();

 private:
  RendezvousClient(int socket, std::int64_t generation)
      : socket_(socket), generation_(generation) {}

  const int socket_;
  const std::int64_t generation_;
};

}  // namespace espalier
