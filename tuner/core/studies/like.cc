#include "tuner/core/studies/like.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/fronts/fronts.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/studies/validate.h"
#include "tuner/core/trials/searched_space.h"
#include "tuner/core/trials/suggested_parameters.h"

namespace espalier {

namespace {

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("\"like\": ", parts...));
}

enum class ValueKind { kChoice, kWhole, kSteps, kContinuous };

ValueKind KindOf(const Distribution& distribution) {
  if (std::holds_alternative<Choice>(distribution)) return ValueKind::kChoice;
  if (std::holds_alternative<RandInt>(distribution)) return ValueKind::kWhole;
  const bool steps = std::holds_alternative<QUniform>(distribution) ||
                     std::holds_alternative<QLogUniform>(distribution) ||
                     std::holds_alternative<QNormal>(distribution) ||
                     std::holds_alternative<QLogNormal>(distribution);
  return steps ? ValueKind::kSteps : ValueKind::kContinuous;
}

// Whether values of the parameter in the other space may be values of this dimension. A space that
// clients make on the way is not known: there the values alone tell.
bool MayShare(const SearchSpace::Dimension& dimension, const SearchSpace& other) {
  const std::optional<std::size_t> i = other.Find(dimension.name);
  return !i || KindOf(other.dimensions()[*i].distribution) == KindOf(dimension.distribution);
}

// What the space has of these parameters. nullopt: a value lies outside.
std::optional<Parameters> Within(const SearchSpace& space, const std::vector<bool>& may_share,
                                 const Parameters& of_other) {
  Parameters within;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    if (!may_share[i] || !space.IsActive(i, within)) continue;
    const auto& [name, distribution, _] = space.dimensions()[i];
    const ParameterValue* value = Find(of_other, name);
    if (value == nullptr) continue;
    const bool number = NumberOf(*value).has_value();
    if (!number && KindOf(distribution) != ValueKind::kChoice) continue;  // of another kind
    if (!Contains(distribution, *value)) return std::nullopt;
    within.push_back({name, *value});
  }
  return within;
}

// What a trial is ranked by, the least first: complete, pruned, constraints broken, without a
// value.
using Standing = std::array<double, 3>;
constexpr double kComplete = 0;
constexpr double kPruned = 1;
constexpr double kBroken = 2;
constexpr double kWithoutValue = 3;

struct Placed {
  Standing standing;
  std::vector<double> losses;  // by objective; NaN: none that is finite
  std::int64_t number;
  ScoredTrial trial;
};

bool LacksOne(const std::vector<double>& losses) {
  return std::ranges::any_of(losses, [](double loss) { return std::isnan(loss); });
}

std::vector<double> LossesOf(const Trial& trial, const std::vector<Direction>& directions) {
  std::vector<double> losses(directions.size(), std::nan(""));
  if (trial.state == TrialState::kFail) return losses;
  for (std::size_t k = 0; k < losses.size(); ++k) {
    double value = std::nan("");
    if (k == 0) {
      value = trial.value.value_or(value);
    } else if (k <= trial.other_values.size()) {
      value = trial.other_values[k - 1];
    }
    if (!std::isfinite(value)) continue;
    losses[k] = directions[k] == Direction::kMinimize ? value : -value;
  }
  return losses;
}

// With several objectives those of one kind, and pruned ones that came equally far, are ranked by
// their fronts.
Standing StandingOf(const Trial& trial, const std::vector<double>& losses) {
  const bool pruned = trial.state == TrialState::kPruned;
  const bool lacks_one = LacksOne(losses);
  if (lacks_one && !pruned) return {kWithoutValue, 0, 0};
  const double violation = Violation(*trial.constraints);
  if (violation > 0) return {kBroken, violation, 0};
  const double loss = lacks_one            ? std::numeric_limits<double>::infinity()
                      : losses.size() == 1 ? losses.front()
                                           : 0;
  if (!pruned) return {kComplete, loss, 0};
  const auto came = static_cast<double>(trial.values.empty() ? 0 : trial.values.back().step);
  return {kPruned, -came, loss};
}

