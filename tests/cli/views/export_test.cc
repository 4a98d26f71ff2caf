#include "tuner/cli/views/export.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/views/sample_study.h"

namespace espalier {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(ExportCsv, HasOneRowForEachReportedStep) {
  const std::vector<std::string> lines = Lines(ExportCsv(SampleStudy()));
  ASSERT_EQ(lines.size(), 1u + 3 + 2 + 1 + 2 + 1);
  EXPECT_EQ(lines[0],
            "trial,state,lr,batch_size,scaling_rule,step,value,at_s,global_batch_size,slots,"
            "final_value,started_s,ended_s,slot_seconds,restarts,reason");
  EXPECT_EQ(lines[1],
            "0,COMPLETE,0.01,64,adascale,1,0.5,2.000000,64,1,0.91234,0.000000,10.000000,14.000,0,");
}

TEST(ExportCsv, HasAColumnForEachFurtherFigure) {
  v1::StudyDetails details = SampleStudy();
  (*details.mutable_trials(0)->mutable_values(0)->mutable_extra())["loss"] = 1.25;
  (*details.mutable_trials(1)->mutable_values(0)->mutable_extra())["f1"] = 0.5;
  const std::vector<std::string> lines = Lines(ExportCsv(details));
  EXPECT_EQ(lines[0],
            "trial,state,lr,batch_size,scaling_rule,step,value,at_s,global_batch_size,slots,"
            "extra.f1,extra.loss,final_value,started_s,ended_s,slot_seconds,restarts,reason");
  EXPECT_EQ(lines[1],
            "0,COMPLETE,0.01,64,adascale,1,0.5,2.000000,64,1,,1.25,0.91234,0.000000,10.000000,"
            "14.000,0,");
  EXPECT_EQ(lines[6], "2,FAIL,0.2,128,<script>,,,,,,,,,8.000000,9.000000,1.000,0,exit code 3");
}

TEST(ExportCsv, HasTheValuesOfAllDirections) {
  v1::StudyDetails details = SampleStudy();
  for (const double value : {2.5, 0.0}) details.mutable_trials(0)->add_other_values(value);
  const std::vector<std::string> lines = Lines(ExportCsv(details));
  EXPECT_TRUE(lines[0].ends_with(
      ",final_value,final_value_2,final_value_3,started_s,ended_s,slot_seconds,restarts,reason"))
      << lines[0];
  EXPECT_TRUE(lines[1].ends_with(",0.91234,2.5,0,0.000000,10.000000,14.000,0,")) << lines[1];
  EXPECT_TRUE(lines[6].ends_with(",,,,8.000000,9.000000,1.000,0,exit code 3")) << lines[6];
}

TEST(ExportCsv, TellsWhatBreaksAConstraintWhereThereAreSome) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->add_constraints("latency_ms <= 20");
  details.mutable_trials(0)->set_infeasible(true);
  const std::vector<std::string> lines = Lines(ExportCsv(details));
  EXPECT_TRUE(lines[0].ends_with(",restarts,reason,infeasible")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(",14.000,0,,true")) << lines[1];
  EXPECT_TRUE(lines[6].ends_with(",exit code 3,false")) << lines[6];
}

TEST(ExportCsv, TellsWhatWasPaidWhereThatIsKnown) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->add_payments()->set_cost(2);
  details.mutable_trials(0)->add_payments()->set_cost(1.25);
  details.mutable_trials(0)->add_payments()->set_cost(0.5);
  const std::vector<std::string> lines = Lines(ExportCsv(details));
  EXPECT_TRUE(lines[0].ends_with(",restarts,reason,paid")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(",14.000,0,,1.75")) << lines[1];
  EXPECT_TRUE(lines[6].ends_with(",exit code 3,0")) << lines[6];
}

TEST(ExportCsv, WritesNaNAndQuotes) {
  const std::vector<std::string> lines = Lines(ExportCsv(SampleStudy()));
  EXPECT_EQ(lines[4],
            "1,PRUNED,1.0,64,linear,1,nan,2.000000,64,1,0.1,0.000000,4.000000,4.000,0,"
            "\"0.1 is below the median \"\"0.5\"\", at step 2\"");
}

TEST(ExportCsv, NoTwoColumnsHaveOneName) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_trials(0)->mutable_parameters(0)->set_name("step");
  EXPECT_EQ(Lines(ExportCsv(details))[0].rfind("trial,state,parameter.step,", 0), 0u);
}

TEST(ExportCsv, KeepsATrialThatReportedNothing) {
  const std::vector<std::string> lines = Lines(ExportCsv(SampleStudy()));
  EXPECT_EQ(lines[6], "2,FAIL,0.2,128,<script>,,,,,,,8.000000,9.000000,1.000,0,exit code 3");
}

}  // namespace
}  // namespace espalier
