#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tuner/core/scheduling/planner.h"
#include "tuner/core/state/event.h"

namespace espalier {

// Makes the plans that a core asks for, one after another, on a thread of its own: the owner of the
// core goes on meanwhile. Ask may be called from any thread.
class PlannerThread {
 public:
  // `made` is called with each plan, `failed` with what a planner threw and what it worked on; both
  // on the planner's thread.
  PlannerThread(std::function<void(PlanMade)> made, std::function<void(const std::string&)> failed);
  ~PlannerThread();  // stops; a plan under way is finished first

  // Returns at once. The core has never more than one plan under way.
  void Ask(std::shared_ptr<const PlanRequest> request);
  void Stop();

 private:
  void Run();

  const std::function<void(PlanMade)> made_;
  const std::function<void(const std::string&)> failed_;
  Planner planner_;  // the thread's
  std::mutex mutex_;
  std::condition_variable asked_;
  std::shared_ptr<const PlanRequest> request_;
  bool stopping_ = false;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace espalier
