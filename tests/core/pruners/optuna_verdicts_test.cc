// Our pruners beside Optuna's: the same curves, the same verdicts. optuna_verdicts.py recorded
// them.

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

struct Step {
  std::int64_t step = 0;
  double value = 0;
};

struct RecordedStudy {
  std::string name;
  Direction direction = Direction::kMinimize;
  bool together = false;        // all trials at once, each a report in turn; else one after another
  bool ends_with_mean = false;  // else with the last value
  std::vector<std::vector<Step>> curves;  // in the order of reports
};

// What Optuna said under one pruner: at which step each trial was ended, -1: at none.
struct RecordedVerdicts {
  const RecordedStudy* study = nullptr;
  std::string pruner;
  Options options;
  std::vector<std::int64_t> ended_at;
};

double ValueOf(const std::string& word) { return word == "nan" ? NAN : std::stod(word); }

RecordedVerdicts ReadVerdicts(std::istringstream& words, const RecordedStudy& study) {
  RecordedVerdicts verdicts;
  verdicts.study = &study;
  words >> verdicts.pruner;
  std::string word;
  for (words >> word; word != "|"; words >> word) {
    const std::size_t equals = word.find('=');
    verdicts.options[word.substr(0, equals)] = OptionValue::OfText(word.substr(equals + 1));
  }
  while (words >> word) verdicts.ended_at.push_back(word == "-" ? -1 : std::stoll(word));
  return verdicts;
}

struct Recording {
  std::deque<RecordedStudy> studies;
  std::vector<RecordedVerdicts> verdicts;
};

const Recording& Recorded() {
  static const Recording recording = [] {
    Recording read;
    std::ifstream file(ESPALIER_OPTUNA_VERDICTS);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      if (kind == "study") {
        RecordedStudy& study = read.studies.emplace_back();
        std::string direction;
        std::string how;
        words >> study.name >> direction >> how;
        study.direction = direction == "minimize" ? Direction::kMinimize : Direction::kMaximize;
        study.together = how == "yes";
        study.ends_with_mean = how == "mean";
      } else if (kind == "curve") {
        std::vector<Step>& curve = read.studies.back().curves.emplace_back();
        for (std::string word; words >> word;) {
          const std::size_t colon = word.find(':');
          curve.push_back({std::stoll(word.substr(0, colon)), ValueOf(word.substr(colon + 1))});
        }
      } else if (kind == "verdicts") {
        read.verdicts.push_back(ReadVerdicts(words, read.studies.back()));
      }
    }
    return read;
  }();
  return recording;
}

// A study that goes as it did with Optuna, whatever ours say.
class Replay {
 public:
  explicit Replay(const RecordedVerdicts& recorded)
      : recorded_(recorded), points_(recorded.study->curves.size()) {
    for (std::size_t n = 0; n < points_.size(); ++n) {
      curves_.push_back({.trial_number = static_cast<std::int64_t>(n), .points = {}});
    }
  }

  // Calls `judged(trial, whether Optuna ended it, input)` at each report.
  template <typename Judged>
  void Run(const Judged& judged) {
    const std::size_t trials = points_.size();
    if (recorded_.study->together) {
      for (bool any = true; any;) {
        any = false;
        for (std::size_t n = 0; n < trials; ++n) any = Report(n, judged) || any;
      }
      return;
    }
    for (std::size_t n = 0; n < trials; ++n) {
      while (Report(n, judged)) continue;
    }
  }

 private:
  // False: the trial has ended.
  template <typename Judged>
  bool Report(std::size_t n, const Judged& judged) {
    const std::vector<Step>& all = recorded_.study->curves[n];
    std::vector<IntermediateValue>& own = points_[n];
    if (curves_[n].ended) return false;
    const Step next = all[own.size()];
    const auto after = [](const IntermediateValue& point, std::int64_t step) {
      return point.step < step;
    };
    own.insert(std::lower_bound(own.begin(), own.end(), next.step, after),
               {.step = next.step, .value = next.value, .at = Now()});
    curves_[n].points = own;
    std::vector<Curve> others;
    for (const Curve& curve : curves_) {
      if (curve.trial_number != curves_[n].trial_number) others.push_back(curve);
    }
    const bool ended = recorded_.ended_at[n] == next.step;
    judged(n, ended, PrunerInput{recorded_.study->direction, curves_[n], others});
    if (!ended && own.size() < all.size()) return true;
    curves_[n].ended = true;
    curves_[n].ended_at = Now();
    double sum = 0;
    for (const Step& step : all) sum += step.value;
    const double value =
        recorded_.study->ends_with_mean ? sum / static_cast<double>(all.size()) : next.value;
    curves_[n].complete = !ended && !std::isnan(value);
    if (curves_[n].complete) curves_[n].value = value;
    return false;
  }

