#include "tuner/door/processor_share.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(ProcessorShare, IsSpentAndComesBackWithTime) {
  ProcessorShare share(0.1, 0.5);
  EXPECT_EQ(share.Wait_s(100), 0);
  share.Spend(0.5);
  EXPECT_EQ(share.Wait_s(100), 0);
  share.Spend(0.2);
  EXPECT_DOUBLE_EQ(share.Wait_s(100), 2);
  EXPECT_DOUBLE_EQ(share.Wait_s(101), 1);
  EXPECT_DOUBLE_EQ(share.Wait_s(90), 1) << "a clock that goes back gives nothing";
  EXPECT_DOUBLE_EQ(share.Wait_s(102), 0);
}

TEST(ProcessorShare, SavesUpNoMoreThanItMay) {
  ProcessorShare share(0.1, 0.5);
  EXPECT_EQ(share.Wait_s(1000), 0);
  share.Spend(0.6);
  EXPECT_NEAR(share.Wait_s(1000), 1, 1e-9);
  share.GiveBack(5);
  share.Spend(0.6);
  EXPECT_NEAR(share.Wait_s(1000), 1, 1e-9);
}

}  // namespace
}  // namespace espalier
