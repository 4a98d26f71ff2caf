#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "tuner/credentials/socket_owner.h"
#include "tuner/server/access/tls.h"

struct ssl_ctx_st;

namespace httplib {
class Server;
}

namespace espalier {

inline constexpr std::size_t kHttpThreads = 64;  // for requests under way
inline constexpr int kHttpTimeout_s = 10;        // for a client to send more, or to take
inline constexpr int kHttpRequest_s = 60;        // for a whole request
inline constexpr int kHttpIdle_s = 60;           // between two requests of a connection
inline constexpr std::size_t kMaxHttpIdleConnections = 256;  // then the longest idle are closed

inline constexpr int kHttpFirst_s = 10;  // for a stranger to begin, handshake included
inline constexpr std::size_t kMaxHttpHead = 64 << 10;  // bytes of a request before its body

// The header by which handlers learn that, as the kernel says, a request comes from the service's
// own user. A header of this name that a client sends is removed.
inline constexpr char kOwnUserHeader[] = "Espalier-Own-User";

// The library's server, changed so that a connection holds a thread only while a request is under
// way: a client may keep its connection as long as it likes. Connections are closed that are idle
// for kHttpIdle_s, that are too many (silent strangers first), or after an answer with "Connection:
// close". The same holds with TLS (a context of OpenSSL's, which it takes over): no thread waits
// for a handshake, or for the head of a request.
std::unique_ptr<httplib::Server> MakeHttpServer(ssl_ctx_st* tls,
                                                std::function<bool(const Peer&)> trusts);
// The same, over TLS where there are files, which must have been read before (ReadTls).
std::unique_ptr<httplib::Server> MakeHttpServer(const TlsFiles& files,
                                                std::function<bool(const Peer&)> trusts);

}  // namespace espalier
