#include "adapters/nni/service/submission.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "adapters/nni/service/body.h"
#include "adapters/nni/service/names.h"

namespace espalier::nni {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kExample[] =
    R"("{\"parameter_id\": 0, \"parameter_source\": \"algorithm\", \"parameters\": {}}")";

absl::StatusOr<OrderedJson> ParseParameter(const std::string& text) {
  OrderedJson parameter = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parameter.is_object() && parameter.contains("parameters") &&
      parameter["parameters"].is_object()) {
    return parameter;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"parameter\": needs NNI's text of a parameter, such as ", kExample, ", got \"",
                   text.substr(0, 80), "\""));
}

// One at a time, so that one that has no flat form (a list, null) costs no other its own.
Parameters Flat(const OrderedJson& parameters) {
  if (auto all = ParametersFromJson(parameters.dump(-1, ' ', true)); all.ok()) {
    return *std::move(all);
  }
  Parameters flat;
  for (const auto& [name, value] : parameters.items()) {
    const OrderedJson alone = {{name, value}};
    if (const auto read = ParametersFromJson(alone.dump(-1, ' ', true)); read.ok()) {
      flat.insert(flat.end(), read->begin(), read->end());
    } else {
      flat.push_back({name, value.dump(-1, ' ', true)});
    }
  }
  return flat;
}

}  // namespace

absl::StatusOr<Submission> ReadSubmission(std::string_view text) {
  ESPALIER_ASSIGN_OR_RETURN(Body body, Body::Parse(text));
  Submission submission;
  submission.sequence = body.Integer("sequence", 0, kMaxSequence, 0);
  body.Needs("parameter", kExample);
  submission.parameter = body.Text("parameter");
  ESPALIER_RETURN_IF_ERROR(body.Finish());
  ESPALIER_ASSIGN_OR_RETURN(const OrderedJson parameter, ParseParameter(submission.parameter));
  submission.parameters = parameter["parameters"].dump();
  submission.for_showing = Flat(parameter["parameters"]);
  return submission;
}

absl::StatusOr<std::string> ReadParameter(std::string_view text) {
  ESPALIER_ASSIGN_OR_RETURN(Body body, Body::Parse(text));
  body.Needs("parameter", kExample);
  std::string parameter = body.Text("parameter");
  ESPALIER_RETURN_IF_ERROR(body.Finish());
  ESPALIER_RETURN_IF_ERROR(ParseParameter(parameter).status());
  return parameter;
}

}  // namespace espalier::nni
