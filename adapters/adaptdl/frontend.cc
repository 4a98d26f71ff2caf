#include "adapters/adaptdl/frontend.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_replace.h"
#include "adapters/adaptdl/jobs.h"
#include "base/guarded.h"
#include "spdlog/spdlog.h"

namespace espalier::adaptdl {

namespace {

constexpr double kPace_s = 2;
constexpr double kMostPace_s = 30;  // while it is in vain

class JobsFrontend final : public Frontend {
 public:
  explicit JobsFrontend(ApiServer server) : server_(std::move(server)) {}
  ~JobsFrontend() override { End(); }

  const char* name() const override { return "adaptdl"; }
  void Start(Tuner& tuner) override {
    thread_ = std::thread([this, &tuner] { Run(tuner); });
  }
  void Close() override { End(); }

 private:
  void End() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void Run(Tuner& tuner) {
    Jobs jobs(server_, tuner);
    double pace_s = 0;
    while (!StopsWithin(pace_s)) {
      absl::Status compared;
      compared.Update(
          Guarded([] { return std::string("AdaptDL's jobs"); },
                  [&] { compared = jobs.Compare([this] { return !StopsWithin(0); }); }));
      pace_s = compared.ok() ? kPace_s : std::clamp(2 * pace_s, kPace_s, kMostPace_s);
      Tell(compared);
    }
  }

  bool StopsWithin(double seconds) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, std::chrono::duration<double>(seconds),
                          [this] { return stopping_; });
  }

  // The same trouble once.
  void Tell(const absl::Status& compared) {
    std::string trouble = absl::StrReplaceAll(compared.message(), {{"\"", "'"}});
    if (trouble == told_) return;
    if (compared.ok()) {
      spdlog::info("event=adaptdl_jobs_well");
    } else {
      spdlog::warn("event=adaptdl_jobs_trouble error=\"{}\"", trouble);
    }
    told_ = std::move(trouble);
  }

  const ApiServer server_;
  std::thread thread_;
  std::string told_;  // of the thread
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<Frontend> MakeFrontend(ApiServer server) {
  return std::make_unique<JobsFrontend>(std::move(server));
}

}  // namespace espalier::adaptdl
