#include "tuner/cli/trial_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/sample_study.h"

namespace espalier {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

TEST(TrialText, ShowsParametersCurveSlotsAndDecisions) {
  const v1::StudyDetails details = SampleStudy();
  EXPECT_THAT(TrialText(details, details.trials(0), kSampleStart + 20),
              IsSupersetOf({"trial           0 of mnist (id 101)", "accuracy        0.9123",
                            "  lr            0.01", "slot-seconds    14.0",
                            "  2     0.9123  3.00s  64", "  4.00s  4.0s  local/0 local/1",
                            "  4.00s  grow      1 -> 2  most promising"}));
}

TEST(TrialText, ShowsTheLastOutputOfAFailedTrial) {
  const v1::StudyDetails details = SampleStudy();
  EXPECT_THAT(TrialText(details, details.trials(2), kSampleStart + 20),
              Contains("  out of <memory>"));
}

}  // namespace
}  // namespace espalier
