#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/json_text.h"
#include "search_spaces/overloaded.h"
#include "search_spaces/search_space.h"

namespace espalier {
namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

absl::Status Bad(std::string_view name, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("search space \"", std::string(name), "\"", std::string(what)));
}

// The numbers of one "_value", read by a row of the table below.
using Numbers = std::array<double, 3>;

template <typename Two>
Distribution MakeTwo(const Numbers& n) {
  return Two{n[0], n[1]};
}
template <typename Three>
Distribution MakeThree(const Numbers& n) {
  return Three{n[0], n[1], n[2]};
}

struct NumericType {
  const char* name;
  std::size_t count;
  const char* values;
  Distribution (*make)(const Numbers&);
};

constexpr NumericType kNumericTypes[] = {
    {"uniform", 2, "[low, high]", MakeTwo<Uniform>},
    {"quniform", 3, "[low, high, q]", MakeThree<QUniform>},
    {"loguniform", 2, "[low, high]", MakeTwo<LogUniform>},
    {"qloguniform", 3, "[low, high, q]", MakeThree<QLogUniform>},
    {"normal", 2, "[mu, sigma]", MakeTwo<Normal>},
    {"qnormal", 3, "[mu, sigma, q]", MakeThree<QNormal>},
    {"lognormal", 2, "[mu, sigma]", MakeTwo<LogNormal>},
    {"qlognormal", 3, "[mu, sigma, q]", MakeThree<QLogNormal>},
};

std::string KnownTypes() {
  std::string text = "choice, randint";
  for (const NumericType& type : kNumericTypes) absl::StrAppend(&text, ", ", type.name);
  return text;
}

absl::Status UnknownType(const std::string& name, const std::string& type) {
  if (type == "mutable_layer" || type == "layer_choice" || type == "input_choice") {
    return Bad(name, absl::StrCat(": \"", type,
                                  "\" describes a neural architecture search (NAS), not a "
                                  "hyperparameter; give the alternatives as a choice"));
  }
  return Bad(name, absl::StrCat(": unknown \"_type\" \"", type, "\"; known: ", KnownTypes()));
}

absl::StatusOr<Distribution> ParseChoice(const std::string& name, const Json& values) {
  Choice choice;
  for (const Json& option : values) {
    if (option.is_object() && option.contains("_name")) {
      return Bad(name, absl::StrCat(": nested choice is not supported yet, got ", Quote(option),
                                    "; give numbers, strings or booleans"));
    }
    absl::StatusOr<ParameterValue> value = search_spaces_json::ToParameterValue(option);
    if (!value.ok()) return Bad(name, absl::StrCat(": choice: ", value.status().message()));
    choice.options.push_back(*std::move(value));
  }
  return Distribution(std::move(choice));
}

absl::Status WrongCount(const std::string& name, const std::string& type, std::size_t count,
                        const std::string& shape, const Json& values) {
  return Bad(
      name, absl::StrCat(": ", type, " needs ", count, " values ", shape, ", got ", Quote(values)));
}

absl::StatusOr<Distribution> ParseRandInt(const std::string& name, const Json& values) {
  if (values.size() != 2) return WrongCount(name, "randint", 2, "[low, high)", values);
  std::array<std::int64_t, 2> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const absl::StatusOr<ParameterValue> value = search_spaces_json::ToParameterValue(values[i]);
    const auto* integer = value.ok() ? std::get_if<std::int64_t>(&*value) : nullptr;
    if (integer == nullptr) {
      return Bad(name, absl::StrCat(": randint needs integers of 64 bits, got ", Quote(values[i]),
                                    " in ", Quote(values)));
    }
    bounds[i] = *integer;
  }
  return Distribution(RandInt{bounds[0], bounds[1]});
}

