#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/core/core.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

constexpr const char* kOrder[] = {"name",
                                  "command",
                                  "metric",
                                  "constraints",
                                  "search_space",
                                  "points",
                                  "fixed",
                                  "prior",
                                  "sampler",
                                  "population",
                                  "pruner",
                                  "terminator",
                                  "policy",
                                  "trials",
                                  "time_limit_s",
                                  "cost_limit",
                                  "slot_price_per_hour",
                                  "target",
                                  "max_concurrent_trials",
                                  "max_step",
                                  "promise",
                                  "slots",
                                  "slots_per_node",
                                  "resize",
                                  "launch",
                                  "share",
                                  "batch_mode",
                                  "seed",
                                  "max_consecutive_failures",
                                  "max_restarts",
                                  "stragglers",
                                  "stop_grace_s",
                                  "start_timeout_s",
                                  "stall_timeout_s",
                                  "pause_timeout_s",
                                  "exit_timeout_s",
                                  "drain_timeout_s",
                                  "env",
                                  "preload",
                                  "needs",
                                  "directory",
                                  "ask_and_tell",
                                  "directions"};

// The keys of the file in one order and as they were given, but for those that say where it lies.
std::string InOrder(const Json& file, const StudySpec& spec) {
  Json written = Json::object();
  for (const std::string key : kOrder) {
    if (key == "name") {
      written[key] = spec.name;
    } else if (key == "directory") {
      written[key] = spec.directory;
    } else if (key == "search_space" && !spec.space.dimensions().empty()) {
      written[key] = Json::parse(spec.space.ToJson());
    } else if (key == "needs" && file.contains(key)) {
      written[key] = spec.needs;
    } else if (file.contains(key)) {
      written[key] = file[key];
    }
  }
  return written.dump();
}

void ExpectWrittenAsItWas(const std::string& text, const std::string& label,
                          const std::string& folder) {
  SCOPED_TRACE(text);
  const absl::StatusOr<StudySpec> spec = ParseStudy(text, label, folder);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string written = WriteStudy(*spec);
  EXPECT_EQ(written, InOrder(Json::parse(text), *spec));
  absl::StatusOr<StudySpec> again = ParseStudy(written, "again", "/");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *spec);
  EXPECT_EQ(WriteStudy(*again), written);
  // The fields alone say as much.
  again->wording = {};
  const absl::StatusOr<StudySpec> unworded = ParseStudy(WriteStudy(*again), "unworded", "/");
  ASSERT_TRUE(unworded.ok()) << unworded.status();
  EXPECT_EQ(*unworded, *spec);
}

TEST(WriteStudy, KeepsTheExamplesAsTheyAreWritten) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(EXAMPLES_FOLDER)) {
    if (entry.path().filename() != "study.json" && entry.path().filename() != "sweep.json") {
      continue;
    }
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    ExpectWrittenAsItWas(text.str(), entry.path().string(), entry.path().parent_path().string());
    ++found;
  }
  EXPECT_GE(found, 8);
}

struct Wordings {
  const char* key;
  std::vector<const char*> values;
};

