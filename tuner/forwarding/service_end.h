#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tuner/credentials/tls_connection.h"

namespace espalier {

// A connection to a service, in the clear or over TLS, that never waits. Used by one thread, which
// must have SIGPIPE blocked: OpenSSL writes to sockets whose other end is gone.
class ServiceEnd {
 public:
  // Bytes done; or that it is not ready, or has ended (of reading: the service has said all).
  static constexpr ssize_t kNotReady = -1;
  static constexpr ssize_t kBroken = -2;

  virtual ~ServiceEnd() = default;  // closes
  virtual int socket() const = 0;
  virtual ssize_t Read(char* to, std::size_t size) = 0;
  virtual ssize_t Write(std::string_view bytes) = 0;
  // Says that no more comes from here; what the service has still to say can be read.
  virtual void EndWriting() = 0;
};

// `http2`: as gRPC speaks. Errors: DialTls.
absl::StatusOr<std::unique_ptr<ServiceEnd>> DialService(const std::string& address,
                                                        const TlsTrust& trust, bool http2,
                                                        const DialLimit& limit);

}  // namespace espalier
