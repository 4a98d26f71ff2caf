#include "adapters/nni/service/trial_view.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "adapters/nni/service/names.h"
#include "base/trial_folder.h"

namespace espalier::nni {
namespace {

// The agent makes the folder with the same function.
TEST(TrialView, TellsTheFolderThatTheAgentMade) {
  constexpr NodeId kNode(1);
  Study study;
  study.spec.name = "../a/b";
  Trial trial;
  trial.number = 7;
  trial.spans = {{Time{1}, {}, {{kNode, 0}}}};
  TunerState state;
  state.nodes[kNode] = "node";
  const Core core(state, {});
  const std::map<std::string, std::string> folders = {{"node", "/trials"}};
  const View view{core, {}, {}, {}, folders, {}};
  const std::string folder = ViewOf(trial, study, {}, view).directory;
  EXPECT_EQ(folder, TrialFolder("/trials", "../a/b", 7));
  EXPECT_EQ(folder, "/trials/%2E.%2Fa%2Fb/trial-7");
}

// Whether somebody cancelled it is a fact of the trial, and nothing that its reason says.
TEST(TrialView, ReasonDoesNotMakeAFailedTrialACancelledOne) {
  Trial trial;
  trial.state = TrialState::kFail;
  trial.reason = "cancelled by its own program";
  EXPECT_STREQ(StateOf(trial), "FAILED");
}

// What a program of the trial runner reports beside its value is shown as NNI shows a dict.
TEST(TrialView, FurtherFiguresComeWithTheValue) {
  Study study;
  Trial trial;
  trial.values.resize(2);
  trial.values[0].step = 1;
  trial.values[0].value = 0.5;
  trial.values[1].step = 2;
  trial.values[1].value = 0.75;
  trial.extra[2] = {{"a \"loss\"", 0.25}};
  const EventFeed::TrialNews news{.trial = trial.id, .metrics = {}, .steps = {1, 2}};
  const Core core({}, {});
  const std::map<std::string, std::string> folders;
  const View view{core, {}, {}, {}, folders, {}};
  const auto metrics = ViewOf(trial, study, news, view).metrics;
  ASSERT_EQ(metrics.size(), 2);
  EXPECT_EQ(metrics[0].json, R"({"sequence":0,"parameter_id":null,"value":"0.5"})");
  EXPECT_EQ(
      metrics[1].json,
      R"({"sequence":1,"parameter_id":null,"value":"{\"default\":0.75,\"a \\\"loss\\\"\":0.25}"})");
}

// Whatever a client has written over what the channel writes.
TEST(TrialView, IsReadableWhateverItsAttributesAre) {
  const std::string report = R"({"sequence":0,"parameter_id":3,"value":"0.5"})";
  const std::string final = std::string(kMetric) + kFinal;
  const Core core({}, {});
  const std::map<std::string, std::string> folders;
  const View view{core, {}, {}, {}, folders, {}};
  for (const std::string odd :
       {"", "1", "\"", "null", "[]", "{}", "\"text\"", "NaN", " ", "{\"value\":\"0.5\"}", "-1e999",
        "{\"sequence\":0,\"parameter_id\":3,\"value\":0.5}", "{\"a\":NaN}",
        "{\"sequence\":\"0\",\"parameter_id\":3,\"value\":\"0.5\"}",
        "{\"sequence\":0,\"parameter_id\":3,\"value\":\"1\",\"type\":\"FINAL\"}"}) {
    SCOPED_TRACE(odd);
    Trial trial;
    trial.attributes.system = {{kTrial, odd},         {kSequence, odd},
                               {kParameter, odd},     {"nni:metric:", odd},
                               {"nni:metric:x", odd}, {"nni:metric:PERIODICAL:0", report},
                               {final, odd}};
    const EventFeed::TrialNews news{
        .trial = trial.id,
        .metrics = {"nni:metric:", "nni:metric:x", "nni:metric:PERIODICAL:0", final},
        .steps = {},
        .by_channel = true,
        .name = "t"};
    const auto shown = nlohmann::json::parse(ToJson(ViewOf(trial, {}, news, view)));
    EXPECT_EQ(shown["trial"], "t");
    EXPECT_EQ(shown["sequence"], odd == "1" ? nlohmann::json(1) : nlohmann::json());
    ASSERT_EQ(shown["metrics"].size(), 1U);
    EXPECT_EQ(shown["metrics"][0]["type"], kPeriodical);
    EXPECT_EQ(shown["metrics"][0]["value"], "0.5");
  }
}

TEST(TrialView, CancelledTrialNeedsNoReason) {
  Trial trial;
  trial.state = TrialState::kFail;
  trial.cancelled = true;
  EXPECT_STREQ(StateOf(trial), "USER_CANCELED");
}

}  // namespace
}  // namespace espalier::nni