const std::vector<Wordings>& PoolWordings() {
  static const std::vector<Wordings> wordings = {
      {"metric",
       {R"("error")", R"("value")", R"(false)", R"({})", R"({"direction": "maximize"})",
        R"({"direction": "minimize", "name": "x"})",
        R"({"name": "é\u0001\"", "direction": "maximize"})"}},
      {"constraints", {"[]", R"(["latency_ms <= 20"])", R"(["a<=2.50", "b c >=-1e3", "a >= 0"])"}},
      {"points", {"[]", R"([{"lr": 2.50}, {}, {"lr": "a", "other": 1e-3}])"}},
      {"fixed", {"{}", R"({"lr": 1})"}},
      {"prior",
       {"{}", R"({"lr": 0.1, "n": {"value": "a", "confidence": "high"}})",
        R"({"lr": {"value": 0.1}, "n": {"value": true, "confidence": 0.75}})"}},
      {"sampler",
       {R"("grid")", R"({"name": "random"})", R"({"name": "tpe", "startup_trials": 6})",
        R"({"startup_trials": 6.0, "name": "tpe", "gamma": 1e-1})", R"("tpe")",
        R"({"name": "tpe", "multivariate": false})", R"({"name": "tpe", "multivariate": 0})",
        R"({"name": "cma_es", "restart": "ipop"})",
        R"({"name": "outer", "inner": {"b": [1, {"name": null}], "a": {}}})"}},
      {"pruner",
       {R"("none")", R"({"name": "patient", "pruner": "asha", "patience": 2})",
        R"({"name": "patient", "pruner": {"name": "asha", "eta": 4, "late": true}})",
        R"({"name": "asha", "min_steps": 1, "eta": 3})", R"("median")"}},
      {"terminator",
       {R"("none")", R"("stagnation")", R"({"name": "stagnation", "trials": 12})", R"("regret")",
        R"({"name": "emmr", "delta": 0.05, "deterministic_objective": true})"}},
      {"policy", {R"("promise_goodput")", R"({"name": "fixed", "slots": 2})"}},
      {"population",
       {R"({"interval": 5, "parameters": ["lr"]})",
        R"({"interval": 5, "parameters": ["lr"], "explore": "pb2"})"}},
      {"time_limit_s", {"90", "90.0", "0.1", "1e3"}},
      {"slot_price_per_hour", {"2", "0.25"}},
      {"target", {"0", "-0.0", "0.99", "1e-300"}},
      {"max_concurrent_trials", {"2"}},
      {"max_step", {"30"}},
      {"promise", {"{}", R"({"best_k": 1})", R"({"best_k": 4})"}},
      {"slots",
       {"1", "3", "{}", R"({"max": 4})", R"({"min": 2})", R"({"min": 2, "max": 2})", "[2, 4, 8]",
        "[8, 2, 4]", "[3]"}},
      {"slots_per_node", {"1", "4"}},
      {"resize", {R"("restart")", R"("elastic")"}},
      {"launch", {R"("ranks")", R"(["torchrun"])", R"(["accelerate", "--debug", ""])"}},
      {"share", {"1", "0.5", "1.0"}},
      {"batch_mode", {R"("fixed")", R"("adaptive")"}},
      {"seed", {"0", "18446744073709551615"}},
      {"max_consecutive_failures", {"5", "1000000000"}},
      {"max_restarts", {"2", "0"}},
      {"stragglers", {R"("replace")", R"("ignore")"}},
      {"stop_grace_s", {"5", "0", "2.5"}},
      {"start_timeout_s", {"1", "600"}},
      {"drain_timeout_s", {"120.5"}},
      {"env", {"{}", R"({"B": 2, "A": "2", "C": 0.50, "E": ""})"}},
      {"preload", {"[]", "false", R"(["transformers", "a.b_2"])"}},
      {"needs", {"{}", R"({"d/x": "get x", "/y": "get y"})"}},
      {"directory", {R"("../runs/./a")", R"("/srv")"}},
      {"name", {R"("named")"}},
      {"trials", {"3"}},
  };
  return wordings;
}

std::string Generated(Random& random) {
  std::vector<std::string> entries = {
      R"("command": )" + std::string(random.Below(2) == 0 ? R"("./train --fast 'a b'")"
                                                          : R"(["python3", "train.py", ""])"),
      R"("search_space": {"lr": {"_type": "choice", "_value": [1, 2.50, "a", true]}})"};
  for (const auto& [key, values] : PoolWordings()) {
    if (random.Below(2) == 0) continue;
    entries.push_back("\"" + std::string(key) + "\": " + values[random.Below(values.size())]);
  }
  std::string text = "{";
  for (; !entries.empty(); text += entries.empty() ? "" : ", ") {
    const auto next = entries.begin() + static_cast<std::ptrdiff_t>(random.Below(entries.size()));
    text += *next;
    entries.erase(next);
  }
  return text + "}";
}

