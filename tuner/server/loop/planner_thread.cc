#include "tuner/server/loop/planner_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check_scope.h"

namespace espalier {

PlannerThread::PlannerThread(std::function<void(PlanMade)> made,
                             std::function<void(const std::string&)> failed)
    : made_(std::move(made)), failed_(std::move(failed)), thread_([this] { Run(); }) {}

PlannerThread::~PlannerThread() { Stop(); }

void PlannerThread::Ask(std::shared_ptr<const PlanRequest> request) {
  {
    const std::lock_guard lock(mutex_);
    request_ = std::move(request);
  }
  asked_.notify_one();
}

void PlannerThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void PlannerThread::Run() {
  // This is for this thread alone. Plans take long and can wait, answers cannot: where processors
  // are short the threads that answer go first. (Should it fail, all are equal.)
  constexpr int kNicer = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), getpriority(PRIO_PROCESS, 0) + kNicer);
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stopping_ || request_ != nullptr; });
    if (stopping_) return;
    const std::shared_ptr<const PlanRequest> request = std::exchange(request_, nullptr);
    lock.unlock();
    const auto name = [&request] {
      return absl::StrCat("plan ", request->number, " by ", TextOf(request->policy), ", ",
                          request->pool.jobs.size(), " trials");
    };
    const CheckScope scope(name);
    try {
      made_({std::make_shared<const Plan>(planner_.Make(*request))});
    } catch (const std::exception& error) {
      failed_(absl::StrCat(name(), ": ", error.what()));
    }
    lock.lock();
  }
}

}  // namespace espalier
