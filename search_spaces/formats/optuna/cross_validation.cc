#include "search_spaces/formats/optuna/cross_validation.h"

#include <rapidjson/document.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/json/python_json.h"

namespace espalier {

double CrossValidationError(const std::map<std::string, std::string>& system_attributes) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const auto at = system_attributes.find(std::string(kCrossValidationScores));
  if (at == system_attributes.end()) return kUnknown;
  rapidjson::Document json;
  if (ParsePythonJson(at->second, json).IsError() || !json.IsArray() || json.Size() < 2) {
    return kUnknown;
  }
  const double count = json.Size();
  double sum = 0;
  for (const rapidjson::Value& score : json.GetArray()) {
    if (!score.IsNumber()) return kUnknown;
    sum += score.GetDouble();
  }
  double squares = 0;
  for (const rapidjson::Value& score : json.GetArray()) {
    const double off = score.GetDouble() - sum / count;
    squares += off * off;
  }
  const double error = std::sqrt((1 / count + 1 / (count - 1)) * squares / count);
  return std::isfinite(error) ? error : kUnknown;
}

}  // namespace espalier
