#include "tuner/study_file/yaml_text.h"

#include <fstream>

#include "base/json/parse_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kStudy[] = R"(# What people write.
name: mine
command: [python3, train.py, --lr, "{lr}"]
metric: {name: loss, from_output: 'val_loss=([0-9.e+-]+)'}
search_space:
  lr:
    _type: loguniform
    _value: [1e-4, 0.1]
  width: {_type: choice, _value: [64, 128]}
env:
  MODE: on
trials: 20
)";

std::string ErrorOf(std::string_view yaml) {
  return std::string(JsonOfYaml(yaml, "s.yaml").status().message());
}

TEST(YamlText, IsTheStudyThatJsonSays) {
  const ScratchFolder folder;
  std::ofstream(folder.File("mine.yaml")) << kStudy;
  std::ofstream(folder.File("mine.json"))
      << R"json({"name": "mine", "command": ["python3", "train.py", "--lr", "{lr}"],
  "metric": {"name": "loss", "from_output": "val_loss=([0-9.e+-]+)"},
  "search_space": {"lr": {"_type": "loguniform", "_value": [1e-4, 0.1]},
                   "width": {"_type": "choice", "_value": [64, 128]}},
  "env": {"MODE": "on"}, "trials": 20})json";
  const auto yaml = ReadStudyFile(folder.File("mine.yaml"));
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  const auto json = ReadStudyFile(folder.File("mine.json"));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_TRUE(*yaml == *json);
  EXPECT_EQ(WriteStudy(*yaml), WriteStudy(*json));
  EXPECT_FALSE(ParseJson(ReadForService(folder.File("mine.yaml"))->json).is_discarded());
}

