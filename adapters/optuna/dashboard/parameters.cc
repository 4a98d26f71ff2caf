#include "adapters/optuna/dashboard/parameters.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/optuna/dashboard/python_text.h"

namespace espalier::optuna_dashboard {

namespace {

std::string IntegerText(double value) { return absl::StrFormat("%.0f", value); }

}  // namespace

ShownValue ValueShown(const OptunaDistribution& distribution, double stored) {
  switch (distribution.type) {
    case OptunaDistribution::Type::kFloat:
      return {"<class 'float'>", PythonFloat(stored)};
    case OptunaDistribution::Type::kInt:
      return {"<class 'int'>", IntegerText(stored)};
    case OptunaDistribution::Type::kCategorical:
      break;
  }
  const bool known = stored >= 0 && stored < static_cast<double>(distribution.choices.size());
  if (!known) return {"<class 'float'>", PythonFloat(stored)};
  PythonValue value = ReadPython(distribution.choices[static_cast<std::size_t>(stored)]);
  return {absl::StrCat("<class '", value.type, "'>"), std::move(value.text)};
}

}  // namespace espalier::optuna_dashboard
