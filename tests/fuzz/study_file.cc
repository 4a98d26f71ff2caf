// Study files, as a client of the service sends them, and in YAML, as the CLI reads them.

#include "tuner/study_file/study_file.h"

#include "base/json/json_depth.h"
#include "base/json/parse_json.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/study_texts.h"
#include "tuner/study_file/yaml_text.h"

namespace espalier {
namespace {

const std::string kLabel = "study.json";

constexpr fuzz::OpenObject kStudies[] = {
    {R"({"name": "a", "trials": 1, "search_space": {"x": {"_type": "choice", "_value": [1, 2]}},
         "command": )",
     "}"},
    {R"({"command": ["a"], "metric": false, "trials": 1, "name": )", "}"},
    {R"({"name": "a", "command": ["a"], "metric": false, "trials": 1, "directory": )", "}"},
    {R"({"name": "a", "command": ["a"], "metric": false, "trials": 1, "env": )", "}"},
    {R"({"name": "a", "command": ["a"], "metric": false, "trials": 1, "env": {"A": )", "}}"},
    {R"({"name": "a", "command": ["a"], "metric": false, "trials": 1, "needs": )", "}"},
    {R"({"name": "a", "command": ["a"], "metric": false, "trials": 1, "preload": )", "}"},
    {R"({"name": "a", "command": ["a"], "metric": false, "trials": 1, "launch": )", "}"},
    {R"({"name": "a", "command": ["a"], "trials": 1, "metric": )", "}"},
    {R"({"name": "a", "command": ["a"], "trials": 1, "search_space": )", "}"},
    {R"({"name": "a", "command": ["a"], "trials": 1, "sampler": )", "}"},
};

absl::StatusOr<StudySpec> Read(std::string_view text) {
  return ParseStudy(text, kLabel, "/", SpaceFiles::kRefused);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string text = fuzz::WholeOrValue(fuzz::TextOf(data, size), kStudies);
  const absl::StatusOr<std::string> of_yaml = JsonOfYaml(text, kLabel);
  ESPALIER_CHECK(!of_yaml.ok() || !ParseJson(*of_yaml).is_discarded(), "what YAML becomes is JSON");
  static_cast<void>(ReadForNotes(text));
  MaskEnvironment(text);
  const absl::StatusOr<StudySpec> study = Read(text);
  if (!study.ok()) return 0;
  fuzz::CheckTexts(*study);
  const std::string written = WriteStudy(*study);
  ESPALIER_CHECK(!NestsDeeper(written), "a study is not stored deeper than it may be sent");
  const absl::StatusOr<StudySpec> again = Read(written);
  ESPALIER_CHECK(again.ok(), "what is stored of a study is one");
  ESPALIER_CHECK(*again == *study, "and the same");
  ESPALIER_CHECK(DifferencesOf(*study, *again).empty(), "key by key");
  ESPALIER_CHECK(CheckReadBack(*study, kLabel).ok(), "as storage asks");
  // And without its wording, as studies that no file told are stored.
  StudySpec by_fields = *study;
  by_fields.wording = {};
  const absl::StatusOr<StudySpec> reread = Read(WriteStudy(by_fields));
  ESPALIER_CHECK(reread.ok(), "what is written by its fields is a study");
  ESPALIER_CHECK(*reread == by_fields, "and the same");
  ESPALIER_CHECK(MaskEnvironment(written).size() <=
                     written.size() + study->environment.size() * sizeof(kMaskedValue),
                 "masking takes something away");
  DirectionNote(*study);
  ParameterNote(*study);
  return 0;
}
