#include "trial_runner/elastic/scaling_rules.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/elastic/noise_scale.h"

namespace espalier {
namespace {

using MadeRule = absl::StatusOr<std::shared_ptr<const ScalingRule>>;

double AdaScale(const ScalingContext& c) { return Gain(c.sqr, c.var, c.scale); }
double AdamScale(const ScalingContext& c) { return std::sqrt(Gain(c.sqr, c.var, c.scale)); }
double Linear(const ScalingContext& c) { return c.scale; }
double SquareRoot(const ScalingContext& c) { return std::sqrt(c.scale); }
double None(const ScalingContext&) { return 1.0; }

class FormulaRule final : public ScalingRule {
 public:
  explicit FormulaRule(double (*formula)(const ScalingContext&)) : formula_(formula) {}
  double Factor(const ScalingContext& context) const override { return formula_(context); }

 private:
  double (*formula_)(const ScalingContext&);
};

template <double (*formula)(const ScalingContext&)>
MadeRule Formula(const std::string& argument) {
  if (!argument.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("takes no argument, got \"", argument, "\""));
  }
  return std::make_shared<FormulaRule>(formula);
}

// Linear-epoch gradual warm-up: the warm-up lasts `scale` times as many epochs as the base batch's.
// Both are counted in scale-invariant steps, so it ends at the same point of training whatever the
// batch does meanwhile.
class LegwRule final : public ScalingRule {
 public:
  explicit LegwRule(double base_warmup_epochs) : epochs_(base_warmup_epochs) {}
  double Factor(const ScalingContext& c) const override {
    const double steps = epochs_ * c.scale * c.dataset_size / c.base_batch_size;
    return std::sqrt(c.scale) * (steps > 0 ? std::min(1.0, c.progress / steps) : 1.0);
  }

 private:
  const double epochs_;
};

MadeRule Legw(const std::string& argument) {
  constexpr double kUsualEpochs = 5;
  double epochs = kUsualEpochs;
  if (!argument.empty() &&
      (!absl::SimpleAtod(argument, &epochs) || !std::isfinite(epochs) || epochs < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes the warm-up epochs of the base batch, 0 or more, got \"", argument,
                     "\": want for instance legw:5"));
  }
  return std::make_shared<LegwRule>(epochs);
}

}  // namespace

const std::vector<ScalingRuleRow>& ScalingRules() {
  static const std::vector<ScalingRuleRow> kRules{
      {"adascale", "by the gain that the gradient noise allows (Johnson et al. 2020)",
       Formula<AdaScale>},
      {"adamscale", "square root of the gain, for Adam and its kin", Formula<AdamScale>},
      {"linear", "by the batch size", Formula<Linear>},
      {"sqrt", "by the square root of the batch size", Formula<SquareRoot>},
      {"legw",
       "square root, after a warm-up of N epochs (legw:N) times the scale (You et al. 2019)", Legw},
      {"none", "not at all", Formula<None>},
  };
  return kRules;
}

absl::StatusOr<std::shared_ptr<const ScalingRule>> FindScalingRule(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string name(text.substr(0, colon));
  const std::string argument(colon == text.npos ? "" : text.substr(colon + 1));
  std::string known;
  for (const ScalingRuleRow& row : ScalingRules()) {
    if (row.name == name) {
      MadeRule made = row.make(argument);
      if (made.ok()) return made;
      return absl::InvalidArgumentError(
          absl::StrCat("scaling rule \"", name, "\" ", std::string(made.status().message())));
    }
    known.append(known.empty() ? "" : ", ").append(row.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("scaling rule \"", std::string(text), "\" is unknown: known are ", known));
}

}  // namespace espalier
