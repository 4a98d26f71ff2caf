#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tuner/credentials/socket_owner.h"
#include "tuner/credentials/tls_context.h"
#include "tuner/server/http/stream_connection.h"

namespace httplib {
class Server;
}

namespace espalier {

inline constexpr std::size_t kHttpThreads = 64;         // for requests of clients under way
inline constexpr std::size_t kHttpWaitThreads = 64;     // for those that may wait long
inline constexpr std::size_t kHttpStrangerThreads = 4;  // for those of strangers
inline constexpr int kHttpTimeout_s = 10;               // for a client to send more, or to take
inline constexpr int kHttpRequest_s = 60;               // for a whole request
inline constexpr int kHttpIdle_s = 60;                  // between two requests of a connection
inline constexpr std::size_t kMaxHttpIdleConnections = 256;  // then the longest idle are closed

// Of a processor, for requests of strangers that show what lets nobody in; and how many seconds of
// it may be saved up.
inline constexpr double kHttpGuesses = 0.1;
inline constexpr double kHttpGuessesSaved_s = 2;

inline constexpr int kHttpFirst_s = 10;                // for a stranger to ask, handshake included
inline constexpr std::size_t kMaxHttpHead = 64 << 10;  // bytes of a request before its body
inline constexpr std::size_t kMaxHttpHeads = 8 << 20;  // of all that have not come to their end

// The header by which handlers learn that, as the kernel says, a request comes from the service's
// own user. A header of this name that a client sends is removed.
inline constexpr char kOwnUserHeader[] = "Espalier-Own-User";

// The header by which handlers learn that the header "Authorization" stands for a session's cookie.
// A header of this name that a client sends is removed.
inline constexpr char kBySessionHeader[] = "Espalier-By-Session";

// The header of an answer by which a handler says that the answer goes on, and under which name
// HttpDoor::streams finds who goes on with it. No client sees it, nor the answer.
inline constexpr char kStreamHeader[] = "Espalier-Stream";

// The header of an answer by which a handler says that the answer comes later, and under which name
// HttpDoor::later begins what it waits for. No client sees it, nor the answer. Once it is there the
// request is handed to the handler again, with this header and without a body. A header of this
// name that a client sends is removed.
inline constexpr char kLaterHeader[] = "Espalier-Later";

// The request's header "Accept-Encoding", under a name that the library does not know: it would
// pack answers far too hard (http_packing.h).
inline constexpr char kAcceptEncodingHeader[] = "Espalier-Accept-Encoding";

// What is said of a request by its first line.
using OfRequest = std::function<bool(std::string_view method, std::string_view target)>;

// Takes a connection whose answer goes on, by the value of kStreamHeader in the answer.
using HandStream =
    std::function<void(const std::string& name, std::unique_ptr<StreamConnection> connection)>;

// Begins what the answer waits for that has this value of kLaterHeader, and calls `answered` once
// it is there, from any thread. No thread waits meanwhile.
using BeginLater = std::function<void(const std::string& name, std::function<void()> answered)>;

// Says that the client which waits for the answer of this name has hung up: it has closed its side
// of the connection. Must be quick: all connections wait.
using HangUp = std::function<void(const std::string& name)>;

// How a connection is found to be a client's. Until then it is a stranger's: its requests are
// answered by threads of their own, which take no body and wait for nothing, neither for what it
// has to say nor for it to take the answer. Whether a call is allowed is another question, asked by
// handlers. Functions may be null, and are called from many threads.
struct HttpDoor {
  // What the kernel says of the other end.
  std::function<bool(const Peer&)> trusts{};
  // The value of a request's header "Authorization". Must be quick: all connections wait.
  std::function<bool(const std::string&)> knows{};
  // A request whose URL holds a secret.
  OfRequest opens{};
  // A client's request whose answer may take long. Such requests have threads of their own, for
  // which they wait in the order in which they came, so that they keep no others waiting. Quick,
  // too.
  OfRequest waits{};
  HandStream streams{};
  // What it begins has to come to its end before the server does, which waits for it.
  BeginLater later{};
  // Of those, at once, and once at most; perhaps just before `later` has been told of the name, or
  // just after its answer has come.
  HangUp hung_up{};
  // The token of the session in the value of a request's header "Cookie"; empty: there is none. It
  // is then taken for the request's own. Quick, too.
  std::function<std::string(std::string_view cookies)> session{};
  // Requests of strangers that show a header "Authorization" or "Cookie" are guesses. While these
  // have taken more of a processor than this, the next are closed unanswered.
  double guesses = kHttpGuesses;
  double guesses_saved_s = kHttpGuessesSaved_s;
};

// The library's server, changed so that a connection holds a thread only while a request is under
// way: a client may keep its connection as long as it likes. Connections are closed that are idle
// for kHttpIdle_s, that are too many (strangers first), or after an answer with "Connection:
// close". The same holds with TLS (`tls` is not null): no thread waits for a handshake, or for the
// head of a request. Answers are packed for those who accept that (http_packing.h).
std::unique_ptr<httplib::Server> MakeHttpServer(TlsContextPtr tls, HttpDoor door);

}  // namespace espalier
