#include "tuner/cli/views/trial_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/views/sample_study.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(TrialText, ShowsParametersCurveSlotsAndDecisions) {
  const v1::StudyDetails details = SampleStudy();
  EXPECT_THAT(TrialText(details, details.trials(0), kSampleStart + 20),
              IsSupersetOf({"trial           0 of mnist (id 101)", "accuracy        0.91234",
                            "  lr            0.01", "slot-seconds    14.0",
                            "  2     0.91234  3.00s  64", "  4.00s  4.0s  local/0 local/1",
                            "  4.00s  grow      1 -> 2  most promising"}));
}

TEST(TrialText, CutsNeitherNamesNorNumbers) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_metric("episode_reward_mean");
  v1::Trial& trial = *details.mutable_trials(0);
  trial.set_value(-1.2345678e-07);
  trial.mutable_parameters(0)->set_json("0.018319905063275035");
  EXPECT_THAT(TrialText(details, trial, kSampleStart + 20),
              IsSupersetOf({"trial                0 of mnist (id 101)",
                            "episode_reward_mean  -1.2345678e-07",
                            "  lr                 0.018319905063275035"}));
}

TEST(TrialText, ShowsTheCommandAsAShellWouldTakeIt) {
  v1::StudyDetails details = SampleStudy();
  for (const char* word : {"python3", "train.py", "--lr=0.1", "a b", "it's", ""}) {
    details.mutable_trials(0)->add_command(word);
  }
  EXPECT_THAT(TrialText(details, details.trials(0), kSampleStart + 20),
              Contains(R"(command         python3 train.py --lr=0.1 'a b' 'it'\''s' '')"));
}

TEST(TrialText, ShowsFurtherFiguresBesideTheValues) {
  v1::StudyDetails details = SampleStudy();
  (*details.mutable_trials(0)->mutable_values(0)->mutable_extra())["loss"] = 1.25;
  EXPECT_THAT(TrialText(details, details.trials(0), kSampleStart + 20),
              AllOf(Contains(HasSubstr("batch  loss")), Contains(HasSubstr("1.25"))));
}

TEST(TrialText, SaysWhyATrialDoesNotGrow) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_trials(0)->set_failed_joins(3);
  details.mutable_trials(0)->set_not_growing("does not grow beyond 1 replica: 3 in a row");
  EXPECT_THAT(TrialText(details, details.trials(0), kSampleStart + 20),
              IsSupersetOf({"failed joins    3",
                            "growth          does not grow beyond 1 replica: 3 in a row"}));
}

TEST(TrialText, SaysWhoIsNotRehearsedAndWhatThatCosts) {
  v1::StudyDetails details = SampleStudy();
  v1::Trial& trial = *details.mutable_trials(0);
  trial.set_not_rehearsed("ESPALIER_REHEARSAL=off");
  (*trial.mutable_figures())["growth_step_s"] = 0.0412;
  EXPECT_THAT(TrialText(details, trial, kSampleStart + 20),
              IsSupersetOf({"last growth     its first step took 41.2 ms longer",
                            "rehearsal       none of replicas that join: ESPALIER_REHEARSAL=off"}));
}

TEST(TrialText, ShowsWhatItsSlotsHaveCost) {
  v1::StudyDetails details = SampleStudy();
  v1::Payment& payment = *details.mutable_trials(0)->add_payments();
  payment.set_node_template("cheap");
  payment.set_gpu_type("T4");
  payment.set_spot(true);
  payment.set_price_per_hour(0.5);
  payment.set_slot_seconds(14400);
  payment.set_node_seconds(7200);
  payment.set_cost(1);
  EXPECT_THAT(
      TrialText(details, details.trials(0), kSampleStart + 20),
      IsSupersetOf({"paid for slots", "  nodes            an hour  node-hours  slot-hours  paid",
                    "  cheap, T4, spot  0.5      2           4           1"}));
}

TEST(TrialText, ShowsTheLastOutputOfAFailedTrial) {
  const v1::StudyDetails details = SampleStudy();
  EXPECT_THAT(TrialText(details, details.trials(2), kSampleStart + 20),
              Contains("  out of <memory>"));
}

TEST(TrialText, ShowsWhatATrialTellsOfItsTraining) {
  v1::StudyDetails details = SampleStudy();
  v1::Trial& trial = *details.mutable_trials(3);
  trial.set_step_time_s(0.0125);
  trial.set_sync_share(0.104);
  trial.set_atomic_batch_size(16);
  trial.set_accumulation_steps(1);
  trial.set_memory_bytes(3 << 20);
  trial.set_device_memory_bytes(5 << 20);
  trial.set_skipped_steps(2);
  trial.set_loss_scale(1024);
  (*trial.mutable_figures())["gradient_transport"] = 2;
  v1::Resize& resize = *trial.add_resizes();
  resize.set_at(kSampleStart + 18);
  resize.set_from_replicas(1);
  resize.set_to_replicas(2);
  resize.set_pause_s(0.012);
  resize.set_form_s(0.004);
  resize.set_broadcast_s(0.003);
  EXPECT_THAT(
      TrialText(details, trial, kSampleStart + 20),
      IsSupersetOf({"per replica     16 samples x 2 a step",
                    "step time       12.500 ms, 10.4 % of it waiting for others",
                    "memory          3.0 MiB", "device memory   5.0 MiB", "loss scale      1024",
                    "skipped steps   2",
                    "gradients go    through host memory until NCCL's communicator is formed",
                    "  18.00s  1 -> 2    12.0 ms  4.0 ms   3.0 ms  "}));
}

TEST(TrialText, ShowsHowFarItsGroupIsBetweenTwoSteps) {
  v1::StudyDetails details = SampleStudy();
  v1::Trial& trial = *details.mutable_trials(3);
  trial.set_group_phase("handing over state");
  trial.set_moved_bytes(1'200'000'000);
  trial.set_moved_bytes_total(2'000'000'000);
  EXPECT_THAT(TrialText(details, trial, kSampleStart + 20),
              Contains("group           handing over state, 1.2 of 2.0 GB"));
  trial.set_moved_bytes_total(0);
  EXPECT_THAT(TrialText(details, trial, kSampleStart + 20),
              Contains("group           handing over state, 1.2 GB so far"));
  trial.set_moved_bytes(0);
  EXPECT_THAT(TrialText(details, trial, kSampleStart + 20),
              Contains("group           handing over state"));
}

}  // namespace
}  // namespace espalier
