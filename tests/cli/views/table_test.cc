#include "tuner/cli/views/table.h"

#include <gtest/gtest.h>

#include "tests/cli/views/sample_study.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

std::vector<std::string> Texts(const std::vector<TableLine>& lines) {
  std::vector<std::string> texts;
  for (const TableLine& line : lines) texts.push_back(line.text);
  return texts;
}

TableOptions Size(std::size_t width, std::size_t height) {
  return {.width = width, .height = height, .now = kSampleStart + 19};
}

TEST(RenderTable, At100ColumnsShowsTheWholeStudy) {
  const std::vector<std::string> expected = {
      "mnist  RUNNING  20s  about 1m05s left  slots 2/2",
      ("[#########---------------------]  30%  3/10 trials done: 1 running, "
       "1 waiting, 1 complete, 1 pruned…"),
      "best (highest) accuracy 0.9123, trial 0: lr=0.01 batch_size=64 scaling_rule=adascale",
      ("trial  state     parameters                                       accuracy    step"
       "  slots  promise"),
      ("    3  RUNNING   lr=0.05 batch_size=64 scaling_rule=square_root        0.8       2"
       "    1→2     0.70"),
      "    0  COMPLETE  lr=0.01 batch_size=64 scaling_rule=adascale        0.9123       3",
      "    1  PRUNED    lr=1 batch_size=64 scaling_rule=linear                0.1       2",
      "    2  FAIL      lr=0.2 batch_size=128 scaling_rule=<script>",
      ("    4  WAITING   lr=0.3 batch_size=64 scaling_rule=linear                         "
       "            0.25"),
  };
  EXPECT_EQ(Texts(RenderTable(SampleStudy(), Size(100, 40))), expected);
}

TEST(RenderTable, At60ColumnsLeavesOutWhatMattersLeast) {
  const std::vector<std::string> texts = Texts(RenderTable(SampleStudy(), Size(60, 40)));
  EXPECT_EQ(texts[3], "trial  state     parameters          accuracy    step  slots");
  EXPECT_EQ(texts[4], "    3  RUNNING   lr=0.05 batch_si…        0.8       2    1→2");
}

TEST(RenderTable, At160ColumnsShowsEverythingInFull) {
  const std::vector<std::string> texts = Texts(RenderTable(SampleStudy(), Size(160, 40)));
  EXPECT_TRUE(texts[3].ends_with("accuracy    step  slots   batch   goodput  promise")) << texts[3];
  EXPECT_NE(texts[4].find("lr=0.05 batch_size=64 scaling_rule=square_root"), std::string::npos);
  EXPECT_NE(texts[1].find("1 pruned, 1 failed"), std::string::npos);
}

TEST(RenderTable, SaysWhereATrialHasNotTheSlotsThatItIsPinnedTo) {
  v1::StudyDetails details = SampleStudy();
  details.clear_decisions();
  details.mutable_trials(3)->set_slots(1);
  details.mutable_trials(3)->set_pinned_slots(2);
  const auto row = [&] { return Texts(RenderTable(details, Size(160, 40)))[4]; };
  EXPECT_NE(row().find("  1 of 2 pinned"), std::string::npos) << row();
  details.mutable_trials(3)->set_slots(2);
  EXPECT_NE(row().find("  2 pinned"), std::string::npos) << row();
}

TEST(RenderTable, NeverCutsANumber) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_trials(0)->set_value(-1.235e-07);
  details.mutable_trials(0)->set_step(12345678);
  for (const std::size_t width : {60U, 100U, 160U}) {
    const std::vector<std::string> texts = Texts(RenderTable(details, Size(width, 40)));
    EXPECT_NE(texts[5].find(" -1.235e-07  12345678"), std::string::npos) << texts[5];
  }
}

TEST(RenderTable, IsNoWiderThanWhatItHasToShow) {
  EXPECT_EQ(Texts(RenderTable(SampleStudy(), Size(2000, 40))),
            Texts(RenderTable(SampleStudy(), Size(160, 40))));
}

