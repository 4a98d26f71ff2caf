#include "tuner/server/grpc/agent_session.h"

#include <algorithm>
#include <utility>

#include "spdlog/spdlog.h"

namespace espalier {

AgentSession::AgentSession(AgentStreamCalls calls, Time now)
    : calls_(std::move(calls)), last_heard_(now) {}

void AgentSession::Send(v1::ServiceMessage message) {
  std::unique_lock lock(mutex_);
  if (closed_ || cancelled_) return;
  if (queue_.size() < kMaxOutgoing) {
    queue_.push_back(std::move(message));
    WriteNext(lock);
    return;
  }
  lock.unlock();
  spdlog::warn("event=agent_too_slow queued={}", kMaxOutgoing);
  Cancel();
}

void AgentSession::Acknowledge(std::int64_t sequence) {
  std::unique_lock lock(mutex_);
  acknowledge_ = std::max(acknowledge_, sequence);
  WriteNext(lock);
}

// The stream is called without the lock, so that it may call back at once; calls_under_way_ keeps
// it from being ended meanwhile.
void AgentSession::WriteNext(std::unique_lock<std::mutex>& lock) {
  if (writing_ || closed_ || cancelled_) return;
  if (!queue_.empty()) {
    current_ = std::move(queue_.front());
    queue_.pop_front();
  } else if (acknowledge_ > 0) {
    current_.Clear();
    current_.mutable_acknowledge()->set_sequence(std::exchange(acknowledge_, 0));
  } else {
    return;
  }
  writing_ = true;
  ++calls_under_way_;
  lock.unlock();
  calls_.write(&current_);
}

void AgentSession::Written(bool ok) {
  if (!ok) Cancel();
  std::unique_lock lock(mutex_);
  writing_ = false;
  --calls_under_way_;
  if (closed_) {
    if (calls_under_way_ > 0) return;
    lock.unlock();
    calls_.end();
    return;
  }
  WriteNext(lock);
}

void AgentSession::Cancel() {
  std::unique_lock lock(mutex_);
  if (closed_ || cancelled_) return;
  cancelled_ = true;
  ++calls_under_way_;
  lock.unlock();
  calls_.cancel();
  lock.lock();
  --calls_under_way_;
  const bool ends = closed_ && calls_under_way_ == 0;
  lock.unlock();
  if (ends) calls_.end();
}

void AgentSession::Close() {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  const bool ends = calls_under_way_ == 0;
  lock.unlock();
  if (ends) calls_.end();
}

void AgentSession::Heard(Time now) {
  const std::lock_guard lock(mutex_);
  last_heard_ = now;
}

bool AgentSession::TakeEvent() {
  const std::lock_guard lock(mutex_);
  ++unsettled_;
  paused_ = unsettled_ >= kMaxUnsettled;
  return !paused_;
}

void AgentSession::TakeHello() {
  const std::lock_guard lock(mutex_);
  ++unsettled_;
  paused_ = true;
}

// Nothing ends the stream while it is not read, so that read_next finds it there.
void AgentSession::Settled(Time now) {
  {
    const std::lock_guard lock(mutex_);
    --unsettled_;
    if (!paused_) return;
    paused_ = false;
    last_heard_ = now;
  }
  calls_.read_next();
}

bool AgentSession::Silent(Time now, double lease_s) const {
  const std::lock_guard lock(mutex_);
  return !paused_ && SecondsBetween(last_heard_, now) >= lease_s;
}

bool AgentSession::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

}  // namespace espalier
