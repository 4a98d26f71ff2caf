#include "tests/storage/same_state.h"

#include <gtest/gtest.h>

#include <bit>
#include <utility>
#include <vector>

#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

std::uint64_t TakeBits(double& value) {
  return std::bit_cast<std::uint64_t>(std::exchange(value, 0));
}

// What operator== would get wrong goes into the list, and zero takes its place.
std::vector<std::uint64_t> TakeDoubles(Trial& trial) {
  std::vector<std::uint64_t> bits;
  if (trial.value) bits.push_back(TakeBits(*trial.value));
  for (IntermediateValue& value : trial.values) {
    bits.push_back(TakeBits(value.value));
    bits.push_back(TakeBits(value.progress));
  }
  for (auto& [step, figures] : trial.extra) {
    for (auto& [name, value] : figures) bits.push_back(TakeBits(value));
  }
  for (auto& [step, ranks] : trial.ranks.edit().values) {
    for (auto& [rank, value] : ranks) bits.push_back(TakeBits(value));
  }
  for (Resize& resize : trial.resizes) {
    for (double* part : {&resize.pause_s, &resize.form_s, &resize.broadcast_s}) {
      bits.push_back(TakeBits(*part));
    }
  }
  for (double& value : trial.other_values) bits.push_back(TakeBits(value));
  for (double& value : trial.constraints.edit()) bits.push_back(TakeBits(value));
  for (SuggestedValue& suggested : trial.suggested) bits.push_back(TakeBits(suggested.value));
  for (const FigureRow& row : kFigureRows) bits.push_back(TakeBits(trial.figures[row.figure]));
  for (Parameter& parameter : trial.parameters) {
    if (auto* number = std::get_if<double>(&parameter.value)) bits.push_back(TakeBits(*number));
  }
  return bits;
}

void ExpectSameTrial(Trial actual, Trial expected) {
  SCOPED_TRACE("trial " + std::to_string(expected.id.value));
  EXPECT_EQ(TakeDoubles(actual), TakeDoubles(expected));
  EXPECT_EQ(actual.values, expected.values);
  EXPECT_EQ(actual.spans, expected.spans);
  EXPECT_EQ(actual.resizes, expected.resizes);
  EXPECT_EQ(actual.parameters, expected.parameters);
  EXPECT_TRUE(actual == expected) << "in another field than those";
}

void ExpectSameSpec(StudySpec actual, StudySpec expected) {
  EXPECT_EQ(TakeBits(actual.time_limit_s), TakeBits(expected.time_limit_s));
  EXPECT_EQ(WriteStudy(actual), WriteStudy(expected));
  if (!expected.wording.text.empty()) {
    EXPECT_EQ(actual.wording.text, expected.wording.text);
  }
  EXPECT_TRUE(actual == expected);
}

void ExpectSameStudy(Study actual, Study expected) {
  SCOPED_TRACE("study " + std::to_string(expected.id.value));
  ExpectSameSpec(actual.spec, expected.spec);
  EXPECT_EQ(TakeBits(actual.active_s), TakeBits(expected.active_s));
  EXPECT_EQ(actual.id, expected.id);
  EXPECT_EQ(actual.asked, expected.asked);
  EXPECT_EQ(actual.state, expected.state);
  EXPECT_EQ(actual.reason, expected.reason);
  EXPECT_EQ(actual.created, expected.created);
  EXPECT_EQ(actual.ended, expected.ended);
  EXPECT_EQ(actual.running_since, expected.running_since);
  EXPECT_EQ(actual.trials, expected.trials);
  EXPECT_EQ(actual.decisions, expected.decisions);
  EXPECT_EQ(actual.attributes, expected.attributes);
  EXPECT_EQ(actual.suggestions, expected.suggestions);
}

}  // namespace

void ExpectSame(const TunerState& actual, const TunerState& expected) {
  EXPECT_EQ(actual.nodes, expected.nodes);
  EXPECT_EQ(actual.node_terms, expected.node_terms);
  EXPECT_EQ(actual.node_events, expected.node_events);
  EXPECT_EQ(actual.drained, expected.drained);
  EXPECT_EQ(actual.policy, expected.policy);
  EXPECT_EQ(actual.tokens, expected.tokens);
  EXPECT_EQ(actual.replica_ids_below, expected.replica_ids_below);
  EXPECT_EQ(actual.replica_ids_from, expected.replica_ids_from);
  EXPECT_EQ(actual.last_study, expected.last_study);
  EXPECT_EQ(actual.last_trial, expected.last_trial);
  EXPECT_EQ(actual.study_ids, expected.study_ids);
  ASSERT_EQ(actual.studies.size(), expected.studies.size());
  for (const auto& [id, study] : expected.studies) {
    ASSERT_TRUE(actual.studies.contains(id));
    ExpectSameStudy(actual.studies.at(id), study);
  }
  EXPECT_TRUE(actual.tallies == expected.tallies);
  ASSERT_EQ(actual.trials.size(), expected.trials.size());
  for (const auto& [id, trial] : expected.trials) {
    ASSERT_TRUE(actual.trials.contains(id));
    ExpectSameTrial(actual.trials.at(id), trial);
  }
}

}  // namespace espalier