TEST(WriteStudy, KeepsAnyStudyFileAsItIsWritten) {
  Random random(5);
  for (int i = 0; i < 500; ++i) ExpectWrittenAsItWas(Generated(random), "my.json", "/home/me");
}

StudySpec Small() {
  return *ParseStudy(R"({"trials": 5, "command": "a b", "share": 1.0, "search_space":
      {"x": {"_type": "uniform", "_value": [0, 1]}}})",
                     "n.json", "/");
}

TEST(IsWorded, UntilAFieldIsAnotherOne) {
  StudySpec spec = Small();
  ASSERT_TRUE(IsWorded(spec));
  const std::int64_t parsed = StudyTextsParsed();
  EXPECT_EQ(WriteStudy(spec), spec.wording.text);
  EXPECT_EQ(StudyTextsParsed(), parsed) << "nothing is read to write it";
  spec.max_trials = 6;
  EXPECT_FALSE(IsWorded(spec));
  EXPECT_THAT(WriteStudy(spec), HasSubstr(R"("trials":6,"share":1.0)"));
  spec.max_trials = 5;
  EXPECT_TRUE(IsWorded(spec));
  EXPECT_FALSE(IsWorded(StudySpec())) << "which was made without a text";
}

TEST(Rename, IsSaidByTheTextToo) {
  StudySpec spec = *StudyOfClients("first", {Direction::kMaximize});
  StudySpec renamed = spec;
  Rename(renamed, "an \"other\" ✂");
  spec.name = "an \"other\" ✂";
  EXPECT_EQ(renamed, spec);
  EXPECT_EQ(renamed.wording.text, WriteStudy(spec));
  EXPECT_EQ(WriteStudy(renamed), renamed.wording.text);
}

TEST(WithWording, ReadsTheTextOnceAndKeepsIt) {
  StudySpec spec = Small();
  spec.seed = 7;
  const std::int64_t parsed = StudyTextsParsed();
  const absl::StatusOr<StudySpec> kept = WithWording(spec, "x");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(StudyTextsParsed(), parsed + 1);
  EXPECT_EQ(*kept, spec);
  EXPECT_TRUE(IsWorded(*kept));
  EXPECT_THAT(kept->wording.text, HasSubstr(R"("share":1.0,"seed":7)"));
}

TEST(WriteStudy, KeepsStudiesOfClientsAndQueues) {
  for (const char* text : {
           R"({"name": "any name, even \" this", "ask_and_tell": true})",
           R"({"name": "n", "ask_and_tell": true, "metric": {"direction": "maximize"}})",
           R"({"name": "n", "directions": ["maximize", "minimize"], "ask_and_tell": true})",
           R"({"name": "n", "ask_and_tell": true, "sampler": "random", "trials": 4,
               "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})",
           R"({"name": "n", "ask_and_tell": false, "sampler": "queue", "command": "t"})",
       }) {
    ExpectWrittenAsItWas(text, "x", "/");
  }
}

TEST(DirectionNote, IsForAMetricWithoutADirection) {
  const auto note = [](const std::string& keys) {
    const auto spec = ParseStudy(R"({"name": "n", "ask_and_tell": true)" + keys + "}", "x", "/");
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? DirectionNote(*spec) : "";
  };
  EXPECT_EQ(note(R"(, "metric": "accuracy")"),
            R"("accuracy" is minimized, as "metric" gives no direction; to maximize it: )"
            R"("metric": {"name": "accuracy", "direction": "maximize"})");
  EXPECT_EQ(note(R"(, "metric": {"name": "accuracy"})"), note(R"(, "metric": "accuracy")"));
  EXPECT_EQ(note(R"(, "metric": {"name": "loss", "direction": "minimize"})"), "");
  EXPECT_EQ(note(R"(, "directions": ["maximize"])"), "");
  EXPECT_EQ(note(""), "");
}

