#include "trial_runner/collectives/rendezvous/rendezvous_wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/sha256.h"

namespace espalier::rendezvous {
namespace {

// What is proved begins with a word of its own each, so that no proof is good for another purpose.
constexpr std::string_view kOfHello = "espalier rendezvous hello";
constexpr std::string_view kOfRequest = "espalier rendezvous request";
constexpr std::string_view kOfAnswer = "espalier rendezvous answer";

std::string HelloProof(std::string_view secret, std::int64_t generation, std::string_view nonce) {
  std::string proved(kOfHello);
  Append(proved, generation);
  return HmacSha256(secret, proved.append(nonce));
}

// Fields of fixed size come first: no two contents give the same bytes.
std::string Proof(const Conversation& in, std::string_view of, std::uint64_t number,
                  std::string_view content) {
  std::string proved(of);
  proved.append(in.nonce);
  Append(proved, number);
  return HmacSha256(in.secret, proved.append(content));
}

std::string Message(std::string_view content, std::string_view proof) {
  std::string message;
  Append(message, static_cast<std::uint32_t>(content.size() + proof.size()));
  return message.append(content).append(proof);
}

// The content in front of a proof that holds.
std::optional<std::string_view> Proved(const Conversation& in, std::string_view of,
                                       std::uint64_t number, std::string_view body) {
  if (body.size() < kProofBytes) return std::nullopt;
  const std::string_view content = body.substr(0, body.size() - kProofBytes);
  if (!SameText(body.substr(content.size()), Proof(in, of, number, content))) return std::nullopt;
  return content;
}

}  // namespace

std::string HelloMessage(std::string_view secret, std::int64_t generation, std::string_view nonce) {
  std::string content;
  Append(content, Operation::kHello);
  Append(content, generation);
  return Message(content.append(nonce), HelloProof(secret, generation, nonce));
}

Hello ReadHello(std::string_view body) {
  body.remove_prefix(1);
  const auto generation = Read<std::int64_t>(body);
  body.remove_prefix(sizeof generation);
  return {generation, std::string(body.substr(0, kNonceBytes)),
          std::string(body.substr(kNonceBytes))};
}

bool Proves(const Hello& hello, std::string_view secret) {
  return SameText(hello.proof, HelloProof(secret, hello.generation, hello.nonce));
}

std::string Conversation::RequestMessage(const Request& request, std::uint64_t number) const {
  std::string content;
  Append(content, request.operation);
  Append(content, static_cast<std::uint32_t>(request.key.size()));
  content.append(request.key).append(request.value);
  return Message(content, Proof(*this, kOfRequest, number, content));
}

std::optional<Request> Conversation::ReadRequest(std::string_view body,
                                                 std::uint64_t number) const {
  if (body.size() < kRequestBytes) return std::nullopt;
  std::optional<std::string_view> content = Proved(*this, kOfRequest, number, body);
  if (!content) return std::nullopt;
  Request request;
  request.operation = Read<Operation>(*content);
  const auto key_size = Read<std::uint32_t>(content->substr(1));
  content->remove_prefix(1 + sizeof key_size);
  if (key_size > content->size()) return std::nullopt;
  request.key = content->substr(0, key_size);
  request.value = content->substr(key_size);
  return request;
}

std::string Conversation::AnswerMessage(std::string_view value, std::uint64_t number) const {
  return Message(value, Proof(*this, kOfAnswer, number, value));
}

std::optional<std::string_view> Conversation::ReadAnswer(std::string_view body,
                                                         std::uint64_t number) const {
  return Proved(*this, kOfAnswer, number, body);
}

absl::Status SystemError(std::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(std::string(what).c_str(), ": ", std::strerror(errno)));
}

absl::StatusOr<int> OpenSocket(const HostPort& host_port,
                               const std::function<bool(int, const addrinfo&)>& use) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(host_port.port);
  if (const int error = getaddrinfo(host_port.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return absl::UnavailableError(
        absl::StrCat("rendezvous ", host_port.text(), ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int socket = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    if (use(socket, *a)) return socket;
    const int error = errno;
    close(socket);
    errno = error;
  }
  return SystemError(absl::StrCat("rendezvous ", host_port.text()));
}

void SendAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace espalier::rendezvous