  Time Now() { return Time{++clock_us_}; }

  const RecordedVerdicts& recorded_;
  std::vector<std::vector<IntermediateValue>> points_;
  std::vector<Curve> curves_;
  std::int64_t clock_us_ = 0;
};

std::string TextOf(const RecordedVerdicts& recorded) {
  std::string text = recorded.pruner;
  for (const auto& [name, value] : recorded.options) text += " " + name + "=" + value.ToText();
  return text;
}

bool AnyNumber(const Curve& curve) {
  return std::ranges::any_of(curve.points, [](const auto& p) { return !std::isnan(p.value); });
}

TEST(OptunasVerdicts, AreOurs) {
  std::map<std::string, int> ended;
  std::map<std::string, int> kept;
  for (const RecordedVerdicts& recorded : Recorded().verdicts) {
    const auto pruner = MakePruner(recorded.pruner, recorded.options);
    ASSERT_TRUE(pruner.ok()) << pruner.status();
    Replay(recorded).Run([&](std::size_t n, bool theirs, const PrunerInput& input) {
      const PruneVerdict ours = (*pruner)->Judge(input);
      ++(theirs ? ended : kept)[recorded.pruner];
      // A trial that has had no number ends at once by all of ours.
      const bool expected = theirs || !AnyNumber(input.trial);
      if ((ours.action == PruneAction::kPrune) == expected) return;
      ADD_FAILURE() << recorded.study->name << ", " << TextOf(recorded) << ", trial " << n << " at "
                    << input.trial.points.size() << " reports: " << ours.reason;
    });
  }
  // Each has had something to say.
  for (const char* const name :
       {"percentile", "median", "threshold", "patient", "successive_halving", "wilcoxon"}) {
    EXPECT_GT(ended[name], 20) << name;
    EXPECT_GT(kept[name], 200) << name;
  }
}

// "asha" is the same rule once a rung has been reached by eta trials, of trials that report each
// step: before that Optuna lets the best alone go on, and "asha" all.
TEST(OptunasVerdicts, AreThoseOfAshaWhereARungIsFull) {
  int compared = 0;
  int early = 0;
  for (const RecordedVerdicts& recorded : Recorded().verdicts) {
    const auto option = [&recorded](const char* name) {
      const auto at = recorded.options.find(name);
      return at == recorded.options.end() ? 0.0 : at->second.Number();
    };
    if (recorded.study->name != "plain" || recorded.pruner != "successive_halving" ||
        option("min_steps") == 0 || option("bootstrap_count") > 0) {
      continue;
    }
    const double first =
        option("min_steps") * std::pow(option("eta"), option("min_early_stopping_rate"));
    const auto asha = MakePruner("asha", {{"min_steps", first}, {"eta", option("eta")}});
    ASSERT_TRUE(asha.ok()) << asha.status();
    Replay(recorded).Run([&](std::size_t n, bool theirs, const PrunerInput& input) {
      const std::size_t length = input.trial.points.size();
      const auto reached = 1 + std::ranges::count_if(input.others, [length](const Curve& other) {
                             return other.points.size() >= length;
                           });
      const bool ours = (*asha)->Judge(input).action == PruneAction::kPrune;
      if (static_cast<double>(reached) < option("eta")) {
        early += theirs ? 1 : 0;
        EXPECT_FALSE(ours);
      } else {
        ++compared;
        EXPECT_EQ(ours, theirs) << "trial " << n << " at its report " << length;
      }
    });
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(early, 0);
}

}  // namespace
}  // namespace espalier
