// bench: tuning - studies of poolbench on virtual time: time and final best beside ASHA at one slot
// a trial and beside other policies
//
// Usage: bench_tuning [--seeds N] [--first-seed N] [--cells N:G,...] [--resize-s S] [--peers 0]
// [--smoke] Trials of every contender run the same configurations; slots are on nodes of eight.
// Bounded studies end when all their trials have; streams of trials end when one reports the target
// (ASHA and ours only: where each slot has a trial of its own there is nothing to divide). Policies
// are compared with the same pruner, once with ASHA and once with asha_promise, and all pay the
// same for a resize. What the pruner brings alone stands in the line "one slot, asha_promise", what
// growth brings alone in "promise_goodput, ASHA".
// The pruner's defaults were chosen with seeds 0 to 99 and 1000 to 1099 in sight; the default here
// is seeds that nobody had looked at.
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
#include "tests/benchmarks/programs/paired.h"
#include "tuner/simulator/poolbench_load.h"
#include "tuner/simulator/study_simulator.h"

namespace espalier {
namespace {

constexpr int kSlotsPerNode = 8;
constexpr double kSameValue = 1e-9;
constexpr double kStreamHorizon_s = 6 * 3600;

struct Contender {
  std::string name;
  PluginSpec policy;
  PluginSpec pruner;
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
constexpr std::size_t kPrunerAlone = 2;
constexpr std::size_t kGrowthAlone = 3;

struct Job {
  Cell cell;
  std::size_t contender = 0;

