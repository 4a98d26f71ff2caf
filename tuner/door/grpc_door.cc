#include "tuner/door/grpc_door.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file_descriptor.h"
#include "tuner/door/first_call.h"
#include "tuner/door/processor_share.h"
#include "tuner/door/refusal.h"
#include "tuner/door/tls_relay.h"
#include "tuner/door/tls_server.h"

namespace espalier {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kWake = 0;
constexpr int kLook_ms = 1000;   // between looks for those that have waited too long
constexpr int kRelays = 2;       // threads of those let in over TLS
constexpr double kLinger_s = 2;  // for the answer to a refused call to be taken
constexpr std::size_t kPiece = 16 << 10;

SteadyClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

// Of this thread.
double ProcessorTime_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A connection of which nothing is known.
struct Stranger {
  FileDescriptor socket;
  TlsPtr tls;  // null: it speaks in the clear, or has not begun
  SteadyClock::time_point ends;
  FirstCall call{};
  std::size_t bytes = 0;   // as counted for all
  int pieces = 0;          // in which it has spoken
  bool shaking = false;    // the handshake goes on
  bool answered = false;   // our SETTINGS were sent
  bool admitted = false;   // what it shows was found good
  bool refused = false;    // or bad: it has its answer
  double processor_s = 0;  // that it has taken
};

enum class Fate { kStays, kGoes, kLetIn };

class GrpcDoorImpl final : public GrpcDoor {
 public:
  GrpcDoorImpl(GrpcDoorOptions options, TlsContextPtr tls)
      : options_(std::move(options)),
        limits_(options_.limits),
        tls_(std::move(tls)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        share_(limits_.share, limits_.saved_s) {
    ESPALIER_CHECK(epoll_.open() && wake_.open(), "a process has descriptors left when it starts");
    Await(wake_.get(), kWake, EPOLLIN);
    for (int i = 0; tls_ != nullptr && i < kRelays; ++i) relays_.push_back(TlsRelay::Start());
    thread_ = std::thread([this] { Run(); });
  }
  ~GrpcDoorImpl() override { Shut(); }

  void Take(int socket) override {
    {
      const std::lock_guard lock(mutex_);
      taken_.emplace_back(socket);
    }
    Wake();
  }

  void Shut() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    Wake();
    if (thread_.joinable()) thread_.join();
    for (auto& [number, stranger] : strangers_) SayGoodbye(stranger);
    strangers_.clear();
  }

 private:
  using Strangers = std::map<std::uint64_t, Stranger>;

  void Wake() const {
    const std::uint64_t one = 1;
    // An eventfd refuses only when its counter is full, and then it is readable anyway.
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }

  void Await(int socket, std::uint64_t number, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event);
  }

  void Run() {
    BlockSigpipe();
    while (true) {
      const double wait_s = share_.Wait_s(Now_s());
      if (wait_s > 0) {
        AwaitNewcomers(wait_s);
      } else {
        ServeReady();
      }
      if (!TakeNewcomers()) return;
      CloseLate();
    }
  }

  static double Now_s() {
    return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
  }

  // Those who are here wait, too, until there is a share of the processor again.
  void AwaitNewcomers(double wait_s) const {
    pollfd woken{wake_.get(), POLLIN, 0};
    poll(&woken, 1, static_cast<int>(std::ceil(1000 * wait_s)));
  }

