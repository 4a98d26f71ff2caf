// What programs have put into attributes, as the dashboard's pages are told of it.

#include "adapters/optuna/dashboard/study_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace espalier::optuna_dashboard {
namespace {

using nlohmann::json;

// One study of two trials, the first with these attributes.
json Shown(const Attributes& attributes) {
  StudyCopy study;
  study.head.id = StudyId(1);
  study.head.spec.name = "s";
  for (std::int64_t number = 0; number < 2; ++number) {
    TrialCopy trial;
    trial.id = TrialId(number + 1);
    trial.number = number;
    study.trials.push_back(trial);
  }
  study.trials[0].attributes = attributes;
  DrawnParameters parameters(study);
  return json::parse(DetailJson(study, 0, {}, study.trials, parameters));
}

TEST(StudyJson, IsOfItsFormWhateverATrialsAttributesAre) {
  const json plain = Shown({})["trials"][0];
  for (const std::string odd :
       {"", "1", "\"", "null", "[]", "{}", "\"text\"", "NaN", "-Infinity", "[[]]", "[null]", "[{}]",
        "[\"a\"]", "{\"a\": NaN}", "{\"a\": [{}]}", "\"[1]\"", "\"{}\"", "true", "[1"}) {
    SCOPED_TRACE(odd);
    Attributes attributes;
    for (const char* key : {"constraints", "fixed_params", "artifacts:", "artifacts:1", "a"}) {
      attributes.system[key] = odd;
    }
    attributes.user["a"] = odd;
    const json shown = Shown(attributes);
    EXPECT_EQ(shown["trials"][1], Shown({})["trials"][1]);
    for (const auto& [key, value] : plain.items()) {
      EXPECT_EQ(shown["trials"][0][key].type(), value.type()) << key;
    }
    EXPECT_EQ(shown["trials"][0]["constraints"], json::array());
  }
}

TEST(StudyJson, ConstraintsAreNumbers) {
  Attributes attributes;
  attributes.system["constraints"] = "[-1, 0.5, 2]";
  EXPECT_EQ(Shown(attributes)["trials"][0]["constraints"], (json{-1, 0.5, 2}));
}

}  // namespace
}  // namespace espalier::optuna_dashboard
