// bench: tuning - studies of poolbench on virtual time: time and final best beside ASHA at one slot
// a trial and beside other policies
//
// Usage: bench_tuning [--seeds N] [--first-seed N] [--cells N:G,...] [--peers 0]
// Trials of every contender run the same configurations; slots are on nodes of eight. Bounded
// studies end when all their trials have; streams of trials end when one reports the target (ASHA
// and ours only: where each slot has a trial of its own there is nothing to divide).
// Every policy pays 1 s a resize in the first table, what it was measured to take in the second.
// The pruner's defaults were chosen with seeds 0 to 99 and 1000 to 1099 in sight; the default here is
// seeds that nobody had looked at.
//
// Below each table stands a bound: the fastest trial that ends at least as well as ASHA's best,
// alone from the start on its best number of slots, over ASHA's time. Who knew it beforehand would
// take that long; nobody who has to find it can.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "allocator/policies/policy.h"
#include "tests/benchmarks/paired.h"
#include "tuner/simulator/poolbench_load.h"
#include "tuner/simulator/study_simulator.h"

namespace espalier {
namespace {

constexpr int kSlotsPerNode = 8;
constexpr double kSameCost_s = 1;
constexpr double kSameValue = 1e-9;
constexpr double kStreamHorizon_s = 6 * 3600;

struct Contender {
  std::string name;
  PluginSpec policy;
  PluginSpec pruner;
  double own_cost_s = 0;  // of a resize, as measured; 0: only the same cost as all
  bool peer = false;
};

struct Cell {
  int trials = 0;  // 0: a stream
  int slots = 0;

  friend auto operator<=>(const Cell&, const Cell&) = default;
};

struct Result {
  double seconds = 0;  // to the end, or to the target
  double best = 0;
  double use = 0;
  double bound_s = 0;  // of the baseline: see above
};

// Results by seed, of one contender in one cell at one cost of a resize.
using Series = std::vector<Result>;

constexpr std::size_t kOurs = 1;

struct Job {
  Cell cell;
  std::size_t contender = 0;
  bool own_cost = false;

  friend auto operator<=>(const Job&, const Job&) = default;
};

const PluginSpec kAsha{"asha", {{"min_steps", 1}, {"eta", 3}, {"max_steps", 81}}};

// The first is the baseline, the second ours.
std::vector<Contender> Contenders(bool with_peers) {
  std::vector<Contender> all = {
      {"ASHA, one slot", {"fixed", {}}, kAsha, 0, false},
      {"ours: asha_promise", {"promise_goodput", {}}, {"asha_promise", {}}, 0.004, false},
      {"promise_goodput, ASHA", {"promise_goodput", {}}, kAsha, 0, false},
  };
  const std::vector<Contender> peers = {
      {"top_job", {"top_job", {}}, kAsha, 2.0, true},
      {"hypersched", {"hypersched", {}}, kAsha, 2.0, true},
      {"fluid", {"fluid", {}}, kAsha, 2.0, true},
      {"pollux", {"pollux", {}}, kAsha, 8.3, true},
  };
  const std::vector<std::string> known = PolicyNames();
  for (const Contender& peer : peers) {
    const bool there = std::find(known.begin(), known.end(), peer.policy.name) != known.end();
    if (with_peers && there) all.push_back(peer);
  }
  return all;
}

Result RunOne(const Cell& cell, const Contender& contender, double resize_s, std::uint64_t seed) {
  const auto load = MakePoolbenchLoad({.seed = seed});
  StudySpec spec = load->Study();
  spec.policy = contender.policy;
  spec.pruner = contender.pruner;
  spec.max_trials = cell.trials;
  StudySimulationOptions options;
  for (int i = 0; i < cell.slots / kSlotsPerNode; ++i) {
    options.pool.nodes.push_back({"node-" + std::to_string(i), kSlotsPerNode});
  }
  options.pool.resize_s = resize_s;
  options.target = kPoolbenchTarget;
  if (cell.trials == 0) {
    spec.target = kPoolbenchTarget;
    spec.time_limit_s = kStreamHorizon_s;
  }
  const auto simulation = SimulateStudy(*load, spec, options);
  if (!simulation.ok() || !simulation->figures.ended) {
    std::fprintf(stderr, "%s, seed %d: %s\n", contender.name.c_str(), static_cast<int>(seed),
                 simulation.ok() ? "did not end" : simulation.status().ToString().c_str());
    std::exit(1);
  }
  const StudyFigures& f = simulation->figures;
  return {f.finish_s, f.best.value_or(1), f.slot_use, 0};
}

// Of the cell's trials that end no worse than `best`, the least time to run one alone.
double SecondsOfFastest(const Cell& cell, std::uint64_t seed, double best) {
  const Poolbench bench;
  Random random(seed);
  double fastest_s = HUGE_VAL;
  for (int i = 0; i < cell.trials; ++i) {
    const PoolbenchConfiguration c = SamplePoolbench(random);
    if (bench.Errors(c).back() > best) continue;
    for (int slots = 1; slots <= cell.slots; ++slots) {
      fastest_s = std::min(fastest_s, kPoolbenchEpochs * PoolbenchEpochSeconds(c, slots));
    }
  }
  return fastest_s;
}

std::map<Job, Series> RunAll(const std::vector<Cell>& cells,
                             const std::vector<Contender>& contenders, int seeds, int first_seed) {
  std::map<Job, Series> all;
  for (const Cell& cell : cells) {
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      if (cell.trials == 0 && c > kOurs) continue;
      all[{cell, c, false}].resize(static_cast<std::size_t>(seeds));
      // In a stream every slot has a trial of its own from the start on, and nothing is resized.
      if (contenders[c].own_cost_s > 0 && cell.trials > 0) {
        all[{cell, c, true}].resize(static_cast<std::size_t>(seeds));
      }
    }
  }
  std::vector<std::pair<const Job*, Series*>> work;
  for (auto& [job, series] : all) work.emplace_back(&job, &series);
  const std::size_t count = work.size() * static_cast<std::size_t>(seeds);
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      const auto& [job, series] = work[i % work.size()];
      const std::size_t nth = i / work.size();
      const std::uint64_t seed = static_cast<std::uint64_t>(first_seed) + nth;
      const Contender& contender = contenders[job->contender];
      const double resize_s = job->own_cost ? contender.own_cost_s : kSameCost_s;
      Result& result = (*series)[nth];
      result = RunOne(job->cell, contender, resize_s, seed);
      if (job->contender == 0) {
        result.bound_s = SecondsOfFastest(job->cell, seed, result.best + kSameValue);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(2U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(run);
  }
  run();
  for (std::thread& thread : threads) thread.join();
  return all;
}

std::vector<double> Ratios(const Series& a, const Series& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i].seconds / b[i].seconds);
  return ratios;
}

