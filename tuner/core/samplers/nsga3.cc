#include "tuner/core/samplers/children.h"
#include "tuner/core/samplers/reference_lines.h"

namespace espalier::samplers {
namespace {

// Who survives of equals is drawn anew in each generation, and alike for all its children.
constexpr std::uint64_t kNicheSeed = 0x6E73676133;

// Of the front that does not fit, those survive that are spread best over the reference lines (Deb
// & Jain 2014, algorithm 4).
std::vector<std::size_t> ByReferenceLines(const Selection& selection, std::size_t divisions) {
  Population all = selection.chosen;
  all.insert(all.end(), selection.front.begin(), selection.front.end());
  const std::vector<NearestLine> lines =
      NearestLines(Normalized(LossesOf(all, selection.directions)),
                   ReferencePoints(selection.directions.size(), divisions));
  Random random(MixSeed(kNicheSeed, selection.generation));
  const std::size_t first = selection.chosen.size();
  std::vector<std::size_t> survivors = ChooseByLines(lines, first, selection.count, random);
  for (std::size_t& row : survivors) row -= first;
  return survivors;
}

}  // namespace

PluginRow<Sampler> Nsga3Row() {
  std::vector<PluginOption> options = BreedingOptions();
  options.push_back({.name = "divisions",
                     .default_value = 3,
                     .least = 1,
                     .most = 100,
                     .whole = true,
                     .meaning = "of each axis between reference points"});
  return {{.name = "nsga3",
           .summary = "genetic algorithm NSGA-III: as nsga2, spread along reference lines",
           .options = std::move(options)},
          [](const OptionValues& values) -> absl::StatusOr<std::unique_ptr<Sampler>> {
            ESPALIER_ASSIGN_OR_RETURN(const Breeding breeding, BreedingOf(values));
            const auto divisions = static_cast<std::size_t>(values.Whole("divisions"));
            const auto select = [divisions](const Selection& selection) {
              return ByReferenceLines(selection, divisions);
            };
            // Each row is compared with each line.
            const auto work = [divisions](std::size_t objectives) {
              return 0.1 * static_cast<double>(objectives) *
                     ReferencePointCount(objectives, divisions);
            };
            return MakeGeneticSampler(breeding, select, work);
          }};
}

}  // namespace espalier::samplers
