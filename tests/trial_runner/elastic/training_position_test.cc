#include "trial_runner/elastic/training_position.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace espalier {
namespace {

TrainingPosition Sample() {
  TrainingPosition p;
  p.step = 17;
  p.epoch = 2;
  p.cursor = 640;
  p.batch_size = 64;
  p.atomic_batch_size = 16;
  p.progress = 1.0 / 3;
  p.skipped_steps = 3;
  p.models_stepped = 1;
  p.models.resize(2);
  p.models[0].noise.resize(2);
  p.models[0].noise[1].Add({0.1, 7}, 1, true);
  p.models[1].noise.resize(1);
  p.models[1].loss_scale = 1024;
  p.models[1].good_steps = 11;
  p.models[1].skipped_steps = 2;
  p.AddEvaluation({0, 8, 0}, {0.7, std::numeric_limits<double>::infinity()});
  p.AddEvaluation({1, 16, 1}, {-0.0});
  p.next_batch_size = 256;
  p.loader_batch_size = 32;
  return p;
}

TEST(TrainingPosition, DecodesToWhatWasEncoded) {
  const TrainingPosition p = Sample();
  const auto decoded = TrainingPosition::Decode(p.Encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->Order(), p.Order());
  EXPECT_EQ(decoded->cursor, 640);
  EXPECT_EQ(decoded->batch_size, 64);
  EXPECT_EQ(decoded->atomic_batch_size, 16);
  EXPECT_EQ(decoded->progress, 1.0 / 3);
  EXPECT_EQ(decoded->skipped_steps, 3);
  EXPECT_EQ(decoded->models_stepped, 1);
  ASSERT_EQ(decoded->models.size(), 2u);
  ASSERT_EQ(decoded->models[0].noise.size(), 2u);
  EXPECT_TRUE(decoded->models[0].noise[0].empty());
  EXPECT_EQ(decoded->models[0].noise[1].Sqr(), 0.1);
  EXPECT_EQ(decoded->models[0].noise[1].state().biased, 1);
  EXPECT_EQ(decoded->models[1].loss_scale, 1024);
  EXPECT_EQ(decoded->models[1].good_steps, 11);
  EXPECT_EQ(decoded->models[1].skipped_steps, 2);
  EXPECT_EQ(decoded->evaluation_results, p.evaluation_results);
  EXPECT_EQ(decoded->next_batch_size, 256);
  EXPECT_EQ(decoded->loader_batch_size, 32);
}

TEST(TrainingPosition, OneOfTheFormerVersionIsRead) {
  const std::string text = Sample().Encode();
  ASSERT_TRUE(text.starts_with("espalier-position-3 ") && text.ends_with(" 256 32 0"));
  const std::string without = text.substr(0, text.size() - std::string(" 256 32 0").size());
  EXPECT_FALSE(TrainingPosition::Decode(without).ok()) << "it is damaged";
  const auto former =
      TrainingPosition::Decode("espalier-position-2" + without.substr(without.find(' ')));
  ASSERT_TRUE(former.ok()) << former.status();
  EXPECT_EQ(former->batch_size, 64);
  EXPECT_EQ(former->evaluation_results, Sample().evaluation_results);
  EXPECT_EQ(former->loader_batch_size, 0);
}

TEST(TrainingPosition, AnEvaluationMayHaveManySums) {
  TrainingPosition p = Sample();
  p.AddEvaluation({2, 17, 0}, std::vector<double>(100'000, 0.25));
  const auto decoded = TrainingPosition::Decode(p.Encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->evaluation_results, p.evaluation_results);
}

TEST(TrainingPosition, NoiseIsSummedOverGroupsThatHaveSeenAny) {
  TrainingPosition p;
  EXPECT_EQ(p.Noise(8).sqr, 1);
  EXPECT_EQ(p.Noise(8).var, 0);
  p.models.resize(2);
  p.models[0].noise.resize(2);
  p.models[1].noise.resize(1);
  p.models[0].noise[0].Add({2, 80}, 1, false);
  p.models[1].noise[0].Add({-1, 16}, 1, false);  // an estimate below zero counts as none
  EXPECT_DOUBLE_EQ(p.Noise(8).sqr, 2);
  EXPECT_DOUBLE_EQ(p.Noise(8).var, 12);
}

TEST(TrainingPosition, TellsWhatAnEvaluationOfThePastCameTo) {
  TrainingPosition p;
  p.AddEvaluation({0, 8, 0}, {0.7});
  p.AddEvaluation({1, 16, 0}, {0.6});
  p.AddEvaluation({1, 16, 1}, {3, 4});
  p.AddEvaluation({2, 24, 0}, {0.5});
  EXPECT_EQ(p.PastEvaluation({1, 30, 0}, 1), std::vector<double>{0.6}) << "the step is not known";
  EXPECT_EQ(p.PastEvaluation({1, 30, 1}, 2), (std::vector<double>{3, 4}));
  EXPECT_EQ(p.PastEvaluation({9, 30, 0}, 1), std::vector<double>{0.5}) << "else the newest";
  EXPECT_TRUE(std::isnan(p.PastEvaluation({1, 30, 2}, 1).at(0)));
}

TEST(TrainingPosition, TellsAfterWhichStepAnEpochWasEvaluatedFirst) {
  TrainingPosition p;
  p.step = 40;
  EXPECT_EQ(p.FirstEvaluatedStep(1), 40) << "nothing is kept";
  p.AddEvaluation({0, 8, 0}, {0.7});
  p.AddEvaluation({1, 16, 0}, {0.6});
  p.AddEvaluation({1, 30, 0}, {0.5});
  EXPECT_EQ(p.FirstEvaluatedStep(1), 16);
  EXPECT_EQ(p.FirstEvaluatedStep(2), 40);
}

TEST(TrainingPosition, KeepsNotANumber) {
  TrainingPosition p;
  p.AddEvaluation({0, 1, 0}, {std::nan("")});
  const auto decoded = TrainingPosition::Decode(p.Encode());
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(std::isnan(decoded->evaluation_results.begin()->second.front()));
}

TEST(TrainingPosition, DamagedTextIsRefused) {
  const std::string text = Sample().Encode();
  EXPECT_FALSE(TrainingPosition::Decode("").ok());
  EXPECT_FALSE(TrainingPosition::Decode("something else").ok());
  EXPECT_FALSE(TrainingPosition::Decode(text.substr(0, text.size() / 2)).ok());
}

TEST(TrainingPosition, OrderPutsStepsBeforeEpochsBeforeEvaluations) {
  TrainingPosition behind = Sample();
  TrainingPosition ahead = Sample();
  ahead.AddEvaluation({2, 17, 0}, {1});
  EXPECT_LT(behind.Order(), ahead.Order());
  ++behind.epoch;
  EXPECT_GT(behind.Order(), ahead.Order());
  ++ahead.step;
  EXPECT_LT(behind.Order(), ahead.Order());
}

TEST(TrainingPosition, KeepsTheLatestEvaluationsUpToTheLimit) {
  TrainingPosition p;
  const auto limit = static_cast<std::int64_t>(TrainingPosition::kKeptEvaluations);
  for (std::int64_t i = 0; i < limit + 3; ++i) p.AddEvaluation({i, i, 0}, {1});
  EXPECT_EQ(p.evaluation_results.size(), TrainingPosition::kKeptEvaluations);
  EXPECT_EQ(p.evaluations, limit + 3);
  EXPECT_EQ(p.evaluation_results.begin()->first.epoch, 3);
}

}  // namespace
}  // namespace espalier
