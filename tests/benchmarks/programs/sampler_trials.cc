// Runs samplers on the functions of tests/core/samplers, in this process, for the benchmark
// samplers:
//   bench_sampler_trials functions
//   bench_sampler_trials development_functions
//   bench_sampler_trials evaluate FUNCTION
//   bench_sampler_trials quality SAMPLER TRIALS SEEDS FUNCTION... [OPTION=VALUE...]
//   bench_sampler_trials prior SAMPLER TRIALS SEEDS [OPTION=VALUE...]
//   bench_sampler_trials like SAMPLER TRIALS SEEDS FUNCTION... [OPTION=VALUE...]
//   bench_sampler_trials speed SAMPLER DIMENSIONS TRIALS SUGGESTIONS [OPTION=VALUE...]
// `functions`, `quality`, `prior`, `like` and `speed` print lines of JSON; `evaluate` reads lines
// SEED NUMBER PARAMETERS and answers each by the value that the trial is told and the function's.
// For `quality` a SAMPLER may be two, gp:200:cmaes, of which the second goes on after so many
// trials.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/random.h"
#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/draw.h"
#include "tuner/core/samplers/prior.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

using testing::TestFunction;

constexpr int kKept = 10;  // of the values by trial, so many are printed

// Every double exactly.
void AppendNumber(std::string* out, double number) { absl::StrAppendFormat(out, "%.17g", number); }

std::string JsonList(const std::vector<double>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", ", AppendNumber), "]");
}

struct Arguments {
  std::vector<std::string> words;
  Options options;

  int Whole(std::size_t i) const {
    int value = 0;
    ESPALIER_CHECK(i < words.size() && absl::SimpleAtoi(words[i], &value) && value > 0,
                   "a whole number above 0 is missing");
    return value;
  }
};

Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      arguments.words.push_back(text);
    } else {
      arguments.options[text.substr(0, equals)] = OptionValue::OfText(text.substr(equals + 1));
    }
  }
  return arguments;
}

double ThreadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

int PrintFunctions(const std::vector<TestFunction>& functions) {
  for (const TestFunction& function : functions) {
    std::string space = function.space_json;
    std::replace(space.begin(), space.end(), '\n', ' ');
    std::printf(R"({"name": "%s", "optimum": %.17g, "noise": %.17g, "space": %s})"
                "\n",
                function.name.c_str(), function.optimum, function.noise, space.c_str());
  }
  return 0;
}

int Evaluate(const TestFunction& function) {
  const SearchSpace space = *SearchSpace::FromJson(function.space_json);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::uint64_t seed = 0;
    std::int64_t number = 0;
    std::string json;
    words >> seed >> number;
    std::getline(words, json);
    const absl::StatusOr<Parameters> parameters = ParametersFromJson(json);
    const absl::Status fits = parameters.ok() ? space.Validate(*parameters) : parameters.status();
    if (!fits.ok()) {
      std::fprintf(stderr, "%s: %s\n", function.name.c_str(), std::string(fits.message()).c_str());
      return 2;
    }
    std::printf("%.17g %.17g\n", testing::ToldValue(function, *parameters, seed, number),
                function.value(*parameters));
    std::fflush(stdout);
  }
  return 0;
}

// Regrets after a tenth of the trials, two tenths, and so on to all. A study that has tried all
// there is keeps its best.
std::vector<double> Regrets(const Sampler& sampler, const TestFunction& function, int trials,
                            std::uint64_t seed, std::span<const ScoredTrial> before = {}) {
  const std::vector<double> best = testing::BestByTrial(sampler, function, trials, seed, before);
  std::vector<double> regrets;
  for (int i = 1; i <= kKept; ++i) {
    const auto after = static_cast<std::size_t>(std::max(trials * i / kKept, 1));
    regrets.push_back(best[std::min(after, best.size()) - 1] - function.optimum);
  }
  return regrets;
}

// Two samplers, of which the second makes a study's suggestions after so many trials.
class Continued final : public Sampler {
 public:
  Continued(std::unique_ptr<Sampler> first, std::int64_t trials, std::unique_ptr<Sampler> second)
      : first_(std::move(first)), trials_(trials), second_(std::move(second)) {}

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    return (input.trial_number < trials_ ? first_ : second_)->Suggest(input, random);
  }

 private:
  std::unique_ptr<Sampler> first_;
  std::int64_t trials_;
  std::unique_ptr<Sampler> second_;
};

// Of two that go on one after the other each has its default options.
absl::StatusOr<std::unique_ptr<Sampler>> SamplerOf(const Arguments& arguments) {
  const std::vector<std::string> parts = absl::StrSplit(arguments.words.at(1), ':');
  if (parts.size() != 3) return MakeSampler(parts[0], arguments.options);
  auto first = MakeSampler(parts[0], {});
  auto second = MakeSampler(parts[2], {});
  std::int64_t trials = 0;
  if (!first.ok()) return first.status();
  if (!second.ok()) return second.status();
  ESPALIER_CHECK(absl::SimpleAtoi(parts[1], &trials), "a number of trials is missing");
  return std::make_unique<Continued>(*std::move(first), trials, *std::move(second));
}

