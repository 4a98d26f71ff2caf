// What comes from devices; without one, with the host's tensors as if they were a device's.

#include "trial_runner/torch/host_copies.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <torch/types.h>

#include <vector>

#include "gtest/gtest.h"
#include "tests/trial_runner/torch/test_device.h"

namespace espalier {
namespace {

std::vector<at::Tensor> Tensors() {
  at::manual_seed(7);
  const at::Device device = TestDevice();
  std::vector<at::Tensor> all;
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    all.push_back(torch::randn({3, 5}, device).to(type));
  }
  all.push_back(at::arange(7, at::TensorOptions(at::kLong).device(device)));
  all.push_back(torch::randn({9}, device) > 0);
  all.push_back(at::zeros({}, device).add(0.25));
  all.push_back(at::zeros({0, 4}, device));
  all.push_back(torch::randn({2, 3, 4, 5}, device).contiguous(at::MemoryFormat::ChannelsLast));
  all.push_back(torch::randn({4, 6}, device).t());
  all.push_back(torch::randn({4, 6}, device).slice(1, 0, 6, 2));  // its memory has gaps
  all.push_back(torch::randn({1, 6}, device).expand({4, 6}));
  all.push_back(torch::randn({600, 1000}, device));  // goes alone
  all.push_back(torch::randn({5}, device));
  all.push_back(torch::randn({2, 2}, device).requires_grad_());
  return all;
}

TEST(HostCopies, AreExactInOrderAndOfTheMomentTheyWereBegun) {
  for (const bool as_from_device : {false, true}) {
    std::vector<at::Tensor> tensors = Tensors();
    const std::vector<at::Tensor> expected = Tensors();
    const HostCopies copies(tensors, as_from_device);
    const at::NoGradGuard no_grad;
    for (at::Tensor& t : tensors) {
      if (t.scalar_type() != at::kBool && t.is_non_overlapping_and_dense()) t.add_(1);
    }
    const std::vector<at::Tensor>& all = copies.Await();
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(all[i].scalar_type(), expected[i].scalar_type());
      EXPECT_TRUE(at::equal(all[i], expected[i].detach().cpu()));
      EXPECT_FALSE(all[i].requires_grad());
      if (expected[i].is_non_overlapping_and_dense()) {
        EXPECT_EQ(all[i].strides(), expected[i].strides());
      }
      EXPECT_EQ(all[i].storage().nbytes(), all[i].nbytes()) << "a file would get the rest as well";
    }
  }
}

TEST(HostCopies, OutliveWhatTheyWereBegunBy) {
  std::vector<at::Tensor> kept;
  {
    const HostCopies copies(Tensors(), /*as_from_device=*/true);
    kept = copies.Await();
  }
  const std::vector<at::Tensor> expected = Tensors();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(at::equal(kept[i], expected[i].detach().cpu())) << i;
  }
}

}  // namespace
}  // namespace espalier
