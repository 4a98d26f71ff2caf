#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/nni/service/event_feed.h"
#include "tuner/api/tuner.h"

namespace espalier::nni {

// One trial as its front end sees it, copied from the core; ToJson may run on any thread.
struct TrialView {
  struct Metric {
    const char* type = "";
    std::string json;  // {"sequence", "parameter_id", "value"}; anything else is left out
  };
  std::string trial;
  std::optional<std::int64_t> sequence;
  const char* state = "";
  Time submitted, started, ended;  // zero: none
  std::string message;
  std::string directory;
  int slots = 0;
  std::vector<Metric> metrics;
};

// With the metrics that `news` names. On the owner's thread.
TrialView ViewOf(const Trial& trial, const Study& study, const EventFeed::TrialNews& news,
                 const View& view);

std::string ToJson(const TrialView& trial);

// NNI's word for the state. A trial that was ended from outside is final only when its processes
// are gone; until then it is what it was.
const char* StateOf(const Trial& trial);

}  // namespace espalier::nni
