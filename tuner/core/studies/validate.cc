#include "tuner/core/studies/validate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/policies/policy.h"
#include "tuner/core/population/perturbation.h"
#include "tuner/core/promise/promise.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/studies/like.h"
#include "tuner/core/terminators/terminator.h"
#include "tuner/core/trials/searched_space.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

namespace {

absl::Status InKey(std::string_view key, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("\"", std::string(key), "\": ", status.message()));
}

// What only a study needs whose trials the tuner runs.
absl::Status ValidateForPool(const StudySpec& spec) {
  if (spec.name.empty()) return absl::InvalidArgumentError("\"name\": a study needs a name");
  if (spec.command.empty() || spec.command.front().empty()) {
    return absl::InvalidArgumentError("\"command\": a study needs the program that a trial runs");
  }
  if (spec.space.dimensions().empty() && !spec.queued() && spec.has_metric) {
    return absl::InvalidArgumentError("\"search_space\": needs at least one parameter");
  }
  if (spec.space.dimensions().empty() && !spec.queued() && spec.max_trials > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"trials\": without parameters in \"search_space\" there is one trial to run, got ",
        spec.max_trials));
  }
  return InKey("search_space", spec.space.CheckVariables());
}

// The plug-ins of a table that can do something, by name.
template <typename Plugin, typename Can>
std::vector<std::string> ThoseThat(const PluginTable<Plugin>& table, const Can& can) {
  std::vector<std::string> names;
  for (const std::string& name : table.Names()) {
    const auto made = table.Make(name, Options{});
    if (made.ok() && can(**made)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> PrunersThat(bool (Pruner::*can)() const) {
  return ThoseThat(Pruners(), [can](const Pruner& pruner) { return (pruner.*can)(); });
}

void Quoted(std::string* out, const std::string& name) { absl::StrAppend(out, "\"", name, "\""); }

// What a person knows of parameters, and the space that is left to the sampler.
absl::Status ValidatePoints(const StudySpec& spec) {
  if (spec.points.empty() && spec.fixed.empty()) return absl::OkStatus();
  if (spec.queued()) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec.points.empty() ? "\"fixed\"" : "\"points\"",
        ": has no place beside the sampler \"queue\", whose trials clients enqueue whole"));
  }
  ESPALIER_RETURN_IF_ERROR(InKey("fixed", spec.space.ValidateSome(spec.fixed)));
  if (!spec.fixed.empty() && spec.space.Validate(spec.fixed).ok()) {
    return absl::InvalidArgumentError("\"fixed\": leaves no parameter to search");
  }
  if (spec.points.size() > kMaxPoints ||
      (spec.max_trials > 0 && std::ssize(spec.points) > spec.max_trials)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"points\": at most ",
                     spec.max_trials > 0 ? std::min<std::int64_t>(spec.max_trials, kMaxPoints)
                                         : static_cast<std::int64_t>(kMaxPoints),
                     ", as there are trials, got ", spec.points.size()));
  }
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    const std::string place = absl::StrCat("points[", i, "]");
    ESPALIER_RETURN_IF_ERROR(InKey(place, spec.space.ValidateSome(spec.points[i])));
    for (const auto& [name, value] : spec.points[i]) {
      const ParameterValue* const held = Find(spec.fixed, name);
      if (held == nullptr || SameValue(*held, value)) continue;
      return InKey(place, absl::InvalidArgumentError(
                              absl::StrCat("parameter \"", name, "\" is ", ToDisplay(value),
                                           ", and \"fixed\" holds it at ", ToDisplay(*held))));
    }
  }
  return absl::OkStatus();
}

