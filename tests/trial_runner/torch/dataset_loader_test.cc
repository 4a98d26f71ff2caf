// Loaders of one replica that trains alone in this process.

#include "trial_runner/torch/dataset_loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/transforms/stack.h>
#include <torch/data/transforms/tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/map_dataset.h"
#include "trial_runner/torch/trial.h"

namespace espalier {
namespace {

constexpr std::int64_t kSize = 50;

// A trial with a model of one weight.
class DatasetLoaderTest : public ::testing::Test {
 protected:
  // Trains for two epochs and gives what was seen of each sample in them.
  template <typename Loader, typename See>
  void Train(Loader& loader, const See& see) {
    while (loader.NextEpoch(2)) {
      while (const auto batch = loader.NextBatch()) {
        see(*batch);
        parallel_.Step(net_->forward(at::full({1, 1}, 1.0F)).sum());
      }
    }
  }

  char name_[5] = "test";
  char* arguments_[1] = {name_};
  Trial trial_{1, arguments_};
  torch::nn::Linear net_{1, 1};
  torch::optim::SGD optimizer_{net_->parameters(), 0.01};
  AdaptiveDataParallel parallel_{trial_, *net_, optimizer_};
};

// Pairs of a sample's value and its index as a number, with a draw of its own on top.
class Squares final : public MapDataset<std::pair<at::Tensor, std::int64_t>> {
 public:
  std::int64_t size() const override { return kSize; }
  Example Get(std::int64_t index, std::uint64_t seed) const override {
    if (index == broken) throw std::out_of_range("sample 13 is damaged");
    const auto draw = static_cast<double>(seed % 1000) / 1000;
    return {at::full({2}, static_cast<double>(index * index) + draw), index};
  }

  std::int64_t broken = -1;
};

using Seen = std::multimap<std::int64_t, double>;

void Add(Seen& seen, const std::pair<at::Tensor, at::Tensor>& batch) {
  for (std::int64_t i = 0; i < batch.second.numel(); ++i) {
    seen.emplace(batch.second[i].item<std::int64_t>(), batch.first[i][0].item<double>());
  }
}

class Workers : public DatasetLoaderTest, public ::testing::WithParamInterface<int> {};

TEST_P(Workers, EachSampleComesOnceAnEpochWithItsOwnDraw) {
  const Squares squares;
  DatasetLoader loader(parallel_, squares, {.batch_size = 8, .workers = GetParam()});
  Seen seen;
  Train(loader, [&](const auto& batch) {
    EXPECT_EQ(batch.first.sizes(), (std::vector<std::int64_t>{batch.second.numel(), 2}));
    EXPECT_EQ(batch.second.scalar_type(), at::kLong);
    Add(seen, batch);
  });
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(2 * kSize));
  const auto draw_of = [&](std::int64_t epoch, std::int64_t index) {
    const std::uint64_t seed = SampleSeed(trial_.seed(), epoch, index);
    return static_cast<double>(seed % 1000) / 1000;
  };
  for (std::int64_t i = 0; i < kSize; ++i) {
    const auto [first, last] = seen.equal_range(i);
    ASSERT_EQ(std::distance(first, last), 2) << "sample " << i;
    const auto square = static_cast<double>(i * i);
    EXPECT_NEAR(first->second, square + draw_of(1, i), 1e-3);
    EXPECT_NEAR(std::next(first)->second, square + draw_of(2, i), 1e-3);
  }
}

TEST_P(Workers, WhatTheDataSetThrowsComesOutOfNextBatchAndMayBeTriedAgain) {
  Squares squares;
  squares.broken = 13;
  DatasetLoader loader(parallel_, squares, {.batch_size = kSize, .workers = GetParam()});
  ASSERT_TRUE(loader.NextEpoch(1));
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT([&] { loader.NextBatch(); },
                ::testing::Throws<std::out_of_range>(::testing::Property(
                    &std::out_of_range::what, ::testing::StrEq("sample 13 is damaged"))));
  }
  squares.broken = -1;
  const auto batch = loader.NextBatch();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->second.numel(), kSize);
}

