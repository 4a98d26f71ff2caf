#include "base/json/metric_line.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "base/json/json_depth.h"
#include "base/json/python_json.h"

namespace espalier {
namespace {

constexpr double kMaxStep = 9007199254740992;  // every whole number up to it is a double

const rapidjson::Value* Member(const rapidjson::Value& object, std::string_view name) {
  const auto at = object.FindMember(
      rapidjson::Value(name.data(), static_cast<rapidjson::SizeType>(name.size())));
  return at == object.MemberEnd() ? nullptr : &at->value;
}

// The levels of the text are limited, and with them these calls.
const rapidjson::Value* Find(const rapidjson::Value& object, std::string_view name) {
  if (!object.IsObject()) return nullptr;
  if (const rapidjson::Value* found = Member(object, name)) return found;
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const rapidjson::Value* inner = Member(object, name.substr(0, dot));
    if (inner == nullptr) continue;
    if (const rapidjson::Value* found = Find(*inner, name.substr(dot + 1))) return found;
  }
  return nullptr;
}

std::optional<double> NumberIn(const rapidjson::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->IsNumber()) return value->GetDouble();
  double number = 0;
  if (value->IsString() &&
      absl::SimpleAtod(absl::string_view(value->GetString(), value->GetStringLength()), &number)) {
    return number;
  }
  return std::nullopt;
}

}  // namespace

MetricLine ReadMetricLine(std::string_view line, std::string_view value, std::string_view step,
                          const std::vector<std::string>& figures) {
  MetricLine read;
  rapidjson::Document record;
  if (NestsDeeper(line) || ParsePythonJson(line, record).IsError() || !record.IsObject()) {
    return read;
  }
  read.is_object = true;
  const rapidjson::Value* found = Find(record, value);
  read.value = NumberIn(found);
  if (!read.value) {
    if (found != nullptr) read.no_number = PythonJson(*found);
    for (const auto& member : record.GetObject()) {
      read.names.emplace_back(member.name.GetString(), member.name.GetStringLength());
    }
    return read;
  }
  for (const std::string& figure : figures) {
    if (const auto number = NumberIn(Find(record, figure))) read.figures.emplace(figure, *number);
  }
  const std::optional<double> at = NumberIn(Find(record, step));
  if (at && *at == std::floor(*at) && *at >= 0 && *at <= kMaxStep) {
    read.step = static_cast<std::int64_t>(*at);
  }
  return read;
}

}  // namespace espalier
