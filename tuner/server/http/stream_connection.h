#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace espalier {

// The connection of a client whose request has been read and whose answer goes on for as long as
// both like. It never waits. It is closed with its end.
class StreamConnection {
 public:
  virtual ~StreamConnection() = default;

  virtual int socket() const = 0;
  // Sends what fits of `text`: so many bytes. Until all of it is sent, the next call is to begin
  // with the first byte that is not, at the same place in memory. nullopt: the client has gone.
  virtual std::optional<std::size_t> SendAtOnce(std::string_view text) = 0;
  // Throws away what the client has said. False: it has gone.
  virtual bool Hear() = 0;
};

// Takes the connection over once the request is answered by its head. `admitted`: whether the
// client may still make this call, asked as often as one likes.
using TakeStream = std::function<void(std::unique_ptr<StreamConnection> connection,
                                      std::function<absl::Status()> admitted)>;

}  // namespace espalier
