#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tuner/api/convert.h"
#include "tuner/api/json.h"
#include "tuner/api/notes.h"
#include "tuner/api/shown_attributes.h"
#include "tuner/core/state/refusals.h"
#include "tuner/web/view/best_value.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/parameter_shape.h"
#include "tuner/web/view/views.h"
#include "tuner/web/view/words.h"

namespace espalier::view {

namespace {

void PutConstraints(JsonText& json, const StudySpec& spec) {
  json.Key("constraints");
  json.Array(spec.constraints, [&json](const Constraint& of) { json.Value(ToText(of)); });
}

void PutLike(JsonText& json, const LikeStudy& like) {
  json.Key("like");
  if (like.study.empty()) {
    json.Null();
    return;
  }
  json.Object([&] {
    json.Member("study", like.study);
    json.Member("trials", like.trials.size());
    json.Member("ended", like.ended);
    json.Member("within", like.within);
  });
}

constexpr std::ptrdiff_t kSuggestionsOfStudy = 4096;

// A study without its trials and its record, copied.
struct StudyFacts {
  Heading heading;
  Study study;
  bool shows_secrets = false;
  std::optional<PluginSpec> policy;
  Attributes attributes;
};

StudyFacts FactsOf(const Study& study, const View& view) {
  StudyFacts facts;
  facts.study.id = study.id;
  facts.study.spec = study.spec;
  facts.study.state = study.state;
  facts.study.created = study.created;
  facts.study.ended = study.ended;
  facts.study.reason = study.reason;
  facts.study.asked = study.asked;
  const auto suggestions = std::min(std::ssize(study.suggestions), kSuggestionsOfStudy);
  facts.study.suggestions.assign(study.suggestions.begin(),
                                 study.suggestions.begin() + suggestions);
  facts.shows_secrets = view.shows_secrets;
  facts.policy = view.core.PoolPolicy();
  facts.attributes = ShownAttributes(study);
  return facts;
}

void PutLimit(JsonText& json, std::string_view key, double limit) {
  json.Key(key);
  limit > 0 ? json.Value(limit) : json.Null();
}

void PutLimits(JsonText& json, const StudySpec& spec) {
  json.Key("limits");
  json.Object([&] {
    PutLimit(json, "trials", static_cast<double>(spec.max_trials));
    PutLimit(json, "time_s", spec.time_limit_s);
    PutLimit(json, "cost", spec.cost_limit);
    json.Member("target", spec.target);
  });
}

void PutShapes(JsonText& json, const std::vector<ParameterShape>& shapes) {
  json.Key("parameters");
  json.Array(shapes, [&json](const ParameterShape& shape) {
    json.Object([&] {
      json.Member("name", shape.name);
      json.Member("kind", shape.kind);
      json.Member("low", shape.low);
      json.Member("high", shape.high);
      json.Member("log", shape.log);
      json.Values("choices", shape.choices);
    });
  });
}

std::string ToJson(const StudyFacts& facts) {
  const Study& study = facts.study;
  const StudySpec& spec = study.spec;
  JsonText json;
  json.Object([&] {
    PutHeading(json, facts.heading);
    json.Member("id", study.id.value);
    json.Member("name", spec.name);
    json.Member("state", WordOf(study.state));
    json.Member("reason", study.reason);
    json.Member("kind", WordOf(spec.kind));
    json.Key("definition");
    json.Raw(JsonOrQuoted(DefinitionText(study, facts.shows_secrets)));
    PutShapes(json, ShapesOf(study, kSuggestionsOfStudy));
    json.Key("metric");
    spec.has_metric ? json.Value(spec.metric) : json.Null();
    PutDirections(json, spec.directions);
    json.Values("metrics", MetricsOf(spec));
    PutConstraints(json, spec);
    json.Member("policy", TextOf(facts.policy.value_or(spec.policy)));
    json.Member("sampler", TextOf(spec.sampler));
    json.Member("pruner", TextOf(spec.pruner));
    PutLike(json, spec.like);
    PutLimits(json, spec);
    json.Member("share", spec.share);
    json.Member("min_slots", spec.min_slots);
    json.Key("max_slots");
    spec.max_slots > 0 ? json.Value(spec.max_slots) : json.Null();
    json.Member("created_at", study.created);
    json.Member("ended_at", study.ended);
    json.Member("note", NoteOf(facts.attributes.system, std::nullopt).body);
    json.Key("attributes");
    json.Object([&] {
      PutTexts(json, "user", facts.attributes.user);
      PutTexts(json, "system", facts.attributes.system);
    });
  });
  return json.Take();
}

}  // namespace

absl::StatusOr<std::string> StudyJson(const Source& source, StudyId id) {
  std::optional<StudyFacts> facts;
  ESPALIER_RETURN_IF_ERROR(source.tuner.Read([&](const View& view) {
    const auto study = view.core.state().studies.find(id);
    if (study == view.core.state().studies.end()) return;
    facts = FactsOf(study->second, view);
    facts->heading = HeadingOf(source);
  }));
  if (!facts) return NoStudy(id);
  return ToJson(*facts);
}

}  // namespace espalier::view