// One after another of a stream that does not say how many they are.
class Countdown final : public IterableDataset<std::int64_t> {
 public:
  std::unique_ptr<Stream> Open(std::int64_t) const override { return std::make_unique<Down>(); }

 private:
  class Down final : public Stream {
   public:
    std::optional<std::int64_t> Next(std::uint64_t) override {
      return left_ > 0 ? std::optional(--left_) : std::nullopt;
    }

   private:
    std::int64_t left_ = kSize;
  };
};

TEST_P(Workers, StreamsComeInTheirOrder) {
  const Countdown countdown;
  DatasetLoader loader(parallel_, countdown, {.batch_size = 8, .workers = GetParam()});
  std::vector<std::int64_t> seen;
  Train(loader, [&](const at::Tensor& batch) {
    for (std::int64_t i = 0; i < batch.numel(); ++i) seen.push_back(batch[i].item<std::int64_t>());
  });
  std::vector<std::int64_t> twice;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t i = kSize; i-- > 0;) twice.push_back(i);
  }
  EXPECT_EQ(seen, twice);
}

// LibTorch's own kind of data set and its transforms.
class TorchSquares : public torch::data::datasets::Dataset<TorchSquares> {
 public:
  torch::data::Example<> get(std::size_t index) override {
    const auto value = static_cast<double>(index);
    return {at::full({3}, value * value), at::full({}, value)};
  }
  std::optional<std::size_t> size() const override { return kSize; }
};

TEST_P(Workers, DealsTheDataSetsOfLibTorch) {
  const TorchDataset squares(
      TorchSquares()
          .map(torch::data::transforms::TensorLambda<>([](const at::Tensor& t) { return t + 1; }))
          .map(torch::data::transforms::Stack<>()));
  DatasetLoader loader(parallel_, squares, {.batch_size = 8, .workers = GetParam()});
  std::multiset<double> seen;
  Train(loader, [&](const torch::data::Example<>& batch) {
    EXPECT_TRUE(batch.data.select(1, 2).equal(batch.target.pow(2) + 1));
    for (std::int64_t i = 0; i < batch.target.numel(); ++i) {
      seen.insert(batch.target[i].item<double>());
    }
  });
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(2 * kSize));
  for (std::int64_t i = 0; i < kSize; ++i) EXPECT_EQ(seen.count(static_cast<double>(i)), 2u);
}

INSTANTIATE_TEST_SUITE_P(Counts, Workers, ::testing::Values(0, 1, 3));

TEST_F(DatasetLoaderTest, SendsEveryTensorOfABatchToTheDevice) {
  const Squares squares;
  DatasetLoader loader(parallel_, squares, {.batch_size = 8, .workers = 1});
  loader.SendTo(at::kMeta);
  ASSERT_TRUE(loader.NextEpoch(1));
  const auto batch = loader.NextBatch();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->first.is_meta());
  EXPECT_TRUE(batch->second.is_meta());
}

TEST_F(DatasetLoaderTest, EvaluationGetsBatchesByIndexTensors) {
  const Squares squares;
  const auto batch = GetBatch(squares, at::arange(3, 6));
  EXPECT_TRUE(batch.second.equal(at::arange(3, 6)));
  EXPECT_EQ(batch.first.sizes(), (std::vector<std::int64_t>{3, 2}));
}

TEST(Stacking, GoesThroughNestedFields) {
  using Example = std::tuple<std::pair<at::Tensor, float>, bool, int>;
  const auto batch = Stacking<Example>::Of(
      {{{at::full({2}, 1.0F), 0.5F}, true, 7}, {{at::full({2}, 2.0F), 1.5F}, false, 8}});
  const auto& [pair, flags, counts] = batch;
  EXPECT_EQ(pair.first.sizes(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(pair.second.scalar_type(), at::kFloat);
  EXPECT_EQ(pair.second[1].item<float>(), 1.5F);
  EXPECT_EQ(flags.scalar_type(), at::kLong);
  EXPECT_EQ(counts[1].item<std::int64_t>(), 8);
}

}  // namespace
}  // namespace espalier
