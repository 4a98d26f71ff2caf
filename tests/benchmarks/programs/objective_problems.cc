#include "tests/benchmarks/programs/objective_problems.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <numbers>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "nlohmann/json.hpp"
#include "tuner/core/fronts/fronts.h"

namespace espalier::benchmarks {
namespace {

using Row = std::vector<double>;

constexpr int kSteps = 27;
constexpr double kPi = std::numbers::pi;

double NumberOf(const Parameters& parameters, const std::string& name) {
  const ParameterValue* value = Find(parameters, name);
  ESPALIER_CHECK(value != nullptr, "a trial has the parameters of its problem");
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  return std::get<double>(*value);
}

// A curve that sets out near `start` and is at `end` with its last step: what is left falls as
// exp(-rate * share of the steps), the rates of trials and objectives being spread over a decade.
// Values have noise of a fiftieth of what is left and of a hundredth of the whole way.
Row Approach(double start, double end, Random& random) {
  const double from = start * random.Uniform(0.8, 1.2);
  const double rate = 2 * std::pow(10, random.Uniform());
  Row curve;
  for (int step = 1; step <= kSteps; ++step) {
    const double share = static_cast<double>(step) / kSteps;
    const double left = (std::exp(-rate * share) - std::exp(-rate)) / (1 - std::exp(-rate));
    const double noise = step == kSteps ? 0 : 0.01 + 0.02 * left;
    curve.push_back(end + (from - end) * (left + noise * random.Normal()));
  }
  return curve;
}

// ---- ZDT and DTLZ -------------------------------------------------------------------------------

std::string UnitBox(int dimensions) {
  std::string json = "{";
  for (int i = 0; i < dimensions; ++i) {
    absl::StrAppend(&json, i > 0 ? ", " : "", "\"x", i,
                    "\": {\"_type\": \"uniform\", \"_value\": [0, 1]}");
  }
  return json + "}";
}

Row UnitPoint(const Parameters& parameters, int dimensions) {
  Row x;
  for (int i = 0; i < dimensions; ++i) x.push_back(NumberOf(parameters, absl::StrCat("x", i)));
  return x;
}

double MeanFrom(const Row& x, std::size_t first) {
  double sum = 0;
  for (std::size_t i = first; i < x.size(); ++i) sum += x[i];
  return sum / static_cast<double>(x.size() - first);
}

// Zitzler, Deb and Thiele 2000, equations 7 to 9.
Row Zdt1(const Row& x) {
  const double g = 1 + 9 * MeanFrom(x, 1);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}
Row Zdt2(const Row& x) {
  const double g = 1 + 9 * MeanFrom(x, 1);
  return {x[0], g * (1 - (x[0] / g) * (x[0] / g))};
}
Row Zdt3(const Row& x) {
  const double g = 1 + 9 * MeanFrom(x, 1);
  return {x[0], g * (1 - std::sqrt(x[0] / g) - x[0] / g * std::sin(10 * kPi * x[0]))};
}

// Deb, Thiele, Laumanns and Zitzler 2002, section VII B and G, with three objectives.
Row Dtlz2(const Row& x) {
  double g = 0;
  for (std::size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
  const double a = x[0] * kPi / 2;
  const double b = x[1] * kPi / 2;
  return {(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b),
          (1 + g) * std::sin(a)};
}
Row Dtlz7(const Row& x) {
  const double g = 1 + 9 * MeanFrom(x, 2);
  double h = 3;
  for (const double f : {x[0], x[1]}) h -= f / (1 + g) * (1 + std::sin(3 * kPi * f));
  return {x[0], x[1], (1 + g) * h};
}

using Function = Row (*)(const Row&);

// The front of all of them is where the further coordinates are `best`.
ObjectiveProblem OfFunction(const std::string& name, Function function, int dimensions, Row start,
                            Row reference, double best) {
  ObjectiveProblem problem{.name = name, .space_json = UnitBox(dimensions), .steps = kSteps};
  const std::size_t places = reference.size() - 1;
  constexpr int kTwo = 2000;
  constexpr int kThree = 40;
  const int count = places == 1 ? kTwo : kThree;
  for (int i = 0; i <= count; ++i) {
    for (int j = 0; j <= (places == 1 ? 0 : count); ++j) {
      Row x(static_cast<std::size_t>(dimensions), best);
      x[0] = static_cast<double>(i) / count;
      if (places > 1) x[1] = static_cast<double>(j) / count;
      problem.front.push_back(function(x));
    }
  }
  problem.reference = std::move(reference);
  problem.run = [function, dimensions, start](const Parameters& parameters, std::uint64_t seed) {
    Random random(seed);
    const Row ends = function(UnitPoint(parameters, dimensions));
    ObjectiveTrial trial;
    for (std::size_t k = 0; k < ends.size(); ++k)
      trial.curves.push_back(Approach(start[k], ends[k], random));
    return trial;
  };
  return problem;
}

// ---- Nets ---------------------------------------------------------------------------------------

// A made-up net: its loss falls with its size by a power law, and grows with the squares of how far
// learning rate, weight decay and shape are from what suits it.
constexpr const char* kNetSpace = R"json({
  "log2_width": {"_type": "uniform", "_value": [4, 10]},
  "depth": {"_type": "randint", "_value": [1, 13]},
  "log10_lr": {"_type": "uniform", "_value": [-5, 0]},
  "log10_wd": {"_type": "uniform", "_value": [-6, -1]},
  "log2_batch": {"_type": "uniform", "_value": [4, 10]}
})json";
constexpr double kLeastLoss = 0.2;
constexpr double kUntrained = 2.3;

struct Net {
  double log2_width;
  double depth;
  double log10_lr;
  double log10_wd;
  double log2_batch;

