#include "allocator/policies/pollux.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "allocator/policies/nsga2.h"
#include "allocator/policies/pollux_fitness.h"
#include "allocator/policies/pollux_search.h"
#include "allocator/policies/settings.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"
#include "allocator/pool/transition.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

constexpr double kClockRounding_s = 1e-6;

struct PolluxSettings {
  double interval_s = 60;
  double generations = 100;
  double population = 100;
  double seed = 1;
  PolluxFitnessOptions fitness{};
};

class Pollux : public Policy {
 public:
  explicit Pollux(const PolluxSettings& settings)
      : settings_(settings), random_(static_cast<std::uint64_t>(settings.seed)) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool);
    Mend(board, /*reclaim=*/false);
    const bool due =
        !searched_at_s_ || pool.now_s - *searched_at_s_ >= settings_.interval_s - kClockRounding_s;
    Sizes sizes(board);
    if (due && board.size() > 0 && board.total_capacity() > 0) {
      searched_at_s_ = pool.now_s;
      SearchOn(board, pool, sizes);
    }
    sizes.Settle(/*reclaim=*/false);
    return sizes.Decisions();
  }

 private:
  // The best front of a search, by the ids it was about.
  struct Memory {
    std::vector<TrialId> trials;  // of the rows
    std::vector<NodeId> nodes;    // of the columns
    std::vector<Genome> front;
  };

  void SearchOn(Board& board, const Pool& pool, Sizes& sizes);
  std::vector<Genome> FirstPopulation(const PolluxSearch& search, const Memory& now) const;

  const PolluxSettings settings_;
  Random random_;
  std::optional<double> searched_at_s_;
  Memory last_;
};

std::vector<Genome> Pollux::FirstPopulation(const PolluxSearch& search, const Memory& now) const {
  if (last_.front.empty()) return {search.base()};
  std::map<TrialId, std::size_t> old_rows;
  for (std::size_t r = 0; r < last_.trials.size(); ++r) old_rows[last_.trials[r]] = r;
  std::map<NodeId, std::size_t> old_columns;
  for (std::size_t n = 0; n < last_.nodes.size(); ++n) old_columns[last_.nodes[n]] = n;
  std::vector<Genome> first(last_.front.size(), Genome(search.base().size(), 0));
  for (std::size_t r = 0; r < now.trials.size(); ++r) {
    const auto row = old_rows.find(now.trials[r]);
    if (row == old_rows.end()) continue;
    for (std::size_t n = 0; n < now.nodes.size(); ++n) {
      const auto column = old_columns.find(now.nodes[n]);
      if (column == old_columns.end()) continue;
      for (std::size_t i = 0; i < first.size(); ++i) {
        first[i][r * now.nodes.size() + n] =
            last_.front[i][row->second * last_.nodes.size() + column->second];
      }
    }
  }
  return first;
}

void Pollux::SearchOn(Board& board, const Pool& pool, Sizes& sizes) {
  PolluxSearch search(board, pool, settings_.fitness);
  Memory now;
  for (std::size_t r = 0; r < search.rows(); ++r) {
    now.trials.push_back(board.seat(search.seat_of(r)).job->id);
  }
  for (const NodeCapacity& node : pool.nodes) now.nodes.push_back(node.id);
  std::sort(now.nodes.begin(), now.nodes.end());
  const std::vector<Candidate> found =
      Nsga2(search, FirstPopulation(search, now),
            {.population = static_cast<int>(settings_.population),
             .generations = static_cast<int>(settings_.generations)},
            random_);
  for (const Candidate& candidate : found) {
    if (candidate.rank == 0) now.front.push_back(candidate.genome);
  }
  last_ = std::move(now);
  const Candidate& best =
      *std::min_element(found.begin(), found.end(),
                        [](const Candidate& a, const Candidate& b) { return a.costs < b.costs; });

  std::vector<Shares> planned(board.size());
  for (std::size_t r = 0; r < search.rows(); ++r) {
    for (std::size_t n = 0; n < search.columns(); ++n) {
      const int slots = best.genome[r * search.columns() + n];
      if (slots > 0) planned[search.seat_of(r)].push_back({static_cast<int>(n), slots});
    }
  }
  KeepMovesPossible(board, planned);
  const double before = -search.Evaluate(search.base())[0];
  const std::string why = absl::StrFormat(
      "the best allocation found has fitness %.4f, this one %.4f", -best.costs[0], before);
  sizes.Take(planned, [&why](std::size_t) { return why; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakePollux(const Options& options) {
  PolluxSettings settings;
  const std::array known = {SettingRow{"interval_s", &settings.interval_s},
                            SettingRow{"generations", &settings.generations, 1, 10000},
                            SettingRow{"population", &settings.population, 2, 10000},
                            SettingRow{"fairness", &settings.fitness.fairness, -100, 1},
                            SettingRow{"restart_delay_s", &settings.fitness.restart_delay_s},
                            SettingRow{"seed", &settings.seed, 0, 9007199254740992.0}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("pollux", options, known));
  return std::make_unique<Pollux>(settings);
}

}  // namespace espalier
