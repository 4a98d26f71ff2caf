// Every message names the file, the key, the value and what would be right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string Refusal(const std::string& json, const std::string& label = "study.json") {
  const absl::Status status = ParseStudy(json, label, "/home/me").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status << "\n" << json;
  return std::string(status.message());
}

// A study that is right but for `key`.
std::string With(const std::string& key) {
  return Refusal(R"({"command": "t", "trials": 3, "search_space": )"
                 R"({"lr": {"_type": "uniform", "_value": [0, 1]}}, )" +
                 key + "}");
}

// A study that has only its search space besides `rest`.
std::string Only(const std::string& rest) {
  return Refusal(R"({"search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}})" + rest + "}");
}

TEST(ParseStudyErrors, NameFileKeyValueAndRemedy) {
  EXPECT_EQ(Only(R"(, "command": "t", "trials": -3)"),
            R"(study.json: "trials": needs an integer >= 1, got -3)");
}

TEST(ParseStudyErrors, SayHowAPopulationExplores) {
  const std::string population = R"("population": {"interval": 5, "parameters": ["lr"], )";
  EXPECT_EQ(With(population + R"("explore": "pb3"})"),
            R"(study.json: "population.explore": needs "perturb" or "pb2", got "pb3")");
  EXPECT_EQ(With(population + R"("explore": "pb2", "factors": [0.8]})"),
            R"(study.json: "population.explore": needs "perturb" where "factors" is given, )"
            R"(got "pb2")");
}

TEST(ParseStudyErrors, RefuseAClientsFiles) {
  const std::string json = R"({"name": "a", "ask_and_tell": true, "search_space": "/etc/passwd"})";
  const absl::Status refused = ParseStudy(json, "study", "/", SpaceFiles::kRefused).status();
  EXPECT_EQ(
      refused.message(),
      "study: \"search_space\": needs an object of parameters, got \"/etc/passwd\": a service "
      "reads no file that a client names");
}

TEST(ParseStudyErrors, ProposeTheNearestKey) {
  EXPECT_THAT(With(R"("prunner": "asha")"),
              AllOf(StartsWith(R"(study.json: "prunner": unknown key, did you mean "pruner"?)"),
                    HasSubstr("stop_grace_s")));
  EXPECT_THAT(With(R"("learning": 1)"),
              StartsWith(R"(study.json: "learning": unknown key; Known: name)"));
  EXPECT_THAT(With(R"("slots": {"mn": 1})"), StartsWith(R"(study.json: "slots.mn": unknown key)"));
  EXPECT_THAT(With(R"("metric": {"goal": 1})"), HasSubstr("Known: name, direction"));
}

TEST(ParseStudyErrors, ProposeTheKeyThatOtherTunersCallOtherwise) {
  EXPECT_THAT(With(R"("num_samples": 20)"), HasSubstr(R"(unknown key, did you mean "trials"?)"));
  EXPECT_THAT(With(R"("timeout": 60)"), HasSubstr(R"(did you mean "time_limit_s"?)"));
  EXPECT_THAT(With(R"("n_jobs": 4)"), HasSubstr(R"(did you mean "max_concurrent_trials"?)"));
  EXPECT_THAT(With(R"("mode": "max")"), HasSubstr(R"(did you mean "metric.direction"?)"));
  EXPECT_THAT(With(R"("slots": {"mode": 1})"), HasSubstr("unknown key; Known: min, max"));
}