int Quality(const Arguments& arguments) {
  const int trials = arguments.Whole(2);
  const auto seeds = static_cast<std::uint64_t>(arguments.Whole(3));
  for (std::size_t i = 4; i < arguments.words.size(); ++i) {
    const TestFunction& function = testing::FunctionNamed(arguments.words[i]);
    const double begun = ThreadMilliseconds();
    std::vector<std::string> by_seed;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto sampler = *SamplerOf(arguments);
      by_seed.push_back(JsonList(Regrets(*sampler, function, trials, seed)));
    }
    std::printf(R"({"function": "%s", "seconds": %.3f, "regrets": [%s]})"
                "\n",
                function.name.c_str(), 1e-3 * (ThreadMilliseconds() - begun),
                absl::StrJoin(by_seed, ", ").c_str());
    std::fflush(stdout);
  }
  return 0;
}

// What a prior near the bowl's least value gains, and one in a far corner costs: means over seeds.
int Priors(const Arguments& arguments) {
  const int trials = arguments.Whole(2);
  const int seeds = arguments.Whole(3);
  const auto expected = [](double x, double y, double confidence) {
    return std::vector<Belief>{{"x", x, confidence}, {"y", y, confidence}};
  };
  const std::pair<const char*, std::vector<Belief>> priors[] = {
      {"none", {}},
      {"right_medium", expected(0.33, 0.27, 0.5)},
      {"right_high", expected(0.33, 0.27, 0.9)},
      {"wrong_medium", expected(0.95, 0.95, 0.5)},
      {"wrong_high", expected(0.95, 0.95, 0.9)}};
  for (const auto& [name, beliefs] : priors) {
    std::vector<double> means(kKept, 0);
    for (int seed = 0; seed < seeds; ++seed) {
      const auto sampler =
          samplers::WithPrior(*MakeSampler(arguments.words.at(1), arguments.options), beliefs);
      const std::vector<double> regrets =
          Regrets(*sampler, testing::Bowl(), trials, static_cast<std::uint64_t>(seed));
      for (std::size_t i = 0; i < regrets.size(); ++i) means[i] += regrets[i] / seeds;
    }
    std::printf(R"({"prior": "%s", "mean_regrets": %s})"
                "\n",
                name, JsonList(means).c_str());
    std::fflush(stdout);
  }
  return 0;
}

// A function of floats within bounds, moved by a twentieth of each range, or mirrored in each.
enum class Sibling { kMoved, kMirrored };
double ValueOf(const TestFunction& function, const SearchSpace& space, Sibling sibling,
               Parameters parameters) {
  constexpr double kMoves = 0.05;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [low, high] = std::get<Uniform>(space.dimensions()[i].distribution);
    auto& value = std::get<double>(parameters[i].value);
    value = sibling == Sibling::kMirrored ? low + high - value
                                          : std::min(value + kMoves * (high - low), high);
  }
  return 1000 * function.value(parameters) + 7;  // another scale says nothing
}

// So many trials of such a study, by TPE.
std::vector<ScoredTrial> TrialsOf(const TestFunction& function, Sibling sibling, int trials,
                                  std::uint64_t seed) {
  const SearchSpace space = *SearchSpace::FromJson(function.space_json);
  DrawRequest request;
  request.sampler = *MakeSampler("tpe", {});
  request.space = space;
  request.study_seed = seed;
  std::deque<Parameters> tried;
  for (; request.trial_number < trials; ++request.trial_number) {
    request.seed = MixSeed(seed, static_cast<std::uint64_t>(request.trial_number));
    tried.push_back(*MakeDraw(request, {}).parameters);
    request.ended.push_back({.trial_number = request.trial_number,
                             .parameters = &tried.back(),
                             .value = ValueOf(function, space, sibling, tried.back())});
  }
  std::sort(request.ended.begin(), request.ended.end(),
            [](const Observation& a, const Observation& b) { return a.value < b.value; });
  const double best = request.ended.front().value;
  const double median = request.ended[request.ended.size() / 2].value;
  std::vector<ScoredTrial> scored;
  for (const Observation& trial : request.ended) {
    const double units = (median - trial.value) / (median - best);
    scored.push_back({*trial.parameters, units >= 0 ? units : -std::log1p(-units)});
  }
  return scored;
}

