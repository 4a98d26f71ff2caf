#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier {

// How a member that takes over another's state changes the parameters.
enum class Explore {
  kPerturb,  // by chance: PBT
  kPb2,      // by what the score has changed with others: PB2
};

// How the trials of a study train as a population: at equal steps the worst of them end, and clones
// of the best, with some parameters changed, go on in their place.
struct PopulationSpec {
  std::int64_t interval = 0;              // reported steps between comparisons; 0: it is none
  double quantile = 0.25;                 // of the members compared, at each end; above 0, to 0.5
  std::vector<std::string> parameters;    // that change; flat names
  double resample_probability = 0.25;     // that one is drawn anew
  std::vector<double> factors{0.8, 1.2};  // else a number is multiplied by one of these
  Explore explore = Explore::kPerturb;    // the two above are of kPerturb

  bool on() const { return interval > 0; }

  friend bool operator==(const PopulationSpec&, const PopulationSpec&) = default;
};

}  // namespace espalier