// The sampler can use a prior, and the prior is of parameters that it searches.
absl::Status ValidatePrior(const StudySpec& spec, const Sampler& sampler) {
  if (spec.prior.empty()) return absl::OkStatus();
  const auto refuse = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("\"prior\": ", parts...));
  };
  if (!sampler.takes_prior()) {
    return refuse("the sampler \"", spec.sampler.name, "\" cannot use it: give ",
                  SamplersThat(&Sampler::takes_prior));
  }
  const SearchSpace searched = SearchedSpace(spec);
  std::set<std::string_view> seen;
  for (const auto& [name, value, confidence] : spec.prior) {
    const std::optional<std::size_t> i = spec.space.Find(name);
    if (!i || !Contains(spec.space.dimensions()[*i].distribution, value)) {
      return InKey("prior", spec.space.ValidateSome({{name, value}}));
    }
    if (Find(spec.fixed, name) != nullptr) {
      return refuse("parameter \"", name, "\" is held by \"fixed\"");
    }
    if (!searched.Find(name)) {
      return refuse("parameter \"", name, "\" is of an option that \"fixed\" leaves out");
    }
    if (!(confidence >= kLeastConfidence && confidence <= kMostConfidence)) {
      return refuse("the confidence in \"", name, "\" must be ", kLeastConfidence, " to ",
                    kMostConfidence, ", got ", confidence);
    }
    if (!seen.insert(name).second) return refuse("parameter \"", name, "\" is given twice");
  }
  return absl::OkStatus();
}

// Trials that the pool runs tell of several metrics at each step.
absl::Status ValidateMetrics(const StudySpec& spec) {
  const auto refuse = [&spec](std::string_view key, std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", std::string(key), "\": a study of ",
                                                   spec.directions.size(), " metrics ",
                                                   std::string(why)));
  };
  if (spec.other_metrics.size() + 1 != spec.directions.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"metric\": needs a direction for each metric, got ", spec.directions.size(),
                     " directions for ", spec.other_metrics.size() + 1, " metrics"));
  }
  if (!spec.from_files.tag.empty()) {
    return refuse("metric",
                  "cannot be read from TensorBoard's events, where each has its own: "
                  "have programs report them, or log lines of JSON (\"from_file\")");
  }
  if (!spec.launch.empty() && spec.mean_of_ranks) {
    return refuse("ranks", "needs \"same\": the mean is of one value");
  }
  if (spec.target) return refuse("target", "has no one value that could reach it");
  if (spec.best_k > 1) return refuse("promise", "goes by their Pareto front: leave out \"best_k\"");
  return absl::OkStatus();
}

absl::Status NoConstraints(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("\"constraints\": ", why));
}

// The study's trials can tell figures of which each can be bounded.
absl::Status ValidateConstraintsForTrials(const StudySpec& spec) {
  if (spec.by_clients()) {
    return NoConstraints(
        "are on figures of trials that the pool runs; with \"ask_and_tell\" clients tell "
        "themselves "
        "how far a trial is from what it has to keep, as attributes \"constraints:NAME\"");
  }
  if (!spec.has_metric) return NoConstraints("need a \"metric\": jobs have no best trial");
  if (!spec.from_files.tag.empty()) {
    return NoConstraints(
        "are on figures beside the metric, and that is read from TensorBoard's events, where each "
        "has its own: have programs report it, or log lines of JSON (\"from_file\")");
  }
  if (!spec.launch.empty() && !spec.reads_values() && spec.max_slots != 1) {
    return NoConstraints(absl::StrCat(
        "are on figures of programs whose only process is the trial's, and \"launch\" starts \"",
        spec.launch.front(), "\" on several slots: give \"slots\": 1, or leave it out"));
  }
  return absl::OkStatus();
}

