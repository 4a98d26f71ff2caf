#include "trial_runner/agent/service_stream.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/guarded.h"

namespace espalier {
namespace {

constexpr std::chrono::milliseconds kFirstBackoff{50};
constexpr std::chrono::milliseconds kLongestBackoff{2000};

}  // namespace

ServiceStream::ServiceStream(ServiceDialer dial, int wake_fd,
                             std::chrono::milliseconds first_word_wait)
    : dial_(std::move(dial)),
      wake_fd_(wake_fd),
      first_word_wait_(first_word_wait),
      next_first_word_wait_(first_word_wait),
      dialler_([this] { DialForEver(); }) {}

ServiceStream::~ServiceStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (call_ != nullptr) call_->Cancel();
  }
  changed_.notify_all();
  dialler_.join();
}

std::vector<ServiceStream::Arrival> ServiceStream::TakeArrivals() {
  std::vector<Arrival> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.assign(std::make_move_iterator(arrivals_.begin()),
                 std::make_move_iterator(arrivals_.end()));
    arrivals_.clear();
  }
  changed_.notify_all();
  return taken;
}

bool ServiceStream::Send(std::int64_t stream, const v1::AgentMessage& message) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_ || stream != stream_ || outgoing_.size() >= kMaxStreamQueue) return false;
    outgoing_.push_back(message);
  }
  changed_.notify_all();
  return true;
}

void ServiceStream::Break() {
  const std::lock_guard lock(mutex_);
  if (call_ != nullptr) call_->Cancel();
}

void ServiceStream::DialForEver() {
  std::chrono::milliseconds backoff = kFirstBackoff;
  while (true) {
    bool answered = false;
    const absl::Status run = Guarded([] { return std::string("the stream to the service"); },
                                     [&] { answered = RunOnce(); });
    if (!run.ok()) PostBroken(stream_, run);
    if (answered) backoff = kFirstBackoff;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, backoff, [this] { return closing_; })) return;
    backoff = std::min(backoff * 2, kLongestBackoff);
  }
}

bool ServiceStream::RunOnce() {
  std::int64_t stream = 0;
  const absl::StatusOr<std::unique_ptr<ServiceCall>> dialled = dial_();
  if (!dialled.ok()) {
    PostBroken(stream_, dialled.status());
    return false;
  }
  ServiceCall& call = **dialled;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return false;
    call_ = &call;
    open_ = true;
    answered_ = false;
    stream = ++stream_;
  }
  PostBroken(stream, TalkOn(call, stream));
  const std::lock_guard lock(mutex_);
  return answered_;
}

absl::Status ServiceStream::TalkOn(ServiceCall& call, std::int64_t stream) {
  const absl::Cleanup forget = [this] {
    const std::lock_guard lock(mutex_);
    open_ = false;
    call_ = nullptr;
  };
  call.Open();
  Post({.kind = ArrivalKind::kOpened, .stream = stream, .message = {}, .status = {}, .peer = {}});
  bool cut = false;
  std::jthread watch([&] { cut = CutUnlessAnswered(call); });
  std::thread writer([&] {
    const absl::Status written =
        Guarded([] { return std::string("what the agent says"); }, [&] { Write(call); });
    if (!written.ok()) call.Cancel();
  });
  const absl::Status heard =
      Guarded([] { return std::string("what the service says"); }, [&] { Hear(call, stream); });
  if (!heard.ok()) call.Cancel();
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    outgoing_.clear();
  }
  // The call is over. Cancelled now it would lose the service's word of why.
  changed_.notify_all();
  writer.join();
  watch.join();
  const absl::Status status = call.Finish();
  const auto waited = std::exchange(
      next_first_word_wait_,
      cut ? std::min(2 * next_first_word_wait_, kFirstWordWaitMost) : first_word_wait_);
  if (cut) {
    const double waited_s = std::chrono::duration<double>(waited).count();
    return absl::DeadlineExceededError(absl::StrCat("it has said nothing for ", waited_s, " s"));
  }
  return heard.ok() ? status : heard;
}

bool ServiceStream::CutUnlessAnswered(ServiceCall& call) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, next_first_word_wait_, [this] { return answered_ || !open_; })) {
    return false;
  }
  call.Cancel();
  return true;
}

void ServiceStream::Hear(ServiceCall& call, std::int64_t stream) {
  std::string peer;  // known once there is a connection
  v1::ServiceMessage message;
  while (call.Read(&message)) {
    if (peer.empty()) {
      peer = call.peer();
      {
        const std::lock_guard lock(mutex_);
        answered_ = true;
      }
      changed_.notify_all();
    }
    Post({.kind = ArrivalKind::kMessage,
          .stream = stream,
          .message = std::move(message),
          .status = {},
          .peer = peer});
    message.Clear();
  }
}

void ServiceStream::PostBroken(std::int64_t stream, const absl::Status& status) {
  Post({.kind = ArrivalKind::kBroken,
        .stream = stream,
        .message = {},
        .status = status,
        .peer = {}});
}

void ServiceStream::Write(ServiceCall& call) {
  while (true) {
    v1::AgentMessage message;
    bool was_full = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !open_ || !outgoing_.empty(); });
      if (!open_) return;
      message = std::move(outgoing_.front());
      was_full = outgoing_.size() >= kMaxStreamQueue;
      outgoing_.pop_front();
    }
    if (was_full) Wake();
    if (!call.Write(message)) return;  // the reader is told why
  }
}

void ServiceStream::Post(Arrival arrival) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || arrivals_.size() < kMaxStreamQueue; });
    arrivals_.push_back(std::move(arrival));
  }
  Wake();
}

void ServiceStream::Wake() const {
  const std::uint64_t one = 1;
  // An eventfd refuses only when its counter is full, and then the owner is awake anyway.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

}  // namespace espalier