TEST(ParseStudyErrors, GiveLineAndColumnOfMalformedJson) {
  EXPECT_THAT(Refusal("{\n  \"name\": oops\n}"),
              AllOf(StartsWith("study.json: malformed JSON at line 2, column 1")));
  EXPECT_THAT(Refusal(""), StartsWith("study.json: malformed JSON at line 1"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("needs a JSON object, got []"));
  EXPECT_THAT(With(R"("trials": 4)"), HasSubstr("\"trials\" appears twice"));
}

TEST(ParseStudyErrors, NameWhatIsMissing) {
  EXPECT_THAT(Only(""), StartsWith(R"(study.json: "command": is missing)"));
  EXPECT_THAT(Refusal(R"({"command": "t"})"),
              StartsWith(R"(study.json: "search_space": is missing)"));
  EXPECT_THAT(Refusal(R"({"command": "t"})", "study_json"), HasSubstr(R"("name": is missing)"));
}

TEST(ParseStudyErrors, RefuseAStudyWithoutEnd) {
  EXPECT_THAT(Only(R"(, "command": "t")"),
              AllOf(HasSubstr("the study would never end"), HasSubstr("\"time_limit_s\"")));
}

TEST(ParseStudyErrors, RefuseALauncherThatTheCommandNamesItself) {
  constexpr const char* kRest = R"(, "metric": false, "trials": 1})";
  for (const char* const command : {R"("torchrun train.py")", R"(["mpirun", "./train"])",
                                    R"("python3 -m deepspeed.launcher.runner train.py")"}) {
    EXPECT_THAT(Refusal(absl::StrCat(R"({"launch": "ranks", "command": )", command, kRest)),
                AllOf(StartsWith(R"(study.json: "launch": starts the command once for each rank)"),
                      HasSubstr(R"(out of "command", or leave out "launch")")));
  }
  EXPECT_TRUE(
      ParseStudy(absl::StrCat(R"({"name": "a", "launch": "ranks", "command": )",
                              R"(["python3", "train.py", "--strategy", "deepspeed"])", kRest),
                 "study.json", "/")
          .ok())
      << "an argument is none";
  EXPECT_THAT(Refusal(R"({"launch": "ranks", "ask_and_tell": true})"),
              StartsWith(R"(study.json: "launch": has no place in a study with "ask_and_tell")"));
}

TEST(ParseStudyErrors, RefuseAnEmptyOrImpossibleSpace) {
  EXPECT_THAT(Refusal(R"({"command": "t", "search_space": {}})"),
              StartsWith("study.json: search space is empty"));
  EXPECT_THAT(Refusal(R"({"command": "t", "search_space":
                          {"lr": {"_type": "uniform", "_value": [2, 1]}}})"),
              AllOf(StartsWith("study.json: search space \"lr\": "),
                    HasSubstr("(/search_space/lr, line 2)")));
  EXPECT_THAT(Refusal(R"({"command": "t", "search_space": "absent.json"})"),
              AllOf(HasSubstr("/home/me/absent.json"), HasSubstr("no such file")));
  EXPECT_THAT(Refusal(R"({"command": "t", "search_space": 3})"), HasSubstr("got 3"));
}

TEST(ParseStudyErrors, RefuseAdaptiveBatchesWhereBatchSizeIsSearched) {
  EXPECT_THAT(
      Refusal(R"({"command": "t", "batch_mode": "adaptive", "search_space":
                          {"batch_size": {"_type": "choice", "_value": [16, 32]}}})"),
      AllOf(StartsWith(R"(study.json: "batch_mode": needs "fixed")"), HasSubstr("adaptive")));
}

TEST(ParseStudyErrors, RefuseConstraintsThatSayNothing) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("constraints": "a <= 2")", R"("constraints": needs a list like ["latency_ms <= 20"])"},
      {R"("constraints": [3])",
       R"("constraints[0]": needs "FIGURE <= NUMBER" or "FIGURE >= NUMBER", got 3)"},
      {R"("constraints": ["a <= 2", "a < 3"])", R"("constraints[1]": needs "FIGURE <= NUMBER")"},
      {R"("constraints": ["a == 2"])", R"(got "a == 2")"},
      {R"("constraints": [" <= 2"])", R"("constraints[0]": needs "FIGURE <= NUMBER")"},
      {R"("constraints": ["a <= "])",
       R"("constraints[0]": needs a finite number behind "<=", got "a <= ")"},
      {R"("constraints": ["a >= inf"])", R"(needs a finite number behind ">=", got "a >= inf")"},
      {R"("constraints": ["a <= 2ms"])", R"(needs a finite number behind "<=", got "a <= 2ms")"},
      {R"("constraints": ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a",
          "a", "a"])",
       "needs at most 16 constraints, got 17"},
  };
  for (const auto& [key, message] : wrong) {
    EXPECT_THAT(With(key), AllOf(StartsWith("study.json: \"constraints"), HasSubstr(message)))
        << key;
  }
}