// What 100 trials of another study gain where it is like this one, and cost where it is not:
// medians over seeds.
int Likes(const Arguments& arguments) {
  constexpr int kElsewhere = 100;
  const int trials = arguments.Whole(2);
  const auto seeds = static_cast<std::uint64_t>(arguments.Whole(3));
  const std::pair<const char*, std::optional<Sibling>> others[] = {
      {"none", std::nullopt}, {"like", Sibling::kMoved}, {"unlike", Sibling::kMirrored}};
  for (std::size_t f = 4; f < arguments.words.size(); ++f) {
    const TestFunction& function = testing::FunctionNamed(arguments.words[f]);
    for (const auto& [name, sibling] : others) {
      std::vector<double> medians;
      std::vector<std::vector<double>> by_seed;
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const auto sampler = *MakeSampler(arguments.words.at(1), arguments.options);
        const std::vector<ScoredTrial> before =
            sibling ? TrialsOf(function, *sibling, kElsewhere, 1000 + seed)
                    : std::vector<ScoredTrial>();
        by_seed.push_back(Regrets(*sampler, function, trials, seed, before));
      }
      for (std::size_t i = 0; i < kKept; ++i) {
        std::vector<double> after;
        for (const std::vector<double>& regrets : by_seed) after.push_back(regrets[i]);
        std::sort(after.begin(), after.end());
        medians.push_back(0.5 * (after[(after.size() - 1) / 2] + after[after.size() / 2]));
      }
      std::printf(R"({"function": "%s", "like": "%s", "median_regrets": %s})"
                  "\n",
                  function.name.c_str(), name, JsonList(medians).c_str());
      std::fflush(stdout);
    }
  }
  return 0;
}

// A study of floats in memory, whose trials end one after the other.
class Study {
 public:
  Study(const Arguments& arguments, int dimensions) : space_(SpaceOf(dimensions)) {
    request_.sampler = *MakeSampler(arguments.words.at(1), arguments.options);
    request_.space = space_;
    request_.study_seed = kSeed;
  }

  // Milliseconds of processor time until the parameters are there.
  double Suggest(Parameters* parameters) {
    const double begun = ThreadMilliseconds();
    request_.trial_number = static_cast<std::int64_t>(trials_.size());
    request_.seed = MixSeed(kSeed, static_cast<std::uint64_t>(trials_.size()));
    Drawn drawn = MakeDraw(request_, {});
    const double took = ThreadMilliseconds() - begun;
    ESPALIER_CHECK(drawn.parameters.has_value(), "there is always another float");
    *parameters = *std::move(drawn.parameters);
    return took;
  }

  void Tell(Parameters parameters) {
    double value = 0;
    for (const Parameter& p : parameters) value += std::pow(*NumberOf(p.value) - 0.3, 2);
    trials_.push_back(std::move(parameters));
    const auto number = static_cast<std::int64_t>(trials_.size()) - 1;
    request_.ended.push_back({.trial_number = number,
                              .parameters = &trials_.back(),
                              .value = value,
                              .at = Time{1000 * number}});
  }

  Parameters AtRandom(Random& random) const { return space_.Sample(random); }

 private:
  static constexpr std::uint64_t kSeed = 1;

  static SearchSpace SpaceOf(int dimensions) {
    std::vector<std::string> axes;
    for (int i = 0; i < dimensions; ++i) {
      axes.push_back(absl::StrCat("\"x", i, R"(": {"_type": "uniform", "_value": [0, 1]})"));
    }
    return *SearchSpace::FromJson(absl::StrCat("{", absl::StrJoin(axes, ", "), "}"));
  }

  SearchSpace space_;
  std::deque<Parameters> trials_;  // a deque: the observations point into it
  DrawRequest request_;
};

int Speed(const Arguments& arguments) {
  Study study(arguments, arguments.Whole(2));
  Random random(1);
  for (int i = 0; i < arguments.Whole(3); ++i) study.Tell(study.AtRandom(random));
  std::vector<double> taken;
  for (int i = 0; i < arguments.Whole(4); ++i) {
    Parameters parameters;
    taken.push_back(study.Suggest(&parameters));
    study.Tell(std::move(parameters));
  }
  std::printf("%s\n", JsonList(taken).c_str());
  return 0;
}

int Run(const Arguments& arguments) {
  const std::string what = arguments.words.empty() ? "" : arguments.words.front();
  if (what == "functions") return PrintFunctions(testing::TestFunctions());
  if (what == "development_functions") return PrintFunctions(testing::DevelopmentFunctions());
  if (what == "evaluate") return Evaluate(testing::FunctionNamed(arguments.words.at(1)));
  const auto sampler = SamplerOf(arguments);
  if (!sampler.ok()) {
    std::fprintf(stderr, "%s\n", std::string(sampler.status().message()).c_str());
    return 2;
  }
  if (what == "prior") return Priors(arguments);
  if (what == "like") return Likes(arguments);
  ESPALIER_CHECK(what == "quality" || what == "speed",
                 "functions, evaluate, quality, prior, like or speed");
  return what == "quality" ? Quality(arguments) : Speed(arguments);
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::Run(espalier::ReadArguments(argc, argv)); }
