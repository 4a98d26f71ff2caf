#include "tests/cli/views/sample_study.h"

#include <limits>
#include <string>
#include <vector>

namespace espalier {
namespace {

v1::Trial* AddTrial(v1::StudyDetails& details, v1::TrialState state, const std::string& rate,
                    int batch, const std::string& rule) {
  v1::Trial* trial = details.add_trials();
  trial->set_id(100 + details.trials_size());
  trial->set_number(details.trials_size() - 1);
  trial->set_state(state);
  const std::vector<std::pair<std::string, std::string>> parameters = {
      {"lr", rate}, {"batch_size", std::to_string(batch)}, {"scaling_rule", "\"" + rule + "\""}};
  for (const auto& [name, json] : parameters) {
    v1::Parameter* parameter = trial->add_parameters();
    parameter->set_name(name);
    parameter->set_json(json);
  }
  trial->set_created_at(kSampleStart);
  return trial;
}

void AddSpan(v1::Trial* trial, double from, double to, const std::vector<int>& slots) {
  v1::SlotSpan* span = trial->add_spans();
  span->set_from(kSampleStart + from);
  span->set_to(to == 0 ? 0 : kSampleStart + to);
  for (const int index : slots) {
    v1::Slot* slot = span->add_slots();
    slot->set_node_id(1);
    slot->set_index(index);
  }
  trial->set_started_at(trial->spans(0).from());
}

void AddValues(v1::Trial* trial, double at, const std::vector<double>& values) {
  for (const double value : values) {
    v1::IntermediateValue* point = trial->add_values();
    point->set_step(trial->values_size());
    point->set_value(value);
    point->set_at(kSampleStart + at + trial->values_size());
    point->set_batch_size(64);
  }
  trial->set_step(trial->values_size());
  trial->set_batch_size(64);
}

void AddDecision(v1::StudyDetails& details, double at, int trial, const std::string& kind, int from,
                 int to, const std::string& reason) {
  v1::Decision* decision = details.add_decisions();
  decision->set_at(kSampleStart + at);
  decision->set_trial_number(trial);
  decision->set_kind(kind);
  decision->set_from_slots(from);
  decision->set_to_slots(to);
  decision->set_reason(reason);
}

void FillStudy(v1::Study* study) {
  study->set_id(1);
  study->set_name("mnist");
  study->set_state(v1::STUDY_RUNNING);
  study->set_maximize(true);
  study->set_metric("accuracy");
  study->set_max_trials(10);
  study->set_elapsed_s(20);
  study->set_remaining_s(65);
  auto& counts = *study->mutable_trials_by_state();
  counts["COMPLETE"] = 1;
  counts["PRUNED"] = 1;
  counts["FAIL"] = 1;
  counts["RUNNING"] = 1;
  counts["WAITING"] = 1;
  study->set_best_trial(0);
  study->set_best_value(0.91234);
  study->set_created_at(kSampleStart);
  study->set_study_json("{\"name\": \"mnist\"}");
}

void FillTrials(v1::StudyDetails& details) {
  v1::Trial* complete = AddTrial(details, v1::TRIAL_COMPLETE, "0.01", 64, "adascale");
  AddSpan(complete, 0, 4, {0});
  AddSpan(complete, 4, 8, {0, 1});
  AddSpan(complete, 8, 10, {1});
  AddValues(complete, 1, {0.5, 0.91234, 0.9});
  complete->set_value(0.91234);
  complete->set_ended_at(kSampleStart + 10);

  v1::Trial* pruned = AddTrial(details, v1::TRIAL_PRUNED, "1.0", 64, "linear");
  AddSpan(pruned, 0, 4, {1});
  AddValues(pruned, 1, {std::numeric_limits<double>::quiet_NaN(), 0.1});
  pruned->set_value(0.1);
  pruned->set_ended_at(kSampleStart + 4);
  pruned->set_reason("0.1 is below the median \"0.5\", at step 2");

  v1::Trial* failed = AddTrial(details, v1::TRIAL_FAIL, "0.2", 128, "<script>");
  AddSpan(failed, 8, 9, {0});
  failed->set_ended_at(kSampleStart + 9);
  failed->set_reason("exit code 3");
  failed->set_last_output("loading\nout of <memory>\n");

  v1::Trial* running = AddTrial(details, v1::TRIAL_RUNNING, "0.05", 64, "square_root");
  AddSpan(running, 10, 18, {0});
  AddSpan(running, 18, 0, {0, 1});
  AddValues(running, 11, {0.6, 0.8});
  running->set_value(0.8);
  running->set_slots(2);
  running->set_goodput(1234.5);
  running->set_promise(0.7);

  AddTrial(details, v1::TRIAL_WAITING, "0.3", 64, "linear")->set_promise(0.25);
}

}  // namespace

v1::StudyDetails SampleStudy() {
  v1::StudyDetails details;
  FillStudy(details.mutable_study());
  FillTrials(details);
  AddDecision(details, 0, 0, "start", 0, 1, "first free slot");
  AddDecision(details, 0, 1, "start", 0, 1, "first free slot");
  AddDecision(details, 4, 1, "prune", 1, 0, "below the median");
  AddDecision(details, 4, 0, "grow", 1, 2, "most promising");
  AddDecision(details, 9, 2, "fail", 1, 0, "exit code 3");
  AddDecision(details, 18, 3, "grow", 1, 2, "most promising");
  v1::Node* node = details.mutable_pool()->add_nodes();
  node->set_id(1);
  node->set_name("local");
  node->set_slots(2);
  node->set_connected(true);
  details.mutable_pool()->set_slots(2);
  details.mutable_pool()->set_slots_held(2);
  return details;
}

}  // namespace espalier
