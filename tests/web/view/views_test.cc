#include "tuner/web/view/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/api/direct_tuner.h"
#include "tuner/api/masking_tuner.h"
#include "tuner/api/operations.h"

namespace espalier::view {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kAskStudy[] = R"json({
  "name": "digits", "ask_and_tell": true, "sampler": "random",
  "metric": {"name": "loss", "direction": "minimize"},
  "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 1]},
                   "opt": {"_type": "choice", "_value": ["sgd", "adam"]},
                   "layers": {"_type": "choice", "_value": [2, 4]}}
})json";

// A study whose trials clients run, and one of the pool.
class Views : public testing::Test {
 protected:
  Json Shown(const absl::StatusOr<std::string>& json) {
    EXPECT_TRUE(json.ok()) << json.status();
    return json.ok() ? Json::parse(*json) : Json();
  }

  void Create(const std::string& json) {
    const auto created = api::CreateStudy(tuner_, CreateRequest(json));
    ASSERT_TRUE(created.ok()) << created.status();
  }

  // The id of a new trial of the study of clients.
  std::int64_t Ask() {
    v1::AskRequest request;
    request.set_study("digits");
    const auto trial = api::Ask(tuner_, request);
    EXPECT_TRUE(trial.ok()) << trial.status();
    return trial->trial_id();
  }

  void Report(std::int64_t trial, std::int64_t step, double value) {
    v1::ReportRequest request;
    request.set_trial_id(trial);
    request.set_step(step);
    request.set_value(value);
    ASSERT_TRUE(api::Report(tuner_, request).ok());
  }

  void Tell(std::int64_t trial, v1::TrialState state, std::optional<double> value = {}) {
    v1::TellRequest request;
    request.set_trial_id(trial);
    request.set_state(state);
    if (value) request.set_value(*value);
    const auto told = api::Tell(tuner_, request);
    ASSERT_TRUE(told.ok()) << told.status();
  }

  StudyId Id(const std::string& study) { return tuner_.core.state().FindStudy(study)->id; }

  DirectTuner tuner_;
  Source source_{tuner_, Role::kSubmit};
};

// What a column says, with words in place of their numbers.
std::vector<Json> Cells(const Json& trials, const std::string& name) {
  std::vector<Json> cells;
  for (const Json& cell : trials.at("columns").at(name)) {
    const bool word = !cell.is_null() && trials.at("words").contains(name);
    cells.push_back(word ? trials.at("words").at(name).at(cell.get<std::size_t>()) : cell);
  }
  return cells;
}

TEST_F(Views, OverviewCountsWithoutAWalk) {
  Create(kAskStudy);
  Create(kStudyJson);
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 2, {}}).status.ok());
  const auto good = Ask();
  Tell(good, v1::TRIAL_COMPLETE, 0.25);
  Tell(Ask(), v1::TRIAL_FAIL);
  Ask();
  const Json overview = Shown(OverviewJson(source_));
  EXPECT_EQ(overview["version"], 1);
  EXPECT_EQ(overview["role"], "submit");
  EXPECT_EQ(overview["now"], 1000);
  const Json& digits = overview["studies"][0];
  EXPECT_EQ(digits["name"], "digits");
  EXPECT_EQ(digits["kind"], "ask");
  EXPECT_EQ(digits["state"], "running");
  EXPECT_EQ(digits["trials"],
            Json::parse(R"({"waiting": 0, "running": 1, "paused": 0, "complete": 1, "pruned": 0,
                            "failed": 1})"));
  EXPECT_EQ(digits["best"], (Json{{"trial_id", good}, {"trial", 0}, {"value", 0.25}}));
  EXPECT_TRUE(digits["remaining_s"].is_null());
  const Json& pool = overview["pool"];
  EXPECT_EQ(pool["slots"], 2);
  EXPECT_EQ(pool["held"], 2);
  const Json& node = pool["nodes"][0];
  EXPECT_EQ(node["name"], "oak");
  EXPECT_EQ(node["up"], true);
  ASSERT_EQ(node["slot_use"].size(), 2U);
  EXPECT_EQ(node["slot_use"][1]["slot"], 1);
  EXPECT_EQ(node["slot_use"][0]["study_id"], Id("mnist").value);
  EXPECT_TRUE(node["slot_use"][0]["pinned"].is_null());
  ASSERT_TRUE(tuner_.Post(PinTrial{"mnist", node["slot_use"][0]["trial"].get<std::int64_t>(), 1})
                  .status.ok());
  EXPECT_EQ(Shown(OverviewJson(source_))["pool"]["nodes"][0]["slot_use"][0]["pinned"], 1);
  EXPECT_EQ(overview["studies"][1]["slots"], 2);
  EXPECT_EQ(overview["studies"][1]["kind"], "pool");
  EXPECT_EQ(overview["studies"][1]["total"], 2);
  const Json& alert = overview["alerts"].back();
  EXPECT_EQ(alert["level"], "error");
  EXPECT_EQ(alert["study"], "digits");
  EXPECT_EQ(alert["trial"], 1);
}

