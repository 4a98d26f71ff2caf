#pragma once

#include <cstdint>
#include <vector>

#include "tuner/api/tuner.h"
#include "tuner/web/feed/event_texts.h"

namespace espalier {

// What no change tells, since it is not stored: what those trials do that hold slots, and how the
// pool is.
struct LiveTrials {
  Time at;
  std::vector<LiveRow> trials;     // by id
  std::vector<std::int64_t> pool;  // a mark: another one, another pool
};

// On the owner's thread.
LiveTrials LookAtTrials(const View& view);

}  // namespace espalier