TEST(WriteStudy, WritesWhatOptunasUsersMake) {
  const absl::StatusOr<StudySpec> spec =
      StudyOfClients("mine \"✂\"", {Direction::kMinimize, Direction::kMaximize});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(Validate(*spec).ok());
  const std::string text = WriteStudy(*spec);
  EXPECT_EQ(text,
            "{\"name\":\"mine \\\"✂\\\"\",\"directory\":\"/\",\"ask_and_tell\":true,"
            "\"directions\":[\"minimize\",\"maximize\"]}");
  const absl::StatusOr<StudySpec> read = ParseStudy(text, "x", "/");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *spec);
  EXPECT_THAT(WriteStudy(*StudyOfClients("one", {Direction::kMinimize})),
              HasSubstr(R"("directions":["minimize"])"));
  const absl::Status large = StudyOfClients(std::string(2 << 20, 'n'), {}).status();
  EXPECT_THAT(std::string(large.message()), HasSubstr("at most 1048576 are accepted"));
}

TEST(CheckReadBack, RefusesWhatAStudyFileCannotSay) {
  const StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 5, "search_space":
      {"x": {"_type": "uniform", "_value": [0, 1]}}})",
                                     "x", "/");
  EXPECT_TRUE(CheckReadBack(spec, "x").ok());
  StudySpec zero = spec;
  zero.directory = std::string("/tmp\0x", 6);
  EXPECT_THAT(std::string(CheckReadBack(zero, "x").message()), HasSubstr("x: \"directory\": "));
  StudySpec renamed = spec;
  renamed.name = std::string(200, 'n');
  EXPECT_THAT(std::string(CheckReadBack(renamed, "x").message()), HasSubstr("x: \"name\": "));
  StudySpec winding = spec;
  winding.directory = "/a/../b";
  const absl::Status other = CheckReadBack(winding, "x");
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("as another study, with another \"directory\""));
  const absl::Status of_clients = StudyOfClients("broken \xff", {Direction::kMinimize}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(of_clients)) << of_clients;
}

TEST(DifferencesOf, NamesTheKeysWhoseValuesDiffer) {
  const auto study = [](const std::string& more) {
    return *ParseStudy(R"({"name": "s", "command": "true", "search_space": {"x": )"
                       R"({"_type": "uniform", "_value": [0, 1]}})" +
                           more + "}",
                       "s.json", "/");
  };
  const StudySpec plain = study(R"(, "trials": 4)");
  EXPECT_TRUE(DifferencesOf(plain, study(R"(, "trials": 4, "seed": 0)")).empty())
      << "0 is the default seed";
  const std::vector<KeyDifference> found =
      DifferencesOf(plain, study(R"(, "trials": 6, "target": 0.5, "policy": "promise_goodput")"));
  std::vector<std::string> told;
  for (const auto& [key, before, after] : found)
    told.push_back(absl::StrCat(key, " ", before, " ", after));
  EXPECT_THAT(told, ::testing::ElementsAre("policy \"promise_goodput\" \"promise_goodput\"",
                                           "trials 4 6", "target null 0.5"));
}

TEST(WriteStudy, AFieldThatChangedIsWrittenAsItIsNow) {
  StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 5, "sampler": "random",
      "slots": {"max": 4}, "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})",
                               "x", "/");
  spec.name = "other";
  spec.max_trials = 6;
  spec.seed = 3;
  spec.sampler = {"tpe", {{"gamma", 0.5}}};
  const std::string text = WriteStudy(spec);
  EXPECT_EQ(text, R"({"name":"other","command":"a b","search_space":{"x":{"_type":"uniform",)"
                  R"("_value":[0.0,1.0]}},"sampler":{"name":"tpe","gamma":0.5},"trials":6,)"
                  R"("slots":{"max":4},"seed":3,"directory":"/"})");
  EXPECT_EQ(*ParseStudy(text, "x", "/"), spec);
}