TEST(ParseStudyErrors, RefuseWrongPriors) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("like": 3)", "\"like\": needs the name of a study, got 3"},
      {R"("like": "")", "\"like\": needs a string that is not empty, got \"\""},
      {R"("like": {"study": "a"})", "\"like\": needs an object with \"ended\""},
      {R"("like": {"study": "a", "trails": []})", "\"like.trails\": unknown key"},
      {R"("like": {"study": "a", "ended": 1, "within": 1, "trials": []})",
       "\"like\": needs \"trials\" to be a list of 1 to 100"},
      {R"("like": {"study": "a", "ended": 1, "within": 1, "trials": [{"score": 2, "parameters": {}}]})",
       "\"like.trials[0].score\": needs a score from -5 to 1, got 2"},
      {R"("like": {"study": "a", "ended": 1, "within": 1, "trials": [
           {"score": 1, "other_scores": [], "parameters": {}}]})",
       "\"like.trials[0].other_scores\": needs a list of the scores of further objectives, got []"},
      {R"("like": {"study": "a", "ended": 1, "within": 1, "trials": [
           {"score": 1, "other_scores": [0, 2], "parameters": {}}]})",
       "\"like.trials[0].other_scores\": needs scores from -5 to 1, got 2"},
      {R"("prior": [1])", "\"prior\": needs an object like {\"lr\": 0.001}, got [1]"},
      {R"("prior": {"x": null})", "\"prior.x\": "},
      {R"("prior": {"x": {"confidence": 0.5}})", "\"prior.x\": needs a value, or {\"value\""},
      {R"("prior": {"x": {"value": 1, "sure": true}})", "\"prior.x"},
      {R"("prior": {"x": {"value": 1, "confidence": "much"}})",
       "\"prior.x.confidence\": needs \"low\", \"medium\", \"high\" or a number"},
      {R"("prior": {"x": {"value": 1, "confidence": 1}})",
       "\"prior.x.confidence\": needs a confidence from 0.01 to 0.99"},
  };
  for (const auto& [key, message] : wrong) {
    EXPECT_THAT(With(key), AllOf(StartsWith("study.json: \""), HasSubstr(message))) << key;
  }
}