  void ServeReady() {
    // Few at once: the share is looked at between them.
    std::array<epoll_event, 8> events;
    const int ready =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kLook_ms);
    for (int i = 0; i < ready; ++i) {
      const auto found = strangers_.find(events[static_cast<std::size_t>(i)].data.u64);
      if (found != strangers_.end()) ServeOne(found);
    }
  }

  void ServeOne(Strangers::iterator found) {
    Stranger& stranger = found->second;
    const double begun_s = ProcessorTime_s();
    Fate fate = Serve(stranger);
    held_bytes_ -= std::exchange(stranger.bytes, stranger.call.bytes());
    held_bytes_ += stranger.bytes;
    const double spent_s = ProcessorTime_s() - begun_s;
    stranger.processor_s += spent_s;
    share_.Spend(spent_s);
    if (fate == Fate::kLetIn) {
      share_.GiveBack(stranger.processor_s);
      LetIn(stranger);
      fate = Fate::kGoes;
    }
    if (fate == Fate::kGoes) Forget(found);
    KeepToLimits();
  }

  void Forget(Strangers::iterator found) {
    held_bytes_ -= found->second.bytes;
    strangers_.erase(found);
  }

  // False: the door is shut.
  bool TakeNewcomers() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    std::vector<FileDescriptor> taken;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      taken.swap(taken_);
    }
    for (FileDescriptor& socket : taken) {
      const std::uint64_t number = next_++;
      const int fd = socket.get();
      Stranger stranger{.socket = std::move(socket),
                        .tls = nullptr,
                        .ends = SteadyClock::now() + Seconds(limits_.greeting_s)};
      stranger.shaking = tls_ != nullptr;
      strangers_.emplace(number, std::move(stranger));
      Await(fd, number, EPOLLIN | EPOLLRDHUP);
      KeepToLimits();
    }
    return true;
  }

  // Numbers are given in the order of their coming.
  void KeepToLimits() {
    while (strangers_.size() > limits_.strangers || held_bytes_ > limits_.held_bytes) {
      SayGoodbye(strangers_.begin()->second);
      Forget(strangers_.begin());
    }
  }

  void CloseLate() {
    const auto now = SteadyClock::now();
    if (now < look_) return;
    look_ = now + std::chrono::milliseconds(kLook_ms);
    for (auto it = strangers_.begin(); it != strangers_.end();) {
      const auto next = std::next(it);
      if (it->second.ends <= now) {
        SayGoodbye(it->second);
        Forget(it);
      }
      it = next;
    }
  }

  // Whatever it calls, or has called, has not been heard: its client may call it elsewhere.
  void SayGoodbye(Stranger& stranger) const {
    if (stranger.answered && !stranger.refused) Send(stranger, GoodbyeFrame(0));
  }

  Fate Serve(Stranger& stranger) {
    if (stranger.shaking) {
      const Fate fate = ShakeHands(stranger);
      if (fate == Fate::kGoes || stranger.shaking) return fate;
    }
    std::array<char, kPiece> piece;
    while (true) {
      const ssize_t got = Receive(stranger, piece);
      if (got < 0) return Fate::kStays;
      if (got == 0 || ++stranger.pieces > limits_.pieces) return Fate::kGoes;
      if (stranger.refused) continue;  // what comes on it is of no interest any more
      const Fate fate = Hear(stranger, {piece.data(), static_cast<std::size_t>(got)});
      if (fate != Fate::kStays) return fate;
    }
  }

  Fate ShakeHands(Stranger& stranger) const {
    if (stranger.tls == nullptr) {
      stranger.tls.reset(SSL_new(tls_.get()));
      if (stranger.tls == nullptr) return Fate::kGoes;
      SSL_set_fd(stranger.tls.get(), stranger.socket.get());
    }
    SSL* tls = stranger.tls.get();
    const int done = SSL_accept(tls);
    const int error = SSL_get_error(tls, done);
    ERR_clear_error();
    stranger.shaking = done != 1;
    const bool goes_on = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (stranger.shaking && !goes_on) return Fate::kGoes;
    return BIO_number_read(SSL_get_rbio(tls)) > limits_.handshake_bytes ||
                   ++stranger.pieces > limits_.pieces
               ? Fate::kGoes
               : Fate::kStays;
  }

  // -1: nothing more for now; 0: it has ended.
  static ssize_t Receive(const Stranger& stranger, std::array<char, kPiece>& piece) {
    if (stranger.tls == nullptr) {
      const ssize_t got = recv(stranger.socket.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      return got >= 0 || errno == EAGAIN || errno == EINTR ? got : 0;
    }
    const int got = SSL_read(stranger.tls.get(), piece.data(), static_cast<int>(piece.size()));
    if (got > 0) return got;
    const int error = SSL_get_error(stranger.tls.get(), got);
    ERR_clear_error();
    return error == SSL_ERROR_WANT_READ ? -1 : 0;
  }

  Fate Hear(Stranger& stranger, std::string_view said) {
    FirstCall& call = stranger.call;
    if (!call.Take(said).ok()) {
      if (stranger.answered) Send(stranger, GoodbyeFrame(0));
      return Fate::kGoes;
    }
    if (!stranger.answered && call.greeted()) {
      stranger.answered = true;
      stranger.ends += Seconds(limits_.first_call_s - limits_.greeting_s);
      if (!Send(stranger, SettingsFrame())) return Fate::kGoes;
    }
    if (!call.whole()) return Fate::kStays;
    if (!stranger.admitted) {
      const absl::Status status = options_.admits(call.head());
      if (!status.ok()) return Refuse(stranger, status);
      stranger.admitted = true;
    }
    return call.acknowledged() ? Fate::kLetIn : Fate::kStays;
  }

  // What it goes on to say is read for a while: closing would else take the answer back.
  Fate Refuse(Stranger& stranger, const absl::Status& status) const {
    if (options_.refused) options_.refused(status);
    const std::uint32_t stream = stranger.call.stream();
    if (!Send(stranger, RefusalFrame(stream, status) + GoodbyeFrame(stream))) return Fate::kGoes;
    stranger.refused = true;
    stranger.ends = SteadyClock::now() + Seconds(kLinger_s);
    stranger.call = FirstCall();
    if (stranger.tls != nullptr) SSL_shutdown(stranger.tls.get());
    ERR_clear_error();
    shutdown(stranger.socket.get(), SHUT_WR);
    return Fate::kStays;
  }

  // Waits for nobody: what does not fit at once is not taken.
  static bool Send(const Stranger& stranger, const std::string& bytes) {
    if (stranger.tls == nullptr) {
      return send(stranger.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
             static_cast<ssize_t>(bytes.size());
    }
    const int sent = SSL_write(stranger.tls.get(), bytes.data(), static_cast<int>(bytes.size()));
    ERR_clear_error();
    return sent == static_cast<int>(bytes.size());
  }

  void LetIn(Stranger& stranger) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stranger.socket.get(), nullptr);
    std::string said = stranger.call.TakeSaid();
    if (stranger.tls == nullptr) {
      options_.let_in(stranger.socket.Release(), std::move(said));
      return;
    }
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) {
      return;  // no descriptor is left: the client tries again
    }
    RelayedConnection relayed{.socket = std::move(stranger.socket),
                              .tls = std::move(stranger.tls),
                              .inside = FileDescriptor(pair[0])};
    relayed.blocks.Pass(said);
    options_.let_in(pair[1], std::move(said));
    relays_[relayed_++ % relays_.size()]->Add(std::move(relayed));
  }

  const GrpcDoorOptions options_;
  const GrpcDoorLimits& limits_;
  const TlsContextPtr tls_;
  const FileDescriptor epoll_;
  const FileDescriptor wake_;
  std::vector<std::unique_ptr<TlsRelay>> relays_;
  std::mutex mutex_;                   // guards what follows
  std::vector<FileDescriptor> taken_;  // since the thread last looked
  bool stopping_ = false;
  // The thread's alone.
  Strangers strangers_;  // by their age
  std::uint64_t next_ = kWake + 1;
  std::size_t held_bytes_ = 0;
  std::size_t relayed_ = 0;
  SteadyClock::time_point look_;
  ProcessorShare share_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcDoor>> GrpcDoor::Open(GrpcDoorOptions options) {
  TlsContextPtr tls;
  if (!options.certificate.pem.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(tls, MakeHttp2TlsServer(options.certificate));
  }
  return std::make_unique<GrpcDoorImpl>(std::move(options), std::move(tls));
}

}  // namespace espalier
