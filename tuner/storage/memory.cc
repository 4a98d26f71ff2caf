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

 private:
  TunerState state_;
};

}  // namespace

std::unique_ptr<Storage> MakeMemoryStorage() { return std::make_unique<MemoryStorage>(); }

}  // namespace espalier
