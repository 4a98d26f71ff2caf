#include "tuner/web/view/trial_lineage.h"

#include <variant>

#include "tuner/core/state/change.h"
#include "tuner/web/view/slices.h"

namespace espalier::view {

namespace {

TrialId IdOf(const Study& study, std::int64_t number) {
  return study.trials.at(static_cast<std::size_t>(number));
}

}  // namespace

std::optional<ShownLineage> LineageOf(const Trial& trial, const Study& study,
                                      const TunerState& state) {
  const Lineage& lineage = *trial.lineage;
  if (!lineage.cloned()) return std::nullopt;
  ShownLineage shown{
      .of = lineage, .parent = IdOf(study, lineage.parent), .founder = {}, .set = {}, .was = {}};
  shown.founder = IdOf(study, lineage.founder);
  const Parameters& before = state.trials.at(shown.parent).parameters;
  for (const Parameter& parameter : trial.parameters) {
    const ParameterValue* const was = Find(before, parameter.name);
    if (was != nullptr && SameValue(*was, parameter.value)) continue;
    shown.set.push_back(parameter);
    if (was != nullptr) shown.was.push_back({parameter.name, *was});
  }
  return shown;
}

void Put(JsonText& json, const Parameters& parameters) {
  json.Object([&] {
    for (const Parameter& parameter : parameters) {
      json.Key(parameter.name);
      std::visit([&json](const auto& of) { json.Value(of); }, parameter.value);
    }
  });
}

void Put(JsonText& json, const std::optional<ShownLineage>& lineage) {
  if (!lineage) {
    json.Null();
    return;
  }
  json.Object([&] {
    json.Member("parent_id", lineage->parent.value);
    json.Member("parent", lineage->of.parent);
    json.Member("founder_id", lineage->founder.value);
    json.Member("founder", lineage->of.founder);
    json.Key("step");
    lineage->of.awaited() ? json.Null() : json.Value(lineage->of.step);
    json.Member("fingerprint", lineage->of.fingerprint);
    json.Key("set");
    Put(json, lineage->set);
    json.Key("was");
    Put(json, lineage->was);
  });
}

absl::StatusOr<std::vector<ShownClone>> ClonesOf(const Source& source, TrialId parent) {
  std::vector<ShownClone> clones;
  std::optional<std::size_t> next;  // a clone has a higher number than its parent
  ESPALIER_RETURN_IF_ERROR(ReadInSlices(source.tuner, [&](const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    const auto trial = state.trials.find(parent);
    if (trial == state.trials.end()) return true;
    const Study& study = state.studies.at(trial->second.study);
    if (study.clones == 0) return true;
    if (!next) next = static_cast<std::size_t>(trial->second.number) + 1;
    for (; *next < study.trials.size() && slice.HasRoom(); ++*next) {
      slice.Spend(1);
      const Trial& other = state.trials.at(study.trials[*next]);
      if (other.lineage->parent != trial->second.number) continue;
      ShownClone& clone = clones.emplace_back(ShownClone{other.id, other.number, other.state});
      if (!other.lineage->awaited()) clone.step = other.lineage->step;
      if (clones.size() == kClonesOfTrial) return true;
    }
    return *next >= study.trials.size();
  }));
  return clones;
}

}  // namespace espalier::view
