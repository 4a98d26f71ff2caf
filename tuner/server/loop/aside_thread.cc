#include "tuner/server/loop/aside_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/guarded.h"

namespace espalier {

AsideThread::AsideThread(std::function<void(const std::string&)> failed)
    : failed_(std::move(failed)), thread_([this] { Run(); }) {}

AsideThread::~AsideThread() { Stop(); }

void AsideThread::Do(Work work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  given_.notify_one();
}

void AsideThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.request_stop();
  }
  given_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void AsideThread::Run() {
  // This is for this thread alone. What it does takes long and can wait, answers cannot: where
  // processors are short the threads that answer go first. (Should it fail, all are equal.)
  constexpr int kNicer = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), getpriority(PRIO_PROCESS, 0) + kNicer);
  std::unique_lock lock(mutex_);
  while (true) {
    given_.wait(lock, [this] { return stop_.stop_requested() || !work_.empty(); });
    if (stop_.stop_requested()) return;
    const Work work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    const absl::Status done = Guarded(work.name, [&] { work.run(stop_.get_token()); });
    if (!done.ok()) failed_(std::string(done.message()));
    lock.lock();
  }
}

}  // namespace espalier
