#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/host_port.h"

struct addrinfo;

namespace espalier::rendezvous {

// What a rendezvous server and its clients say. A connection begins with a Hello, whose proof only
// a member can make, or with a Ping, after which it ends. Requests follow; each has a proof over
// all that it says, the nonce of its connection and its number on it, and so has each answer. So a
// stranger who does not know the secret can neither ask nor answer, nor change a message, nor
// replay what was said on another connection.
//
// Every message is u32 size of the rest, and the rest:
//   Ping     u8 operation, 12 bytes without meaning; answered by size 0
//   Hello    u8 operation, i64 generation, nonce, proof; answered by an empty answer, or, where
//            the proof is wrong or the generation over, by size 0
//   Set      u8 operation, u32 size of the key, key, value, proof; not answered
//   Get      the same without value; answered by the value, once there is one
//   Peek     the same; answered at once, by an empty value where there is none
//   answer   the value, proof
// All in the machine's byte order: the members of a group run the same build.
enum class Operation : std::uint8_t { kSet = 1, kGet = 2, kPing = 3, kHello = 4, kPeek = 5 };

inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kSizeBytes = sizeof(std::uint32_t);
inline constexpr std::size_t kPingBytes = 1 + 12;  // without the size, as the others
inline constexpr std::size_t kHelloBytes = 1 + sizeof(std::int64_t) + kNonceBytes + kProofBytes;
inline constexpr std::size_t kRequestBytes = 1 + sizeof(std::uint32_t) + kProofBytes;  // at least

// The size of Ping's answer, and of a refusal.
inline constexpr std::uint32_t kNothing = 0;

template <typename T>
T Read(std::string_view from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Hello {
  std::int64_t generation = 0;
  std::string nonce;
  std::string proof;
};

std::string HelloMessage(std::string_view secret, std::int64_t generation, std::string_view nonce);
// `body` has kHelloBytes.
Hello ReadHello(std::string_view body);
bool Proves(const Hello& hello, std::string_view secret);

struct Request {
  Operation operation = Operation::kGet;
  std::string_view key;
  std::string_view value;
};

// What both ends of a connection know once its Hello has been accepted.
struct Conversation {
  std::string secret;
  std::string nonce;

  // `number` counts a connection's requests from 1; the answer to its Hello has 0.
  std::string RequestMessage(const Request& request, std::uint64_t number) const;
  // None if it is not from a member, or not the request of this number. The views are into `body`.
  std::optional<Request> ReadRequest(std::string_view body, std::uint64_t number) const;
  std::string AnswerMessage(std::string_view value, std::uint64_t number) const;
  std::optional<std::string_view> ReadAnswer(std::string_view body, std::uint64_t number) const;
};

// "what: the system's error text", kUnavailable.
absl::Status SystemError(std::string_view what);

// Calls `use(socket, address)` for each address of host:port until it returns true; the socket is
// then the caller's.
absl::StatusOr<int> OpenSocket(const HostPort& host_port,
                               const std::function<bool(int, const addrinfo&)>& use);

void SendAtOnce(int socket);  // without waiting for more

}  // namespace espalier::rendezvous
