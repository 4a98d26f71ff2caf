#include <algorithm>
#include <cmath>
#include <variant>

#include "search_spaces/unit_interval.h"
#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/low_discrepancy.h"

namespace espalier::samplers {
namespace {

static_assert(kMaxParameters <= kSobolDimensions);

// What an unbounded distribution gives where a sequence has 0, which is no place in it: its lowest
// thousandth. Only the first point of a sequence that is not scrambled has it.
constexpr double kForZero = 0x1.0p-10;

bool Unbounded(const Distribution& distribution) {
  return std::holds_alternative<Normal>(distribution) ||
         std::holds_alternative<QNormal>(distribution) ||
         std::holds_alternative<LogNormal>(distribution) ||
         std::holds_alternative<QLogNormal>(distribution);
}

// The value below which the distribution has this probability; the options of a choice are as
// probable as one another, in their order.
ParameterValue ValueOfUnit(const Distribution& distribution, double u) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    const auto count = static_cast<double>(choice->options.size());
    const auto index = static_cast<std::size_t>(std::floor(u * count));
    return choice->options[std::min(index, choice->options.size() - 1)];
  }
  return FromUnit(distribution, u == 0 && Unbounded(distribution) ? kForZero : u);
}

enum class Sequence { kSobol, kHalton };

// Quasi-Monte Carlo (Bergstra and Bengio 2012, section 4.3): each trial has the point of its own
// number in a sequence that fills the space more evenly than random draws do. Each parameter of the
// space has a coordinate, also one that exists under a condition. What was tried in a finite space
// is not tried again: such a trial has a random configuration of those that are left.
class QmcSampler final : public Sampler {
 public:
  QmcSampler(Sequence sequence, bool scramble) : sequence_(sequence), scramble_(scramble) {}

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const TriedConfigurations tried(input);
    if (tried.Exhausted()) return std::nullopt;
    Parameters point = PointOf(input);
    if (tried.Contains(point)) return tried.DrawNew(random);
    return point;
  }

 private:
  Parameters PointOf(const SamplerInput& input) const {
    const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(input.trial_number, 0));
    const auto& dimensions = input.space.dimensions();
    Parameters point;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (!input.space.IsActive(i, point)) continue;
      point.push_back({dimensions[i].name, ValueOfUnit(dimensions[i].distribution,
                                                       Coordinate(n, i, input.study_seed))});
    }
    return point;
  }

  double Coordinate(std::uint64_t n, std::size_t dimension, std::uint64_t seed) const {
    if (sequence_ == Sequence::kHalton) {
      return scramble_ ? ScrambledHaltonCoordinate(n, dimension, seed)
                       : HaltonCoordinate(n, dimension);
    }
    return scramble_ ? ScrambledSobolCoordinate(n, dimension, seed) : SobolCoordinate(n, dimension);
  }

  Sequence sequence_;
  bool scramble_;
};

}  // namespace

PluginRow<Sampler> QmcRow() {
  return {{.name = "qmc",
           .summary = "points of a sequence that fills the space evenly; learns nothing",
           .options = {{.name = "type", .meaning = "the sequence", .words = {"sobol", "halton"}},
                       {.name = "scramble",
                        .default_value = 1,
                        .meaning = "scrambles it in a random way that the study's seed decides",
                        .flag = true}}},
          [](const OptionValues& options) {
            return std::make_unique<QmcSampler>(options.Chosen<Sequence>("type"),
                                                options.Flag("scramble"));
          }};
}

}  // namespace espalier::samplers
