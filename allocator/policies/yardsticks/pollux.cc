#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "allocator/policies/policy.h"
#include "allocator/policies/yardsticks/nsga2.h"
#include "allocator/policies/yardsticks/pollux_fitness.h"
#include "allocator/policies/yardsticks/pollux_search.h"
#include "allocator/policies/yardsticks/rounds.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"
#include "allocator/pool/transition.h"

namespace espalier::policies {

namespace {

struct PolluxSettings {
  double interval_s;
  int generations;
  int population;
  std::uint64_t seed;
  PolluxFitnessOptions fitness;
};

// Pollux (Qiao et al., OSDI 2021) as its artifact has it (petuum/adaptdl, branch osdi21-artifact,
// simulator/pollux.py): every minute NSGA-II looks for the allocation with the greatest power mean
// of speedups (pollux_fitness.h) and, as the second objective, utility of the nodes in use. It
// starts from the best front of the last search. Blind to the metric of a trial.
//
// Differences: between two searches lost slots are mended and waiting trials get their minimum on
// free slots; a trial without a model stays at its minimum; draining nodes, GPU types and trials
// that are being resized are respected; moves that would wait for each other are left out
// (transition.h); no cluster autoscaling.
class Pollux : public Policy {
 public:
  explicit Pollux(const PolluxSettings& settings) : settings_(settings), random_(settings.seed) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool);
    Mend(board, /*reclaim=*/false);
    const bool due = RoundIsDue(searched_at_s_, pool.now_s, settings_.interval_s);
    Sizes sizes(board);
    if (due && board.size() > 0 && board.total_capacity() > 0) {
      searched_at_s_ = pool.now_s;
      SearchOn(board, pool, sizes);
    }
    sizes.Settle(/*reclaim=*/false);
    return sizes.Decisions();
  }
  bool settles() const override { return false; }
  bool preempts() const override { return true; }

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
    now.trials.push_back(board.holder(search.holder_of(r)).job->id);
  }
  for (const NodeCapacity& node : pool.nodes) now.nodes.push_back(node.id);
  std::sort(now.nodes.begin(), now.nodes.end());
  const std::vector<Candidate> found =
      Nsga2(search, FirstPopulation(search, now),
            {.population = settings_.population, .generations = settings_.generations}, random_);
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
      if (slots > 0) planned[search.holder_of(r)].push_back({static_cast<int>(n), slots});
    }
  }
  KeepMovesPossible(board, planned);
  const double before = -search.Evaluate(search.base())[0];
  const std::string why = absl::StrFormat(
      "the best allocation found has fitness %.4f, this one %.4f", -best.costs[0], before);
  sizes.Take(planned, [&why](std::size_t) { return why; });
}

}  // namespace

PluginRow<Policy> PolluxRow() {
  return {
      {.name = "pollux",
       .summary = "genetic search each minute for the highest power mean of speedups (OSDI 2021)",
       .options = {{.name = "interval_s",
                    .default_value = 60,
                    .meaning = "seconds from one search to the next"},
                   {.name = "generations",
                    .default_value = 100,
                    .least = 1,
                    .most = 10000,
                    .whole = true,
                    .meaning = "generations of a search"},
                   {.name = "population",
                    .default_value = 100,
                    .least = 2,
                    .most = 10000,
                    .whole = true,
                    .meaning = "allocations in a generation"},
                   {.name = "fairness",
                    .default_value = PolluxFitnessOptions{}.fairness,
                    .least = -100,
                    .most = 1,
                    .meaning =
                        "exponent of the power mean of speedups; 0: geometric; lower is fairer"},
                   {.name = "restart_delay_s",
                    .default_value = PolluxFitnessOptions{}.restart_delay_s,
                    .meaning = "seconds that a restart is assumed to cost"},
                   {.name = "seed",
                    .default_value = 1,
                    .most = 9007199254740992,
                    .whole = true,
                    .meaning = "seed of the search"}}},
      [](const OptionValues& options) {
        return std::make_unique<Pollux>(
            PolluxSettings{.interval_s = options["interval_s"],
                           .generations = static_cast<int>(options.Whole("generations")),
                           .population = static_cast<int>(options.Whole("population")),
                           .seed = static_cast<std::uint64_t>(options.Whole("seed")),
                           .fitness = {.fairness = options["fairness"],
                                       .restart_delay_s = options["restart_delay_s"]}});
      }};
}

}  // namespace espalier::policies
