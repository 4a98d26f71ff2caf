#pragma once

#include <c10/core/Device.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace espalier {

class State;
class TrialContext;

// The service's own record of a trial has this name too; programs write espalier::Trial.
inline namespace programs {

// A trial as its program sees it: the parameters to train with, and where results go. Make one
// first thing in main: what stands before it, an agent may run once for many replicas
// (docs/elastic_training_loop.md, Starting replicas quickly). When the program is started by a tuner
// agent, it finds the agent through its environment; when started by hand it runs alone, takes
// parameters as `--set name=value`, and prints its reports. Use it from one thread. A wrong
// parameter ends the program with exit code 2 and a message.
//
// It also sets LibTorch's threads to what the slot has (ESPALIER_THREADS, default 1), its random
// seed to seed(), and glibc's allocator to keep up to 1 GiB that is freed.
class Trial {
 public:
  Trial(int argc, char** argv);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // The parameter's value, or `otherwise` where the study does not sweep it.
  template <typename T>
  requires std::is_arithmetic_v<T> T Get(const std::string& name, T otherwise) {
    if constexpr (std::same_as<T, bool>) {
      return GetBool(name, otherwise);
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(GetInteger(name, static_cast<std::int64_t>(otherwise)));
    } else {
      return static_cast<T>(GetReal(name, static_cast<double>(otherwise)));
    }
  }
  std::string Get(const std::string& name, const std::string& otherwise);
  std::string Get(const std::string& name, const char* otherwise) {
    return Get(name, std::string(otherwise));
  }

  // One value of the study's metric, and further figures of the same step, which counts from 1 and
  // grows (usually the epoch). Call it on every replica with the same values: one of them sends it,
  // the others keep it in case that one is lost.
  void Report(std::int64_t step, double value, const std::map<std::string, double>& extra = {});

  // Adds something of the program's own that is saved in checkpoints and handed to replicas that
  // join; state.h says what it can do. Call it before the first NextEpoch, with the same states in
  // each replica; they must outlive the training.
  void AddState(State& state);

  // The trial is complete; the last report is its result, or `value` if given. Ends the process.
  [[noreturn]] void Finish(std::optional<double> value = std::nullopt);

  // A seed that differs between trials and not between a trial's replicas. A parameter "seed"
  // overrides it.
  std::uint64_t seed() const;
  // Where to put models and batches: the GPU that CUDA_VISIBLE_DEVICES names first, or the CPU.
  c10::Device device() const;
  // The trial's number within its study; 0 without an agent.
  std::int64_t number() const;

  // For the rest of the library.
  TrialContext& context() { return *context_; }
  // What Finish does before it ends the process; or the trial has failed, and this is why.
  void SayFinished(std::optional<double> value, const std::string& failure);

 private:
  double GetReal(const std::string& name, double otherwise);
  std::int64_t GetInteger(const std::string& name, std::int64_t otherwise);
  bool GetBool(const std::string& name, bool otherwise);

  std::unique_ptr<TrialContext> context_;
};

}  // namespace programs
}  // namespace espalier