TEST_F(Views, OverviewTellsOfNodesThatAreAwayOrDrained) {
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 1, {}}).status.ok());
  ASSERT_TRUE(tuner_.Post(DrainNode{"oak", false, 0}).status.ok());
  const Json overview = Shown(OverviewJson(source_));
  EXPECT_THAT(overview["alerts"].dump(), HasSubstr("node oak is being drained"));
  EXPECT_EQ(overview["pool"]["nodes"][0]["draining"], true);
}

TEST_F(Views, AStudyHasItsParametersAndNoSecrets) {
  Create(
      R"json({"name": "a.b", "command": ["/bin/true"], "sampler": "random", "trials": 9, "env": {"KEY": "hush"},
                 "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 1]},
                                  "units": {"_type": "randint", "_value": [8, 65]},
                                  "opt": {"_type": "choice", "_value": ["sgd", 1]}}})json");
  MaskingTuner masking(tuner_);
  const Json study = Shown(StudyJson({masking, Role::kView}, Id("a.b")));
  EXPECT_EQ(study["name"], "a.b");
  EXPECT_EQ(study["definition"]["name"], "a.b");
  EXPECT_THAT(study.dump(), testing::Not(HasSubstr("hush")));
  EXPECT_THAT(Shown(StudyJson(source_, Id("a.b"))).dump(), HasSubstr("hush"));
  const Json& parameters = study["parameters"];
  EXPECT_EQ(parameters[0], Json::parse(R"({"name": "lr", "kind": "float", "low": 0.001, "high": 1,
                                           "log": true, "choices": []})"));
  EXPECT_EQ(parameters[1]["kind"], "int");
  EXPECT_EQ(parameters[1]["high"], 64);
  EXPECT_EQ(parameters[2]["choices"], (Json{"sgd", "1"}));
  EXPECT_TRUE(absl::IsNotFound(StudyJson(source_, StudyId(77)).status()));
}

TEST_F(Views, AStudyTellsFromWhichOneItLearns) {
  Create(kAskStudy);
  for (const double value : {0.5, 0.25, 0.75}) Tell(Ask(), v1::TRIAL_COMPLETE, value);
  EXPECT_TRUE(Shown(StudyJson(source_, Id("digits")))["like"].is_null());
  Create(R"json({
    "name": "next", "ask_and_tell": true, "sampler": "tpe", "like": "digits",
    "metric": {"name": "loss", "direction": "minimize"},
    "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 1]}}
  })json");
  EXPECT_EQ(Shown(StudyJson(source_, Id("next")))["like"],
            (Json{{"study", "digits"}, {"trials", 3}, {"ended", 3}, {"within", 3}}));
}

