#include "tuner/study_file/population_key.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

constexpr std::size_t kMostFactors = 100;
constexpr std::size_t kMostParameters = 1000;

absl::Status ReadNames(const KeyValue& value, std::vector<std::string>& names) {
  const Json& json = value.json();
  if (!json.is_array() || json.empty() || json.size() > kMostParameters) {
    return value.Needs(R"(a list of parameters like ["lr"])");
  }
  names.clear();
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = absl::StrCat(std::string(value.key()), "[", i, "]");
    ESPALIER_RETURN_IF_ERROR(
        KeyValue(value.file(), place, json[i]).Text(kMaxNameBytes, names.emplace_back()));
  }
  return absl::OkStatus();
}

// How a member explores, and the keys that are of one way alone.
absl::Status ReadExplore(const KeyValue& value, const Json& population, Explore& explore) {
  std::string word;
  ESPALIER_RETURN_IF_ERROR(value.Text(kMaxNameBytes, word));
  if (word == "perturb") {
    explore = Explore::kPerturb;
    return absl::OkStatus();
  }
  if (word != "pb2") return value.Needs(R"("perturb" or "pb2")");
  explore = Explore::kPb2;
  for (const char* other : {"resample_probability", "factors"}) {
    if (population.contains(other)) {
      return value.Needs(absl::StrCat("\"perturb\" where \"", other, "\" is given"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadFactors(const KeyValue& value, std::vector<double>& factors) {
  const Json& json = value.json();
  if (!json.is_array() || json.empty() || json.size() > kMostFactors) {
    return value.Needs("a list of factors like [0.8, 1.2]");
  }
  factors.clear();
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = absl::StrCat(std::string(value.key()), "[", i, "]");
    ESPALIER_RETURN_IF_ERROR(KeyValue(value.file(), place, json[i]).Number(factors.emplace_back()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPopulation(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (!json.is_object()) {
    return value.Needs(R"(an object like {"interval": 5, "parameters": ["lr"]})");
  }
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(std::array<std::string_view, 6>{
      "interval", "quantile", "parameters", "explore", "resample_probability", "factors"}));
  PopulationSpec population;
  for (const char* needed : {"interval", "parameters"}) {
    if (!json.contains(needed)) {
      return value.Needs(
          absl::StrCat("\"", needed, "\" too, as in ", R"({"interval": 5, "parameters": ["lr"]})"));
    }
  }
  for (const auto& [name, of_name] : json.items()) {
    const std::string place = absl::StrCat("population.", name);
    const KeyValue own(value.file(), place, of_name);
    if (name == "interval") {
      ESPALIER_RETURN_IF_ERROR(own.Integer(1, kMaxCount, population.interval));
    } else if (name == "parameters") {
      ESPALIER_RETURN_IF_ERROR(ReadNames(own, population.parameters));
    } else if (name == "explore") {
      ESPALIER_RETURN_IF_ERROR(ReadExplore(own, json, population.explore));
    } else if (name == "factors") {
      ESPALIER_RETURN_IF_ERROR(ReadFactors(own, population.factors));
    } else if (name == "quantile") {
      ESPALIER_RETURN_IF_ERROR(own.Range("a share", 0.01, 0.5, population.quantile));
    } else {
      ESPALIER_RETURN_IF_ERROR(own.Range("a probability", 0, 1, population.resample_probability));
    }
  }
  spec.population = std::move(population);
  return absl::OkStatus();
}

Json PopulationJson(const StudySpec& spec) {
  const PopulationSpec& population = spec.population;
  if (!population.on()) return {};
  Json json{{"interval", population.interval}, {"parameters", population.parameters}};
  const PopulationSpec usual;
  if (population.quantile != usual.quantile) json["quantile"] = population.quantile;
  if (population.explore == Explore::kPb2) json["explore"] = "pb2";
  if (population.resample_probability != usual.resample_probability) {
    json["resample_probability"] = population.resample_probability;
  }
  if (population.factors != usual.factors) json["factors"] = population.factors;
  return json;
}

}  // namespace espalier
