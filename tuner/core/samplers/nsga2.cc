#include "tuner/core/samplers/children.h"

namespace espalier::samplers {
namespace {

// Of the front that does not fit, those survive that are least crowded (Deb et al. 2002, section
// III B).
std::vector<std::size_t> ByCrowding(const Selection& selection) {
  return LeastCrowded(ValuesOf(selection.front, selection.directions.size()), selection.count);
}

}  // namespace

PluginRow<Sampler> Nsga2Row() {
  return {{.name = "nsga2",
           .summary = "genetic algorithm NSGA-II: children of the best fronts so far",
           .options = BreedingOptions()},
          [](const OptionValues& options) -> absl::StatusOr<std::unique_ptr<Sampler>> {
            ESPALIER_ASSIGN_OR_RETURN(const Breeding breeding, BreedingOf(options));
            return MakeGeneticSampler(breeding, ByCrowding, [](std::size_t) { return 0.0; });
          }};
}

}  // namespace espalier::samplers