TEST(YamlText, NamesAStudyAndItsSpaceByTheirFiles) {
  const ScratchFolder folder;
  std::ofstream(folder.File("digits.yml"))
      << "command: echo\nsearch_space: space.yaml\ntrials: 1\n";
  std::ofstream(folder.File("space.yaml")) << "x: {_type: uniform, _value: [0, 1]}\n";
  const auto spec = ReadStudyFile(folder.File("digits.yml"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "digits");
  std::ofstream(folder.File("space.yaml"))
      << "# a comment\nx:\n  _type: uniform\n  _value:\n    - 0\n    - high\n";
  EXPECT_THAT(std::string(ReadStudyFile(folder.File("digits.yml")).status().message()),
              HasSubstr("(/x/_value/1, line 6)"))
      << "lines are those of the YAML";
}

TEST(YamlText, ReadsScalarsAsTheCoreSchemaDoes) {
  for (const auto& [yaml, json] : std::vector<std::pair<std::string, std::string>>{
           {"1e-3", "1e-3"},
           {"1E+5", "1e5"},
           {"+7", "7"},
           {"-.5", "-0.5"},
           {"3.", "3.0"},
           {"0", "0"},
           {"0.5e-07", "0.5e-07"},
           {"18446744073709551615", "18446744073709551615"},
           {"true", "true"},
           {"False", "false"},
           {"~", "null"},
           {"Null", "null"},
           {"no", "\"no\""},
           {"on", "\"on\""},
           {"Y", "\"Y\""},
           {"1_000", "\"1_000\""},
           {"07:30", "\"07:30\""},
           {"2026-11-29", "\"2026-11-29\""},
           {"1e", "\"1e\""},
           {"-", "[null]"},
           {"'12'", "\"12\""},
           {"\"a\\tb\\u00e9\"", "\"a\\tb\u00e9\""},
           {"'it''s'", "\"it's\""},
           {"0beef", "\"0beef\""},
           {"|\n  two\n  lines\n", "\"two\\nlines\\n\""}}) {
    const auto made = JsonOfYaml(yaml, "s.yaml");
    ASSERT_TRUE(made.ok()) << yaml << ": " << made.status();
    EXPECT_EQ(ParseJson<Json>(*made).dump(), ParseJson<Json>(json).dump()) << yaml;
  }
}

TEST(YamlText, RefusesWhatJsonCannotSay) {
  for (const auto& [yaml, error] : std::vector<std::pair<std::string, std::string>>{
           {"a: &x 1", "s.yaml: line 1: anchors have no place in a study file, got &x"},
           {"a: 1\nb: &list [1]", "s.yaml: line 2: anchors"},
           {"a: &x 1\nb: *x", "s.yaml: line 1: anchors"},
           {"a: !!str 1", "s.yaml: line 1: tags have no place in a study file, got "},
           {"a: !mine {b: 1}", "s.yaml: line 1: tags"},
           {"a: .inf", "s.yaml: line 1: needs a finite number, got .inf"},
           {"a:\n- -.Inf", "s.yaml: line 2: needs a finite number"},
           {"a: .NaN", "s.yaml: line 1: needs a finite number"},
           {"a: 1e999", "s.yaml: line 1: needs a number that a double can hold, got 1e999"},
           {"? [a]\n: 1", "s.yaml: line 1: needs the name of a key, got a list"},
           {"? {a: 1}\n: 1", "s.yaml: line 1: needs the name of a key, got an object"},
           {": 1", "s.yaml: line 1: needs the name of a key, got nothing"},
           {"", "s.yaml: is empty"},
           {"a: 1\n---\nb: 2\n", "s.yaml: needs one YAML document, got several"},
           {"a: [1", "s.yaml: line "},
           {"a: \"\xff\"", "s.yaml: line 1: needs UTF-8"},
           {std::string("a: 1\nb: \0", 9), "s.yaml: line 2: needs a text, got the byte 0"},
           {std::string(65, '[') + std::string(65, ']'), "s.yaml: line 1: nests deeper than 64"},
           {std::string(100'000, '['), "s.yaml: line 1"}}) {
    EXPECT_THAT(ErrorOf(yaml), StartsWith(error)) << yaml.substr(0, 80);
  }
}

TEST(YamlText, KnowsObjectsOfKubernetesByTheirApiVersionAlsoWhereTheyAreNoStudies) {
  for (const char* yaml : {"apiVersion: v1", "kind: K\napiVersion: v1", "{\"apiVersion\": 1}",
                           "a: [b, {c: d}]\napiVersion:", "a: &b 1\nc: *b\napiVersion: v1",
                           "a: 1\na: 2\napiVersion: v1", "? [a]\n: b\napiVersion: v1",
                           "apiVersion: v1\n---\napiVersion: v2", "apiVersion: v1\n---\n{"}) {
    EXPECT_TRUE(ReadYaml(yaml, "").has_api_version) << yaml;
  }
  for (const char* yaml :
       {"", "kind: K", "a: apiVersion", "a: {apiVersion: v1}", "[apiVersion, v1]", "apiVersion",
        "- apiVersion: v1", "[a]: apiVersion", "&a b: apiVersion", "a: &b 1\n*b : apiVersion",
        "apiVersion: {", "apiVersion: \x01", "a: b\n---\napiVersion: v1"}) {
    EXPECT_FALSE(ReadYaml(yaml, "").has_api_version) << yaml;
  }
}

TEST(YamlText, RefusesWhatCouldBeMeantInTwoWays) {
  EXPECT_EQ(ErrorOf("lr: 1\nmetric: loss\nlr: 2\n"),
            "s.yaml: line 3: the key \"lr\" is given twice, for the first time in line 1");
  EXPECT_EQ(ErrorOf("a: {b: 1,\n  'b': 2}"),
            "s.yaml: line 2: the key \"b\" is given twice, for the first time in line 1");
  EXPECT_TRUE(JsonOfYaml("a: {b: 1}\nb: {a: 1}", "s.yaml").ok());
  for (const char* number : {"0123", "-007", "0x1F", "0o17", "0b11", "00.5"}) {
    EXPECT_THAT(ErrorOf(std::string("a: ") + number),
                StartsWith(std::string("s.yaml: line 1: ") + number + " is read as different"));
    EXPECT_TRUE(JsonOfYaml(std::string("a: '") + number + "'", "s.yaml").ok());
  }
  EXPECT_EQ(ErrorOf("command: [train,\n  {lr}]"),
            "s.yaml: line 2: needs quotes: \"{lr}\" (without them it is an object to YAML)");
  EXPECT_THAT(ErrorOf("command:\n  - {batch.size}"), HasSubstr("line 2: needs quotes"));
  EXPECT_TRUE(JsonOfYaml("a: {}\nb: {c: }\nd: {e: null}", "s.yaml").ok());
}

}  // namespace
}  // namespace espalier
