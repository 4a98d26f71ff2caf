#include "search_spaces/formats/nni/sampling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/overloaded.h"
#include "search_spaces/portable_math.h"
#include "search_spaces/unit_interval.h"

namespace espalier {
namespace {

using Drawn = absl::StatusOr<ParameterValue>;

class Draws {
 public:
  explicit Draws(NumpyGenerator& generator) : generator_(generator) {}

  Drawn operator()(const Choice& d) const {
    return d.options[static_cast<std::size_t>(generator_.Integers(d.options.size()))];
  }
  // NNI takes the bounds by way of floating-point numbers.
  Drawn operator()(const RandInt& d) const {
    const auto low = static_cast<double>(d.low);
    const double width = static_cast<double>(d.high) - low;
    constexpr double kRange = 9223372036854775808.0;  // 2^63
    if (!(width >= 1 && width <= kRange)) {
      return absl::OutOfRangeError(absl::StrCat("NNI cannot draw one of ", width, " integers"));
    }
    const std::uint64_t index = generator_.Integers(static_cast<std::uint64_t>(width));
    if (low >= kRange) return absl::OutOfRangeError("NNI's integer is over 64 bits");
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(static_cast<std::int64_t>(low)) +
                                     index);
  }
  Drawn operator()(const Uniform& d) const { return generator_.Uniform(d.low, d.high); }
  Drawn operator()(const QUniform& d) const {
    return Clipped(generator_.Uniform(d.low, d.high), d);
  }
  Drawn operator()(const LogUniform& d) const { return LogarithmicallyUniform(d.low, d.high); }
  Drawn operator()(const QLogUniform& d) const {
    return Clipped(LogarithmicallyUniform(d.low, d.high), d);
  }
  Drawn operator()(const Normal& d) const { return generator_.Normal(d.mu, d.sigma); }
  Drawn operator()(const QNormal& d) const {
    return Finite(RoundToMultiple(generator_.Normal(d.mu, d.sigma), d.q));
  }
  Drawn operator()(const LogNormal& d) const {
    return Finite(PortableExp(generator_.Normal(d.mu, d.sigma)));
  }
  Drawn operator()(const QLogNormal& d) const {
    return Finite(RoundToMultiple(PortableExp(generator_.Normal(d.mu, d.sigma)), d.q));
  }

 private:
  double LogarithmicallyUniform(double low, double high) const {
    return PortableExp(generator_.Uniform(PortableLog(low), PortableLog(high)));
  }
  template <typename Bounded>
  static ParameterValue Clipped(double x, const Bounded& d) {
    return std::min(std::max(RoundToMultiple(x, d.q), d.low), d.high);
  }
  static Drawn Finite(double x) {
    if (std::isfinite(x)) return x;
    return absl::OutOfRangeError("NNI's value is over the largest floating-point number");
  }

  NumpyGenerator& generator_;
};

}  // namespace

absl::StatusOr<Parameters> SampleAsNni(const SearchSpace& space, NumpyGenerator& generator) {
  Parameters parameters;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const auto& [name, distribution, condition] = space.dimensions()[i];
    if (condition && !space.IsActive(i, parameters)) continue;
    Drawn value = std::visit(Draws(generator), distribution);
    if (!value.ok()) {
      return absl::OutOfRangeError(
          absl::StrCat("parameter \"", name, "\": ", value.status().message()));
    }
    parameters.push_back({name, *std::move(value)});
  }
  return parameters;
}

}  // namespace espalier
