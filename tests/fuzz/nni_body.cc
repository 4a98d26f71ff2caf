// Bodies of NNI's front end: experiments, submissions and parameters.

#include "adapters/nni/service/definition.h"
#include "adapters/nni/service/submission.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/study_texts.h"

namespace espalier::nni {
namespace {

constexpr std::string_view kExperiment = "fuzz";

constexpr fuzz::OpenObject kBodies[] = {
    {R"({"directory": "/", "command": )", "}"},
    {R"({"command": "a", "directory": )", "}"},
    {R"({"command": "a", "directory": "/", "checkpoint_directory": )", "}"},
    {R"({"command": "a", "directory": "/", "environment": )", "}"},
    {R"({"command": "a", "directory": "/", "environment": {"A": )", "}}"},
    {R"({"command": "a", "directory": "/", "promise_assessor": )", "}"},
    {R"({"parameter": )", "}"},
    {R"({"parameter": "{\"parameters\": 1}", "sequence": )", "}"},
};

void ReadAsDefinition(std::string_view body) {
  const absl::StatusOr<Definition> read = ReadDefinition(kExperiment, body);
  if (!read.ok()) return;
  fuzz::CheckTexts(read->study);
  fuzz::CheckText(read->checkpoint_directory);
  const absl::StatusOr<Definition> again = ReadDefinition(kExperiment, read->canonical);
  ESPALIER_CHECK(again.ok(), "what is kept of a definition is one");
  ESPALIER_CHECK(again->study == read->study, "and the same");
  ESPALIER_CHECK(DifferingKeys(read->canonical, again->canonical).empty(), "key by key");
  CheckpointFolder(read->canonical, "0");
}

void ReadAsSubmission(std::string_view body) {
  const absl::StatusOr<Submission> read = ReadSubmission(body);
  if (!read.ok()) return;
  ESPALIER_CHECK(read->parameter.find('\0') == std::string::npos,
                 "a parameter goes to a file that ends its text with a zero byte");
  const absl::StatusOr<Parameters> shown = ParametersFromRecord(ToJson(read->for_showing));
  ESPALIER_CHECK(shown.ok() && *shown == read->for_showing, "what is shown is stored, and read");
  ESPALIER_CHECK(
      ReadSubmission(R"({"parameter": )" + ToJson(ParameterValue(read->parameter)) + "}").ok(),
      "a parameter is taken again");
}

}  // namespace
}  // namespace espalier::nni

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body =
      espalier::fuzz::WholeOrValue(espalier::fuzz::TextOf(data, size), espalier::nni::kBodies);
  espalier::nni::ReadAsDefinition(body);
  espalier::nni::ReadAsSubmission(body);
  static_cast<void>(espalier::nni::ReadParameter(body));
  return 0;
}
