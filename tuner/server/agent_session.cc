#include "tuner/server/agent_session.h"

#include <algorithm>
#include <utility>

#include "spdlog/spdlog.h"

namespace espalier {

AgentSession::AgentSession(std::function<bool(const v1::ServiceMessage&)> write,
                           std::function<void()> cancel, Time now)
    : write_(std::move(write)),
      cancel_(std::move(cancel)),
      last_heard_(now),
      writer_([this] { Write(); }) {}

AgentSession::~AgentSession() { Close(); }

void AgentSession::Send(v1::ServiceMessage message) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || cancelled_) return;
    full = queue_.size() >= kMaxOutgoing;
    if (!full) queue_.push_back(std::move(message));
  }
  if (full) {
    spdlog::warn("event=agent_too_slow queued={}", kMaxOutgoing);
    Cancel();
  }
  changed_.notify_one();
}

void AgentSession::Acknowledge(std::int64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    acknowledge_ = std::max(acknowledge_, sequence);
  }
  changed_.notify_one();
}

void AgentSession::Cancel() {
  // Under the lock, so that the stream is still there: Close comes after or not at all.
  const std::lock_guard lock(mutex_);
  if (closed_ || cancelled_) return;
  cancelled_ = true;
  cancel_();
}

void AgentSession::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
}

void AgentSession::Heard(Time now) {
  const std::lock_guard lock(mutex_);
  last_heard_ = now;
}

Time AgentSession::last_heard() const {
  const std::lock_guard lock(mutex_);
  return last_heard_;
}

bool AgentSession::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void AgentSession::Write() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !queue_.empty() || acknowledge_ > 0; });
    if (closed_) return;
    std::deque<v1::ServiceMessage> batch = std::exchange(queue_, {});
    if (const std::int64_t sequence = std::exchange(acknowledge_, 0); sequence > 0) {
      batch.emplace_back().mutable_acknowledge()->set_sequence(sequence);
    }
    lock.unlock();
    bool written = true;
    for (const v1::ServiceMessage& message : batch) written = written && write_(message);
    if (!written) Cancel();
    lock.lock();
    if (!written) return;
  }
}

}  // namespace espalier
