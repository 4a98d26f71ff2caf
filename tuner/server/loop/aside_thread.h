#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace espalier {

// Does what takes long for the owner of a core, one thing after another, while the owner goes on.
// Do may be called from any thread.
class AsideThread {
 public:
  struct Work {
    std::function<std::string()> name;  // for people
    std::function<void(std::stop_token)> run;
  };

  // `failed` is called, on this thread, with the name of what threw and what it threw.
  explicit AsideThread(std::function<void(const std::string&)> failed);
  ~AsideThread();  // stops

  // Returns at once.
  void Do(Work work);
  // What is under way is asked to stop, and waited for. What has not begun never does.
  void Stop();

 private:
  void Run();

  const std::function<void(const std::string&)> failed_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<Work> work_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace espalier