  friend auto operator<=>(const Job&, const Job&) = default;
};

const PluginSpec kAsha{"asha", {{"min_steps", 1}, {"eta", 3}, {"max_steps", 81}}};

const PluginSpec kAshaPromise{"asha_promise", {}};

// In the order of the constants above; the first is the baseline.
std::vector<Contender> Contenders(bool with_peers) {
  std::vector<Contender> all = {
      {"one slot, ASHA", {"fixed", {}}, kAsha},
      {"promise_goodput, asha_promise", {"promise_goodput", {}}, kAshaPromise},
      {"one slot, asha_promise", {"fixed", {}}, kAshaPromise},
      {"promise_goodput, ASHA", {"promise_goodput", {}}, kAsha},
  };
  if (!with_peers) return all;
  for (const char* policy :
       {"optimus", "utility_cost", "sia", "hypersched", "pollux", "fluid", "top_job"}) {
    for (const PluginSpec& pruner : {kAshaPromise, kAsha}) {
      const std::string name =
          std::string(policy) + (pruner == kAsha ? ", ASHA" : ", asha_promise");
      all.push_back({name, {policy, {}}, pruner, true});
    }
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

// The least time to run alone one of the cell's trials that end no worse than `best`.
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
                             const std::vector<Contender>& contenders, int seeds, int first_seed,
                             double resize_s) {
  std::map<Job, Series> all;
  for (const Cell& cell : cells) {
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      if (cell.trials == 0 && c > kOurs) continue;
      all[{cell, c}].resize(static_cast<std::size_t>(seeds));
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

  void Table(const Cell& cell, double resize_s) const {
    if (cell.trials > 0) {
      std::printf("\n%d trials on %d slots, ", cell.trials, cell.slots);
    } else {
      std::printf("\nstream of trials on %d slots until %.3f, ", cell.slots, kPoolbenchTarget);
    }
    std::printf("%g s a resize\n", resize_s);
    std::printf("%-30s %9s %21s %9s %10s %7s %7s %7s\n", "", "median s", "over ASHA (95 %)", "best",
                "less ASHA", "p worse", "p better", "in use");
    const Series& baseline = Of(cell, 0);
    for (std::size_t c = 0; c < contenders_.size(); ++c) {
      if (!Ran(cell, c)) continue;
      const Series& series = Of(cell, c);
      const std::vector<double> ratios = Ratios(series, baseline);
      const Interval interval = MedianInterval(ratios);
      const Quality quality = QualityOf(series, baseline);
      std::printf("%-30s %9.1f %6.3f (%6.3f %6.3f) %9.5f %+10.5f %7.3f %7.3f %6.1f%%\n",
                  contenders_[c].name.c_str(), MedianOf(series, &Result::seconds), Median(ratios),
                  interval.low, interval.high, MedianOf(series, &Result::best), quality.mean,
                  quality.worse, quality.better, 100 * MedianOf(series, &Result::use));
    }
    if (cell.trials > 0) std::printf("%-30s %16.3f\n", "bound", BoundOverAsha(cell));
  }

  double BoundOverAsha(const Cell& cell) const {
    std::vector<double> ratios;
    for (const Result& result : Of(cell, 0)) {
      ratios.push_back(result.bound_s / result.seconds);
    }
    return Median(ratios);
  }

  double OverAsha(const Cell& cell, std::size_t contender) const {
    return Median(Ratios(Of(cell, contender), Of(cell, 0)));
  }
  bool QualityLost(const Cell& cell, std::size_t contender) const {
    return QualityOf(Of(cell, contender), Of(cell, 0)).worse < kSignificant;
  }
  // Peers that are significantly faster or end significantly better in the cell.
  int LostToPeers(const Cell& cell) const {
    int lost = 0;
    const Series& own = Of(cell, kOurs);
    for (std::size_t c = 0; c < contenders_.size(); ++c) {
      if (!contenders_[c].peer || !Ran(cell, c)) continue;
      const Series& peer = Of(cell, c);
      const bool slower = Slower(own, peer);
      const bool worse = cell.trials > 0 && QualityOf(own, peer).worse < kSignificant;
      if (!slower && !worse) continue;
      ++lost;
      std::printf("lost: %d trials on %d slots: %s%s%s than %s\n", cell.trials, cell.slots,
                  slower ? "slower" : "", slower && worse ? " and " : "", worse ? "worse" : "",
                  contenders_[c].name.c_str());
    }
    return lost;
  }

 private:
  bool Ran(const Cell& cell, std::size_t contender) const {
    return all_.contains({cell, contender});
  }
  const Series& Of(const Cell& cell, std::size_t contender) const {
    return all_.at({cell, contender});
  }

  std::vector<Contender> contenders_;
  std::map<Job, Series> all_;
};

struct Arguments {
  int seeds = 100;
  int first_seed = 2000;
  double resize_s = 1;
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
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--smoke") {
      arguments.seeds = 1;
      arguments.cells = {{4, 8}, {0, 8}};
      --i;
    } else if (i + 1 < argc && flag == "--seeds") {
      arguments.seeds = std::max(1, std::atoi(argv[i + 1]));
    } else if (i + 1 < argc && flag == "--first-seed") {
      arguments.first_seed = std::max(0, std::atoi(argv[i + 1]));
    } else if (i + 1 < argc && flag == "--peers") {
      arguments.peers = std::atoi(argv[i + 1]) != 0;
    } else if (i + 1 < argc && flag == "--resize-s") {
      arguments.resize_s = std::max(0.0, std::atof(argv[i + 1]));
    } else if (i + 1 < argc && flag == "--cells") {
      arguments.cells = ParseCells(argv[i + 1]);
    } else {
      std::fprintf(
          stderr,
          "\"%s\": want --seeds N, --first-seed N, --cells N:G,..., --resize-s S, --peers 0 or "
          "--smoke\n",
          argv[i]);
      std::exit(2);
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const std::vector<Contender> contenders = Contenders(arguments.peers);
  const Report report(contenders, RunAll(arguments.cells, contenders, arguments.seeds,
                                         arguments.first_seed, arguments.resize_s));
  double time_over_asha = 0;
  double pruner_alone = 0;
  double growth_alone = 0;
  double stream_over_asha = 0;
  int quality_lost = 0;
  int cells_lost = 0;
  double bound = 0;  // in the cell that decides time_over_asha
  for (const Cell& cell : arguments.cells) report.Table(cell, arguments.resize_s);
  std::printf("\n");
  for (const Cell& cell : arguments.cells) {
    const double over = report.OverAsha(cell, kOurs);
    if (cell.trials == 0) {
      stream_over_asha = std::max(stream_over_asha, over);
      continue;
    }
    if (over > time_over_asha) bound = report.BoundOverAsha(cell);
    time_over_asha = std::max(time_over_asha, over);
    pruner_alone = std::max(pruner_alone, report.OverAsha(cell, kPrunerAlone));
    growth_alone = std::max(growth_alone, report.OverAsha(cell, kGrowthAlone));
    quality_lost += report.QualityLost(cell, kOurs) ? 1 : 0;
    cells_lost += report.LostToPeers(cell);
  }
  std::printf(
      "{\"time_over_asha\": %.4f, \"pruner_alone_over_asha\": %.4f, "
      "\"growth_alone_over_asha\": %.4f, \"quality_lost\": %d, \"stream_over_asha\": %.4f, "
      "\"cells_lost\": %d, \"bound_over_asha\": %.4f, \"seeds\": %d, \"first_seed\": %d, "
      "\"resize_s\": %g}\n",
      time_over_asha, pruner_alone, growth_alone, quality_lost, stream_over_asha, cells_lost, bound,
      arguments.seeds, arguments.first_seed, arguments.resize_s);
  return 0;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::Main(argc, argv); }
