#pragma once

#include <atomic>
#include <future>
#include <span>
#include <string>

#include "search_spaces/search_space.h"
#include "tuner/storage/storage.h"

namespace espalier {

inline StudySpec Spec(const std::string& name) {
  StudySpec spec;
  spec.name = name;
  spec.space = *SearchSpace::FromJson(R"({"lr": {"_type": "uniform", "_value": [0.1, 0.2]}})");
  spec.sampler = {"random", {}};
  spec.command = {"/bin/true"};
  spec.directory = "/tmp";
  return spec;
}

// What a test sees of the storage that a loop owns.
struct Journal {
  std::atomic<int> commits = 0;
  std::atomic<bool> fails = false;
  std::atomic<bool> lost = false;
  std::atomic<int> studies = 0;  // committed
  std::atomic<int> left_to_clean_up = 0;
  // Set: the next commit says that it has begun, and waits to be let go.
  std::atomic<std::promise<void>*> began = nullptr;
  std::promise<void> let_go;
};

class JournalStorage final : public Storage {
 public:
  explicit JournalStorage(Journal& journal) : journal_(journal) {}
  absl::StatusOr<TunerState> Load() override { return TunerState{}; }
  absl::Status Commit(std::span<const Change> changes) override {
    if (auto* began = journal_.began.exchange(nullptr)) {
      began->set_value();
      journal_.let_go.get_future().wait();
    }
    if (journal_.fails) return absl::DataLossError("disk full");
    ++journal_.commits;
    for (const Change& change : changes) {
      if (std::holds_alternative<StudyCreated>(change)) ++journal_.studies;
    }
    return absl::OkStatus();
  }
  absl::Status CommitSlices(const NextSlice&) override { return absl::OkStatus(); }
  absl::Status CheckStillThere() override {
    return journal_.lost ? absl::FailedPreconditionError("file removed") : absl::OkStatus();
  }
  absl::StatusOr<bool> CleanUp() override { return journal_.left_to_clean_up-- > 1; }

 private:
  Journal& journal_;
};

}  // namespace espalier