TEST(WriteStudy, OptionsOfPluginsAreWrittenAsWordsTrueFalseAndObjects) {
  StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 9, "sampler": "random",
      "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})",
                               "x", "/");
  spec.sampler = {"cma_es", {{"margin", true}, {"restart", "ipop"}, {"sigma", 2}}};
  spec.pruner = {"patient",
                 {{"patience", 3}, {"pruner", "asha"}, {"pruner.eta", 4}, {"pruner.late", false}}};
  const std::string text = WriteStudy(spec);
  EXPECT_THAT(text, HasSubstr(R"("sampler":{"name":"cma_es","margin":true,"restart":"ipop",)"
                              R"("sigma":2})"));
  EXPECT_THAT(text, HasSubstr(R"("pruner":{"name":"patient","patience":3,)"
                              R"("pruner":{"name":"asha","eta":4,"late":false}})"));
  EXPECT_EQ(*ParseStudy(text, "x", "/"), spec);
  spec.sampler = {"outer", {{"inner", OptionValue::OfObject(R"json({"b":[1],"a":{}})json")}}};
  const std::string with_object = WriteStudy(spec);
  EXPECT_THAT(with_object, HasSubstr(R"json("inner":{"b":[1],"a":{}}})json"));
  EXPECT_EQ(*ParseStudy(with_object, "x", "/"), spec);
  spec.sampler = {"nsga3", {{"reference_points", OptionValue::OfRows({{1, 0}, {0.1, 0.75}})}}};
  const std::string with_rows = WriteStudy(spec);
  EXPECT_THAT(with_rows, HasSubstr(R"json("reference_points":[[1,0],[0.1,0.75]]})json"));
  EXPECT_EQ(*ParseStudy(with_rows, "x", "/"), spec);
}

TEST(WriteStudy, PointsAndFixedParametersAreReadBackToTheBit) {
  StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 9, "sampler": "random",
      "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 1]},
        "n": {"_type": "choice", "_value": [{"_name": "a", "p": {"_type": "uniform", "_value": [0, 1]}}]}},
      "points": [{"n": {"_name": "a", "p": 0.5}}], "fixed": {"lr": 0.1}})",
                               "x", "/");
  EXPECT_EQ(spec.points, (std::vector<Parameters>{{{"n", std::string("a")}, {"n/a/p", 0.5}}}));
  EXPECT_EQ(spec.fixed, (Parameters{{"lr", 0.1}}));
  spec.points.push_back({{"lr", 0.1 + 0.2}});
  const std::string text = WriteStudy(spec);
  EXPECT_THAT(text, HasSubstr(R"("points":[{"n":"a","n/a/p":0.5},{"lr":0.30000000000000004}])"));
  EXPECT_EQ(*ParseStudy(text, "x", "/"), spec);
}

TEST(WriteStudy, ConstraintsAreReadBackToTheBit) {
  StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 9,
      "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
      "constraints": ["b<=20.0", "c >= 1e-3"]})",
                               "x", "/");
  EXPECT_THAT(WriteStudy(spec), HasSubstr(R"("constraints":["b<=20.0","c >= 1e-3"])"));
  spec.constraints.push_back({"c", false, 0.1 + 0.2});
  const std::string text = WriteStudy(spec);
  EXPECT_THAT(text, HasSubstr(R"(["b <= 20","c >= 0.001","c <= 0.30000000000000004"])"));
  EXPECT_EQ(*ParseStudy(text, "x", "/"), spec);
}