// Constraints are of one figure and one side each, and the sampler heeds them.
absl::Status ValidateConstraints(const StudySpec& spec, const Sampler& sampler) {
  if (spec.constraints.empty()) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(ValidateConstraintsForTrials(spec));
  if (spec.constraints.size() > kMostConstraints) {
    return NoConstraints(absl::StrCat("needs at most ", kMostConstraints, " constraints, got ",
                                      spec.constraints.size()));
  }
  for (std::size_t i = 0; i < spec.constraints.size(); ++i) {
    const Constraint& own = spec.constraints[i];
    if (own.figure.empty() || own.figure.size() > kMaxFigureName || !std::isfinite(own.bound)) {
      return NoConstraints(absl::StrCat("the name of a figure has 1 to ", kMaxFigureName,
                                        " bytes and its bound is finite, got ", ToText(own)));
    }
    if (own.figure == spec.metric && spec.other_metrics.empty()) {
      return NoConstraints(absl::StrCat(
          "\"", own.figure,
          "\" is the study's metric, and the best trial is best in it anyway: "
          "\"target\" ends the study at a value, the pruner \"threshold\" trials beyond one"));
    }
    for (const Constraint& other : std::span(spec.constraints).first(i)) {
      if (other.figure != own.figure) continue;
      if (other.at_least == own.at_least) {
        return NoConstraints(absl::StrCat("\"", ToText(other), "\" and \"", ToText(own),
                                          "\" bound one figure on one side: leave one out"));
      }
      const auto& [low, high] = own.at_least ? std::pair(own, other) : std::pair(other, own);
      if (low.bound <= high.bound) continue;
      return NoConstraints(
          absl::StrCat("no figure is \"", ToText(low), "\" and \"", ToText(high), "\""));
    }
  }
  if (sampler.takes_constraints()) return absl::OkStatus();
  return NoConstraints(absl::StrCat("the sampler \"", spec.sampler.name,
                                    "\" does not heed them: give ",
                                    SamplersThat(&Sampler::takes_constraints)));
}

// Members are compared by one value that they report, and take over from one another.
absl::Status ValidatePopulation(const StudySpec& spec) {
  if (!spec.population.on()) return absl::OkStatus();
  const auto refuse = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("\"population\": ", parts...));
  };
  if (spec.by_clients()) return refuse("is of trials that the pool runs, not of \"ask_and_tell\"");
  if (spec.queued()) return refuse("draws its first members: give another sampler than \"queue\"");
  if (!spec.has_metric) return refuse("needs a \"metric\", by which its members are compared");
  if (spec.directions.size() > 1) {
    return refuse("compares its members by one metric, got ", spec.directions.size());
  }
  if (spec.pruner.name != "none") {
    return refuse("ends its worst members itself: leave out \"pruner\", got \"", spec.pruner.name,
                  "\"");
  }
  if (spec.max_trials < 2) {
    return refuse("needs \"trials\": the number of its members, 2 or more, got ", spec.max_trials);
  }
  for (const std::string& name : spec.population.parameters) {
    if (Find(spec.fixed, name) != nullptr) {
      return refuse("parameter \"", name, "\" is held by \"fixed\"");
    }
  }
  return CheckPerturbation(spec.population, spec.space);
}

// What goes by one value has no place where trials have several.
absl::Status ValidateForSeveralDirections(const StudySpec& spec, const Sampler& sampler,
                                          const Pruner& pruner) {
  if (!spec.by_clients()) ESPALIER_RETURN_IF_ERROR(ValidateMetrics(spec));
  if (spec.by_clients() && spec.pruner.name != "none") {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"pruner\": a study of ", spec.directions.size(),
        " directions whose trials clients run prunes nothing, got \"", spec.pruner.name, "\""));
  }
  if (!pruner.takes_objectives()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"pruner\": \"", spec.pruner.name, "\" goes by one direction, and there are ",
                     spec.directions.size(), ": give ",
                     absl::StrJoin(PrunersThat(&Pruner::takes_objectives), ", ", Quoted)));
  }
  if (sampler.takes_objectives() || spec.space.dimensions().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"sampler\": \"", spec.sampler.name, "\" goes by one direction, and there are ",
                   spec.directions.size(), ": give ", SamplersThat(&Sampler::takes_objectives)));
}