TEST(RenderTable, LeavesOutColumnsInWhichNoTrialHasAText) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_metric("episode_reward_mean");
  for (v1::Trial& trial : *details.mutable_trials()) {
    trial.set_state(v1::TRIAL_COMPLETE);
    trial.set_batch_size(0);
    trial.set_slots(0);
  }
  details.clear_decisions();
  EXPECT_EQ(Texts(RenderTable(details, Size(90, 40)))[3],
            "trial  state     parameters                                      "
            "episode_reward_…    step");
  for (v1::Trial& trial : *details.mutable_trials()) trial.clear_parameters();
  EXPECT_EQ(Texts(RenderTable(details, Size(90, 40)))[3],
            "trial  state     episode_reward_…    step");
}

TEST(RenderTable, SaysOfWhichTrialOneIsAClone) {
  v1::StudyDetails details = SampleStudy();
  EXPECT_EQ(Texts(RenderTable(details, Size(120, 40)))[3].find("clone of"), std::string::npos);
  v1::Trial& clone = *details.mutable_trials(4);
  clone.mutable_lineage()->set_parent(3);
  const std::vector<std::string> shown = Texts(RenderTable(details, Size(120, 40)));
  EXPECT_EQ(shown[3].substr(0, 24), "trial  clone of  state  ");
  EXPECT_EQ(shown[4].substr(0, 24), "    3            RUNNING");
  EXPECT_EQ(shown[8].substr(0, 24), "    4         3  WAITING");
}

TEST(RenderTable, NoLineIsWiderThanTheTerminal) {
  for (std::size_t width = kMinTableWidth; width <= 200; ++width) {
    for (const TableLine& line : RenderTable(SampleStudy(), Size(width, 40))) {
      EXPECT_LE(DisplayWidth(line.text), width) << line.text;
    }
  }
}

TEST(RenderTable, CountsTheRowsThatDoNotFit) {
  const std::vector<std::string> texts = Texts(RenderTable(SampleStudy(), Size(100, 7)));
  ASSERT_EQ(texts.size(), 7u);
  EXPECT_EQ(texts.back(), "... 3 more: 1 FAIL 1 PRUNED 1 WAITING");
  for (std::size_t height = 0; height < 12; ++height) {
    EXPECT_LE(RenderTable(SampleStudy(), Size(100, height)).size(), height);
  }
}

TEST(RenderTable, ShowsAResizeForAMomentOnly) {
  TableOptions options = Size(160, 40);
  options.now = kSampleStart + 18 + kResizeShown_s + 0.1;
  const std::vector<std::string> texts = Texts(RenderTable(SampleStudy(), options));
  EXPECT_EQ(texts[4].find("→"), std::string::npos);
  EXPECT_NE(texts[4].find("      2      64"), std::string::npos) << texts[4];
}

TEST(RenderTable, MarksTheBestTrialAndFailures) {
  const std::vector<TableLine> lines = RenderTable(SampleStudy(), Size(100, 40));
  EXPECT_EQ(lines[4].style, LineStyle::kRunning);
  EXPECT_EQ(lines[5].style, LineStyle::kBest);
  EXPECT_EQ(lines[7].style, LineStyle::kBad);
}

TEST(RenderTable, WrapsTheNotice) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_notice(
      "each trial needs 6 slots, and the pool has 2: have more machines join it");
  const std::vector<std::string> texts = Texts(RenderTable(details, Size(60, 40)));
  EXPECT_EQ(texts[3], "note: each trial needs 6 slots, and the pool has 2: have");
  EXPECT_EQ(texts[4], "more machines join it");
}

TEST(RenderTable, StandsAnEmptyStudy) {
  EXPECT_EQ(Texts(RenderTable(v1::StudyDetails(), Size(80, 10)))[2],
            "best (lowest) value: no value yet");
}

TEST(BestSoFar, NamesTheDirection) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_maximize(false);
  EXPECT_EQ(BestSoFar(details).find("best (lowest) accuracy 0.9123, trial 0: lr=0.01 "), 0u);
  details.mutable_study()->clear_best_trial();
  EXPECT_EQ(BestSoFar(details), "best (lowest) accuracy: no value yet");
}