  double Log10Parameters() const { return std::log10(12 * depth) + 2 * log2_width * std::log10(2); }
  // An optimizer step reads all parameters, and computes with them for each sample.
  double StepSeconds() const {
    const double millions = std::pow(10, Log10Parameters() - 6);
    return 0.01 + 0.002 * depth + 0.02 * millions * (0.2 + std::exp2(log2_batch - 6));
  }
  double SizeLoss() const {
    return kLeastLoss + 1.2 * std::pow(10, -0.25 * (Log10Parameters() - 3));
  }
  // Large batches generalise worse beyond some point, small ones are noisy.
  double Penalty() const {
    const double lr = log10_lr - (-2 - 0.15 * (log2_width - 4) + 0.15 * (log2_batch - 6));
    const double wd = log10_wd + 3;
    const double shape = std::log2(depth) - (log2_width - 4) / 2;
    const double batch = std::max(0.0, std::abs(log2_batch - 6) - 1);
    return 0.35 * lr * lr + 0.02 * wd * wd + 0.04 * shape * shape + 0.03 * batch * batch;
  }
  double Loss() const { return std::min(kUntrained, SizeLoss() + Penalty()); }
};

// What weighs on the second objective: the number of parameters, or the time of a step.
enum class Weight { kParameters, kSeconds };

double WeightOf(const Net& net, Weight weight) {
  return weight == Weight::kParameters ? net.Log10Parameters() : std::log10(net.StepSeconds());
}

// Learning rate and weight decay at their best, the others on a fine grid.
std::vector<Row> NetFront(Weight weight) {
  constexpr int kGrid = 60;
  Losses losses(2);
  for (int depth = 1; depth <= 12; ++depth) {
    for (int i = 0; i <= kGrid; ++i) {
      for (int j = 0; j <= kGrid; ++j) {
        Net net{.log2_width = 4 + 6.0 * i / kGrid,
                .depth = static_cast<double>(depth),
                .log10_lr = 0,
                .log10_wd = -3,
                .log2_batch = 4 + 6.0 * j / kGrid};
        net.log10_lr = -2 - 0.15 * (net.log2_width - 4) + 0.15 * (net.log2_batch - 6);
        losses.Add(Row{net.Loss(), WeightOf(net, weight)});
      }
    }
  }
  std::vector<Row> front;
  for (const std::size_t i : ParetoFront(losses))
    front.emplace_back(losses[i].begin(), losses[i].end());
  return front;
}

ObjectiveProblem OfNet(const std::string& name, Weight weight, Row reference) {
  ObjectiveProblem problem{.name = name, .space_json = kNetSpace, .steps = kSteps};
  problem.reference = std::move(reference);
  problem.front = NetFront(weight);
  problem.run = [weight](const Parameters& p, std::uint64_t seed) {
    Random random(seed);
    const Net net{NumberOf(p, "log2_width"), NumberOf(p, "depth"), NumberOf(p, "log10_lr"),
                  NumberOf(p, "log10_wd"), NumberOf(p, "log2_batch")};
    ObjectiveTrial trial;
    // So many optimizer steps that a reported step sees the same samples.
    trial.step_s = net.StepSeconds() * std::exp2(10 - net.log2_batch);
    trial.curves.push_back(Approach(kUntrained, net.Loss(), random));
    const double own = WeightOf(net, weight);
    Row& told = trial.curves.emplace_back(kSteps, own);
    if (weight == Weight::kSeconds) {  // is measured, and settles
      for (int step = 1; step < kSteps; ++step)
        told[static_cast<std::size_t>(step - 1)] += 0.02 * random.Normal() / std::sqrt(step);
    }
    return trial;
  };
  return problem;
}

// ---- Recordings ---------------------------------------------------------------------------------

struct RecordedNet {
  double latency_ms = 0;
  double epoch_s = 0;
  Row errors;
};
using NetKey = std::tuple<int, int, int>;  // places of width, depth and learning rate

struct Recording {
  std::map<NetKey, RecordedNet> nets;
  std::array<int, 3> places{};
};

// Nets of one width and depth have one latency: the least that was measured of any.
absl::StatusOr<Recording> ReadRecording(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  std::vector<nlohmann::json> rows;
  std::array<std::vector<double>, 3> values;
  const std::array<const char*, 3> names{"width", "depth", "lr"};
  for (std::string line; std::getline(file, line);) {
    rows.push_back(nlohmann::json::parse(line, nullptr, false));
    if (rows.back().is_discarded()) return absl::InvalidArgumentError(path + ": a line is no JSON");
    for (std::size_t i = 0; i < 3; ++i) values[i].push_back(rows.back().at(names[i]));
  }
  Recording recording;
  for (std::size_t i = 0; i < 3; ++i) {
    std::sort(values[i].begin(), values[i].end());
    values[i].erase(std::unique(values[i].begin(), values[i].end()), values[i].end());
    recording.places[i] = static_cast<int>(values[i].size());
  }
  std::map<std::pair<int, int>, double> latency_ms;
  for (const nlohmann::json& row : rows) {
    std::array<int, 3> at{};
    for (std::size_t i = 0; i < 3; ++i) {
      at[i] = static_cast<int>(std::ranges::lower_bound(values[i], row.at(names[i]).get<double>()) -
                               values[i].begin());
    }
    double& least = latency_ms.try_emplace({at[0], at[1]}, HUGE_VAL).first->second;
    least = std::min(least, row.at("latency_ms").get<double>());
    recording.nets[{at[0], at[1], at[2]}] = {0, row.at("epoch_s"), row.at("errors")};
  }
  for (auto& [key, net] : recording.nets)
    net.latency_ms = latency_ms.at({std::get<0>(key), std::get<1>(key)});
  const auto all =
      static_cast<std::size_t>(recording.places[0] * recording.places[1] * recording.places[2]);
  if (all == 0 || recording.nets.size() != all)
    return absl::InvalidArgumentError(path + ": does not have each net once");
  return recording;
}

Row EndOf(const RecordedNet& net) { return {net.errors.back(), std::log10(net.latency_ms)}; }

absl::StatusOr<ObjectiveProblem> OfRecording(const std::string& folder, const std::string& name) {
  auto read = ReadRecording(absl::StrCat(folder, "/", name, ".jsonl"));
  if (!read.ok()) return read.status();
  const auto recording = std::make_shared<const Recording>(*std::move(read));
  ObjectiveProblem problem{.name = name};
  const std::array<const char*, 3> names{"width", "depth", "lr"};
  for (std::size_t i = 0; i < 3; ++i) {
    absl::StrAppend(&problem.space_json, i == 0 ? "{" : ", ", "\"", names[i],
                    "\": {\"_type\": \"randint\", \"_value\": [0, ", recording->places[i], "]}");
  }
  problem.space_json += "}";
  problem.steps = static_cast<int>(recording->nets.begin()->second.errors.size());
  double slowest = -HUGE_VAL;
  Row epochs_s;
  for (const auto& [key, net] : recording->nets) {
    epochs_s.push_back(net.epoch_s);
    problem.front.push_back(EndOf(net));
    slowest = std::max(slowest, problem.front.back()[1]);
  }
  problem.reference = {0.9, slowest + 0.05};
  std::sort(epochs_s.begin(), epochs_s.end());
  problem.start_s = epochs_s[epochs_s.size() / 2] / 2;
  problem.run = [recording](const Parameters& p, std::uint64_t) {
    const RecordedNet& net = recording->nets.at({static_cast<int>(NumberOf(p, "width")),
                                                 static_cast<int>(NumberOf(p, "depth")),
                                                 static_cast<int>(NumberOf(p, "lr"))});
    ObjectiveTrial trial;
    trial.step_s = net.epoch_s;
    trial.curves = {net.errors, Row(net.errors.size(), EndOf(net)[1])};
    return trial;
  };
  return problem;
}

}  // namespace

