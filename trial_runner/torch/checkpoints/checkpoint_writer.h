#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/synced_folders.h"
#include "trial_runner/torch/checkpoints/checkpoint_format.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {

// Writes checkpoints on a thread of its own, one at a time, and tells the service of each that is
// safe on the disk. One that waits is replaced by a newer one, so there are never more than two
// copies of the training state beside the state itself. When a checkpoint cannot be written, that
// is said on standard error once, until one can be written again; training goes on, and the service
// keeps the one it knows.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(TrialContext& trial) : trial_(trial) {}
  ~CheckpointWriter();  // after what it was given is written
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  void Put(std::unique_ptr<TrainingStateCopy> copy);
  // Waits until all that was put is written, or has failed.
  void Await();

 private:
  void Run();
  void Write(const TrainingStateCopy& copy);

  TrialContext& trial_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<TrainingStateCopy> next_;  // guarded by mutex_, as are the following
  bool writing_ = false;
  bool ending_ = false;
  std::thread thread_;  // begun by the first Put; the rest is its own
  bool failing_ = false;
  SyncedFolders synced_;
};

}  // namespace espalier