TEST_F(Views, TrialsAreColumnsNewestFirst) {
  Create(kAskStudy);
  const auto first = Ask();
  Report(first, 1, 0.5);
  Report(first, 3, 0.4);
  Report(first, 4, 0.7);
  Tell(Ask(), v1::TRIAL_COMPLETE, 0.125);
  Ask();
  v1::SetAttributesRequest attributes;
  attributes.set_trial_id(first);
  (*attributes.mutable_user())["host"] = "\"oak\"";
  ASSERT_TRUE(api::SetAttributes(tuner_, attributes).ok());
  const Json trials = Shown(TrialsJson(source_, Id("digits"), {}));
  EXPECT_EQ(trials["total"], 3);
  EXPECT_EQ(trials["rows"], 3);
  EXPECT_THAT(Cells(trials, "number"), ElementsAre(2, 1, 0));
  EXPECT_THAT(Cells(trials, "state"), ElementsAre("running", "complete", "running"));
  EXPECT_THAT(Cells(trials, "value"), ElementsAre(nullptr, 0.125, 0.4));
  EXPECT_THAT(Cells(trials, "best_step"), ElementsAre(nullptr, nullptr, 3));
  EXPECT_THAT(Cells(trials, "step"), ElementsAre(nullptr, nullptr, 4));
  EXPECT_THAT(Cells(trials, "u:host"), ElementsAre(nullptr, nullptr, "oak"));
  for (const Json& option : Cells(trials, "p:opt")) {
    EXPECT_TRUE(option == "sgd" || option == "adam") << option;
  }
  EXPECT_FALSE(trials["words"].contains("p:layers")) << "a choice of numbers is a number";
  for (const auto& [name, cells] : trials["columns"].items()) EXPECT_EQ(cells.size(), 3U) << name;

  const Json part = Shown(TrialsJson(source_, Id("digits"), {.from = 1, .rows = 1}));
  EXPECT_THAT(Cells(part, "number"), ElementsAre(1));
  EXPECT_EQ(part["total"], 3);
  EXPECT_EQ(Shown(TrialsJson(source_, Id("digits"), {.from = 99}))["rows"], 0);
}

TEST_F(Views, TrialsThatHaveChangedSince) {
  Create(kAskStudy);
  RevisionLog log("abc", /*most_entries=*/3);
  const Source followed{tuner_, Role::kView, &log};
  const auto take = [&](std::int64_t trial) {
    log.Take({TrialPinned{TrialId(trial), 0}}, tuner_.core.state());
  };
  const std::int64_t ids[] = {Ask(), Ask(), Ask()};
  take(ids[0]);
  const Json before = Shown(TrialsJson(followed, Id("digits"), {}));
  EXPECT_EQ(before["incarnation"], "abc");
  EXPECT_EQ(before["complete"], true);
  EXPECT_EQ(before["revision"], 1);
  take(ids[1]);
  take(ids[2]);
  const Json changed = Shown(TrialsJson(followed, Id("digits"), {.changed_since = 1}));
  EXPECT_THAT(Cells(changed, "number"), ElementsAre(2, 1));
  EXPECT_EQ(changed["revision"], 3);
  EXPECT_EQ(changed["total"], 3);
  take(ids[2]);
  take(ids[2]);
  const Json lost = Shown(TrialsJson(followed, Id("digits"), {.changed_since = 1}));
  EXPECT_EQ(lost["complete"], false) << "it has fallen out of the log";
  EXPECT_EQ(lost["rows"], 0);
}

// Nobody else is kept waiting: what is looked at between two commits has a bound.
TEST_F(Views, ManyTrialsAreReadInSlices) {
  class CountedReads final : public Tuner {
   public:
    explicit CountedReads(DirectTuner& tuner) : tuner_(tuner) {}
    Reply Post(Event event) override { return tuner_.Post(std::move(event)); }
    absl::Status Read(const std::function<void(const View&)>& look) override {
      ++reads;
      return tuner_.Read(look);
    }
    int reads = 0;

   private:
    DirectTuner& tuner_;
  };
  Create(kAskStudy);
  for (int i = 0; i < 2500; ++i) {
    ASSERT_TRUE(tuner_.Post(CreateTrial{Id("digits"), nullptr}).status.ok());
  }
  CountedReads counted(tuner_);
  const Json trials = Shown(TrialsJson({counted, Role::kView}, Id("digits"), {}));
  EXPECT_EQ(trials["rows"], 2500);
  EXPECT_THAT(Cells(trials, "number").front(), 2499);
  EXPECT_GT(counted.reads, 2);
}

