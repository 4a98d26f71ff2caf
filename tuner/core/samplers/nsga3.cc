#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/samplers/children.h"
#include "tuner/core/samplers/reference_lines.h"

namespace espalier::samplers {
namespace {

// Who survives of equals is drawn anew in each generation, and alike for all its children.
constexpr std::uint64_t kNicheSeed = 0x6E73676133;

constexpr std::int64_t kDivisions = 3;

// What the lines go through: points that a study gives, or those of so many divisions.
struct LinePoints {
  std::shared_ptr<const Losses> given;  // null: none
  std::size_t divisions;

  Losses Of(std::size_t objectives) const {
    return given ? *given : ReferencePoints(objectives, divisions);
  }
  double Count(std::size_t objectives) const {
    return given ? static_cast<double>(given->size()) : ReferencePointCount(objectives, divisions);
  }
};

absl::StatusOr<LinePoints> LinePointsOf(const OptionValues& options) {
  const std::int64_t divisions = options.Whole("divisions");
  LinePoints points{nullptr, static_cast<std::size_t>(divisions)};
  const std::vector<std::vector<double>> rows = options.Rows("reference_points");
  if (rows.empty()) return points;
  if (divisions != kDivisions) {
    return OptionNeeds("divisions", absl::StrCat(kDivisions, " where reference_points are given"),
                       divisions);
  }
  if (rows.size() > kMostReferencePoints) {
    return OptionNeeds("reference_points", absl::StrCat("at most ", kMostReferencePoints),
                       rows.size());
  }
  Losses given(rows.front().size());
  for (const std::vector<double>& row : rows) {
    const bool within = std::all_of(row.begin(), row.end(), [](double x) { return x >= 0; }) &&
                        std::any_of(row.begin(), row.end(), [](double x) { return x > 0; });
    if (!within) {
      return OptionNeeds("reference_points", "numbers of at least 0, and one above it in each",
                         OptionValue::OfRows({row}));
    }
    given.Add(row);
  }
  points.given = std::make_shared<const Losses>(std::move(given));
  return points;
}

// Of the front that does not fit, those survive that are spread best over the reference lines (Deb
// & Jain 2014, algorithm 4). Points that are given have a number for each objective.
std::vector<std::size_t> ByReferenceLines(const Selection& selection, const LinePoints& points) {
  Population all = selection.chosen;
  all.insert(all.end(), selection.front.begin(), selection.front.end());
  const std::vector<NearestLine> lines = NearestLines(
      Normalized(LossesOf(all, selection.directions)), points.Of(selection.directions.size()));
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
                     .default_value = kDivisions,
                     .least = 1,
                     .most = 100,
                     .whole = true,
                     .meaning = "of each axis between reference points"});
  options.push_back({.name = "reference_points",
                     .meaning = "in place of those: points, a number for each objective",
                     .rows = true});
  return {{.name = "nsga3",
           .summary = "genetic algorithm NSGA-III: as nsga2, spread along reference lines",
           .options = std::move(options)},
          [](const OptionValues& values) -> absl::StatusOr<std::unique_ptr<Sampler>> {
            ESPALIER_ASSIGN_OR_RETURN(const Breeding breeding, BreedingOf(values));
            ESPALIER_ASSIGN_OR_RETURN(const LinePoints points, LinePointsOf(values));
            const auto select = [points](const Selection& selection) {
              return ByReferenceLines(selection, points);
            };
            // Each row is compared with each line.
            const auto work = [points](std::size_t objectives) {
              return 0.1 * static_cast<double>(objectives) * points.Count(objectives);
            };
            return MakeGeneticSampler(breeding, select, work,
                                      points.given ? points.given->objectives() : 0);
          }};
}

}  // namespace espalier::samplers
