#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "tuner/core/samplers/draw.h"
#include "tuner/core/state/change.h"
#include "tuner/server/loop/aside_thread.h"
#include "tuner/server/optuna/optuna_options.h"

namespace espalier {

// New studies whose samplers are checked at a time, or wait for it. Each keeps the thread of a
// call, of which HTTP has kHttpThreads.
inline constexpr int kMostChecked = 16;

class OptunaProcess;

// Asks samplers of Optuna's, each in a Python process of its study, which has no network, none of
// our environment, no file but Python's own and the hubs', and bounds of memory and processor time.
// A process that dies is started again, a few times and ever later; what Optuna refuses is final.
// Each study has a thread, so that one that hangs holds up nobody else. Used by one thread, but for
// Check.
class OptunaSamplers {
 public:
  explicit OptunaSamplers(OptunaOptions options);
  ~OptunaSamplers();  // stops

  // See Tuner::CheckSampler. Any thread, which it keeps. ResourceExhausted: so many do that already
  // that further ones would be missed elsewhere.
  absl::StatusOr<std::string> Check(const StudySpec& spec);

  // Returns at once. Errors say why there will be no suggestion; Cancelled: its study was stopped.
  void Ask(std::shared_ptr<const DrawRequest> request, OutsideAnswer answer);
  // Ends the processes of studies that do not run any more. Returns at once.
  void Take(const std::vector<Change>& changes);
  // Once nobody asks any more.
  void Stop();

 private:
  struct OfStudy;

  const OptunaOptions options_;
  std::counting_semaphore<> checks_;
  std::atomic<int> checked_ = 0;  // now, or as soon as there is room
  std::map<StudyId, std::shared_ptr<OfStudy>> studies_;
  AsideThread ending_;  // waits for processes to end
};

}  // namespace espalier