absl::StatusOr<Distribution> ParseNumeric(const std::string& name, const NumericType& type,
                                          const Json& values) {
  if (values.size() != type.count) {
    return WrongCount(name, type.name, type.count, type.values, values);
  }
  Numbers numbers{};
  for (std::size_t i = 0; i < type.count; ++i) {
    if (!values[i].is_number()) {
      return Bad(name, absl::StrCat(": ", type.name, " needs numbers ", type.values, ", got ",
                                    Quote(values[i]), " in ", Quote(values)));
    }
    numbers[i] = values[i].get<double>();
  }
  return type.make(numbers);
}

absl::StatusOr<Distribution> ParseDistribution(const std::string& name, const Json& spec) {
  const std::string example = R"(, for example {"_type": "uniform", "_value": [0, 1]})";
  if (!spec.is_object()) {
    return Bad(name, absl::StrCat(": expected an object", example, ", got ", Quote(spec)));
  }
  for (const char* key : {"_type", "_value"}) {
    if (!spec.contains(key)) {
      return Bad(name, absl::StrCat(" has no \"", key, "\"", example, ", got ", Quote(spec)));
    }
  }
  const Json& type = spec["_type"];
  const Json& values = spec["_value"];
  if (!type.is_string()) {
    return Bad(name,
               absl::StrCat(": \"_type\" must be one of ", KnownTypes(), ", got ", Quote(type)));
  }
  const std::string type_name = type.get<std::string>();
  const NumericType* numeric = nullptr;
  for (const NumericType& row : kNumericTypes) {
    if (type_name == row.name) numeric = &row;
  }
  const bool known = numeric != nullptr || type_name == "choice" || type_name == "randint";
  if (!known) return UnknownType(name, type_name);
  if (!values.is_array()) {
    return Bad(name, absl::StrCat(": the \"_value\" of a ", type_name, " must be a list, got ",
                                  Quote(values)));
  }
  if (numeric != nullptr) return ParseNumeric(name, *numeric, values);
  return type_name == "choice" ? ParseChoice(name, values) : ParseRandInt(name, values);
}

Json ValuesOf(const Distribution& distribution) {
  const auto bounded = [](const auto& d) { return Json::array({d.low, d.high}); };
  const auto stepped = [](const auto& d) { return Json::array({d.low, d.high, d.q}); };
  const auto bell = [](const auto& d) { return Json::array({d.mu, d.sigma}); };
  const auto stepped_bell = [](const auto& d) { return Json::array({d.mu, d.sigma, d.q}); };
  return std::visit(
      Overloaded{[](const Choice& d) {
                   Json options = Json::array();
                   for (const ParameterValue& option : d.options) {
                     options.push_back(search_spaces_json::FromParameterValue(option));
                   }
                   return options;
                 },
                 [&](const RandInt& d) { return bounded(d); },
                 [&](const Uniform& d) { return bounded(d); },
                 [&](const QUniform& d) { return stepped(d); },
                 [&](const LogUniform& d) { return bounded(d); },
                 [&](const QLogUniform& d) { return stepped(d); },
                 [&](const Normal& d) { return bell(d); },
                 [&](const QNormal& d) { return stepped_bell(d); },
                 [&](const LogNormal& d) { return bell(d); },
                 [&](const QLogNormal& d) { return stepped_bell(d); }},
      distribution);
}

}  // namespace

absl::StatusOr<SearchSpace> SearchSpace::FromJson(std::string_view json) {
  ESPALIER_ASSIGN_OR_RETURN(const Json parsed, search_spaces_json::Parse("search space", json));
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "search space: expected a JSON object of parameters by name, got ", Quote(parsed)));
  }
  std::vector<Dimension> dimensions;
  for (const auto& [name, spec] : parsed.items()) {
    ESPALIER_ASSIGN_OR_RETURN(Distribution distribution, ParseDistribution(name, spec));
    dimensions.push_back({name, std::move(distribution)});
  }
  return Make(std::move(dimensions));
}

std::string SearchSpace::ToJson() const {
  Json object = Json::object();
  for (const auto& [name, distribution] : dimensions_) {
    object[name] = Json::object(
        {{"_type", std::string(TypeName(distribution))}, {"_value", ValuesOf(distribution)}});
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace espalier