TEST_F(Views, CurvesOfTheBestAndOfThoseThatAreNamed) {
  Create(kAskStudy);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(Ask());
    for (int step = 1; step <= 500; ++step) {
      tuner_.now = After(tuner_.now, 1);
      Report(ids.back(), step, step == 250 && i == 2 ? 1e9 : 10.0 - i);
    }
  }
  const Json best = Shown(CurvesJson(source_, Id("digits"), {.best = 2, .width = 10}));
  ASSERT_EQ(best["curves"].size(), 2U);
  EXPECT_EQ(best["curves"][0]["trial_id"], ids[3]);
  EXPECT_EQ(best["curves"][1]["trial_id"], ids[2]);
  EXPECT_EQ(best["metric"], "loss");
  EXPECT_EQ(best["curves"][1]["points"], 500);
  EXPECT_LE(best["curves"][1]["y"].size(), 40U);
  EXPECT_THAT(best["curves"][1]["y"].dump(), HasSubstr("1000000000")) << "a spike is never lost";

  CurvesWanted wanted{.trials = {TrialId(ids[1])}, .x = CurvesWanted::Axis::kTime};
  wanted.from = 1600;
  wanted.to = 1700;
  const Json window = Shown(CurvesJson(source_, Id("digits"), wanted));
  EXPECT_EQ(window["curves"][0]["points"], 101);
  EXPECT_EQ(window["curves"][0]["x"].size(), 105U) << "with those the line goes on to";
  wanted.from = 1800;
  EXPECT_TRUE(absl::IsInvalidArgument(CurvesJson(source_, Id("digits"), wanted).status()));
  wanted = {.trials = {TrialId(99)}};
  EXPECT_TRUE(absl::IsNotFound(CurvesJson(source_, Id("digits"), wanted).status()));
}

TEST_F(Views, WhatIsWorkedOutOfCompleteTrialsIsInTheRecordToo) {
  Create(kAskStudy);
  std::vector<std::int64_t> ids;
  for (const double value : {0.5, 0.25, 0.75, 0.5}) {
    ids.push_back(Ask());
    tuner_.now = After(tuner_.now, 1);
    Tell(ids.back(), v1::TRIAL_COMPLETE, value);
  }
  Tell(Ask(), v1::TRIAL_FAIL);
  const StudyId study = Id("digits");
  const Json record = Shown(RecordJson(source_, study, {}));
  std::map<std::string_view, Json> told;
  for (const Analysis& analysis : Analyses()) {
    Json& json = told[analysis.name] = Shown(AnalysisJson(source_, study, analysis));
    EXPECT_EQ(json, record["analyses"].at(std::string(analysis.name)));
    EXPECT_EQ(json["what"], analysis.name);
    EXPECT_EQ(json["complete"], 4);
    EXPECT_TRUE(absl::IsNotFound(AnalysisJson(source_, StudyId(99), analysis).status()));
  }
  EXPECT_EQ(told["importance"]["objectives"][0]["parameters"].size(), 3U);
  EXPECT_EQ(told["pareto"]["trials"],
            Json::parse(R"json([{"trial_id": )json" + std::to_string(ids[1]) +
                        R"json(, "trial": 1, "values": [0.25]}])json"));
  const Json& spread = told["edf"]["objectives"][0];
  EXPECT_EQ(spread["direction"], "minimize");
  EXPECT_EQ(spread["value"], Json({0.25, 0.5, 0.75}));
  EXPECT_EQ(spread["share"], Json({0.25, 0.75, 1}));
  const Json& best = told["best"]["objectives"][0];
  EXPECT_EQ(best["at"], Json({1001, 1002}));
  EXPECT_EQ(best["trial_id"], Json({ids[0], ids[1]}));
  EXPECT_EQ(best["value"], Json({0.5, 0.25}));
}

