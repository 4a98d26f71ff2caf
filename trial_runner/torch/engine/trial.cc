#include "trial_runner/torch/trial.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {
namespace {

constexpr std::int64_t kMaxStep = std::int64_t{1} << 53;  // the service's

template <typename T>
T ValueOrEnd(absl::StatusOr<T> value) {
  if (!value.ok()) EndProcess(value.status(), kBadUseExitCode);
  return *std::move(value);
}

// A training step allocates and frees the same large tensors over and over. By default glibc gives
// them back to the kernel each time, and every page is then zeroed and mapped anew: 1 to 3 % of a
// step of ResNet-18. Whoever has set the allocator's environment variables knows better.
void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kLargestBlock = 32 << 20;  // what is larger is mapped by itself; glibc's limit
  constexpr int kKept = 1 << 30;
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr ||
      std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr) {
    return;
  }
  mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

// There is one connection to the agent, which a second Trial would close. Alone, programs may have
// several.
std::atomic<bool> exists{false};

}  // namespace

Trial::Trial(int argc, char** argv) {
  if (exists && std::getenv("ESPALIER_CONTROL_FD") != nullptr) {
    BadUse("there is a Trial in this process already: make one, and hand it on");
  }
  context_ = ValueOrEnd(TrialContext::FromEnvironment(argc, argv));
  exists = true;
  at::set_num_threads(context_->threads);
  at::manual_seed(context_->seed);
  KeepFreedMemory();
}

Trial::~Trial() { exists = false; }

std::string Trial::Get(const std::string& name, const std::string& otherwise) {
  return ValueOrEnd(context_->parameters.Get(name, otherwise));
}
double Trial::GetReal(const std::string& name, double otherwise) {
  return ValueOrEnd(context_->parameters.Get(name, otherwise));
}
std::int64_t Trial::GetInteger(const std::string& name, std::int64_t otherwise) {
  return ValueOrEnd(context_->parameters.Get(name, otherwise));
}
bool Trial::GetBool(const std::string& name, bool otherwise) {
  return ValueOrEnd(context_->parameters.Get(name, otherwise));
}

void Trial::Report(std::int64_t step, double value, const std::map<std::string, double>& extra) {
  if (step < 0) BadUse(absl::StrCat("Report: step is ", step, ": want 0 or more"));
  if (step > kMaxStep) BadUse(absl::StrCat("Report: step is ", step, ": want at most 2^53"));
  if (extra.size() > kMaxExtraFigures) {
    BadUse(absl::StrCat("Report of step ", step, " has ", extra.size(), " further figures: want ",
                        kMaxExtraFigures, " at the most"));
  }
  for (const auto& [name, figure] : extra) {
    if (!name.empty() && name.size() <= kMaxFigureName) continue;
    BadUse(absl::StrCat("Report of step ", step, " has a figure whose name is ", name.size(),
                        " bytes long: want 1 to ", kMaxFigureName));
  }
  context_->Report({.step = step, .value = value, .progress = 0, .extra = extra});
}

void Trial::AddState(State& state) {
  absl::Status added = context_->AddState(state);
  if (added.ok() && context_->generation > 0) {
    added = absl::FailedPreconditionError(absl::StrCat(
        "state \"", state.name(), "\" was added after training began: add all of them before"));
  }
  if (!added.ok()) EndProcess(added, kBadUseExitCode);
}

void Trial::Finish(std::optional<double> value) {
  SayFinished(value, "");
  EndProcess(0);
}

void Trial::SayFinished(std::optional<double> value, const std::string& failure) {
  const std::vector<std::string> unread = context_->parameters.Unused();
  for (const std::string& name : unread) {
    if (context_->rank == 0) {
      std::fprintf(stderr,
                   "espalier: parameter \"%s\" was given but the program never asked for it\n",
                   name.c_str());
    }
  }
  const ReplicaFinished finished{.value = value, .failure = failure, .unread = unread};
  if (context_->finish_group) {
    context_->finish_group(finished);
  } else {
    context_->control->Send(finished);
  }
}

c10::Device Trial::device() const { return context_->device; }
std::uint64_t Trial::seed() const { return context_->seed; }
std::int64_t Trial::number() const { return context_->trial_number; }

}  // namespace espalier
