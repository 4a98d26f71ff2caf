// A stream of small trials beside trials of several slots that cannot be resized, on virtual time
// by the core that ships. One row of JSON for each policy (those that are named, or all), size,
// share and length.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/policies/policy.h"
#include "tests/benchmarks/programs/smoke.h"
#include "tuner/simulator/virtual_pool.h"

namespace espalier::benchmarks {
namespace {

constexpr int kSlots = 4;
constexpr int kGangTrials = 50;
constexpr StudyId kSmall{1};
constexpr StudyId kGang{2};

class FixedTruth final : public TrialTruth {
 public:
  explicit FixedTruth(double seconds) : seconds_(seconds) {}
  BatchBounds bounds() const override { return {64, 64, 1, 64, true}; }
  std::int64_t steps() const override { return 1; }
  // As plain programs, which are no faster on more slots.
  Pace On(int, int) const override { return {1, seconds_, seconds_}; }
  double ValueAfter(std::int64_t) const override { return 1; }

 private:
  const double seconds_;
};

class Cell final : public Workload {
 public:
  Cell(double small_s, double gang_s) : seconds_{{kSmall, small_s}, {kGang, gang_s}} {}
  StudySpec Study() const override {
    StudySpec spec;
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.sampler = {"random", {}};
    spec.command = {"program"};
    spec.directory = "/";
    return spec;
  }
  StudySpec Study(const std::string& name, int slots, double share) const {
    StudySpec spec = Study();
    spec.name = name;
    spec.min_slots = slots;
    spec.max_slots = slots;
    spec.share = share;
    spec.max_trials = 100'000;
    return spec;
  }
  std::unique_ptr<TrialTruth> Begin(const Trial& trial) override {
    return std::make_unique<FixedTruth>(seconds_.at(trial.study));
  }

 private:
  const std::map<StudyId, double> seconds_;
};

struct Span {
  double from = 0;
  double to = 0;
  int slots = 0;
};

std::vector<Span> SpansOf(const TunerState& state, StudyId study, double until_s) {
  std::vector<Span> spans;
  for (const auto& [id, trial] : state.trials) {
    if (trial.study != study) continue;
    for (const SlotSpan& span : trial.spans) {
      const double to = span.to == Time{} ? until_s : SecondsBetween(VirtualPool::kStart, span.to);
      spans.push_back({SecondsBetween(VirtualPool::kStart, span.from), std::min(to, until_s),
                       static_cast<int>(span.slots.size())});
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.from < b.from; });
  return spans;
}

double SlotSeconds(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& span : spans) sum += (span.to - span.from) * span.slots;
  return sum;
}

// The longest time in which the study ran nothing though it had had no more than its share.
double LongestWait(const std::vector<Span>& spans, double part, double until_s) {
  double longest = 0;
  double at = 0;
  double owed = 0;
  const auto wait = [&](double to) {
    const double idle = std::max(0.0, to - at);
    longest = std::max(longest, idle - std::min(idle, std::max(0.0, -owed / part)));
    owed += idle * part;
    at = std::max(at, to);
  };
  for (const Span& span : spans) {
    wait(span.from);
    // Trials that run together count one after another.
    const double busy = std::max(0.0, span.to - at);
    owed += busy * part - (span.to - span.from) * span.slots;
    at = std::max(at, span.to);
  }
  wait(until_s);
  return longest;
}

struct Case {
  std::string policy;
  int gang = 0;
  double gang_share = 1;
  double small_s = 1;
  double gang_s = 1;
};

struct Figures {
  double share_error = 0;
  double wait = 0;  // over the length of the others' trials
};

Figures Run(const Case& c) {
  Cell load(c.small_s, c.gang_s);
  VirtualPoolOptions options;
  options.nodes.push_back({"node", kSlots});
  options.resize_s = 0.1;
  options.start_s = 0.05;
  options.core.policy = PluginSpec{c.policy, {}};
  VirtualPool pool(load, options);
  pool.Client(CreateStudy{load.Study("small", 1, 1), false});
  pool.Client(CreateStudy{load.Study("gang", c.gang, c.gang_share), false});
  const double part = kSlots * c.gang_share / (1 + c.gang_share);
  // Long enough for so many trials of each size.
  const double until_s = std::max(c.gang_s, c.small_s) * kGangTrials * c.gang / part;
  pool.Run(until_s);
  const auto small = SpansOf(pool.state(), kSmall, until_s);
  const auto gang = SpansOf(pool.state(), kGang, until_s);
  const double of_gang = SlotSeconds(gang);
  const double of_small = SlotSeconds(small);
  Figures figures;
  figures.share_error = std::abs(of_gang / std::max(1e-9, of_gang + of_small) - part / kSlots);
  // A trial holds its slots from its start on.
  const double start_s = options.start_s;
  figures.wait = std::max(LongestWait(gang, part, until_s) / (c.small_s + start_s),
                          LongestWait(small, kSlots - part, until_s) / (c.gang_s + start_s));
  std::printf(
      "{\"policy\": \"%s\", \"gang\": %d, \"share\": %g, \"small_s\": %g, \"gang_s\": %g, "
      "\"share_error\": %.3f, \"wait_over_trial\": %.2f, \"gang_trials\": %zu}\n",
      c.policy.c_str(), c.gang, c.gang_share, c.small_s, c.gang_s, figures.share_error,
      figures.wait, gang.size());
  return figures;
}

}  // namespace
}  // namespace espalier::benchmarks

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::benchmarks;
  const bool smoke = IsSmoke(argc, argv);
  for (const std::string& policy : Policies().Names()) {
    const bool named = std::find(argv + 1, argv + argc, policy) != argv + argc;
    if (argc > 1 && !named && !(smoke && policy == "promise_goodput")) continue;
    for (const int gang : {2, 3, 4}) {
      for (const double share : {0.25, 1.0, 4.0}) {
        for (const auto& [small_s, gang_s] :
             {std::pair{1.0, 1.0}, std::pair{10.0, 10.0}, std::pair{100.0, 100.0},
              std::pair{10.0, 100.0}, std::pair{100.0, 10.0}}) {
          if (smoke && small_s * gang_s != 100) continue;
          Run({policy, gang, share, small_s, gang_s});
        }
      }
    }
  }
}