TEST(BestSoFar, SaysWhereAllTrialsBreakTheirConstraints) {
  v1::StudyDetails details;
  v1::Trial& trial = *details.add_trials();
  trial.set_state(v1::TRIAL_COMPLETE);
  trial.set_value(0.5);
  trial.set_infeasible(true);
  EXPECT_EQ(BestSoFar(details), "best (lowest) value: no trial keeps to its constraints yet");
  trial.add_other_values(2);
  for (const char* direction : {"maximize", "minimize"}) {
    details.mutable_study()->add_directions(direction);
  }
  EXPECT_EQ(BestSoFar(details), "Pareto front: no trial keeps to its constraints yet");
  v1::Trial& kept = *details.add_trials();
  kept = trial;
  kept.set_number(1);
  kept.set_value(0.4);
  kept.set_infeasible(false);
  EXPECT_EQ(BestSoFar(details), "Pareto front (value): 1 trial: 1 (0.4, 2)");
}

TEST(ConstraintsText, CountsTheTrialsThatBreakOne) {
  v1::StudyDetails details;
  v1::Trial& trial = *details.add_trials();
  trial.set_infeasible(true);
  details.add_trials();
  EXPECT_EQ(ConstraintsText(details), "");
  details.mutable_study()->add_constraints("a <= 2");
  EXPECT_EQ(ConstraintsText(details), "a <= 2: 1 trial breaks it");
  details.mutable_study()->add_constraints("b >= 3");
  trial.set_infeasible(false);
  EXPECT_EQ(ConstraintsText(details), "a <= 2, b >= 3: 0 trials break one");
}

TEST(BestFirst, HasTrialsThatBreakAConstraintBehindOthers) {
  v1::StudyDetails details;
  for (int i = 0; i < 3; ++i) {
    v1::Trial& trial = *details.add_trials();
    trial.set_number(i);
    trial.set_state(i == 1 ? v1::TRIAL_PRUNED : v1::TRIAL_COMPLETE);
    trial.set_value(i);
  }
  details.mutable_trials(0)->set_infeasible(true);
  std::string numbers;
  for (const v1::Trial* trial : BestFirst(details)) numbers += std::to_string(trial->number());
  EXPECT_EQ(numbers, "210");
}

TEST(BestSoFar, IsAFrontWhereThereAreSeveralDirections) {
  v1::StudyDetails details;
  for (const char* direction : {"maximize", "minimize"}) {
    details.mutable_study()->add_directions(direction);
  }
  EXPECT_EQ(BestSoFar(details), "Pareto front: no trial is complete yet");
  details.mutable_study()->add_metrics("accuracy");
  details.mutable_study()->add_metrics("latency_ms");
  const auto add = [&details](v1::TrialState state, double accuracy, double latency) {
    v1::Trial& trial = *details.add_trials();
    trial.set_number(details.trials_size() - 1);
    trial.set_state(state);
    trial.set_value(accuracy);
    trial.add_other_values(latency);
  };
  add(v1::TRIAL_COMPLETE, 0.5, 3);
  add(v1::TRIAL_COMPLETE, 0.9, 8);
  add(v1::TRIAL_COMPLETE, 0.4, 4);
  add(v1::TRIAL_PRUNED, 0.99, 1);
  EXPECT_EQ(BestSoFar(details),
            "Pareto front (accuracy, latency_ms): 2 trials: 0 (0.5, 3), 1 (0.9, 8)");
  for (int i = 0; i < 9; ++i) add(v1::TRIAL_COMPLETE, 0.91 + 0.01 * i, 9 + i);
  EXPECT_NE(BestSoFar(details).find(": 11 trials: 0 (0.5, 3), "), std::string::npos);
  EXPECT_NE(BestSoFar(details).find("9 (0.96, 14), ..."), std::string::npos) << BestSoFar(details);
}

}  // namespace
}  // namespace espalier
