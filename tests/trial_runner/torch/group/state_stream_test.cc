#include "trial_runner/torch/group/state_stream.h"

#include <ATen/ops/empty.h>

#include "gtest/gtest.h"

namespace espalier {
namespace {

// Collectives would take the memory of any other device for the host's.
TEST(StateStreamDeathTest, RefusesTensorsThatAreNeitherTheHostsNorOfCuda) {
  const at::Tensor large = at::empty({static_cast<std::int64_t>(kLargeBytes)},
                                     at::TensorOptions(at::kFloat).device(at::kMeta));
  EXPECT_DEATH(StateWriter().Tensor(large),
               "training state is in the host's memory or on a CUDA device");
}

}  // namespace
}  // namespace espalier