TEST(ParseStudyErrors, RefuseWrongValuesOfEachKey) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("name": "a b")", "\"name\": needs letters"},
      {R"("name": "")", "\"name\": needs a string"},
      {R"("name": ".hidden")", "\"name\": needs letters"},
      {R"("metric": 3)", "\"metric\": needs a name"},
      {R"("metric": true)", "\"metric\": needs a name"},
      {R"("metric": {"direction": "up"})", "\"metric.direction\": needs \"minimize\" or"},
      {R"("points": {"x": 1})", "\"points\": needs a list like [{\"lr\": 0.001}], got {"},
      {R"("points": [1])", "\"points[0]\": needs an object like {\"lr\": 0.001}, got 1"},
      {R"("points": [{}, {"x": [1]}])", "\"points[1]\": "},
      {R"("fixed": [])", "\"fixed\": needs an object like {\"lr\": 0.001}, got []"},
      {R"("fixed": {"x": null})", "\"fixed\": "},
      {R"("sampler": 1)", "\"sampler\": needs a name"},
      {R"("pruner": {"eta": 3})", "\"pruner\": needs a name"},
      {R"("pruner": {"name": "asha", "eta": [3]})",
       "\"pruner.eta\": needs a number, true, false, a"},
      {R"("pruner": {"name": "patient", "pruner": [3]})",
       "\"pruner.pruner\": needs a number, true, false, a word, lists of numbers or an object, "
       "got [3]"},
      {R"("sampler": {"name": "nsga3", "reference_points": [[1, "a"]]})",
       "\"sampler.reference_points\": needs a number, true, false, a word, lists of numbers"},
      {R"("pruner": {"name": "patient", "pruner": {"name": "asha", "eta": null}})",
       "\"pruner.pruner.eta\": needs a number"},
      {R"("time_limit_s": 0)", "\"time_limit_s\": needs seconds, more than 0"},
      {R"("target": "best")", "\"target\": needs a number"},
      {R"("max_concurrent_trials": 0)", "\"max_concurrent_trials\": needs an integer >= 1"},
      {R"("cost_limit": 5)", "\"cost_limit\": needs \"slot_price_per_hour\" too"},
      {R"("cost_limit": 0)", "\"cost_limit\": needs a price, more than 0"},
      {R"("slot_price_per_hour": -1)", "\"slot_price_per_hour\": needs a price, more than 0"},
      {R"("promise": 3)", "\"promise\": needs an object like {\"best_k\": 3}, got 3"},
      {R"("promise": {"best_k": 0})", "\"promise.best_k\": needs an integer >= 1, got 0"},
      {R"("promise": {"best_k": 1001})", "\"promise.best_k\": needs an integer <= 1000"},
      {R"("promise": {"k": 1})", "\"promise.k\": unknown key"},
      {R"("max_step": 1.5)", "\"max_step\": needs an integer >= 1, got 1.5"},
      {R"("max_step": 99999999999999999999)", "\"max_step\": needs an integer"},
      {R"("batch_mode": "elastic")", "\"batch_mode\": needs \"fixed\" or \"adaptive\""},
      {R"("seed": -1)", "\"seed\": needs an integer from 0"},
      {R"("max_consecutive_failures": 0)", "needs an integer >= 1, got 0"},
      {R"("stragglers": "stop")", R"(needs "replace" or "ignore", got "stop")"},
      {R"("max_restarts": -1)", "needs an integer >= 0, got -1"},
      {R"("share": 0)", "\"share\": needs a number from 0.001 to 1000, got 0"},
      {R"("stop_grace_s": -1)", "\"stop_grace_s\": needs seconds from 0"},
      {R"("start_timeout_s": 0)", "\"start_timeout_s\": needs seconds from 1 to 1e+09, got 0"},
      {R"("stall_timeout_s": "30")", "\"stall_timeout_s\": needs a number"},
      {R"("pause_timeout_s": 2e9)", "\"pause_timeout_s\": needs seconds from 1"},
      {R"("exit_timeout_s": -1)", "\"exit_timeout_s\": needs seconds from 1"},
      {R"("drain_timeout_s": 0.5)", "\"drain_timeout_s\": needs seconds from 1"},
      {R"("env": ["A=b"])", "\"env\": needs an object"},
      {R"("env": {"A": true})", "\"env.A\": needs a string or a number, got true"},
      {R"("env": {"A=": "b"})", "has no \"=\""},
      {R"("needs": {"/data\u0000x": "make it"})",
       "\"needs\": needs names of files without a zero byte"},
      {R"("preload": true)", "\"preload\": needs a list of modules like"},
      {R"("preload": [3])", "\"preload\": needs names of modules like \"transformers\", got 3"},
      {R"("preload": ["a b"])", "\"preload\": needs names of modules"},
      {R"("preload": ["a."])", "\"preload\": needs names of modules"},
      {R"("preload": ["2a"])", "\"preload\": needs names of modules"},
      {R"("preload": [""])", "\"preload\": needs names of modules"},
      {R"("needs": ["x"])", "\"needs\": needs an object"},
      {R"("needs": {"x": 1})", "\"needs.x\""},
      {R"("directory": 4)", "\"directory\": needs a string"},
  };
  for (const auto& [key, message] : wrong) {
    EXPECT_THAT(With(key), AllOf(StartsWith("study.json: \""), HasSubstr(message))) << key;
  }
}