// How much worse a's best is than b's, and by the test, whether that is chance.
struct Quality {
  double mean = 0;
  double worse = 1;   // probability that it is not worse
  double better = 1;  // and that it is not better
};
Quality QualityOf(const Series& a, const Series& b) {
  std::vector<double> more;
  std::vector<double> less;
  Quality quality;
  for (std::size_t i = 0; i < a.size(); ++i) {
    more.push_back(a[i].best - b[i].best);
    less.push_back(-more.back());
    quality.mean += more.back() / static_cast<double>(a.size());
  }
  quality.worse = ProbabilityNotAbove(more);
  quality.better = ProbabilityNotAbove(less);
  return quality;
}

bool Slower(const Series& a, const Series& b) {
  std::vector<double> more;
  for (const double ratio : Ratios(a, b)) more.push_back(std::log(ratio));
  return ProbabilityNotAbove(more) < kSignificant;
}

double MedianOf(const Series& series, double Result::*field) {
  std::vector<double> values;
  for (const Result& result : series) values.push_back(result.*field);
  return Median(values);
}

class Report {
 public:
  Report(std::vector<Contender> contenders, std::map<Job, Series> all)
      : contenders_(std::move(contenders)), all_(std::move(all)) {}

  void Table(const Cell& cell, bool own_cost) const {
    if (cell.trials > 0) {
      std::printf("\n%d trials on %d slots, ", cell.trials, cell.slots);
    } else {
      std::printf("\nstream of trials on %d slots until %.3f, ", cell.slots, kPoolbenchTarget);
    }
    std::printf(own_cost ? "each its own cost of a resize\n" : "%g s a resize\n", kSameCost_s);
    std::printf("%-24s %9s %21s %9s %10s %7s %7s %7s\n", "", "median s", "over ASHA (95 %)", "best",
                "less ASHA", "p worse", "p better", "in use");
    const Series& baseline = Of(cell, 0, own_cost);
    for (std::size_t c = 0; c < contenders_.size(); ++c) {
      if (!Ran(cell, c)) continue;
      const Series& series = Of(cell, c, own_cost);
      const std::vector<double> ratios = Ratios(series, baseline);
      const Interval interval = MedianInterval(ratios);
      const Quality quality = QualityOf(series, baseline);
      std::printf("%-24s %9.1f %6.3f (%6.3f %6.3f) %9.5f %+10.5f %7.3f %7.3f %6.1f%%\n",
                  contenders_[c].name.c_str(), MedianOf(series, &Result::seconds), Median(ratios),
                  interval.low, interval.high, MedianOf(series, &Result::best), quality.mean,
                  quality.worse, quality.better, 100 * MedianOf(series, &Result::use));
    }
    if (cell.trials > 0) std::printf("%-24s %16.3f\n", "bound", BoundOverAsha(cell));
  }

  double BoundOverAsha(const Cell& cell) const {
    std::vector<double> ratios;
    for (const Result& result : Of(cell, 0, false)) {
      ratios.push_back(result.bound_s / result.seconds);
    }
    return Median(ratios);
  }

