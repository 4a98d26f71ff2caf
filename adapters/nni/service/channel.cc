#include "adapters/nni/service/channel.h"

#include "absl/strings/str_cat.h"
#include "adapters/nni/service/body.h"
#include "adapters/nni/service/names.h"
#include "base/json/json_depth.h"
#include "base/json/python_json.h"
#include "tuner/api/json.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier::nni {

namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kIncarnationBytes = 4;
constexpr std::size_t kSecretBytes = 16;
constexpr std::size_t kMaxValueBytes = 1 << 20;

absl::StatusOr<RecordReport> ReadMetric(const std::string& text, std::string_view trial) {
  ESPALIER_ASSIGN_OR_RETURN(Body metric, Body::Parse(text));
  const std::string type = metric.Text("type");
  const std::string named = metric.Text("trial_job_id", std::string(trial));
  const std::int64_t sequence = metric.Integer("sequence", 0, kMaxSequence, 0);
  std::string parameter_id = metric.Json("parameter_id");
  if (parameter_id.empty()) parameter_id = "null";
  metric.Needs("value", "what is reported, a text of JSON");
  // NNI's SDK sends JSON in a text; plain JSON will do.
  const std::string json = metric.Json("value");
  const std::string value = json.starts_with('"') ? metric.Text("value") : json;
  ESPALIER_RETURN_IF_ERROR(metric.Finish());
  if (type != kPeriodical && type != kFinal) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"type\": needs \"PERIODICAL\" or \"FINAL\", got \"", type, "\""));
  }
  if (named != trial) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"trial_job_id\": this is the channel of trial \"", std::string(trial),
                     "\", got \"", named, "\""));
  }
  if (value.size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"value\": at most ", kMaxValueBytes, " bytes, got ", value.size()));
  }
  if (const absl::Status depth = CheckJsonDepth(value); !depth.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("\"value\": ", std::string(depth.message())));
  }
  RecordReport report;
  const bool final = type == kFinal;
  report.key =
      final ? absl::StrCat(kMetric, kFinal) : absl::StrCat(kMetric, kPeriodical, ":", sequence);
  report.value = absl::StrCat("{\"sequence\":", sequence, ",\"parameter_id\":", parameter_id,
                              ",\"value\":", QuoteJson(value), "}");
  report.number = NumberOf(value);
  if (!final) report.step = sequence + 1;
  return report;
}

}  // namespace

std::string NewChannelKey() { return RandomHexadecimal(kKeyBytes); }

std::string NewIncarnation() { return RandomHexadecimal(kIncarnationBytes); }

std::string ChannelSecret(std::string_view key, std::string_view experiment,
                          std::string_view trial) {
  const std::string message = absl::StrCat(std::string(experiment), "/", std::string(trial));
  return KeyedHash(key, message).substr(0, 2 * kSecretBytes);
}

std::string ChannelPath(std::string_view key, std::string_view experiment, std::string_view trial) {
  return absl::StrCat("/nni/v1/channel/", std::string(experiment), "/", std::string(trial), "/",
                      ChannelSecret(key, experiment, trial));
}

absl::StatusOr<ChannelRequest> ReadChannelRequest(std::string_view body, std::string_view trial) {
  ESPALIER_ASSIGN_OR_RETURN(Body request, Body::Parse(body));
  const std::string type = request.Text("type");
  const std::string metric = request.Text("metric");
  ESPALIER_RETURN_IF_ERROR(request.Finish());
  if (type == "request_parameter") return ChannelRequest{};
  if (type != "metric") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"type\": needs \"request_parameter\" or \"metric\", got \"", type, "\""));
  }
  ESPALIER_ASSIGN_OR_RETURN(RecordReport report, ReadMetric(metric, trial));
  return ChannelRequest{std::move(report)};
}

std::optional<double> NumberOf(const std::string& value) {
  rapidjson::Document json;
  if (ParsePythonJson(value, json).IsError()) return std::nullopt;
  const rapidjson::Value* number = &json;
  if (json.IsObject()) {
    const auto member = json.FindMember("default");
    if (member == json.MemberEnd()) return std::nullopt;
    number = &member->value;
  }
  if (!number->IsNumber()) return std::nullopt;
  return number->GetDouble();
}

}  // namespace espalier::nni