TEST_F(Views, LanesShowWhoHeldWhatAndWhatHappened) {
  Create(kStudyJson);
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 2, {}}).status.ok());
  tuner_.now = After(tuner_.now, 100);
  const Json lanes = Shown(LanesJson(source_, {}));
  EXPECT_EQ(lanes["from"], 1000);
  EXPECT_EQ(lanes["to"], 1100);
  EXPECT_EQ(lanes["nodes"][0]["name"], "oak");
  EXPECT_EQ(lanes["studies"][0]["name"], "mnist");
  ASSERT_EQ(lanes["spans"]["slot"].size(), 2U);
  EXPECT_EQ(lanes["spans"]["node"], (Json{0, 0}));
  EXPECT_EQ(lanes["spans"]["to"], (Json{nullptr, nullptr}));
  EXPECT_EQ(lanes["use"]["held"][200], 2);
  EXPECT_EQ(lanes["marks"][0]["kind"], "start");
  EXPECT_EQ(lanes["marks"][0]["count"], 2) << "two trials of one moment";
  EXPECT_EQ(lanes["marks"][0]["node"], 0);
  EXPECT_EQ(lanes["use"]["slots"][200], 2);
  const Json before = Shown(LanesJson(source_, {.from = 10, .to = 20}));
  EXPECT_TRUE(before["spans"]["slot"].empty());
  EXPECT_TRUE(before["marks"].empty());
  EXPECT_TRUE(absl::IsNotFound(LanesJson(source_, {.study = StudyId(9)}).status()));
}

TEST_F(Views, LanesTellWhenNodesWereThere) {
  Create(kStudyJson);
  const auto joined = tuner_.Post(AgentHello{"oak", 2, {}});
  ASSERT_TRUE(joined.status.ok());
  tuner_.now = After(tuner_.now, 100);
  ASSERT_TRUE(tuner_.Post(AgentGone{joined.node()}).status.ok());
  tuner_.now = After(tuner_.now, 100);  // beyond its lease
  ASSERT_TRUE(tuner_.Post(Tick{}).status.ok());
  tuner_.now = After(tuner_.now, 200);
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 1, {}}).status.ok());
  tuner_.now = After(tuner_.now, 100);
  const Json lanes = Shown(LanesJson(source_, {.from = 1000, .to = 1500, .width = 5}));
  EXPECT_THAT(lanes["use"]["slots"], ElementsAre(2, 2, 0, 0, 1));
  std::vector<std::string> of_nodes;
  for (const Json& mark : lanes["marks"]) {
    if (!mark["trial_id"].is_null()) continue;
    of_nodes.push_back(mark["kind"]);
    EXPECT_EQ(mark["node"], 0);
  }
  EXPECT_THAT(of_nodes, ElementsAre("node_lost", "node_back"));
}

TEST_F(Views, DecisionsComeInPagesNewestFirst) {
  Create(kStudyJson);
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 2, {}}).status.ok());
  const Json all = Shown(DecisionsJson(source_, {}));
  ASSERT_GE(all["decisions"].size(), 2U);
  EXPECT_TRUE(all["next"].is_null());
  Json pages = Json::array();
  DecisionsWanted wanted;
  wanted.rows = 1;
  for (Json page = Shown(DecisionsJson(source_, wanted));;
       page = Shown(DecisionsJson(source_, wanted))) {
    pages.insert(pages.end(), page["decisions"].begin(), page["decisions"].end());
    if (page["next"].is_null()) break;
    wanted.before = page["next"];
  }
  EXPECT_EQ(pages, all["decisions"]);
  const Json starts = Shown(DecisionsJson(source_, {.trial = TrialId(2), .kind = "start"}));
  ASSERT_EQ(starts["decisions"].size(), 1U);
  EXPECT_EQ(starts["decisions"][0]["trial"], 1);
  EXPECT_EQ(starts["decisions"][0]["to_slots"], 1);
  const auto unknown = DecisionsJson(source_, {.kind = "sing"});
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("kind \"sing\": needs one of start, grow"));
  EXPECT_TRUE(absl::IsInvalidArgument(DecisionsJson(source_, {.before = "x"}).status()));
}

