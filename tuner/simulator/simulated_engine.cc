#include "tuner/simulator/simulated_engine.h"

#include <utility>

namespace espalier {

SimulatedEngine::SimulatedEngine(std::function<double(const std::string&)> start_s,
                                 std::function<Time()> clock, std::function<void(double)> wake)
    : start_s_(std::move(start_s)), clock_(std::move(clock)), wake_(std::move(wake)) {}

void SimulatedEngine::StartNode(const std::string& name) {
  if (stopped_ || here_.contains(name) || starting_.contains(name)) return;
  const double start_s = start_s_(name);
  starting_.emplace(name, After(clock_(), start_s));
  wake_(start_s);
}

void SimulatedEngine::ReleaseNode(const std::string& name) {
  starting_.erase(name);
  if (here_.erase(name) == 0) return;
  leaving_.insert(name);
  wake_(0);
}

void SimulatedEngine::Stop() {
  stopped_ = true;
  starting_.clear();
  leaving_.merge(here_);
  wake_(0);
}

std::vector<SimulatedEngine::Happening> SimulatedEngine::TakeDue() {
  std::vector<Happening> due;
  for (const std::string& name : std::exchange(leaving_, {})) due.push_back({name, false});
  for (auto it = starting_.begin(); it != starting_.end();) {
    if (it->second > clock_()) {
      ++it;
      continue;
    }
    due.push_back({it->first, true});
    here_.insert(it->first);
    it = starting_.erase(it);
  }
  return due;
}

}  // namespace espalier
