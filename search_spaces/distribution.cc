#include "search_spaces/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "search_spaces/overloaded.h"
#include "search_spaces/unit_interval.h"

namespace espalier {
namespace {

// The multiples of q that draws from [low, high] round to, first and last. A tie at a bound counts
// for the inner multiple: the bound alone has no probability.
struct Multiples {
  double first;
  double last;
};

template <typename Bounded>
Multiples MultiplesOf(const Bounded& d) {
  const double first = std::floor(d.low / d.q + 0.5);
  return {first, std::max(first, std::ceil(d.high / d.q - 0.5))};
}

template <typename Bounded>
bool ContainsMultiple(const Bounded& d, double x) {
  const double nearest = std::clamp(RoundToMultiple(x, d.q), d.low, d.high);
  return std::abs(x - nearest) <= 1e-9 * d.q;
}

template <typename Unbounded>
bool IsMultiple(const Unbounded& d, double x) {
  return std::abs(x - RoundToMultiple(x, d.q)) <= 1e-9 * d.q;
}

bool HasOption(const Choice& choice, const ParameterValue& value) {
  return std::any_of(choice.options.begin(), choice.options.end(),
                     [&value](const ParameterValue& o) { return SameValue(o, value); });
}

// Whole, and in range before it is made an integer.
bool ContainsInteger(const RandInt& d, const ParameterValue& value) {
  const auto* i = std::get_if<std::int64_t>(&value);
  return i != nullptr && *i >= d.low && *i < d.high;
}

bool ContainsNumber(const Distribution& distribution, double x) {
  return std::visit(
      Overloaded{[](const Choice&) { return false; }, [](const RandInt&) { return false; },
                 [x](const Uniform& d) { return x >= d.low && x <= d.high; },
                 [x](const QUniform& d) { return ContainsMultiple(d, x); },
                 [x](const LogUniform& d) { return x >= d.low && x <= d.high; },
                 [x](const QLogUniform& d) { return ContainsMultiple(d, x); },
                 [](const Normal&) { return true; },
                 [x](const QNormal& d) { return IsMultiple(d, x); },
                 [x](const LogNormal&) { return x >= 0; },
                 [x](const QLogNormal& d) { return x >= 0 && IsMultiple(d, x); }},
      distribution);
}

template <typename Bounded>
std::optional<std::uint64_t> CountMultiples(const Bounded& d) {
  const Multiples multiples = MultiplesOf(d);
  return static_cast<std::uint64_t>(multiples.last - multiples.first) + 1;
}

template <typename Bounded>
ParameterValue MultipleAt(const Bounded& d, std::uint64_t index) {
  const double multiple = MultiplesOf(d).first + static_cast<double>(index);
  return std::clamp(multiple * d.q, d.low, d.high);
}

template <typename Bounded>
std::uint64_t MultipleIndex(const Bounded& d, double x) {
  const Multiples multiples = MultiplesOf(d);
  const double multiple = std::clamp(std::nearbyint(x / d.q), multiples.first, multiples.last);
  return static_cast<std::uint64_t>(multiple - multiples.first);
}

std::uint64_t OptionIndex(const Choice& choice, const ParameterValue& value) {
  std::size_t i = 0;
  while (!SameValue(choice.options[i], value)) ++i;
  return i;
}

}  // namespace

std::string_view TypeName(const Distribution& distribution) {
  constexpr std::array<std::string_view, std::variant_size_v<Distribution>> kNames = {
      "choice",      "randint", "uniform", "quniform",  "loguniform",
      "qloguniform", "normal",  "qnormal", "lognormal", "qlognormal"};
  return kNames[distribution.index()];
}

ParameterValue Draw(const Distribution& distribution, Random& random) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    return choice->options[random.Below(choice->options.size())];
  }
  if (const auto* d = std::get_if<RandInt>(&distribution)) {
    const auto low = static_cast<std::uint64_t>(d->low);
    return static_cast<std::int64_t>(low + random.Below(static_cast<std::uint64_t>(d->high) - low));
  }
  return FromUnit(distribution, random.Uniform());
}