absl::Status ValidateTerminator(const StudySpec& spec) {
  const PluginSpec& terminator = spec.terminator;
  const auto made = MakeTerminator(terminator.name, terminator.options);
  ESPALIER_RETURN_IF_ERROR(InKey("terminator", made.status()));
  if (terminator.name == "none") return absl::OkStatus();
  if (spec.has_metric && spec.directions.size() <= 1) {
    const absl::Status fits = (*made)->Fits(SearchedSpace(spec));
    if (fits.ok()) return fits;
    return InKey("terminator", absl::InvalidArgumentError(
                                   absl::StrCat("\"", terminator.name, "\" ", fits.message())));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"terminator\": \"", terminator.name, "\" goes by the values of one metric, and ",
      spec.has_metric ? absl::StrCat("there are ", spec.directions.size(), " directions")
                      : "there is no metric"));
}

// A pruner whose steps are instances has no use for steps that are worked out.
absl::Status ValidateSteps(const StudySpec& spec, const Pruner& pruner) {
  if (pruner.steps_ascend() || spec.batch_mode == BatchMode::kFixed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"pruner\": \"", spec.pruner.name, "\" compares trials instance by instance, which needs ",
      "\"batch_mode\": \"fixed\""));
}

// Study files are read with sizes in order; a spec may also come from elsewhere.
absl::Status ValidateSizes(const StudySpec& spec) {
  const std::vector<int>& sizes = spec.slot_sizes;
  const bool ascend =
      std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end();
  if (!ascend ||
      (!sizes.empty() && (spec.min_slots != sizes.front() || spec.max_slots != sizes.back()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"slots\": sizes must ascend, from the least number of slots (", spec.min_slots,
        ") to the greatest (", spec.max_slots, "), got ", absl::StrJoin(sizes, ", ")));
  }
  if (spec.slots_per_node < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"slots_per_node\": must be at least 1, got ", spec.slots_per_node));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const StudySpec& spec) {
  if (spec.by_clients() && spec.sampler.name == kQueueSampler) {
    return absl::InvalidArgumentError(
        "\"sampler\": \"queue\" is for studies whose trials the pool runs; with \"ask_and_tell\" "
        "clients enqueue trials whatever the sampler is");
  }
  if (!spec.by_clients() && spec.queued() != (spec.sampler.name == kQueueSampler)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"sampler\": \"", kQueueSampler, "\" is that of queued studies alone, got \"",
        spec.sampler.name, "\" for a study that is ", spec.queued() ? "" : "not ", "queued"));
  }
  if (!spec.by_clients()) ESPALIER_RETURN_IF_ERROR(ValidateForPool(spec));
  const auto sampler = MakeSampler(spec.sampler.name, spec.sampler.options);
  ESPALIER_RETURN_IF_ERROR(InKey("sampler", sampler.status()));
  const auto pruner = MakePruner(spec.pruner.name, spec.pruner.options);
  ESPALIER_RETURN_IF_ERROR(InKey("pruner", pruner.status()));
  if (spec.directions.size() > 1 || !spec.other_metrics.empty()) {
    ESPALIER_RETURN_IF_ERROR(ValidateForSeveralDirections(spec, **sampler, **pruner));
  }
  ESPALIER_RETURN_IF_ERROR(ValidatePoints(spec));
  ESPALIER_RETURN_IF_ERROR(ValidatePrior(spec, **sampler));
  ESPALIER_RETURN_IF_ERROR(ValidateLike(spec, **sampler));
  ESPALIER_RETURN_IF_ERROR(ValidateConstraints(spec, **sampler));
  ESPALIER_RETURN_IF_ERROR(InKey("sampler", (*sampler)->Fits(SearchedSpace(spec))));
  ESPALIER_RETURN_IF_ERROR(InKey("sampler", (*sampler)->FitsObjectives(spec.directions.size())));
  ESPALIER_RETURN_IF_ERROR(ValidateSteps(spec, **pruner));
  ESPALIER_RETURN_IF_ERROR(ValidatePopulation(spec));
  ESPALIER_RETURN_IF_ERROR(ValidateTerminator(spec));
  ESPALIER_RETURN_IF_ERROR(
      InKey("policy", MakePolicy(spec.policy.name, spec.policy.options).status()));
  if (spec.min_slots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"slots\": min must be at least 1, got ", spec.min_slots));
  }
  if (spec.max_slots != 0 && spec.max_slots < spec.min_slots) {
    return absl::InvalidArgumentError(absl::StrCat("\"slots\": max must be at least min (",
                                                   spec.min_slots, "), got ", spec.max_slots));
  }
  ESPALIER_RETURN_IF_ERROR(ValidateSizes(spec));
  if (!(spec.share >= kMinShare && spec.share <= kMaxShare)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"share\": must be ", kMinShare, " to ", kMaxShare, ", got ", spec.share));
  }
  if (spec.max_trials < 0 || spec.time_limit_s < 0 || spec.max_concurrent_trials < 0) {
    return absl::InvalidArgumentError("limits must not be negative");
  }
  if (!(spec.cost_limit >= 0) || !(spec.slot_price_per_hour >= 0)) {
    return absl::InvalidArgumentError("\"cost_limit\" and \"slot_price_per_hour\": not negative");
  }
  ESPALIER_RETURN_IF_ERROR(CheckCostLimit(spec));
  if (spec.best_k < 1 || spec.best_k > kMostBestK) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"promise\": best_k must be 1 to ", kMostBestK, ", got ", spec.best_k));
  }
  if (spec.max_consecutive_failures < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"max_consecutive_failures\": must be at least 1, got ", spec.max_consecutive_failures));
  }
  return absl::OkStatus();
}

