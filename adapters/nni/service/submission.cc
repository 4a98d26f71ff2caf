#include "adapters/nni/service/submission.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/nni/service/body.h"
#include "adapters/nni/service/names.h"
#include "base/json/parse_json.h"

namespace espalier::nni {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kExample[] =
    R"("{\"parameter_id\": 0, \"parameter_source\": \"algorithm\", \"parameters\": {}}")";

absl::StatusOr<OrderedJson> ParseParameter(const std::string& text) {
  if (const absl::Status depth = CheckJsonDepth(text); !depth.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"parameter\": ", std::string(depth.message())));
  }
  auto parameter = ParseJson<OrderedJson>(text);
  if (parameter.is_object() && parameter.contains("parameters")) return parameter;
  return absl::InvalidArgumentError(
      absl::StrCat("\"parameter\": needs NNI's text of a parameter, such as ", kExample, ", got \"",
                   text.substr(0, 80), "\""));
}

// A tuner, or a user who adds a trial by hand, may also give a list or a number. It has no name of
// its own.
OrderedJson Named(OrderedJson parameters) {
  if (parameters.is_object()) return parameters;
  OrderedJson named;
  named["parameters"] = std::move(parameters);
  return named;
}

absl::StatusOr<Parameters> AsParameters(const OrderedJson& object) {
  return ParametersOrTextsFromJson(object.dump(-1, ' ', true));
}

// What has too long a flat form is shown as its text, and costs nothing else its own form. If there
// is too much of it together, all of it is shown as texts.
Parameters Flat(OrderedJson parameters) {
  if (auto all = AsParameters(parameters); all.ok()) return *std::move(all);
  Parameters texts;
  for (const auto& [name, value] : parameters.items()) {
    texts.push_back({name, value.dump(-1, ' ', true)});
    const OrderedJson alone = {{name, value}};
    if (!AsParameters(alone).ok()) value = value.dump(-1, ' ', true);
  }
  auto all = AsParameters(parameters);
  return all.ok() ? *std::move(all) : texts;
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
  const OrderedJson parameters = Named(parameter["parameters"]);
  submission.parameters = parameters.dump();
  submission.for_showing = Flat(parameters);
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