TEST_F(Views, ATrialHasItsPlacesAndItsDecisions) {
  Create(kStudyJson);
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 2, {}}).status.ok());
  const Json shown = Shown(TrialJson(source_, TrialId(1)));
  const Json& trial = shown["trial"];
  EXPECT_EQ(trial["study"], "mnist");
  EXPECT_EQ(trial["spans"][0]["slots"][0], (Json{{"node", "oak"}, {"slot", 0}}));
  EXPECT_EQ(trial["replicas"].size(), 1U);
  EXPECT_TRUE(trial["parameters"]["lr"].is_number());
  EXPECT_EQ(shown["decisions"][0]["kind"], "start");
  EXPECT_TRUE(absl::IsNotFound(TrialJson(source_, TrialId(9)).status()));
}

// A study of the pool whose trials have to keep to something, and three that run.
class KeptViews : public Views {
 protected:
  void SetUp() override {
    Create(R"json({
      "name": "kept", "command": ["/bin/true"], "sampler": "random", "trials": 3,
      "metric": {"name": "loss", "direction": "minimize"}, "constraints": ["latency_ms <= 20"],
      "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 1]}}
    })json");
    ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 3, {}}).status.ok());
  }

  void ReportWith(std::int64_t trial, double value, double latency_ms) {
    v1::ReportRequest request;
    request.set_trial_id(trial);
    request.set_step(1);
    request.set_value(value);
    (*request.mutable_extra())["latency_ms"] = latency_ms;
    const auto reported = api::Report(tuner_, request);
    ASSERT_TRUE(reported.ok()) << reported.status();
  }
};

// Shows a state of which nothing is made.
class StillTuner final : public Tuner {
 public:
  StillTuner(TunerState state, const DirectTuner& like)
      : core_(std::move(state), {}), like_(like) {}
  Reply Post(Event) override { return {}; }
  absl::Status Read(const std::function<void(const View&)>& look) override {
    look({.core = core_,
          .now = like_.now,
          .pids = like_.pids,
          .gpus = like_.gpus,
          .folders = like_.folders,
          .hosts = like_.hosts});
    return absl::OkStatus();
  }

 private:
  Core core_;
  const DirectTuner& like_;
};

TEST_F(KeptViews, WhatATrialBreaksIsTold) {
  ReportWith(1, 0.5, 12);
  ReportWith(2, 0.1, 31.5);
  Report(3, 1, 0.7);
  EXPECT_EQ(Shown(StudyJson(source_, Id("kept")))["constraints"], Json({"latency_ms <= 20"}));
  EXPECT_THAT(Cells(Shown(TrialsJson(source_, Id("kept"), {})), "infeasible"),
              ElementsAre(nullptr, "yes", "no"));
  const Json trial = Shown(TrialJson(source_, TrialId(2)))["trial"];
  EXPECT_EQ(trial["infeasible"], true);
  EXPECT_EQ(trial["constraints"], Json::parse(R"json([{"text": "latency_ms <= 20", "figure": 31.5,
                                                       "broken": true}])json"));
  const Json untold = Shown(TrialJson(source_, TrialId(3)))["trial"];
  EXPECT_TRUE(untold["infeasible"].is_null());
  EXPECT_TRUE(untold["constraints"][0]["figure"].is_null());
  const Json row = Shown(OverviewJson(source_))["studies"][0];
  EXPECT_EQ(row["kept"], (Json{{"keep", 1}, {"breaks", 1}}));
}

TEST_F(KeptViews, ACloneTellsOfItsParentAndItsParentOfIt) {
  EXPECT_TRUE(Shown(TrialJson(source_, TrialId(1)))["clones"].empty());
  EXPECT_FALSE(Shown(TrialsJson(source_, Id("kept"), {}))["columns"].contains("parent"));
  TunerState state = tuner_.core.state();
  state.Apply(TrialCloned{TrialId(2), {.parent = 0, .founder = 0, .step = 30}});
  state.Apply(TrialCloned{TrialId(3), {.parent = 1, .founder = 0}});
  StillTuner still(std::move(state), tuner_);
  const Source source{still, Role::kView};
  const Json first = Shown(TrialJson(source, TrialId(1)));
  EXPECT_TRUE(first["trial"]["lineage"].is_null());
  EXPECT_EQ(
      first["clones"],
      Json::parse(R"json([{"trial_id": 2, "trial": 1, "state": "running", "step": 30}])json"));
  const Json second = Shown(TrialJson(source, TrialId(2)));
  EXPECT_TRUE(second["clones"][0]["step"].is_null());
  const Json& lineage = second["trial"]["lineage"];
  EXPECT_EQ(lineage["parent_id"], 1);
  EXPECT_EQ(lineage["step"], 30);
  EXPECT_EQ(lineage["set"]["lr"], second["trial"]["parameters"]["lr"]);
  EXPECT_EQ(lineage["was"]["lr"], first["trial"]["parameters"]["lr"]);
  const Json trials = Shown(TrialsJson(source, Id("kept"), {}));
  EXPECT_THAT(Cells(trials, "parent"), ElementsAre(1, 0, nullptr));
  EXPECT_THAT(Cells(trials, "parent_step"), ElementsAre(nullptr, 30, nullptr));
}

