#include "tuner/forwarding/relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/forwarding/added_token.h"
#include "tuner/forwarding/service_end.h"

namespace espalier {
namespace {

// The first bytes of every HTTP/2 connection; no method of HTTP/1 begins so.
constexpr std::string_view kHttp2Begins = "PRI";

// One direction: what was read and is not written yet.
struct Direction {
  std::string bytes;
  bool read_all = false;  // its source has said all
  bool told_end = false;  // which its sink has been told

  // What is added to requests may come on top.
  std::size_t room() const { return kForwardedBytes - std::min(kForwardedBytes, bytes.size()); }
  bool done() const { return read_all && told_end; }
};

class Relay {
 public:
  Relay(int client, const ForwarderOptions& options, int cancelled)
      : client_(client), options_(options), cancelled_(cancelled) {}

  absl::Status Run() {
    if (!AwaitFirstBytes()) return absl::OkStatus();
    http2_ = up_.bytes.starts_with(kHttp2Begins);
    if (!options_.token.empty()) {
      added_ = http2_ ? AddTokenToHttp2(options_.token) : AddTokenToHttp1(options_.token);
      const std::string begun = std::exchange(up_.bytes, "");
      if (const absl::Status passed = added_->Pass(begun, up_.bytes); !passed.ok()) {
        return Refuse(passed);
      }
    }
    auto service = DialService(options_.service, options_.trust, http2_,
                               DialLimit::Within(options_.limits.dial_s, cancelled_));
    if (!service.ok()) return Refuse(service.status());
    service_ = *std::move(service);
    while (true) {
      const bool moved = Move();
      if (!refused_.ok()) return Refuse(refused_);
      if (broken_ || (up_.done() && down_.done()) || !Wait(moved)) return absl::OkStatus();
    }
  }

 private:
  // Until it can be told what the client speaks.
  bool AwaitFirstBytes() {
    const DialLimit limit = DialLimit::Within(options_.limits.first_s, cancelled_);
    while (up_.bytes.size() < kHttp2Begins.size() && !up_.read_all && !broken_) {
      if (!AwaitSocket(client_, POLLIN, limit)) return false;
      ReadClient();
    }
    return !up_.bytes.empty() && !broken_;
  }

  // A browser or curl shows what was wrong. To gRPC it is a connection that does not come about.
  absl::Status Refuse(const absl::Status& why) const {
    if (options_.token.empty() || http2_) return why;
    const char* status = absl::IsPermissionDenied(why)  ? "403 Forbidden"
                         : absl::IsInvalidArgument(why) ? "400 Bad Request"
                                                        : "502 Bad Gateway";
    const std::string text = absl::StrCat("tuner connect: ", why.message(), "\n");
    const std::string answer =
        absl::StrCat("HTTP/1.1 ", status,
                     "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ", text.size(),
                     "\r\nConnection: close\r\n\r\n", text);
    send(client_, answer.data(), answer.size(), MSG_NOSIGNAL);
    shutdown(client_, SHUT_WR);
    return why;
  }

  // As far as it goes without waiting; whether anything moved.
  bool Move() {
    if (broken_) return false;
    const bool read_client = ReadClient();
    if (!refused_.ok()) return false;
    const bool wrote_service = WriteService();
    const bool read_service = ReadService();
    const bool wrote_client = WriteClient();
    return read_client || wrote_service || read_service || wrote_client;
  }

  bool ReadClient() {
    if (up_.read_all || up_.room() == 0) return false;
    std::array<char, kPiece> piece;
    const ssize_t got = recv(client_, piece.data(), std::min(piece.size(), up_.room()), 0);
    if (got < 0) {
      broken_ = broken_ || (errno != EAGAIN && errno != EINTR);
      return false;
    }
    const std::string_view came(piece.data(), static_cast<std::size_t>(got));
    if (added_ == nullptr) {
      up_.bytes.append(came);
    } else {
      refused_ = added_->Pass(came, up_.bytes);
    }
    up_.read_all = got == 0;
    return refused_.ok();
  }

  bool WriteService() {
    if (up_.bytes.empty()) {
      if (!up_.read_all || up_.told_end) return false;
      service_->EndWriting();
      return up_.told_end = true;
    }
    const ssize_t sent = service_->Write(up_.bytes);
    if (sent > 0) up_.bytes.erase(0, static_cast<std::size_t>(sent));
    // It may have answered before it went, so what it said is still delivered.
    if (sent == 0 || sent == ServiceEnd::kBroken) {
      up_.bytes.clear();
      up_.read_all = up_.told_end = true;
    }
    return sent != ServiceEnd::kNotReady;
  }

  bool ReadService() {
    if (down_.read_all || down_.room() == 0) return false;
    std::array<char, kPiece> piece;
    const ssize_t got = service_->Read(piece.data(), std::min(piece.size(), down_.room()));
    if (got == ServiceEnd::kNotReady) return false;
    if (got > 0) down_.bytes.append(piece.data(), static_cast<std::size_t>(got));
    down_.read_all = got <= 0;
    return true;
  }

  bool WriteClient() {
    if (down_.bytes.empty()) {
      if (!down_.read_all || down_.told_end) return false;
      shutdown(client_, SHUT_WR);
      return down_.told_end = true;
    }
    const ssize_t sent = send(client_, down_.bytes.data(), down_.bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      broken_ = errno != EAGAIN && errno != EINTR;
      return false;
    }
    down_.bytes.erase(0, static_cast<std::size_t>(sent));
    return sent > 0;
  }

  // Until something may move, or only a look; false: nothing has for too long, or it is to end.
  bool Wait(bool only_look) {
    const bool last = up_.read_all || down_.read_all;
    const double wait_s = last ? options_.limits.last_s : options_.limits.idle_s;
    std::array<pollfd, 3> waited{{{client_, ClientEvents(), 0},
                                  {service_->socket(), ServiceEvents(), 0},
                                  {cancelled_, POLLIN, 0}}};
    // A hang-up that nobody waits for would keep this loop awake.
    for (pollfd& one : waited) one.fd = one.events == 0 ? -1 : one.fd;
    const int ready = poll(waited.data(), waited.size(),
                           only_look ? 0 : static_cast<int>(std::ceil(wait_s * 1000)));
    if (ready <= 0) return only_look || (ready < 0 && errno == EINTR);
    return waited[2].revents == 0;
  }

  short ClientEvents() const {
    const int reading = !up_.read_all && up_.room() > 0 ? POLLIN : 0;
    return static_cast<short>(reading | (down_.bytes.empty() ? 0 : POLLOUT));
  }
  short ServiceEvents() const {
    const int reading = !down_.read_all && down_.room() > 0 ? POLLIN : 0;
    return static_cast<short>(reading | (up_.bytes.empty() ? 0 : POLLOUT));
  }

  static constexpr std::size_t kPiece = 16 << 10;

  const int client_;
  const ForwarderOptions& options_;
  const int cancelled_;
  bool http2_ = false;
  std::unique_ptr<AddedToken> added_;  // none: bytes go as they come
  absl::Status refused_;               // by it
  std::unique_ptr<ServiceEnd> service_;
  Direction up_;    // to the service
  Direction down_;  // to the client
  bool broken_ = false;
};

}  // namespace

absl::Status RelayConnection(int client, const ForwarderOptions& options, int cancelled) {
  return Relay(client, options, cancelled).Run();
}

}  // namespace espalier
