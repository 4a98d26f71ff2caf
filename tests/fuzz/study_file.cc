// Study files, as a client of the service sends them, and in YAML, as the CLI reads them.

#include "tuner/study_file/study_file.h"

#include "base/json/json_depth.h"
#include "base/json/parse_json.h"
#include "tests/fuzz/input.h"
#include "tuner/study_file/yaml_text.h"

namespace espalier {
namespace {

const std::string kLabel = "study.json";

absl::StatusOr<StudySpec> Read(std::string_view text) {
  return ParseStudy(text, kLabel, "/", SpaceFiles::kRefused);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string text(fuzz::TextOf(data, size));
  const absl::StatusOr<std::string> of_yaml = JsonOfYaml(text, kLabel);
  ESPALIER_CHECK(!of_yaml.ok() || !ParseJson(*of_yaml).is_discarded(), "what YAML becomes is JSON");
  static_cast<void>(ReadForNotes(text));
  MaskEnvironment(text);
  const absl::StatusOr<StudySpec> study = Read(text);
  if (!study.ok()) return 0;
  const std::string written = WriteStudy(*study);
  ESPALIER_CHECK(!NestsDeeper(written), "a study is not stored deeper than it may be sent");
  const absl::StatusOr<StudySpec> again = Read(written);
  ESPALIER_CHECK(again.ok(), "what is stored of a study is one");
  ESPALIER_CHECK(*again == *study, "and the same");
  ESPALIER_CHECK(DifferencesOf(*study, *again).empty(), "key by key");
  ESPALIER_CHECK(CheckReadBack(*study, kLabel).ok(), "as storage asks");
  ESPALIER_CHECK(MaskEnvironment(written).size() <=
                     written.size() + study->environment.size() * sizeof(kMaskedValue),
                 "masking takes something away");
  DirectionNote(*study);
  return 0;
}
