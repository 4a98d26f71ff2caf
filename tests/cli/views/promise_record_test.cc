#include "tuner/cli/views/promise_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/cli/views/sample_study.h"
#include "tuner/cli/report/page.h"

namespace espalier {
namespace {

// Six trials side by side, each of which ends a little worse than the one before.
v1::StudyDetails EndedStudy() {
  v1::StudyDetails details;
  v1::Study& study = *details.mutable_study();
  study.set_name("s");
  study.set_state(v1::STUDY_COMPLETE);
  study.set_directory("/");
  study.set_study_json(R"({"name": "s", "metric": "error", "command": ["p"], "trials": 6,
    "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})");
  for (int number = 0; number < 6; ++number) {
    v1::Trial* trial = details.add_trials();
    trial->set_number(number);
    trial->set_state(v1::TRIAL_COMPLETE);
    trial->set_created_at(kSampleStart);
    for (int step = 1; step <= 12; ++step) {
      v1::IntermediateValue* value = trial->add_values();
      value->set_step(step);
      value->set_value(0.1 + 0.05 * number + 0.5 / step);
      value->set_at(kSampleStart + step + 0.01 * number);
    }
    trial->set_ended_at(trial->values().rbegin()->at());
  }
  return details;
}

TEST(PromiseRecord, MeasuresWhatCameTrue) {
  const Reliability promise = PromiseReliability(EndedStudy());
  EXPECT_GT(promise.count, 300);
  EXPECT_LT(promise.brier, promise.base_brier) << "these curves are easily told apart";
  const std::string line = PromiseLine(promise);
  EXPECT_EQ(line.find("promise, replayed: " + std::to_string(promise.count) + " predictions, "), 0u)
      << line;
  EXPECT_NE(line.find("% came true"), std::string::npos) << line;
}

TEST(PromiseRecord, IsEmptyWhileTheStudyRuns) {
  v1::StudyDetails details = EndedStudy();
  details.mutable_study()->set_state(v1::STUDY_RUNNING);
  EXPECT_EQ(PromiseReliability(details).count, 0);
  EXPECT_NE(PromiseLine(PromiseReliability(details)).find("nothing to tell"), std::string::npos);
}

TEST(PromiseRecord, IsEmptyWithoutAStudyFileOrACompleteTrial) {
  v1::StudyDetails details = EndedStudy();
  for (v1::Trial& trial : *details.mutable_trials()) trial.set_state(v1::TRIAL_PRUNED);
  EXPECT_EQ(PromiseReliability(details).count, 0);
  details = EndedStudy();
  details.mutable_study()->set_study_json("{");
  EXPECT_EQ(PromiseReliability(details).count, 0);
}

TEST(PromiseRecord, TakesTheStudysDirection) {
  v1::StudyDetails details = EndedStudy();
  std::string json = details.study().study_json();
  json.replace(json.find("\"error\""), 7, R"({"name": "error", "direction": "maximize"})");
  details.mutable_study()->set_study_json(json);
  for (v1::Trial& trial : *details.mutable_trials()) {
    for (v1::IntermediateValue& value : *trial.mutable_values()) value.set_value(-value.value());
  }
  EXPECT_NEAR(PromiseReliability(details).brier, PromiseReliability(EndedStudy()).brier, 1e-9);
}

TEST(ReportPage, ShowsPromisesAgainstOutcomes) {
  const absl::StatusOr<std::string> page = ReportPage(EndedStudy(), kSampleStart + 20);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_NE(page->find("<p>promise, replayed: "), std::string::npos);
  const absl::StatusOr<std::string> running = ReportPage(SampleStudy(), kSampleStart);
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_EQ(running->find("<p>promise, replayed: "), std::string::npos) << "it still runs";
}

}  // namespace
}  // namespace espalier
