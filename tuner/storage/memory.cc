#include <utility>

#include "tuner/storage/storage.h"

namespace espalier {

namespace {

class MemoryStorage : public Storage {
 public:
  absl::StatusOr<TunerState> Load() override { return state_; }

  absl::Status Commit(std::span<const Change> changes) override {
    for (const Change& change : changes) state_.Apply(change);
    return absl::OkStatus();
  }

  absl::Status CommitSlices(const NextSlice& next) override {
    TunerState state = state_;
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(const std::vector<Change> slice, next());
      if (slice.empty()) break;
      for (const Change& change : slice) state.Apply(change);
    }
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  TunerState state_;
};

}  // namespace

std::unique_ptr<Storage> MakeMemoryStorage() { return std::make_unique<MemoryStorage>(); }

}  // namespace espalier