// The places of these among one another: front after front, and in each those that are least
// crowded first (Deb et al. 2002, section III). By trial.
std::vector<double> PlacesByFronts(const Losses& losses) {
  const std::vector<std::size_t> fronts = FrontNumbers(losses);
  std::vector<std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < fronts.size(); ++row) {
    if (fronts[row] >= rows_of.size()) rows_of.resize(fronts[row] + 1);
    rows_of[fronts[row]].push_back(row);
  }
  std::vector<double> places(losses.size());
  double place = 0;
  for (const std::vector<std::size_t>& rows : rows_of) {
    Losses front(losses.objectives());
    for (const std::size_t row : rows) front.Add(losses[row]);
    for (const std::size_t i : LeastCrowded(front, rows.size())) places[rows[i]] = place++;
  }
  return places;
}

// Ranks trials of several objectives, which is done among all of a kind.
void RankByFronts(std::vector<Placed>& placed, double kind, std::size_t part) {
  std::vector<Placed*> of_kind;
  Losses losses(placed.front().losses.size());
  for (Placed& one : placed) {
    if (one.standing.front() != kind || LacksOne(one.losses)) continue;
    of_kind.push_back(&one);
    losses.Add(one.losses);
  }
  if (of_kind.empty()) return;
  const std::vector<double> places = PlacesByFronts(losses);
  for (std::size_t i = 0; i < places.size(); ++i) of_kind[i]->standing[part] = places[i];
}

// Scores of losses, by the losses of complete trials, ascending.
class Scores {
 public:
  explicit Scores(const std::vector<double>& losses) {
    for (const double loss : losses) size_ = std::max(size_, std::abs(loss));
    best_ = losses.front() / size_;
    median_ = losses[losses.size() / 2] / size_;
    if (median_ > best_) return;  // else most are as good as the best: from the next worse one on
    const auto worse = std::upper_bound(losses.begin(), losses.end(), losses.front());
    median_ = worse != losses.end() ? *worse / size_ : best_ + 1;
  }

  double Of(double loss) const {
    const double units = (median_ - loss / size_) / (median_ - best_);
    if (units >= 0) return std::min(units, 1.0);
    return kLeastScore * std::tanh(std::log1p(-units) / -kLeastScore);
  }

 private:
  double size_ = std::numeric_limits<double>::min();
  double best_;
  double median_;
};

// By one of the objectives.
void ScoreBy(std::size_t objective, std::vector<Placed>& placed) {
  std::vector<double> losses;
  for (const Placed& one : placed) {
    if (one.standing.front() == kComplete) losses.push_back(one.losses[objective]);
  }
  std::sort(losses.begin(), losses.end());
  const Scores scores(losses);
  const double worst = std::min(-1.0, scores.Of(losses.back()));
  for (Placed& one : placed) {
    const double kind = one.standing.front();
    const double loss = one.losses[objective];
    double score = std::isnan(loss) ? worst : scores.Of(loss);
    if (kind == kPruned) score = std::min(score, 0.0);
    if (kind == kBroken || kind == kWithoutValue) score = worst;
    if (objective == 0) {
      one.trial.score = score;
    } else {
      one.trial.other_scores.push_back(score);
    }
  }
}

// The best first, with their scores. Requires a complete one.
void Score(std::vector<Placed>& placed) {
  const std::size_t objectives = placed.front().losses.size();
  if (objectives > 1) {
    RankByFronts(placed, kComplete, 1);
    RankByFronts(placed, kPruned, 2);
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.standing, a.number) < std::tie(b.standing, b.number);
  });
  for (std::size_t k = 0; k < objectives; ++k) ScoreBy(k, placed);
}

// The best half of so many, and of the others some of all ranks.
std::vector<ScoredTrial> Some(const std::vector<Placed>& placed, std::size_t most) {
  std::vector<ScoredTrial> some;
  const std::size_t best = placed.size() <= most ? placed.size() : (most + 1) / 2;
  for (std::size_t i = 0; i < best; ++i) some.push_back(placed[i].trial);
  const std::size_t others = std::min(most, placed.size()) - best;
  const std::size_t left = placed.size() - best;
  for (std::size_t i = 0; i < others; ++i) {
    some.push_back(placed[best + (2 * i + 1) * left / (2 * others)].trial);
  }
  return some;
}

