#pragma once

#include <cstddef>
#include <memory>

namespace httplib {
class Server;
}

namespace espalier {

inline constexpr std::size_t kHttpThreads = 64;  // for requests under way
inline constexpr int kHttpTimeout_s = 10;        // for a client to send more, or to take
inline constexpr int kHttpRequest_s = 60;        // for a whole request
inline constexpr int kHttpIdle_s = 60;           // between two requests of a connection
inline constexpr std::size_t kMaxHttpIdleConnections = 256;  // then the longest idle are closed

// A server of the library's whose connections hold a thread only while a request is under way: a
// client may keep its connection as long as it likes. Connections that are idle for kHttpIdle_s, or
// are too many, are closed; so is one after an answer with "Connection: close".
std::unique_ptr<httplib::Server> MakeHttpServer();

}  // namespace espalier
