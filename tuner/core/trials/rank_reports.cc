#include "tuner/core/trials/rank_reports.h"

#include <cmath>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string NameOf(std::int64_t step) {
  return step == kFinalStep ? "the final value" : absl::StrCat("step ", step);
}

double MeanOf(const std::map<int, double>& ranks) {
  double sum = 0;
  for (const auto& [rank, value] : ranks) sum += value;
  return sum / static_cast<double>(ranks.size());
}

}  // namespace

absl::Status RankReports::Check(const ProgramRank& from) {
  if (from.ranks < 1 || from.ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"ranks\": a program has 1 to ", kMaxRanks, " ranks, got ", from.ranks));
  }
  if (from.rank < 0 || from.rank >= from.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("\"rank\": of ", from.ranks,
                                                   " ranks, one has a number from 0 to ",
                                                   from.ranks - 1, ", got ", from.rank));
  }
  return absl::OkStatus();
}

absl::Status RankReports::Unlike(const Trial& trial, std::int64_t step, const ProgramRank& from,
                                 double value, std::optional<int> before, double told) {
  return absl::FailedPreconditionError(absl::StrCat(
      "trial ", trial.number, ", ", NameOf(step), ": rank ", from.rank, " reports ", value,
      ", and ", before ? absl::StrCat("rank ", *before) : "another rank", " has reported ", told,
      ": report from one rank alone, or let the study say \"ranks\": \"mean\""));
}

absl::StatusOr<RankReports::Taken> RankReports::Take(const Trial& trial, const ProgramRank& from,
                                                     std::int64_t step, double value) {
  const bool mean = turn_.StudyAt(trial.study).spec.mean_of_ranks;
  Taken taken;
  const auto told = trial.ranks->values.find(step);
  if (told != trial.ranks->values.end()) {
    if (const auto own = told->second.find(from.rank); own != told->second.end()) {
      if (Same(own->second, value)) return taken;
      taken.note = absl::StrCat(NameOf(step), " was already told as ", own->second, " by rank ",
                                from.rank, "; this value is ignored");
      return taken;
    }
    if (!mean) {
      const auto& first = *told->second.begin();
      if (Same(first.second, value)) return taken;
      return Unlike(trial, step, from, value, first.first, first.second);
    }
  }
  if (mean && ValueAt(trial, step) != nullptr) {
    taken.note = absl::StrCat("step ", step, " has counted without rank ", from.rank,
                              "; this value is ignored");
    return taken;
  }
  turn_.Emit(RankValueTold{trial.id, step, from.rank, value});
  if (!mean) {
    taken.values.emplace_back(step, value);
  } else if (const auto now = trial.ranks->values.find(step);
             std::ssize(now->second) >= from.ranks) {
    CountUpTo(trial, std::next(now), taken.values);
  }
  Forget(trial, mean, taken);
  return taken;
}

void RankReports::CountUpTo(const Trial& trial, RankValues::const_iterator last,
                            std::vector<std::pair<std::int64_t, double>>& values) {
  for (auto step = trial.ranks->values.begin(); step != last; ++step) {
    if (ValueAt(trial, step->first) != nullptr) continue;
    values.emplace_back(step->first, MeanOf(step->second));
  }
}

void RankReports::Forget(const Trial& trial, bool mean, Taken& taken) {
  std::size_t steps = trial.ranks->values.size();
  std::size_t kept = 0;
  for (const auto& [step, ranks] : trial.ranks->values) kept += ranks.size();
  auto first = trial.ranks->values.begin();
  while (steps > kRankStepsKept || (kept > kRankValuesKept && steps > 1)) {
    kept -= first->second.size();
    --steps;
    ++first;
  }
  if (first == trial.ranks->values.begin()) return;
  if (mean && taken.values.empty()) CountUpTo(trial, first, taken.values);
  turn_.Emit(RankValuesForgotten{trial.id, first->first});
}

std::vector<std::pair<std::int64_t, double>> RankReports::TakeRest(const Trial& trial) const {
  std::vector<std::pair<std::int64_t, double>> values;
  if (turn_.StudyAt(trial.study).spec.mean_of_ranks) {
    CountUpTo(trial, trial.ranks->values.end(), values);
  }
  return values;
}

bool RankReports::Answer(const Trial& trial, Question question, std::int64_t step,
                         const std::function<bool()>& yes_now) {
  VerdictAgreed change{trial.id, trial.ranks->verdict, trial.ranks->saving};
  AgreedVerdict& agreed = question == Question::kSave ? change.saving : change.verdict;
  if (agreed.stop >= 0) return step >= agreed.stop;
  if (step <= agreed.go_on) return false;
  const bool yes = yes_now();
  (yes ? agreed.stop : agreed.go_on) = step;
  turn_.Emit(change);
  return yes;
}

}  // namespace espalier