// As many as may be taken.
std::vector<ScoredTrial> Taken(const std::vector<Placed>& placed) {
  std::vector<ScoredTrial> taken = Some(placed, kMaxTrialsTaken);
  std::size_t longest = 1;
  for (const ScoredTrial& trial : taken) {
    longest = std::max(longest, ToJson(trial.parameters).size());
  }
  const std::size_t most = std::max<std::size_t>(kMaxTakenBytes / longest, 1);
  return taken.size() <= most ? taken : Some(placed, most);
}

std::string Objectives(const StudySpec& spec) {
  const std::size_t count = spec.directions.size();
  return absl::StrCat(count, count == 1 ? " direction" : " directions");
}

// Of several objectives that the pool's trials report; else none.
std::vector<std::string> MetricsOf(const StudySpec& spec) {
  if (spec.other_metrics.empty()) return {};
  std::vector<std::string> metrics = {spec.metric};
  metrics.insert(metrics.end(), spec.other_metrics.begin(), spec.other_metrics.end());
  return metrics;
}

// By what both studies are.
absl::Status CheckAlike(const StudySpec& spec, const StudySpec& other) {
  if (!other.has_metric) return Refuse("study \"", other.name, "\" has no metric");
  if (other.directions.size() != spec.directions.size()) {
    return Refuse("study \"", other.name, "\" has ", Objectives(other), ", and this one ",
                  Objectives(spec));
  }
  for (std::size_t k = 0; k < spec.directions.size(); ++k) {
    const Direction there = other.directions[k];
    if (there == spec.directions[k]) continue;
    const std::string which =
        spec.directions.size() > 1 ? absl::StrCat(" of objective ", k + 1) : "";
    return Refuse("study \"", other.name, "\" is to ", std::string(ToString(there)),
                  ", and this one to ", std::string(ToString(spec.directions[k])), which);
  }
  // Values are of what stands at their place: a metric that stands elsewhere is another one.
  const std::vector<std::string> here = MetricsOf(spec);
  const std::vector<std::string> there = MetricsOf(other);
  for (std::size_t k = 0; k < std::min(here.size(), there.size()); ++k) {
    if (here[k] == there[k] || std::ranges::find(there, here[k]) == there.end()) continue;
    return Refuse("metric \"", here[k], "\" is not objective ", k + 1, " of study \"", other.name,
                  "\", where they are ", absl::StrJoin(there, ", "),
                  ": give metrics in the same order");
  }
  return absl::OkStatus();
}

// Of the dimensions that are searched, those that any of the trials has, and those that none has.
struct Told {
  std::vector<SearchSpace::Dimension> always;  // without those of options
  std::vector<std::string> shared;
  std::vector<std::string> free;
};

Told ToldOf(const StudySpec& spec) {
  Told told;
  const SearchSpace searched = SearchedSpace(spec);
  for (const auto& dimension : searched.dimensions()) {
    if (Cardinality(dimension.distribution) == 1) continue;  // held
    const bool shared = std::ranges::any_of(spec.like.trials, [&](const ScoredTrial& trial) {
      return Find(trial.parameters, dimension.name) != nullptr;
    });
    (shared ? told.shared : told.free).push_back(dimension.name);
    if (shared && !dimension.condition) told.always.push_back(dimension);
  }
  return told;
}

}  // namespace