TEST(ParseStudyErrors, RefuseWrongSlotsAndLaunches) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("slots": 0)", "\"slots\": needs an integer >= 1, got 0"},
      {R"("slots": {"min": 4, "max": 2})",
       "\"slots.max\": needs an integer >= slots.min, which is 4, got 2"},
      {R"("slots": "all")",
       "\"slots\": needs an integer, {\"min\": ..., \"max\": ...} or a list of sizes like [2, 4, "
       "8]"},
      {R"("slots": [])", "\"slots\": needs a list of 1 to 64 sizes, got []"},
      {R"("slots": [4, 0])", "\"slots\": needs an integer >= 1, got 0"},
      {R"("slots": [2, "4"])", "\"slots\": needs an integer >= 1, got \"4\""},
      {R"("slots": [2, 4, 2])", "\"slots\": needs each size once; 2 is there twice, got [2,4,2]"},
      {R"("resize": "stop")", "\"resize\": needs \"restart\" or \"elastic\", got \"stop\""},
      {R"("slots_per_node": 0)", "\"slots_per_node\": needs an integer >= 1, got 0"},
      {R"("launch": "mpirun")",
       R"("launch": needs one of "torchrun", "accelerate", "deepspeed", "ranks", "nodes", or a list)"},
      {R"("launch": [])", R"("launch": needs one of "torchrun")"},
      {R"("launch": ["torchrun", 1])", R"("launch": needs one of "torchrun")"},
      {R"("launch": {"name": "ranks"})", R"("launch": needs one of "torchrun")"},
      {R"("launch": ["ranks", "--nnodes=2"])", R"("launch": needs no options for "ranks")"},
  };
  for (const auto& [key, message] : wrong) {
    EXPECT_THAT(With(key), AllOf(StartsWith("study.json: \""), HasSubstr(message))) << key;
  }
}

TEST(ParseStudyErrors, RefuseWrongCommands) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("")", "needs the program"},
      {"[]", "needs the program"},
      {R"([""])", "needs the program"},
      {"7", "needs the program"},
      {R"(["a", 1])", "needs a list of strings"},
      {R"("a 'b")", "closing"},
      {R"("a | b")", "without a shell"},
      {R"(["a\u0000b"])", "zero byte"},
  };
  for (const auto& [command, message] : wrong) {
    EXPECT_THAT(Only(std::string(R"(, "trials": 1, "command": )") + command),
                AllOf(StartsWith(R"(study.json: "command": )"), HasSubstr(message)));
  }
}

TEST(ParseStudyErrors, RefuseANameThatTheFileDoesNotMake) {
  const std::string message = Refusal(R"({"command": "t"})", "/home/me/my study.json");
  EXPECT_THAT(message, AllOf(HasSubstr("\"my study\""), HasSubstr("give the key \"name\"")));
}

TEST(ReadStudyFileErrors, NameAMissingFileAndAFolder) {
  const ScratchFolder folder;
  const absl::Status missing = ReadStudyFile(folder.File("absent.json")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr(folder.File("absent.json")), HasSubstr("no such file"),
                    HasSubstr("give the path")));
  EXPECT_THAT(std::string(ReadStudyFile(folder.path()).status().message()),
              HasSubstr("is a folder"));
}

TEST(ReadStudyFileErrors, RefuseMoreThanAMebibyte) {
  const ScratchFolder folder;
  std::ofstream(folder.File("big.json")) << std::string((std::size_t{1} << 20) + 1, ' ');
  EXPECT_THAT(std::string(ReadStudyFile(folder.File("big.json")).status().message()),
              HasSubstr("more than 1048576 bytes"));
}

}  // namespace
}  // namespace espalier
