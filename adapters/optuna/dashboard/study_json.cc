#include "adapters/optuna/dashboard/study_json.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "adapters/optuna/dashboard/python_text.h"
#include "base/json/python_json.h"

namespace espalier::optuna_dashboard {

namespace {

using Type = OptunaDistribution::Type;

// Keys and values in one call.
class JsonText {
 public:
  std::string text() const { return {buffer_.GetString(), buffer_.GetSize()}; }

  JsonText& Key(const char* key) {
    writer_.Key(key);
    return *this;
  }
  void Value(std::string_view value) {
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  void Value(const char* value) { writer_.String(value); }
  void Value(bool value) { writer_.Bool(value); }
  void Value(std::int64_t value) { writer_.Int64(value); }
  // JSON has no others than finite numbers; the front end knows these words.
  void Value(double value) {
    if (std::isfinite(value)) {
      writer_.Double(value);
    } else {
      Value(std::string_view(PythonFloat(value)));
    }
  }
  void Null() { writer_.Null(); }
  void Raw(std::string_view json) {
    writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType);
  }
  template <typename T>
  void Member(const char* key, const T& value) {
    Key(key).Value(value);
  }
  template <typename Fill>
  void Object(Fill fill) {
    writer_.StartObject();
    fill();
    writer_.EndObject();
  }
  template <typename Items, typename Each>
  void Array(const Items& items, Each each) {
    writer_.StartArray();
    for (const auto& item : items) each(item);
    writer_.EndArray();
  }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

std::string IsoTime(Time time) {
  const bool whole = time.us % 1'000'000 == 0;
  return absl::FormatTime(whole ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%dT%H:%M:%E6S",
                          absl::FromUnixMicros(time.us), absl::LocalTimeZone());
}

std::string_view StateName(TrialState state) {
  switch (state) {
    case TrialState::kWaiting:
      return "Waiting";
    case TrialState::kRunning:
    case TrialState::kPaused:
      return "Running";
    case TrialState::kComplete:
      return "Complete";
    case TrialState::kPruned:
      return "Pruned";
    case TrialState::kFail:
      return "Fail";
  }
  return "Running";
}

void Put(JsonText& json, const OptunaDistribution& distribution) {
  json.Object([&] {
    json.Member("type", std::string_view(distribution.name));
    if (distribution.type == Type::kCategorical) {
      json.Key("choices").Array(distribution.choices, [&](const std::string& choice) {
        const PythonValue value = ReadPython(choice);
        json.Object([&] {
          json.Member("pytype", std::string_view(absl::StrCat("<class '", value.type, "'>")));
          json.Member("value", std::string_view(value.text));
        });
      });
      return;
    }
    const auto bound = [&](double value) {
      distribution.type == Type::kInt&& std::abs(value) < 9e18
          ? json.Value(static_cast<std::int64_t>(value))
          : json.Value(value);
    };
    json.Key("low");
    bound(distribution.low);
    json.Key("high");
    bound(distribution.high);
    json.Key("step");
    if (distribution.step || distribution.type == Type::kInt) {
      bound(distribution.step.value_or(1));
    } else {
      json.Null();
    }
    json.Member("log", distribution.log);
  });
}

void PutSpace(JsonText& json, const char* key, const std::vector<DrawnParameters::Entry>& space) {
  json.Key(key).Array(space, [&](const DrawnParameters::Entry& entry) {
    json.Object([&] {
      json.Member("name", std::string_view(entry.name));
      json.Key("distribution");
      Put(json, entry.distribution);
    });
  });
}

void PutDirections(JsonText& json, const StudyHead& study) {
  json.Key("directions").Array(study.spec.directions, [&](Direction direction) {
    json.Value(ToString(direction));
  });
}

void PutUserAttributes(JsonText& json, const Attributes& attributes) {
  json.Key("user_attrs").Array(attributes.user, [&](const auto& attribute) {
    json.Object([&] {
      json.Member("key", std::string_view(attribute.first));
      json.Member("value", std::string_view(AttributeText(attribute.second)));
    });
  });
}

void Put(JsonText& json, const Note& note) {
  json.Object([&] {
    json.Member("version", note.version);
    json.Member("body", std::string_view(note.body));
  });
}

void PutArtifacts(JsonText& json, const std::vector<Artifact>& artifacts) {
  json.Array(artifacts, [&](const Artifact& artifact) {
    json.Object([&] {
      json.Member("artifact_id", std::string_view(artifact.id));
      json.Member("filename", std::string_view(artifact.filename));
      json.Member("mimetype", std::string_view(artifact.mimetype));
      json.Key("encoding");
      artifact.encoding.empty() ? json.Null() : json.Value(std::string_view(artifact.encoding));
    });
  });
}

// {"x": 1} of an enqueued trial, as [{"name": "x", "param_external_value": "1"}].
void PutFixedParameters(JsonText& json, const Attributes& attributes) {
  json.Key("fixed_params");
  rapidjson::Document fixed;
  const std::string* text = FindText(attributes.system, "fixed_params");
  if (text != nullptr) {
    ParsePythonJson(*text, fixed);
  }
  if (text == nullptr || fixed.HasParseError() || !fixed.IsObject()) fixed.SetObject();
  json.Array(fixed.GetObject(), [&](const auto& member) {
    json.Object([&] {
      json.Member("name", member.name.GetString());
      json.Member("param_external_value",
                  std::string_view(ReadPython(PythonJson(member.value)).text));
    });
  });
}

// The front end calls methods of a list on them: whatever else a program has put there is none.
void PutConstraints(JsonText& json, const Attributes& attributes) {
  json.Key("constraints");
  const std::string* text = FindText(attributes.system, "constraints");
  rapidjson::Document list;
  const bool good = text != nullptr && !ParsePythonJson(*text, list).IsError() && list.IsArray() &&
                    std::all_of(list.Begin(), list.End(),
                                [](const rapidjson::Value& value) { return value.IsNumber(); });
  json.Raw(good ? StrictJson(*text) : "[]");
}

void PutParameters(JsonText& json, const TrialCopy& trial, DrawnParameters& parameters) {
  json.Key("params").Array(parameters.Of(trial), [&](const DrawnParameter& parameter) {
    const DrawnParameters::Entry& entry = parameters.entry(parameter.distribution);
    const ShownValue value = ValueShown(entry.distribution, parameter.stored);
    json.Object([&] {
      json.Member("name", std::string_view(entry.name));
      json.Member("param_internal_value", parameter.stored);
      json.Member("param_external_value", std::string_view(value.text));
      json.Member("param_external_pytyp", std::string_view(value.type));
      json.Key("distribution");
      Put(json, entry.distribution);
    });
  });
}

void Put(JsonText& json, const StudyHead& study, const TrialCopy& trial,
         DrawnParameters& parameters) {
  json.Object([&] {
    json.Member("trial_id", trial.id.value);
    json.Member("study_id", study.id.value);
    json.Member("number", trial.number);
    json.Member("state", StateName(trial.state));
    PutParameters(json, trial, parameters);
    PutFixedParameters(json, trial.attributes);
    PutUserAttributes(json, trial.attributes);
    json.Key("note");
    Put(json, NoteOf(study.attributes.system, trial.id));
    json.Key("artifacts");
    PutArtifacts(json, ArtifactsOf(study.attributes.system, trial));
    PutConstraints(json, trial.attributes);
    json.Key("intermediate_values").Array(trial.reports, [&](const auto& report) {
      json.Object([&] {
        json.Member("step", report.first);
        json.Member("value", report.second);
      });
    });
    if (!trial.values.empty()) {
      json.Key("values").Array(trial.values, [&](double value) { json.Value(value); });
    }
    if (trial.started != Time{})
      json.Member("datetime_start", std::string_view(IsoTime(trial.started)));
    if (trial.ended != Time{})
      json.Member("datetime_complete", std::string_view(IsoTime(trial.ended)));
  });
}

// Trials that people compare by hand.
void PutPreferences(JsonText& json, const StudyCopy& study) {
  const Texts& attributes = study.head.attributes.system;
  struct Entry {
    std::string at;
    std::string json;
    bool removed;
  };
  std::vector<Entry> history;
  for (const auto& [id, text] : WithPrefix(attributes, kHistoryPrefix)) {
    const std::string entry = StringOr(text, "{}");
    rapidjson::Document parsed;
    if (ParsePythonJson(entry, parsed).IsError() || !parsed.IsObject()) continue;
    const auto at = parsed.FindMember("timestamp");
    const std::string* pairs = FindText(attributes, std::string(kPreferencePrefix) + id);
    history.push_back(
        {at != parsed.MemberEnd() && at->value.IsString() ? at->value.GetString() : "", entry,
         pairs == nullptr || *pairs == "[]"});
  }
  std::stable_sort(history.begin(), history.end(),
                   [](const Entry& a, const Entry& b) { return a.at < b.at; });
  json.Key("preference_history").Array(history, [&](const Entry& entry) {
    json.Object([&] {
      json.Key("history").Raw(StrictJson(entry.json));
      json.Member("is_removed", entry.removed);
    });
  });
  json.Key("preferences").Array(PreferencesOf(attributes), [&](const auto& pair) {
    json.Array(std::vector<std::int64_t>{pair.first, pair.second},
               [&](std::int64_t number) { json.Value(number); });
  });
  const std::vector<std::int64_t> skipped = SkippedTrialIds(attributes);
  std::vector<std::int64_t> numbers;
  for (const TrialCopy& trial : study.trials) {
    if (std::find(skipped.begin(), skipped.end(), trial.id.value) != skipped.end()) {
      numbers.push_back(trial.number);
    }
  }
  json.Key("skipped_trial_numbers").Array(numbers, [&](std::int64_t n) { json.Value(n); });
}

void PutSummary(JsonText& json, const StudyHead& study) {
  json.Object([&] {
    json.Member("study_id", study.id.value);
    json.Member("study_name", std::string_view(study.spec.name));
    PutDirections(json, study);
    PutUserAttributes(json, study.attributes);
    json.Member("is_preferential", IsPreferential(study.attributes.system));
  });
}

// A program's own JSON under a key of the attributes, if it is there.
void PutAttribute(JsonText& json, const Texts& attributes, std::string_view key, const char* name) {
  if (const std::string* text = FindText(attributes, key)) json.Key(name).Raw(StrictJson(*text));
}

}  // namespace

std::string SummaryJson(const StudyHead& study) {
  JsonText json;
  PutSummary(json, study);
  return json.text();
}

std::string SummariesJson(const std::vector<StudyHead>& studies) {
  JsonText json;
  json.Object([&] {
    json.Key("study_summaries").Array(studies, [&](const StudyHead& study) {
      PutSummary(json, study);
    });
  });
  return json.text();
}

std::string DetailJson(const StudyCopy& study, std::int64_t after, const StudyDigest& digest,
                       const std::vector<TrialCopy>& best, DrawnParameters& parameters) {
  const Texts& attributes = study.head.attributes.system;
  JsonText json;
  json.Object([&] {
    json.Member("name", std::string_view(study.head.spec.name));
    PutDirections(json, study.head);
    PutUserAttributes(json, study.head.attributes);
    json.Key("artifacts");
    PutArtifacts(json, ArtifactsOf(attributes));
    const auto put_trial = [&](const TrialCopy& trial) {
      Put(json, study.head, trial, parameters);
    };
    const auto first = std::min(after, static_cast<std::int64_t>(study.trials.size()));
    json.Key("trials").Array(std::span(study.trials).subspan(static_cast<std::size_t>(first)),
                             put_trial);
    json.Key("best_trials").Array(best, put_trial);
    PutSpace(json, "intersection_search_space", digest.intersection_space);
    PutSpace(json, "union_search_space", digest.union_space);
    json.Key("union_user_attrs").Array(digest.user_attributes, [&](const auto& attribute) {
      json.Object([&] {
        json.Member("key", std::string_view(attribute.first));
        json.Member("sortable", attribute.second);
      });
    });
    json.Member("has_intermediate_values", digest.has_reports);
    json.Key("note");
    Put(json, NoteOf(attributes, std::nullopt));
    json.Member("is_preferential", IsPreferential(attributes));
    if (const auto names = ObjectiveNames(attributes); !names.empty()) {
      json.Key("objective_names").Array(names, [&](const std::string& name) {
        json.Value(std::string_view(name));
      });
    }
    PutAttribute(json, attributes, "dashboard:form_widgets:v2", "form_widgets");
    if (FindText(attributes, kFeedbackKey) != nullptr) {
      PutAttribute(json, attributes, kFeedbackKey, "feedback_component_type");
    } else {
      json.Key("feedback_component_type").Raw(R"({"output_type":"note"})");
    }
    if (IsPreferential(attributes)) PutPreferences(json, study);
    json.Key("plotly_graph_objects").Array(PlotsOf(attributes), [&](const auto& plot) {
      json.Object([&] {
        json.Member("id", std::string_view(plot.first));
        json.Member("graph_object", std::string_view(plot.second));
      });
    });
  });
  return json.text();
}

std::string ImportancesJson(const std::vector<std::vector<Importance>>& by_objective) {
  JsonText json;
  json.Object([&] {
    json.Key("param_importances").Array(by_objective, [&](const auto& importances) {
      json.Array(importances, [&](const Importance& one) {
        json.Object([&] {
          json.Member("name", std::string_view(one.name));
          json.Member("importance", one.importance);
          json.Member("distribution", std::string_view(one.distribution));
        });
      });
    });
  });
  return json.text();
}

std::string ArtifactsJson(const std::vector<Artifact>& artifacts) {
  JsonText json;
  PutArtifacts(json, artifacts);
  return json.text();
}

}  // namespace espalier::optuna_dashboard