absl::StatusOr<LikeStudy> TrialsLike(const TunerState& state, const StudySpec& spec) {
  ESPALIER_RETURN_IF_ERROR(Validate(spec));
  const Study* other = state.FindStudy(spec.like.study);
  if (other == nullptr) return Refuse("there is no study \"", spec.like.study, "\"");
  ESPALIER_RETURN_IF_ERROR(CheckAlike(spec, other->spec));
  const SearchSpace space = SearchedSpace(spec);
  std::vector<bool> may_share;
  for (const auto& dimension : space.dimensions()) {
    may_share.push_back(MayShare(dimension, other->spec.space));
  }
  LikeStudy like{.study = spec.like.study};
  std::vector<Placed> placed;
  SuggestedParameters suggested;
  bool complete = false;
  bool complete_within = false;
  state.ForEachTrial(*other, [&](const Trial& trial) {
    // What a clone came to is due to its parents, too: it tells little of its own parameters.
    if (!Ended(trial.state) || trial.lineage->cloned()) return;
    ++like.ended;
    std::vector<double> losses = LossesOf(trial, spec.directions);
    const Standing standing = StandingOf(trial, losses);
    complete = complete || standing.front() == kComplete;
    const Parameters& parameters =
        other->spec.by_clients() ? *suggested.Of(trial, *other) : trial.parameters;
    std::optional<Parameters> within = Within(space, may_share, parameters);
    if (!within) return;
    complete_within = complete_within || standing.front() == kComplete;
    placed.push_back({standing, std::move(losses), trial.number, {*std::move(within), 0}});
  });
  if (!complete) {
    return Refuse("study \"", like.study, "\" has no complete trial with a value to learn from");
  }
  if (!complete_within) {
    return Refuse("no complete trial of study \"", like.study,
                  "\" lies in this study's search space");
  }
  like.within = std::ssize(placed);
  Score(placed);
  like.trials = Taken(placed);
  return like;
}

absl::Status ValidateLike(const StudySpec& spec, const Sampler& sampler) {
  const LikeStudy& like = spec.like;
  if (like.study.empty() && like.trials.empty()) return absl::OkStatus();
  if (like.study.empty()) return Refuse("needs the name of a study");
  if (!sampler.takes_like()) {
    return Refuse("the sampler \"", spec.sampler.name, "\" cannot learn from another study: give ",
                  SamplersThat(&Sampler::takes_like));
  }
  if (!spec.has_metric) return Refuse("goes by a metric, and the study has none");
  if (like.trials.empty()) return absl::OkStatus();
  if (like.trials.size() > kMaxTrialsTaken) {
    return Refuse("at most ", kMaxTrialsTaken, " trials, got ", like.trials.size());
  }
  for (std::size_t i = 0; i < like.trials.size(); ++i) {
    const absl::Status within = spec.space.ValidateSome(like.trials[i].parameters);
    if (!within.ok()) return Refuse("trials[", i, "]: ", std::string(within.message()));
    std::vector<double> scores = like.trials[i].other_scores;
    if (scores.size() + 1 != spec.directions.size()) {
      return Refuse("trials[", i, "]: needs a score for each of ", Objectives(spec), ", got ",
                    scores.size() + 1);
    }
    scores.push_back(like.trials[i].score);
    for (const double score : scores) {
      if (score >= kLeastScore && score <= 1) continue;
      return Refuse("trials[", i, "]: needs a score from ", kLeastScore, " to 1, got ", score);
    }
  }
  const Told told = ToldOf(spec);
  if (told.shared.empty()) {
    return Refuse("study \"", like.study, "\" has no parameter that this study searches");
  }
  const auto shared = SearchSpace::Make(told.always);
  if (!shared.ok() || sampler.Fits(*shared).ok()) return absl::OkStatus();
  return Refuse("of what study \"", like.study, "\" has in common with this one (",
                absl::StrJoin(told.shared, ", "), ") the sampler \"", spec.sampler.name,
                "\" can learn nothing: give ", SamplersThat(&Sampler::takes_like));
}

std::string LikeText(const StudySpec& spec) {
  const LikeStudy& like = spec.like;
  if (like.study.empty()) return "";
  std::string text = absl::StrCat("learns from ", like.trials.size(), " of the ", like.ended,
                                  " ended trials of study \"", like.study, "\"");
  if (like.ended > like.within) {
    absl::StrAppend(&text, "; ", like.ended - like.within, " lie outside the search space");
  }
  const Told told = ToldOf(spec);
  if (!told.free.empty()) {
    absl::StrAppend(&text, "; they tell nothing of ", absl::StrJoin(told.free, ", "));
  }
  return text;
}

}  // namespace espalier
