// Writes a database with one study of trials as Optuna's clients leave them:
// bench_fill_optuna FILE TRIALS VALUES.

#include <cstdio>
#include <cstdlib>

#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace {

using espalier::Change;
using espalier::Time;
using espalier::TrialId;

constexpr char kStudy[] = R"({"name": "filled", "ask_and_tell": true, "directions": ["minimize"]})";
constexpr char kFloat[] =
    R"({"name": "FloatDistribution", "attributes": {"step": null, "low": -10.0, "high": 10.0, "log": false}})";

void AddTrial(std::int64_t number, int values, std::vector<Change>& changes) {
  const TrialId id(number + 1);
  const Time start{1'700'000'000'000'000 + number * 1'000'000};
  changes.push_back(espalier::TrialCreated{id, espalier::StudyId(1), number, {}, start});
  for (int i = 0; i < 2; ++i) {
    changes.push_back(
        espalier::ParameterSuggested{id, i, {i, 0.001 * static_cast<double>(number)}});
  }
  for (int step = 0; step < values; ++step) {
    changes.push_back(espalier::ValueSet{id, {step, 1.0 / (step + 1), 0, start, 0}});
  }
  changes.push_back(espalier::TrialAttributeSet{id, false, "note", "\"hello\""});
  changes.push_back(espalier::TrialTold{
      id, espalier::TrialState::kComplete, {1.0}, start, Time{start.us + 500'000}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_fill_optuna FILE TRIALS VALUES\n");
    return 2;
  }
  auto storage = espalier::OpenSqliteStorage(argv[1]);
  auto spec = espalier::ParseStudy(kStudy, "study", "/");
  if (!storage.ok() || !spec.ok()) {
    std::fprintf(stderr, "%s %s\n", storage.status().ToString().c_str(),
                 spec.status().ToString().c_str());
    return 1;
  }
  const espalier::StudyId study(1);
  std::vector<Change> batch{
      espalier::StudyCreated{study, *spec, Time{1}},
      espalier::SuggestionAdded{study, {"x", kFloat, "FloatDistribution"}},
      espalier::SuggestionAdded{study, {"y", kFloat, "FloatDistribution"}},
  };
  constexpr std::int64_t kTrialsInCommit = 1000;
  for (std::int64_t number = 0; number < std::atoll(argv[2]); ++number) {
    AddTrial(number, std::atoi(argv[3]), batch);
    if (number % kTrialsInCommit != kTrialsInCommit - 1) continue;
    if (absl::Status status = (*storage)->Commit(batch); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    batch.clear();
  }
  return (*storage)->Commit(batch).ok() ? 0 : 1;
}
