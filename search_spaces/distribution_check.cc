#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "search_spaces/distribution.h"
#include "search_spaces/overloaded.h"

namespace espalier {
namespace {

class Checker {
 public:
  Checker(std::string_view name, std::string_view type) : name_(name), type_(type) {}

  // search space "lr": loguniform needs low > 0, got 0
  absl::Status Needs(std::string_view what, const ParameterValue& got) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(), " needs ", std::string(what), ", got ", Text(got)));
  }

  absl::Status Finite(std::initializer_list<double> numbers) const {
    for (const double x : numbers) {
      if (!std::isfinite(x)) return Needs("finite numbers", x);
    }
    return absl::OkStatus();
  }

  absl::Status Bounds(double low, double high) const {
    ESPALIER_RETURN_IF_ERROR(Finite({low, high}));
    if (high <= low) return Order(low, high);
    if (!std::isfinite(high - low)) return Needs("high - low that a double can hold", high);
    return absl::OkStatus();
  }

  absl::Status Order(const ParameterValue& low, const ParameterValue& high) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(), " needs high > low, got low ", Text(low), " and high ", Text(high)));
  }

  absl::Status LogBounds(double low, double high) const {
    ESPALIER_RETURN_IF_ERROR(Finite({low, high}));
    if (low <= 0) return Needs("low > 0", low);
    return Bounds(low, high);
  }

  absl::Status Step(double q, double low, double high) const {
    ESPALIER_RETURN_IF_ERROR(Finite({q}));
    if (q <= 0) return Needs("q > 0", q);
    if (!(std::max(std::abs(low), std::abs(high)) / q < kMaxSteps)) {
      return Needs("a q that is not so small against its bounds", q);
    }
    return absl::OkStatus();
  }

  absl::Status Bell(double mu, double sigma) const {
    ESPALIER_RETURN_IF_ERROR(Finite({mu, sigma}));
    if (sigma <= 0) return Needs("sigma > 0", sigma);
    if (!std::isfinite(std::abs(mu) + 16 * sigma)) return Needs("a smaller sigma", sigma);
    return absl::OkStatus();
  }

  absl::Status Options(const Choice& choice) const {
    const auto& options = choice.options;
    if (options.empty()) {
      return absl::InvalidArgumentError(Prefix() + " needs at least one option, got []");
    }
    if (options.size() > kMaxOptions) {
      return Needs(absl::StrCat("at most ", kMaxOptions, " options"),
                   static_cast<std::int64_t>(options.size()));
    }
    for (auto option = options.begin(); option != options.end(); ++option) {
      if (const auto* d = std::get_if<double>(&*option)) ESPALIER_RETURN_IF_ERROR(Finite({*d}));
      const auto twin = std::find_if(options.begin(), option, [&](const ParameterValue& other) {
        return SameValue(other, *option);
      });
      if (twin != option) return Needs("different options, each once", *option);
    }
    return absl::OkStatus();
  }

 private:
  std::string Prefix() const { return absl::StrCat("search space \"", name_, "\": ", type_); }

  // JSON of numbers that JSON has, and the plain word for those it has not.
  static std::string Text(const ParameterValue& value) {
    const auto* d = std::get_if<double>(&value);
    if (d != nullptr && (!std::isfinite(*d) || *d == std::trunc(*d))) return ToDisplay(value);
    return ToJson(value);
  }

  std::string name_;
  std::string type_;
};

}  // namespace

absl::Status CheckDistribution(std::string_view name, const Distribution& distribution) {
  const Checker check(name, TypeName(distribution));
  return std::visit(Overloaded{[&](const Choice& d) { return check.Options(d); },
                               [&](const RandInt& d) {
                                 return d.high > d.low ? absl::OkStatus()
                                                       : check.Order(d.low, d.high);
                               },
                               [&](const Uniform& d) { return check.Bounds(d.low, d.high); },
                               [&](const QUniform& d) {
                                 ESPALIER_RETURN_IF_ERROR(check.Bounds(d.low, d.high));
                                 return check.Step(d.q, d.low, d.high);
                               },
                               [&](const LogUniform& d) { return check.LogBounds(d.low, d.high); },
                               [&](const QLogUniform& d) {
                                 ESPALIER_RETURN_IF_ERROR(check.LogBounds(d.low, d.high));
                                 return check.Step(d.q, d.low, d.high);
                               },
                               [&](const Normal& d) { return check.Bell(d.mu, d.sigma); },
                               [&](const QNormal& d) {
                                 ESPALIER_RETURN_IF_ERROR(check.Bell(d.mu, d.sigma));
                                 return check.Step(d.q, 0, 0);
                               },
                               [&](const LogNormal& d) { return check.Bell(d.mu, d.sigma); },
                               [&](const QLogNormal& d) {
                                 ESPALIER_RETURN_IF_ERROR(check.Bell(d.mu, d.sigma));
                                 return check.Step(d.q, 0, 0);
                               }},
                    distribution);
}

}  // namespace espalier
