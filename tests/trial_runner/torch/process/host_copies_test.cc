// What comes from devices; without one, with the host's tensors as if they were a device's.

#include "trial_runner/torch/process/host_copies.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <torch/types.h>

#include <thread>
#include <utility>
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

std::int64_t Plenty(c10::Device) { return 1 << 30; }
std::int64_t Little(c10::Device) { return 100; }

TEST(HostCopies, AreExactInOrderAndOfTheMomentTheyWereBegun) {
  const std::vector<std::pair<bool, HostCopies::Room>> ways = {
      {false, nullptr}, {true, nullptr}, {true, Plenty}, {true, Little}};
  for (const auto& [as_from_device, room] : ways) {
    std::vector<at::Tensor> tensors = Tensors();
    const std::vector<at::Tensor> expected = Tensors();
    const HostCopies copies(tensors, room, as_from_device);
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
  for (const HostCopies::Room room : {HostCopies::Room(nullptr), HostCopies::Room(Plenty)}) {
    std::vector<at::Tensor> kept;
    {
      const HostCopies copies(Tensors(), room, /*as_from_device=*/true);
      kept = copies.Await();
    }
    const std::vector<at::Tensor> expected = Tensors();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_TRUE(at::equal(kept[i], expected[i].detach().cpu())) << i;
    }
  }
}

// More than comes from a device at once, by another thread than the one that goes on.
TEST(HostCopies, OfMuchMemoryAreOfTheMomentTheyWereBegun) {
  std::vector<at::Tensor> tensors{
      at::arange(9'000'000, at::TensorOptions(at::kFloat).device(TestDevice())),
      at::arange(1000, at::TensorOptions(at::kFloat).device(TestDevice()))};
  const HostCopies copies(tensors, Plenty, /*as_from_device=*/true);
  for (at::Tensor& tensor : tensors) tensor.zero_();
  std::vector<at::Tensor> arrived;
  std::thread([&] { arrived = copies.Await(); }).join();
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_TRUE(at::equal(arrived[0], at::arange(9'000'000, at::kFloat)));
  EXPECT_TRUE(at::equal(arrived[1], at::arange(1000, at::kFloat)));
}

}  // namespace
}  // namespace espalier
