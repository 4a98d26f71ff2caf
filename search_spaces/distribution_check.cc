#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search_spaces/distribution.h"
#include "search_spaces/overloaded.h"

namespace espalier {
namespace {

using Flaw = std::optional<DistributionFlaw>;

// The first flaw of several.
Flaw First(std::initializer_list<Flaw> flaws) {
  for (const Flaw& flaw : flaws) {
    if (flaw) return flaw;
  }
  return std::nullopt;
}

// JSON of numbers that JSON has, and the plain word for those it has not.
std::string Text(const ParameterValue& value) {
  const auto* d = std::get_if<double>(&value);
  if (d != nullptr && (!std::isfinite(*d) || *d == std::trunc(*d))) return ToDisplay(value);
  return ToJson(value);
}

// The places of the numbers in a "_value".
constexpr std::size_t kLow = 0;
constexpr std::size_t kHigh = 1;
constexpr std::size_t kMu = 0;
constexpr std::size_t kSigma = 1;
constexpr std::size_t kQ = 2;

class Checker {
 public:
  explicit Checker(std::string_view type) : type_(type) {}

  // loguniform needs low > 0, got 0
  Flaw Needs(std::size_t at, std::string_view what, const ParameterValue& got) const {
    return DistributionFlaw{at,
                            absl::StrCat(type_, " needs ", std::string(what), ", got ", Text(got))};
  }

  Flaw Finite(std::size_t at, double number) const {
    return std::isfinite(number) ? std::nullopt : Needs(at, "finite numbers", number);
  }

  Flaw Bounds(double low, double high) const {
    if (const Flaw flaw = First({Finite(kLow, low), Finite(kHigh, high)})) return flaw;
    if (high <= low) return Order(low, high);
    if (std::isfinite(high - low)) return std::nullopt;
    return Needs(kHigh, "high - low that a double can hold", high);
  }

  Flaw Order(const ParameterValue& low, const ParameterValue& high) const {
    return DistributionFlaw{std::nullopt, absl::StrCat(type_, " needs high > low, got low ",
                                                       Text(low), " and high ", Text(high))};
  }

  Flaw LogBounds(double low, double high) const {
    if (const Flaw flaw = First({Finite(kLow, low), Finite(kHigh, high)})) return flaw;
    return low <= 0 ? Needs(kLow, "low > 0", low) : Bounds(low, high);
  }

  Flaw Step(double q, double low, double high) const {
    if (const Flaw flaw = Finite(kQ, q)) return flaw;
    if (q <= 0) return Needs(kQ, "q > 0", q);
    if (std::max(std::abs(low), std::abs(high)) / q < kMaxSteps) return std::nullopt;
    return Needs(kQ, "a q by which there are at most 2^53 steps between its bounds", q);
  }

  Flaw Bell(double mu, double sigma) const {
    if (const Flaw flaw = First({Finite(kMu, mu), Finite(kSigma, sigma)})) return flaw;
    return sigma > 0 ? std::nullopt : Needs(kSigma, "sigma > 0", sigma);
  }

  // For values that are not logarithms.
  Flaw BellOfValues(double mu, double sigma) const {
    if (const Flaw flaw = Bell(mu, sigma)) return flaw;
    if (std::isfinite(FarthestFrom(mu, sigma))) return std::nullopt;
    return Needs(kSigma, "mu and sigma whose values a double can hold", sigma);
  }

  // Past all that is ever drawn.
  static double FarthestFrom(double mu, double sigma) {
    constexpr double kSigmas = 40;
    return std::abs(mu) + kSigmas * sigma;
  }

  Flaw Options(const Choice& choice) const {
    const auto& options = choice.options;
    if (options.empty()) {
      return DistributionFlaw{std::nullopt, type_ + " needs at least one option, got []"};
    }
    if (options.size() > kMaxOptions) {
      return Needs(kMaxOptions, absl::StrCat("at most ", kMaxOptions, " options"),
                   static_cast<std::int64_t>(options.size()));
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (Flaw flaw = Option(choice, i)) return flaw;
    }
    return std::nullopt;
  }

 private:
  Flaw Option(const Choice& choice, std::size_t i) const {
    const ParameterValue& option = choice.options[i];
    if (const auto* d = std::get_if<double>(&option); d != nullptr && !std::isfinite(*d)) {
      return Needs(i, "finite numbers", *d);
    }
    const auto* name = std::get_if<std::string>(&option);
    if (choice.nested && (name == nullptr || name->empty())) {
      return Needs(i, "options whose \"_name\" is a text that is not empty", option);
    }
    const auto end = choice.options.begin() + static_cast<std::ptrdiff_t>(i);
    const bool repeated =
        std::any_of(choice.options.begin(), end,
                    [&option](const ParameterValue& o) { return SameValue(o, option); });
    if (!repeated) return std::nullopt;
    return Needs(i,
                 choice.nested ? "options of different \"_name\"" : "different options, each once",
                 option);
  }

  std::string type_;
};

}  // namespace

std::optional<DistributionFlaw> FlawOf(const Distribution& distribution) {
  const Checker check(TypeName(distribution));
  return std::visit(
      Overloaded{[&](const Choice& d) { return check.Options(d); },
                 [&](const RandInt& d) {
                   return d.high > d.low ? std::nullopt : check.Order(d.low, d.high);
                 },
                 [&](const Uniform& d) { return check.Bounds(d.low, d.high); },
                 [&](const QUniform& d) {
                   return First({check.Bounds(d.low, d.high), check.Step(d.q, d.low, d.high)});
                 },
                 [&](const LogUniform& d) { return check.LogBounds(d.low, d.high); },
                 [&](const QLogUniform& d) {
                   return First({check.LogBounds(d.low, d.high), check.Step(d.q, d.low, d.high)});
                 },
                 [&](const Normal& d) { return check.BellOfValues(d.mu, d.sigma); },
                 [&](const QNormal& d) {
                   return First({check.BellOfValues(d.mu, d.sigma),
                                 check.Step(d.q, 0, Checker::FarthestFrom(d.mu, d.sigma))});
                 },
                 [&](const LogNormal& d) { return check.Bell(d.mu, d.sigma); },
                 [&](const QLogNormal& d) {
                   return First({check.Bell(d.mu, d.sigma), check.Step(d.q, 0, 0)});
                 }},
      distribution);
}

}  // namespace espalier
