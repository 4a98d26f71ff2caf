#include "tuner/messages/wire/figures_wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "control.pb.h"

namespace espalier {
namespace {

TEST(FiguresWire, TakesEveryFigureBothWays) {
  for (const FigureRow& row : kFigureRows) {
    TrainingFigures figures;
    figures[row.figure] = 7;
    v1::Progress progress;
    SetFigures(figures, progress);
    v1::Progress read;
    ASSERT_TRUE(read.ParseFromString(progress.SerializeAsString()));
    EXPECT_EQ(FiguresIn(read), figures) << row.name;
    const bool own = v1::Progress::descriptor()->FindFieldByName(std::string(row.name)) != nullptr;
    EXPECT_EQ(progress.figures().contains(std::string(row.name)), !own) << row.name;
  }
}

// Trial programs of the first protocol say these in fields of their own, and services read them.
TEST(FiguresWire, SpeaksTheFirstProtocol) {
  TrainingFigures figures;
  figures[Figure::kAtomicBatchSize] = 16;
  figures[Figure::kAccumulationSteps] = 1;
  figures[Figure::kLearningRate] = 0.5;
  figures[Figure::kGoodput] = 250.5;
  figures[Figure::kMemory] = 3 << 20;
  figures[Figure::kDeviceMemory] = 5 << 20;
  figures[Figure::kSkippedSteps] = 2;
  figures[Figure::kLossScale] = 1024;
  v1::Progress said;
  said.set_atomic_batch_size(16);
  said.set_accumulation_steps(1);
  said.set_learning_rate(0.5);
  said.set_goodput(250.5);
  said.set_memory_bytes(3 << 20);
  said.set_device_memory_bytes(5 << 20);
  said.set_skipped_steps(2);
  said.set_loss_scale(1024);
  EXPECT_EQ(FiguresIn(said), figures);
  v1::Progress now;
  SetFigures(figures, now);
  EXPECT_EQ(now.SerializeAsString(), said.SerializeAsString());
}

TEST(FiguresWire, SaysNoZeroAndPassesOverWhatItDoesNotKnow) {
  v1::Progress progress;
  SetFigures({}, progress);
  EXPECT_TRUE(progress.SerializeAsString().empty());
  (*progress.mutable_figures())["of_another_release"] = 7;
  EXPECT_EQ(FiguresIn(progress), TrainingFigures());
}

TEST(FiguresWire, AFieldOfAWholeNumberTakesNoOther) {
  TrainingFigures figures;
  figures[Figure::kMemory] = std::numeric_limits<double>::quiet_NaN();
  figures[Figure::kDeviceMemory] = std::numeric_limits<double>::infinity();
  v1::Progress progress;
  SetFigures(figures, progress);
  EXPECT_EQ(progress.memory_bytes(), 0);
  EXPECT_EQ(progress.device_memory_bytes(), std::int64_t{1} << 53);
}

}  // namespace
}  // namespace espalier
