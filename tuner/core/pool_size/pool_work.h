#pragma once

#include "allocator/pool_size/pool_size.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/scheduling/pool_view.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/study_plugins.h"

namespace espalier {

// What the rule of the pool's size is shown: what the pool runs, what could still be started, and
// how much work is left.
class PoolWork {
 public:
  PoolWork(const Turn& turn, const PoolState& pool, PluginsOfStudies& plugins, PoolView& view)
      : turn_(turn), pool_(pool), plugins_(plugins), view_(view) {}

  // After slots have been allocated, so that the rule sees what that has left to wish for: of a
  // pool that may come to have so many slots. What the sizer alone knows is left to it. Good until
  // the next call.
  PoolSizeRequest Describe(int most_slots);

 private:
  void DescribeWork(Pool& pool, PoolSizeRequest& request);
  double SecondsOfATrial(const Study& study) const;

  const Turn& turn_;
  const PoolState& pool_;
  PluginsOfStudies& plugins_;
  PoolView& view_;
  Pool pool_shown_;
};

}  // namespace espalier
