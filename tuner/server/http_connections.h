#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "tuner/credentials/socket_owner.h"

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

// Tells handlers that the kernel says that the request comes from the service's own user; one that
// a client sends is taken away.
inline constexpr char kOwnUserHeader[] = "Espalier-Own-User";

// A server of the library's whose connections hold a thread only while a request is under way: a
// client may keep its connection as long as it likes. Connections that are idle for kHttpIdle_s, or
// are too many, are closed (strangers that have said nothing first); so is one after an answer with
// "Connection: close". With TLS (a context of OpenSSL's, which it takes over) the same: no thread
// waits for a handshake.
std::unique_ptr<httplib::Server> MakeHttpServer(ssl_ctx_st* tls,
                                                std::function<bool(const Peer&)> trusts);

}  // namespace espalier
