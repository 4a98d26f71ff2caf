#include "tuner/server/grpc/send_thread.h"

#include <string>
#include <utility>

#include "base/guarded.h"
#include "spdlog/spdlog.h"

namespace espalier {

SendThread::SendThread() : thread_([this] { Run(); }) {}

SendThread::~SendThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void SendThread::Post(std::function<void()> send) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(send));
  }
  posted_.notify_one();
}

void SendThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<std::function<void()>> taken = std::exchange(queue_, {});
    lock.unlock();
    for (const auto& send : taken) {
      const absl::Status sent = Guarded([] { return std::string("what is to be sent"); }, send);
      if (!sent.ok()) {
        spdlog::error("event=send_failed error=\"{}\"", std::string(sent.message()));
      }
    }
    lock.lock();
  }
}

}  // namespace espalier
