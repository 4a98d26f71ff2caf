#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tuner/core/samplers/draw.h"
#include "tuner/server/optuna/optuna_options.h"

namespace espalier {

// What suggest.py is told and answers; its head shows the forms. Each message is one line.

std::string ConfiningMessage(const OptunaOptions& options);

// Of the study that the request is of.
std::string StudyMessage(const DrawRequest& request);

// A suggestion that is not kept, of a study that may have constraints: what its sampler cannot do
// is refused.
std::string CheckMessage(const DrawRequest& request, double processor_s, bool constrained);

// What one process has been told of a study, so that it is told once.
class ToldHistory {
 public:
  // The request is of the same study each time.
  std::string MessageOf(const DrawRequest& request, double processor_s);

 private:
  std::vector<bool> ended_;        // by number
  std::set<std::int64_t> stored_;  // numbers of those whose stored state it has
  std::string stored_of_study_ = "{}";
};

// FailedPrecondition: Optuna, or its sampler, has refused, and why. Internal: the answer makes no
// sense.
absl::Status RefusalIn(std::string_view answer);
absl::StatusOr<Drawn> ReadSuggestion(const DrawRequest& request, std::string_view answer);
// Of the answer to ConfiningMessage: whether it can read nothing but what it needs.
bool FilesAreConfined(std::string_view answer);

}  // namespace espalier
