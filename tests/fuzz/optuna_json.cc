// JSON as Python writes it: Optuna's distributions, the values of its parameters, attributes,
// constraints.

#include <limits>

#include "base/json/json_depth.h"
#include "base/json/python_json.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tests/fuzz/input.h"

namespace espalier {
namespace {

void ReadAsDistribution(std::string_view text) {
  const absl::StatusOr<OptunaDistribution> read = ParseOptunaDistribution(text);
  if (!read.ok()) return;
  const auto choices = static_cast<double>(read->choices.size());
  for (const double stored :
       {-1.0, 0.0, 0.5, choices - 1, choices, 1e300, -1e300,
        std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    OptunaValue(*read, stored);
  }
  for (const std::string& choice : read->choices) {
    ESPALIER_CHECK(CheckPythonJson(choice).ok(), "a choice is the JSON that Python wrote");
  }
}

void ReadAsJson(std::string_view text) {
  rapidjson::Document document;
  if (ParsePythonJson(text, document).IsError()) return;
  const std::string written = PythonJson(document);
  rapidjson::Document again;
  ESPALIER_CHECK(!ParsePythonJson(written, again).IsError(), "what is written is JSON");
  ESPALIER_CHECK(PythonJson(again) == written, "and is written in the same way");
  ESPALIER_CHECK(NestsDeeper(written) == NestsDeeper(text), "and is as deep");
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = espalier::fuzz::TextOf(data, size);
  espalier::ReadAsDistribution(text);
  espalier::ReadAsJson(text);
  const std::string constraint(text);
  espalier::ConstraintsIn({{"constraints", constraint}, {"constraints:0", constraint}});
  static_cast<void>(espalier::CheckPythonJson(text));
  return 0;
}
