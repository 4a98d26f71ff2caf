#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/port_range.h"

namespace espalier {

// The most that a server spends. Strangers are connections that have not proved anything yet; what
// they hold is a descriptor and 64 bytes.
struct RendezvousLimits {
  double silence_s = 10;           // without a whole Hello or Ping
  std::size_t strangers = 128;     // of more, silent ones are closed first, then those that wait
                                   // for a generation; the oldest first
  std::size_t connections = 4096;  // in all
  std::size_t request_bytes = 1 << 20;
  std::size_t held_bytes =
      1 << 28;  // incomplete requests and answers not yet taken, over all connections
  std::size_t table_entries = 1 << 16;
  std::size_t table_bytes = 1 << 28;  // keys and values
  std::size_t generations = 4;        // the newest
};

// Where the members of a group find each other's addresses: a table of byte strings by (generation,
// key), served over TCP on a thread of its own to those that know the generation's secret. Tables
// of old generations are dropped as newer ones come.
//
// LibTorch's TCPStore does the same for everybody, and looks every address up by name on
// connecting, which takes seconds per connection where the name server does not answer.
class RendezvousServer {
 public:
  // Binds to a free port of `host` within the range.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Listen(
      const std::string& host, const PortRange& ports = {}, const RendezvousLimits& limits = {});
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  const std::string& address() const { return address_; }  // host:port

  // Opens the table of a generation for those that know the secret; the first call for a generation
  // counts. Members that come before it wait; those of older generations that were never expected
  // are refused. Any thread.
  void Expect(std::int64_t generation, const std::string& secret);

  // How many connections were closed because they could prove nothing or asked for too much. Also
  // reported on standard error, each time that the number has grown tenfold. Any thread.
  std::int64_t turned_away() const;

 private:
  class Server;
  RendezvousServer(std::unique_ptr<Server> server, std::string address);

  const std::unique_ptr<Server> server_;
  const std::string address_;
};

// A request that a server answers with four bytes, whatever it holds: it shows whether the server
// can be reached.
std::string PingRequest();

// One member's connection to a server, for one generation. One thread uses it; Cancel() may be
// called by any other, and ends a waiting Get and all later calls with an error.
class RendezvousClient {
 public:
  // Waits for the server's machine, and until the server expects the generation, for as long as
  // `cancelled` is false. A port at which nothing listens, and a server that knows another secret,
  // end it at once. With `limit`, neither this nor any later call waits for longer than that for
  // the server to say anything: it fails.
  static absl::StatusOr<std::unique_ptr<RendezvousClient>> Connect(
      const std::string& address, std::int64_t generation, const std::string& secret,
      const std::atomic<bool>& cancelled, std::optional<std::chrono::seconds> limit = {});
  ~RendezvousClient();
  RendezvousClient(const RendezvousClient&) = delete;
  RendezvousClient& operator=(const RendezvousClient&) = delete;

  absl::Status Set(std::string_view key, std::string_view value);
  // Waits until some member has set the key.
  absl::StatusOr<std::string> Get(std::string_view key);
  // What it is now; empty: no member has set it.
  absl::StatusOr<std::string> Peek(std::string_view key);
  void Cancel();

 private:
  class Link;
  explicit RendezvousClient(std::unique_ptr<Link> link);

  const std::unique_ptr<Link> link_;
};

}  // namespace espalier
