// Writes a database with one study of finished trials:
// bench_fill_database pool|optuna FILE TRIALS VALUES.
// Those of the pool were run by the tuner, those of Optuna by its clients. Benchmarks of memory and
// of large studies let a service open it.

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "search_spaces/search_space.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace {

constexpr char kPoolStudy[] = R"({
  "name": "filled", "command": ["true"],
  "metric": {"name": "loss", "direction": "minimize"},
  "search_space": {
    "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
    "batch_size": {"_type": "choice", "_value": [16, 32, 64, 128]},
    "scaling_rule": {"_type": "choice", "_value": ["adascale", "linear", "sqrt"]},
    "dropout": {"_type": "uniform", "_value": [0, 0.5]}
  },
  "trials": 1000000})";

constexpr char kOptunaStudy[] =
    R"({"name": "filled", "ask_and_tell": true, "directions": ["minimize"]})";
constexpr char kFloat[] =
    R"({"name": "FloatDistribution", "attributes": {"step": null, "low": -10.0, "high": 10.0, "log": false}})";

std::vector<espalier::Change> PoolTrial(const espalier::StudySpec& spec, std::int64_t number,
                                        int values) {
  using espalier::Time;
  espalier::Random random(static_cast<std::uint64_t>(number));
  const espalier::TrialId id(number + 1);
  const Time start{number * 1'000'000};
  std::vector<espalier::Change> changes;
  changes.emplace_back(
      espalier::TrialCreated{id, espalier::StudyId(1), number, spec.space.Sample(random), start});
  changes.emplace_back(
      espalier::TrialStateChanged{id, espalier::TrialState::kRunning, start, "", {}, ""});
  changes.emplace_back(espalier::SlotsHeldChanged{id, start, {{espalier::NodeId(1), 0}}});
  changes.emplace_back(espalier::DecisionMade{espalier::StudyId(1),
                                              {start, number, espalier::DecisionKind::kStart, 0, 1,
                                               "starts on 1 slot: promise 0.50, 1 slot was free"}});
  double value = 1;
  for (int step = 1; step <= values; ++step) {
    value *= random.Uniform(0.8, 1);
    changes.emplace_back(
        espalier::ValueReported{id, {step, value, 0, {start.us + std::int64_t{1000} * step}, 64}});
  }
  const Time end{start.us + 900'000};
  changes.emplace_back(espalier::DecisionMade{
      espalier::StudyId(1),
      {end, number, espalier::DecisionKind::kFinish, 1, 0, "ran to its end"}});
  changes.emplace_back(espalier::TrialStateChanged{id, espalier::TrialState::kComplete, end,
                                                   "ran to its end", value, ""});
  changes.emplace_back(espalier::SlotsHeldChanged{id, end, {}});
  return changes;
}

std::vector<espalier::Change> OptunaTrial(std::int64_t number, int values) {
  using espalier::Time;
  const espalier::TrialId id(number + 1);
  const Time start{1'700'000'000'000'000 + number * 1'000'000};
  std::vector<espalier::Change> changes;
  changes.emplace_back(espalier::TrialCreated{id, espalier::StudyId(1), number, {}, start});
  for (int i = 0; i < 2; ++i) {
    changes.emplace_back(
        espalier::ParameterSuggested{id, i, {i, 0.001 * static_cast<double>(number)}});
  }
  for (int step = 0; step < values; ++step) {
    changes.emplace_back(espalier::ValueReported{id, {step, 1.0 / (step + 1), 0, start, 0}});
  }
  changes.emplace_back(espalier::TrialAttributeSet{id, false, "note", "\"hello\""});
  changes.emplace_back(espalier::TrialTold{
      id, espalier::TrialState::kComplete, {1.0}, start, Time{start.us + 500'000}});
  return changes;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[1] : "";
  if (kind != "pool" && kind != "optuna") {
    std::fprintf(stderr, "usage: bench_fill_database pool|optuna FILE TRIALS VALUES\n");
    return 2;
  }
  const bool pool = kind == "pool";
  auto storage = espalier::OpenSqliteStorage(argv[2]);
  auto spec = espalier::ParseStudy(pool ? kPoolStudy : kOptunaStudy, "study", "/");
  if (!storage.ok() || !spec.ok()) {
    std::fprintf(stderr, "%s %s\n", storage.status().ToString().c_str(),
                 spec.status().ToString().c_str());
    return 1;
  }
  const espalier::StudyId study(1);
  std::vector<espalier::Change> batch{espalier::StudyCreated{study, *spec, espalier::Time{1}}};
  if (pool) {
    batch.emplace_back(espalier::NodeRegistered{espalier::NodeId(1), "local"});
  } else {
    for (const char* name : {"x", "y"}) {
      batch.emplace_back(espalier::SuggestionAdded{study, {name, kFloat, "FloatDistribution"}});
    }
  }
  constexpr std::int64_t kTrialsInCommit = 100;
  const int values = std::atoi(argv[4]);
  for (std::int64_t number = 0; number < std::atoll(argv[3]); ++number) {
    for (auto& change : pool ? PoolTrial(*spec, number, values) : OptunaTrial(number, values)) {
      batch.push_back(std::move(change));
    }
    if (number % kTrialsInCommit != kTrialsInCommit - 1) continue;
    if (absl::Status status = (*storage)->Commit(batch); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    batch.clear();
  }
  return (*storage)->Commit(batch).ok() ? 0 : 1;
}