std::vector<double> ObjectiveTrial::End() const {
  Row end;
  for (const Row& curve : curves) end.push_back(curve.back());
  return end;
}

absl::StatusOr<std::vector<ObjectiveProblem>> ObjectiveProblems(const std::string& folder) {
  std::vector<ObjectiveProblem> problems;
  problems.push_back(OfNet("loss_parameters", Weight::kParameters, {kUntrained, 8.3}));
  problems.push_back(OfNet("loss_seconds", Weight::kSeconds, {kUntrained, 1.8}));
  problems.push_back(OfFunction("zdt1", Zdt1, 6, {1.5, 8}, {1.1, 6}, 0));
  problems.push_back(OfFunction("zdt2", Zdt2, 6, {1.5, 8}, {1.1, 6}, 0));
  problems.push_back(OfFunction("zdt3", Zdt3, 6, {1.5, 8}, {1.1, 6}, 0));
  problems.push_back(OfFunction("dtlz2", Dtlz2, 7, {2, 2, 2}, {1.5, 1.5, 1.5}, 0.5));
  problems.push_back(OfFunction("dtlz7", Dtlz7, 7, {1.5, 1.5, 25}, {1.1, 1.1, 20}, 0));
  auto recorded = OfRecording(folder, "fashion_mlp");
  if (!recorded.ok()) return recorded.status();
  problems.push_back(*std::move(recorded));
  return problems;
}

double VolumeOf(const ObjectiveProblem& problem, const std::vector<std::vector<double>>& rows) {
  Losses within(problem.objectives());
  for (const Row& row : rows) {
    bool inside = true;
    for (std::size_t k = 0; k < row.size(); ++k) inside &= row[k] < problem.reference[k];
    if (inside) within.Add(row);
  }
  return within.empty() ? 0 : Hypervolume(within, problem.reference);
}

}  // namespace espalier::benchmarks