bool Contains(const Distribution& distribution, const ParameterValue& value) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) return HasOption(*choice, value);
  if (const auto* d = std::get_if<RandInt>(&distribution)) return ContainsInteger(*d, value);
  const std::optional<double> x = NumberOf(value);
  return x && std::isfinite(*x) && ContainsNumber(distribution, *x);
}

std::optional<std::uint64_t> Cardinality(const Distribution& distribution) {
  using Count = std::optional<std::uint64_t>;
  return std::visit(Overloaded{[](const Choice& d) -> Count { return d.options.size(); },
                               [](const RandInt& d) -> Count {
                                 return static_cast<std::uint64_t>(d.high) -
                                        static_cast<std::uint64_t>(d.low);
                               },
                               [](const QUniform& d) { return CountMultiples(d); },
                               [](const QLogUniform& d) { return CountMultiples(d); },
                               [](const auto&) -> Count { return std::nullopt; }},
                    distribution);
}

ParameterValue ValueAt(const Distribution& distribution, std::uint64_t index) {
  ESPALIER_CHECK(Cardinality(distribution).value_or(0) > index, "no value of this number");
  return std::visit(
      Overloaded{[index](const Choice& d) { return d.options[index]; },
                 [index](const RandInt& d) -> ParameterValue {
                   return static_cast<std::int64_t>(static_cast<std::uint64_t>(d.low) + index);
                 },
                 [index](const QUniform& d) { return MultipleAt(d, index); },
                 [index](const QLogUniform& d) { return MultipleAt(d, index); },
                 [](const auto&) -> ParameterValue { return 0.0; }},  // excluded by the check
      distribution);
}

std::optional<std::uint64_t> IndexOf(const Distribution& distribution,
                                     const ParameterValue& value) {
  if (!Contains(distribution, value)) return std::nullopt;
  using Index = std::optional<std::uint64_t>;
  return std::visit(
      Overloaded{[&](const Choice& d) -> Index { return OptionIndex(d, value); },
                 [&](const RandInt& d) -> Index {
                   return static_cast<std::uint64_t>(std::get<std::int64_t>(value)) -
                          static_cast<std::uint64_t>(d.low);
                 },
                 [&](const QUniform& d) -> Index { return MultipleIndex(d, *NumberOf(value)); },
                 [&](const QLogUniform& d) -> Index { return MultipleIndex(d, *NumberOf(value)); },
                 [](const auto&) -> Index { return std::nullopt; }},
      distribution);
}

std::string Describe(const Distribution& distribution) {
  const std::string type(TypeName(distribution));
  const auto number = [](double x) { return ToDisplay(ParameterValue(x)); };
  const auto range = [&](const auto& d) {
    return absl::StrCat(type, " ", number(d.low), " to ", number(d.high));
  };
  const auto bell = [&](const auto& d) {
    return absl::StrCat(type, " mu ", number(d.mu), ", sigma ", number(d.sigma));
  };
  const auto steps = [&](double q) { return absl::StrCat(" in steps of ", number(q)); };
  return std::visit(
      Overloaded{
          [&](const Choice& d) {
            std::string text = type + " of ";
            for (std::size_t i = 0; i < d.options.size(); ++i) {
              absl::StrAppend(&text, i == 0 ? "" : ", ", ToDisplay(d.options[i]));
            }
            return text;
          },
          [&](const RandInt& d) { return absl::StrCat(type, " ", d.low, " to ", d.high - 1); },
          [&](const Uniform& d) { return range(d); },
          [&](const QUniform& d) { return range(d) + steps(d.q); },
          [&](const LogUniform& d) { return range(d); },
          [&](const QLogUniform& d) { return range(d) + steps(d.q); },
          [&](const Normal& d) { return bell(d); },
          [&](const QNormal& d) { return bell(d) + steps(d.q); },
          [&](const LogNormal& d) { return bell(d); },
          [&](const QLogNormal& d) { return bell(d) + steps(d.q); }},
      distribution);
}

}  // namespace espalier
