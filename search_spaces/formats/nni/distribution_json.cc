#include "search_spaces/formats/nni/distribution_json.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/json_places.h"
#include "search_spaces/overloaded.h"

namespace espalier::search_spaces_json {
namespace {

constexpr char kExample[] = R"(, for example {"_type": "uniform", "_value": [0, 1]})";

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

// Types that NNI had or that people look for, and what to write instead.
std::string InsteadOf(const std::string& type) {
  if (type == "mutable_layer" || type == "layer_choice" || type == "input_choice") {
    return absl::StrCat("\"", type,
                        "\" describes a neural architecture search (NAS), not a hyperparameter; "
                        "give the alternatives as a choice");
  }
  if (type == "qrandint") {
    return "unknown \"_type\" \"qrandint\": NNI has none; give the integers as a choice, or "
           "quniform [low, high, q] for multiples of q";
  }
  return absl::StrCat("unknown \"_type\" \"", type, "\"; known: ", KnownTypes());
}

class Reader {
 public:
  DistributionReading Read(const Json& spec) {
    if (!spec.is_object()) {
      Bad("", absl::StrCat("expected an object", kExample, ", got ", Quote(spec)));
      return {std::nullopt, std::move(flaws_)};
    }
    for (const char* key : {"_type", "_value"}) {
      if (spec.contains(key)) continue;
      Bad("", absl::StrCat("has no \"", key, "\"", kExample, ", got ", Quote(spec)));
    }
    std::optional<Distribution> distribution;
    if (flaws_.empty()) distribution = OfType(spec["_type"], spec["_value"]);
    if (!flaws_.empty()) distribution.reset();
    return {std::move(distribution), std::move(flaws_)};
  }

 private:
  void Bad(const std::string& pointer, std::string what) {
    flaws_.push_back({pointer, std::move(what)});
  }

  std::optional<Distribution> OfType(const Json& type, const Json& values) {
    if (!type.is_string()) {
      Bad("/_type", absl::StrCat("\"_type\" must be one of ", KnownTypes(), ", got ", Quote(type)));
      return std::nullopt;
    }
    const std::string name = type.get<std::string>();
    const auto* numeric = std::find_if(std::begin(kNumericTypes), std::end(kNumericTypes),
                                       [&](const NumericType& row) { return name == row.name; });
    const bool is_numeric = numeric != std::end(kNumericTypes);
    if (!is_numeric && name != "choice" && name != "randint") {
      Bad("/_type", InsteadOf(name));
    } else if (!values.is_array()) {
      Bad("/_value",
          absl::StrCat("the \"_value\" of a ", name, " must be a list, got ", Quote(values)));
    } else if (is_numeric) {
      return Numeric(*numeric, values);
    } else {
      return name == "choice" ? OfOptions(values) : Integers(values);
    }
    return std::nullopt;
  }

  void CheckCount(const std::string& type, std::size_t count, const char* shape,
                  const Json& values) {
    if (values.size() == count) return;
    Bad("/_value",
        absl::StrCat(type, " needs ", count, " values ", shape, ", got ", Quote(values)));
  }

  Distribution Numeric(const NumericType& type, const Json& values) {
    CheckCount(type.name, type.count, type.values, values);
    Numbers numbers{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!values[i].is_number()) {
        Bad(PointerTo("/_value", i),
            absl::StrCat(type.name, " needs numbers ", type.values, ", got ", Quote(values[i]),
                         " in ", Quote(values)));
      } else if (i < numbers.size()) {
        numbers[i] = values[i].get<double>();
      }
    }
    return type.make(numbers);
  }

  Distribution Integers(const Json& values) {
    CheckCount("randint", 2, "[low, high)", values);
    std::array<std::int64_t, 2> bounds{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const absl::StatusOr<ParameterValue> value = ToParameterValue(values[i]);
      const auto* integer = value.ok() ? std::get_if<std::int64_t>(&*value) : nullptr;
      if (integer == nullptr) {
        Bad(PointerTo("/_value", i), absl::StrCat("randint needs integers of 64 bits, got ",
                                                  Quote(values[i]), " in ", Quote(values)));
      } else if (i < bounds.size()) {
        bounds[i] = *integer;
      }
    }
    return RandInt{bounds[0], bounds[1]};
  }

  Distribution OfOptions(const Json& values) {
    const bool nested = std::any_of(values.begin(), values.end(), [](const Json& option) {
      return option.is_object() && option.contains("_name");
    });
    Choice choice{{}, nested};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (nested) {
        NestedOption(values[i], PointerTo("/_value", i), choice);
      } else {
        PlainOption(values[i], PointerTo("/_value", i), choice);
      }
    }
    return choice;
  }

  void PlainOption(const Json& option, const std::string& pointer, Choice& choice) {
    absl::StatusOr<ParameterValue> value = ToParameterValue(option);
    if (value.ok()) {
      choice.options.push_back(*std::move(value));
    } else if (option.is_object()) {
      Bad(pointer, absl::StrCat("choice: an option that is an object needs a \"_name\", got ",
                                Quote(option)));
    } else {
      Bad(pointer, absl::StrCat("choice: ", value.status().message()));
    }
  }

  void NestedOption(const Json& option, const std::string& pointer, Choice& choice) {
    if (!option.is_object() || !option.contains("_name")) {
      Bad(pointer, absl::StrCat("choice: where one option has a \"_name\", each must be an object "
                                "with one, got ",
                                Quote(option)));
    } else if (const Json& name = option["_name"]; !name.is_string()) {
      Bad(PointerTo(pointer, "_name"),
          absl::StrCat("choice: \"_name\" must be a text, got ", Quote(name)));
    } else {
      choice.options.emplace_back(name.get<std::string>());
    }
  }

  std::vector<LocalFlaw> flaws_;
};

}  // namespace

DistributionReading ReadDistribution(const Json& spec) { return Reader().Read(spec); }

Json ValuesOf(const Distribution& distribution) {
  const auto bounded = [](const auto& d) { return Json::array({d.low, d.high}); };
  const auto stepped = [](const auto& d) { return Json::array({d.low, d.high, d.q}); };
  const auto bell = [](const auto& d) { return Json::array({d.mu, d.sigma}); };
  const auto stepped_bell = [](const auto& d) { return Json::array({d.mu, d.sigma, d.q}); };
  return std::visit(Overloaded{[](const Choice& d) {
                                 Json options = Json::array();
                                 for (const ParameterValue& option : d.options) {
                                   options.push_back(FromParameterValue(option));
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

}  // namespace espalier::search_spaces_json