TEST(WriteStudy, APriorIsReadBackWithItsConfidences) {
  const StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 9,
      "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]},
        "x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "uniform", "_value": [0, 1]}},
      "prior": {"lr": 0.1, "x": {"value": 0.25, "confidence": "high"},
                "y": {"confidence": 0.3, "value": 1}}})",
                                     "x", "/");
  EXPECT_EQ(spec.prior,
            (std::vector<Belief>{{"lr", 0.1}, {"x", 0.25, 0.9}, {"y", std::int64_t{1}, 0.3}}));
  EXPECT_EQ(*ParseStudy(WriteStudy(spec), "x", "/"), spec);
}

TEST(WriteStudy, AStudyLikeAnotherIsReadBackWithItsTrials) {
  StudySpec spec = *ParseStudy(R"({"name": "n", "command": "a b", "trials": 9, "like": "other",
      "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}}})",
                               "x", "/");
  EXPECT_EQ(spec.like, LikeStudy{.study = "other"});
  EXPECT_THAT(WriteStudy(spec), HasSubstr(R"("like":"other")"));
  spec.like.ended = 12;
  spec.like.within = 11;
  spec.like.trials = {{{{"lr", 0.1 + 0.2}}, 1.0 / 11}, {{}, -0.75}};
  spec = *WithWording(spec, "x");
  EXPECT_THAT(WriteStudy(spec), HasSubstr(R"("parameters":{"lr":0.30000000000000004})"));
  EXPECT_EQ(*ParseStudy(WriteStudy(spec), "x", "/"), spec);
  EXPECT_EQ(ParseStudy(WriteStudy(spec), "x", "/")->like.trials.front().score, 1.0 / 11);
  for (ScoredTrial& trial : spec.like.trials) trial.other_scores = {0.1 + 0.2, -5};
  spec = *WithWording(spec, "x");
  EXPECT_THAT(WriteStudy(spec), HasSubstr(R"("other_scores":[0.30000000000000004,-5.0])"));
  EXPECT_EQ(*ParseStudy(WriteStudy(spec), "x", "/"), spec);
}

TEST(DifferencesOf, TakesOneForTrueInOptionsOfPlugins) {
  const auto study = [](const std::string& sampler) {
    return *ParseStudy(R"({"name": "n", "command": "a", "trials": 9, "sampler": )" + sampler + R"(,
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})",
                       "x", "/");
  };
  const StudySpec one = study(R"({"name": "tpe", "multivariate": 1})");
  EXPECT_TRUE(DifferencesOf(one, study(R"({"name": "tpe", "multivariate": true})")).empty());
  EXPECT_FALSE(DifferencesOf(one, study(R"({"name": "tpe", "multivariate": false})")).empty());
}

TEST(MaskEnvironment, LeavesNamesAndAllElseAsItIsWorded) {
  const StudySpec spec = *ParseStudy(
      R"({"name": "n", "command": "a b", "env": {"KEY": "secret", "N": 3, "EMPTY": ""}, "trials": 5,
          "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})",
      "x", "/");
  const std::string text = MaskEnvironment(WriteStudy(spec));
  EXPECT_THAT(text, HasSubstr(R"("env":{"KEY":"***","N":"***","EMPTY":"***"})"));
  StudySpec masked = spec;
  for (auto& [name, value] : masked.environment) value = kMaskedValue;
  const absl::StatusOr<StudySpec> read = ParseStudy(text, "x", "/");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(DifferencesOf(*read, masked).empty());
}

TEST(MaskEnvironment, LeavesTextsWithoutOne) {
  for (const std::string text :
       {R"({"name":"n","trials":5})", R"({"a":{"env":{"x":"y"}}})", "[1]"}) {
    EXPECT_EQ(MaskEnvironment(text), text);
  }
  EXPECT_EQ(MaskEnvironment(R"({"env":"KEY=secret"})"), R"({"env":"***"})");
}

TEST(MaskEnvironment, ShowsNothingOfWhatItCannotRead) {
  for (const std::string text : {R"({"env":{"KEY":"secret"})", "KEY=secret", ""}) {
    EXPECT_EQ(MaskEnvironment(text), R"("***")") << text;
  }
}

}  // namespace
}  // namespace espalier
