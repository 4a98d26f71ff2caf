#include "tuner/study_file/like_key.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

// The values of the keys of an object, all of which are required.
template <std::size_t kKeys>
absl::Status HasAll(const KeyValue& value, const std::array<std::string_view, kKeys>& keys) {
  if (!value.json().is_object()) return value.Needs("an object");
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(keys));
  for (const std::string_view key : keys) {
    if (!value.json().contains(key)) {
      return value.Needs(absl::StrCat("an object with \"", std::string(key), "\""));
    }
  }
  return absl::OkStatus();
}

// Of the second objective and of further ones.
absl::Status ReadOtherScores(const KeyValue& value, std::vector<double>& scores) {
  const Json& list = value.json().at("other_scores");
  const std::string place = absl::StrCat(std::string(value.key()), ".other_scores");
  if (!list.is_array() || list.empty()) {
    return KeyValue(value.file(), place, list).Needs("a list of the scores of further objectives");
  }
  for (const Json& score : list) {
    ESPALIER_RETURN_IF_ERROR(KeyValue(value.file(), place, score)
                                 .Range("scores", kLeastScore, 1, scores.emplace_back()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ScoredTrial> ReadScoredTrial(const KeyValue& value) {
  const bool several = value.json().is_object() && value.json().contains("other_scores");
  if (several) {
    ESPALIER_RETURN_IF_ERROR(HasAll<3>(value, {"score", "other_scores", "parameters"}));
  } else {
    ESPALIER_RETURN_IF_ERROR(HasAll<2>(value, {"score", "parameters"}));
  }
  ScoredTrial trial;
  const std::string place = absl::StrCat(std::string(value.key()), ".score");
  ESPALIER_RETURN_IF_ERROR(KeyValue(value.file(), place, value.json().at("score"))
                               .Range("a score", kLeastScore, 1, trial.score));
  if (several) ESPALIER_RETURN_IF_ERROR(ReadOtherScores(value, trial.other_scores));
  absl::StatusOr<Parameters> parameters = ParametersFromJson(value.json().at("parameters").dump());
  if (!parameters.ok()) return value.Bad(std::string(parameters.status().message()));
  trial.parameters = *std::move(parameters);
  return trial;
}

}  // namespace

absl::Status ReadLike(const KeyValue& value, StudySpec& spec) {
  spec.like = {};
  const Json& json = value.json();
  if (json.is_string()) {
    return value.Text(kMaxNameBytes, spec.like.study);
  }
  if (!json.is_object()) return value.Needs("the name of a study");
  ESPALIER_RETURN_IF_ERROR(HasAll<4>(value, {"study", "ended", "within", "trials"}));
  const auto part = [&](std::string_view key) {
    return KeyValue(value.file(), key, json.at(std::string(key)));
  };
  ESPALIER_RETURN_IF_ERROR(part("study").Text(kMaxNameBytes, spec.like.study));
  ESPALIER_RETURN_IF_ERROR(part("ended").Integer(0, kMaxCount, spec.like.ended));
  ESPALIER_RETURN_IF_ERROR(part("within").Integer(0, kMaxCount, spec.like.within));
  const Json& trials = json.at("trials");
  if (!trials.is_array() || trials.empty() || trials.size() > kMaxTrialsTaken) {
    return value.Needs(absl::StrCat("\"trials\" to be a list of 1 to ", kMaxTrialsTaken));
  }
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::string place = absl::StrCat("like.trials[", i, "]");
    ESPALIER_ASSIGN_OR_RETURN(ScoredTrial trial,
                              ReadScoredTrial(KeyValue(value.file(), place, trials[i])));
    spec.like.trials.push_back(std::move(trial));
  }
  return absl::OkStatus();
}

Json LikeJson(const StudySpec& spec) {
  const LikeStudy& like = spec.like;
  if (like.study.empty()) return {};
  if (like.trials.empty()) return like.study;
  Json trials = Json::array();
  for (const auto& [parameters, score, other_scores] : like.trials) {
    Json trial = {{"score", score},
                  {"parameters", ParseJson<Json>(ToJson(parameters), kMaxRecordDepth)}};
    if (!other_scores.empty()) trial["other_scores"] = other_scores;
    trials.push_back(std::move(trial));
  }
  return {{"study", like.study},
          {"ended", like.ended},
          {"within", like.within},
          {"trials", std::move(trials)}};
}

}  // namespace espalier