std::vector<std::string> CutFractions(TunerState& state) {
  std::vector<std::string> cut;
  for (auto& [id, study] : state.studies) {
    StudySpec& spec = study.spec;
    for (const auto& of_plugin : {Samplers().CutFractions(spec.sampler.name, spec.sampler.options),
                                  Pruners().CutFractions(spec.pruner.name, spec.pruner.options),
                                  Policies().CutFractions(spec.policy.name, spec.policy.options)}) {
      if (!of_plugin.empty()) spec.wording = {};          // which says the fractions
      if (study.state != StudyState::kRunning) continue;  // nothing will be decided by it
      for (const std::string& each : of_plugin) {
        cut.push_back(absl::StrCat("study \"", spec.name, "\": ", each));
      }
    }
  }
  if (!state.policy) return cut;
  for (const std::string& each :
       Policies().CutFractions(state.policy->name, state.policy->options)) {
    cut.push_back(absl::StrCat("the pool: ", each));
  }
  return cut;
}

namespace {

absl::Status CheckTemplate(const NodeTemplate& node) {
  if (node.max_nodes < 1 || node.max_nodes > kMaxEngineNodes) {
    return absl::InvalidArgumentError(absl::StrCat("a pool of at most ", node.max_nodes,
                                                   " nodes: must be 1 to ", kMaxEngineNodes));
  }
  if (node.min_nodes < 0 || node.min_nodes > node.max_nodes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pool of at least ", node.min_nodes, " nodes: must be 0 to its most, ", node.max_nodes));
  }
  if (node.slots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes of ", node.slots, " slots: must be 1 or more"));
  }
  if (!(node.start_s >= 0) || !std::isfinite(node.start_s)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes that need ", node.start_s, " s to start: must be 0 or more"));
  }
  if (!(node.price_per_hour >= 0) || !std::isfinite(node.price_per_hour)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes at ", node.price_per_hour, " an hour: must be 0 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPoolSize(const PoolSizeOptions& options) {
  ESPALIER_RETURN_IF_ERROR(MakePoolSizeRule(options.rule.name, options.rule.options).status());
  int most = 0;
  for (const NodeTemplate& node : options.templates) {
    const absl::Status sound = CheckTemplate(node);
    if (!sound.ok() && !node.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("template \"", node.name, "\": ", sound.message()));
    }
    ESPALIER_RETURN_IF_ERROR(sound);
    most += node.max_nodes;
  }
  if (most >= 1 && most <= kMaxEngineNodes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a pool of at most ", most, " nodes, of all templates: must be 1 to ", kMaxEngineNodes));
}

}  // namespace espalier
