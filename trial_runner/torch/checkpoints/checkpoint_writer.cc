#include "trial_runner/torch/checkpoints/checkpoint_writer.h"

#include <cstdio>
#include <string>
#include <utility>

#include "trial_runner/control/group_progress.h"
#include "trial_runner/torch/checkpoints/checkpoint_file.h"

namespace espalier {

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::Put(std::unique_ptr<TrainingStateCopy> copy) {
  {
    const std::lock_guard lock(mutex_);
    next_.swap(copy);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.notify_all();
}

void CheckpointWriter::Await() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !next_ && !writing_; });
}

void CheckpointWriter::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return next_ || ending_; });
    if (!next_) return;
    std::unique_ptr<TrainingStateCopy> copy = std::move(next_);
    writing_ = true;
    lock.unlock();
    Write(*copy);
    copy.reset();
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

void CheckpointWriter::Write(const TrainingStateCopy& copy) {
  const absl::StatusOr<std::string> path =
      WriteCheckpointFile({.folder = trial_.checkpoint_dir,
                           .step = copy.step,
                           .value = copy.value,
                           .better = trial_.better_value,
                           .synced =
                               [this](std::int64_t bytes) {
                                 trial_.control->progress().Add(GroupPhase::kSaving, bytes);
                               },
                           .above = &synced_},
                          [&](const ByteSink& sink) { return copy.Write(sink); });
  if (path.ok()) {
    trial_.control->Send(ReplicaCheckpoint{*path, copy.step});
    failing_ = false;
  } else if (!std::exchange(failing_, true)) {
    std::fprintf(stderr, "espalier: %s; training goes on without it\n",
                 std::string(path.status().message()).c_str());
  }
}

}  // namespace espalier
