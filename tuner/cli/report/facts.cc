#include "tuner/cli/report/facts.h"

#include <vector>

#include "tuner/cli/views/promise_record.h"
#include "tuner/cli/views/record.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/web/view/json_text.h"

namespace espalier::report {
namespace {

using view::JsonText;

void PutUse(JsonText& json, const v1::StudyDetails& details, double now) {
  const Utilisation use = UtilisationOf(details, now);
  ResizeCounts resizes;
  for (const v1::Trial& trial : details.trials()) {
    const ResizeCounts of_trial = CountResizes(trial);
    resizes.grown += of_trial.grown;
    resizes.shrunk += of_trial.shrunk;
  }
  json.Key("use");
  json.Object([&] {
    json.Member("slots", LanesOf(details).size());
    json.Member("overall", use.overall);
    json.Member("until_last_start", use.until_last_start);
    json.Member("grown", resizes.grown);
    json.Member("shrunk", resizes.shrunk);
  });
}

void PutReliability(JsonText& json, const Reliability& promise) {
  json.Key("reliability");
  if (promise.count == 0) return json.Null();
  json.Object([&] {
    json.Member("count", promise.count);
    json.Member("calibration_error", promise.expected_calibration_error);
    json.Member("brier", promise.brier);
    json.Member("base_brier", promise.base_brier);
    json.Key("bins");
    json.Array([&] {
      for (const ReliabilityBin& bin : promise.bins) {
        if (bin.count == 0) continue;
        json.Object([&] {
          json.Member("low", bin.low);
          json.Member("high", bin.high);
          json.Member("count", bin.count);
          json.Member("predicted", bin.predicted);
          json.Member("happened", bin.happened);
        });
      }
    });
  });
}

void PutSweep(JsonText& json, const v1::StudyDetails& details, const Sweep& sweep) {
  json.Key("sweep");
  if (sweep.groups.empty()) return json.Null();
  json.Object([&] {
    json.Member("target", sweep.target);
    json.Member("target_given", sweep.target_given);
    json.Key("rows");
    json.Array(SweepRows(details, sweep), [&json](const std::vector<std::string>& row) {
      json.Array(row, [&json](const std::string& cell) { json.Value(cell); });
    });
    json.Key("groups");
    json.Array(sweep.groups, [&json](const SweepGroup& group) {
      json.Object([&] {
        json.Member("rule", group.rule);
        json.Member("batch", group.batch);
        json.Values("values", group.values);
        json.Key("seconds");
        json.Array(group.reached, [&json](const Reached& reached) { json.Value(reached.seconds); });
      });
    });
  });
}

}  // namespace

std::string FactsJson(const v1::StudyDetails& details, const Sweep& sweep, double now) {
  const v1::Study& study = details.study();
  const v1::Trial* best = study.has_best_trial() ? FindTrial(details, study.best_trial()) : nullptr;
  JsonText json;
  json.Object([&] {
    PutUse(json, details, now);
    json.Key("checkpoint");
    best != nullptr && !best->checkpoint().empty() ? json.Value(best->checkpoint()) : json.Null();
    json.Key("notice");
    study.notice().empty() ? json.Null() : json.Value(study.notice());
    json.Key("payments");
    json.Array([&] {
      if (study.payments().empty()) return;
      for (const std::vector<std::string>& row : PaymentRows(study.payments())) {
        json.Array(row, [&json](const std::string& cell) { json.Value(cell); });
      }
    });
    PutReliability(json, PromiseReliability(details));
    PutSweep(json, details, sweep);
  });
  return json.Take();
}

}  // namespace espalier::report