  double OverAsha(const Cell& cell, std::size_t ours) const {
    return Median(Ratios(Of(cell, ours, false), Of(cell, 0, false)));
  }
  bool QualityLost(const Cell& cell, std::size_t ours) const {
    return QualityOf(Of(cell, ours, false), Of(cell, 0, false)).worse < kSignificant;
  }
  // Peers that are significantly faster or end significantly better in the cell.
  int LostToPeers(const Cell& cell, std::size_t ours, bool own_cost) const {
    int lost = 0;
    const Series& own = Of(cell, ours, own_cost);
    for (std::size_t c = 0; c < contenders_.size(); ++c) {
      if (!contenders_[c].peer || !Ran(cell, c)) continue;
      const Series& peer = Of(cell, c, own_cost);
      const bool slower = Slower(own, peer);
      const bool worse = cell.trials > 0 && QualityOf(own, peer).worse < kSignificant;
      if (!slower && !worse) continue;
      ++lost;
      std::printf("lost: %d trials on %d slots%s: %s%s%s than %s\n", cell.trials, cell.slots,
                  own_cost ? ", own costs" : "", slower ? "slower" : "",
                  slower && worse ? " and " : "", worse ? "worse" : "",
                  contenders_[c].name.c_str());
    }
    return lost;
  }

 private:
  bool Ran(const Cell& cell, std::size_t contender) const {
    return all_.contains({cell, contender, false});
  }
  // Without resizes the cost does not matter.
  const Series& Of(const Cell& cell, std::size_t contender, bool own_cost) const {
    const auto own = all_.find({cell, contender, own_cost});
    return own != all_.end() ? own->second : all_.at({cell, contender, false});
  }

  std::vector<Contender> contenders_;
  std::map<Job, Series> all_;
};

struct Arguments {
  int seeds = 100;
  int first_seed = 2000;
  bool peers = true;
  std::vector<Cell> cells = {{32, 8}, {32, 32}, {128, 8}, {128, 32}, {0, 8}, {0, 32}};
};

std::vector<Cell> ParseCells(const std::string& text) {
  std::vector<Cell> cells;
  for (const char* at = text.c_str(); *at != '\0';) {
    Cell cell;
    int read = 0;
    if (std::sscanf(at, "%d:%d%n", &cell.trials, &cell.slots, &read) != 2 ||
        cell.slots < kSlotsPerNode) {
      std::fprintf(stderr, "--cells \"%s\": want TRIALS:SLOTS,... with 8 slots or more\n", at);
      std::exit(2);
    }
    cells.push_back(cell);
    at += read;
    if (*at == ',') ++at;
  }
  return cells;
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seeds") {
      arguments.seeds = std::max(1, std::atoi(argv[i + 1]));
    } else if (flag == "--first-seed") {
      arguments.first_seed = std::max(0, std::atoi(argv[i + 1]));
    } else if (flag == "--peers") {
      arguments.peers = std::atoi(argv[i + 1]) != 0;
    } else if (flag == "--cells") {
      arguments.cells = ParseCells(argv[i + 1]);
    } else {
      std::fprintf(stderr, "\"%s\": want --seeds N, --first-seed N, --cells N:G,... or --peers 0\n",
                   argv[i]);
      std::exit(2);
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const std::vector<Contender> contenders = Contenders(arguments.peers);
  const Report report(contenders,
                      RunAll(arguments.cells, contenders, arguments.seeds, arguments.first_seed));
  double time_over_asha = 0;
  double stream_over_asha = 0;
  int quality_lost = 0;
  int cells_lost = 0;
  int cells_lost_own = 0;
  double bound = 0;  // in the cell that decides time_over_asha
  for (const bool own_cost : {false, true}) {
    for (const Cell& cell : arguments.cells) {
      if (!own_cost || cell.trials > 0) report.Table(cell, own_cost);
    }
  }
  std::printf("\n");
  for (const Cell& cell : arguments.cells) {
    const double over = report.OverAsha(cell, kOurs);
    if (cell.trials > 0 && over > time_over_asha) bound = report.BoundOverAsha(cell);
    (cell.trials > 0 ? time_over_asha : stream_over_asha) =
        std::max(over, cell.trials > 0 ? time_over_asha : stream_over_asha);
    quality_lost += cell.trials > 0 && report.QualityLost(cell, kOurs) ? 1 : 0;
    cells_lost += report.LostToPeers(cell, kOurs, false);
    if (cell.trials > 0) cells_lost_own += report.LostToPeers(cell, kOurs, true);
  }
  std::printf(
      "{\"time_over_asha\": %.4f, \"quality_lost\": %d, \"stream_over_asha\": %.4f, "
      "\"cells_lost\": %d, \"cells_lost_own_cost\": %d, \"bound_over_asha\": %.4f, \"seeds\": %d, "
      "\"first_seed\": %d}\n",
      time_over_asha, quality_lost, stream_over_asha, cells_lost, cells_lost_own, bound,
      arguments.seeds, arguments.first_seed);
  return 0;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::Main(argc, argv); }