TEST_F(KeptViews, CurvesOfThoseThatKeepToTheirsComeFirst) {
  ReportWith(1, 0.5, 12);
  ReportWith(2, 0.1, 31.5);
  ReportWith(3, 0.7, 20);
  const Json curves = Shown(CurvesJson(source_, Id("kept"), {}))["curves"];
  std::vector<Json> told;
  for (const Json& curve : curves) told.push_back({curve["trial"], curve["infeasible"]});
  EXPECT_THAT(told, ElementsAre(Json({0, false}), Json({2, false}), Json({1, true})));
  const Json record = Shown(RecordJson(source_, Id("kept"), {}));
  EXPECT_EQ(record["curves"][1]["infeasible"], true);
  EXPECT_EQ(record["curves"][0]["infeasible"], false);
}

TEST_F(Views, EachOfSeveralMetricsHasItsCurvesAndItsOrder) {
  Create(R"json({
    "name": "two", "command": ["/bin/true"], "sampler": "random", "trials": 2,
    "metric": [{"name": "loss", "direction": "minimize"}, {"name": "speed", "direction": "maximize"}],
    "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 1]}}
  })json");
  ASSERT_TRUE(tuner_.Post(AgentHello{"oak", 2, {}}).status.ok());
  const auto report = [&](std::int64_t trial, std::int64_t step, double loss, double speed) {
    v1::ReportRequest request;
    request.set_trial_id(trial);
    request.set_step(step);
    request.set_value(loss);
    (*request.mutable_extra())["speed"] = speed;
    ASSERT_TRUE(api::Report(tuner_, request).ok());
  };
  Report(1, 1, 0.25);
  const Json untold = Shown(TrialJson(source_, TrialId(1)))["trial"];
  EXPECT_EQ(untold["metrics"], Json({"loss", "speed"}));
  EXPECT_EQ(untold["values"], Json({0.25, nullptr}));
  report(1, 2, 0.5, 3);
  report(2, 1, 0.75, 8);
  EXPECT_EQ(Shown(TrialJson(source_, TrialId(1)))["trial"]["values"], Json({0.5, 3}));
  EXPECT_EQ(Shown(TrialJson(source_, TrialId(1)))["trial"]["best_step"], 2) << "of those values";
  EXPECT_THAT(Cells(Shown(TrialsJson(source_, Id("two"), {})), "value"), ElementsAre(0.75, 0.5));
  const Json losses = Shown(CurvesJson(source_, Id("two"), {}));
  EXPECT_EQ(losses["metric"], "loss");
  EXPECT_EQ(losses["curves"][0]["y"], Json({0.25, 0.5}));
  const Json speeds = Shown(CurvesJson(source_, Id("two"), {.objective = 1}));
  EXPECT_EQ(speeds["metric"], "speed");
  EXPECT_EQ(speeds["curves"][0]["trial"], 1) << "it is maximized";
  EXPECT_EQ(speeds["curves"][1]["x"], Json({2}));
  const auto none = CurvesJson(source_, Id("two"), {.objective = 2});
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("objective 2: study \"two\" has curves of 2 metrics"));
  const Json record = Shown(RecordJson(source_, Id("two"), {}));
  EXPECT_EQ(record["other_curves"][0][1]["y"], Json({8}));
}

}  // namespace
}  // namespace espalier::view
