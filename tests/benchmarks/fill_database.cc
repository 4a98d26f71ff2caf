// Writes a database with one study of finished trials: bench_fill_database FILE TRIALS VALUES.
// The memory benchmark lets a service open it.

#include <cstdio>
#include <cstdlib>

#include "search_spaces/search_space.h"
#include "tuner/base/random.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace {

constexpr char kStudy[] = R"({
  "name": "filled", "command": ["true"],
  "metric": {"name": "loss", "direction": "minimize"},
  "search_space": {
    "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
    "batch_size": {"_type": "choice", "_value": [16, 32, 64, 128]},
    "scaling_rule": {"_type": "choice", "_value": ["adascale", "linear", "sqrt"]},
    "dropout": {"_type": "uniform", "_value": [0, 0.5]}
  },
  "trials": 1000000})";

std::vector<espalier::Change> FinishedTrial(const espalier::StudySpec& spec, std::int64_t number,
                                            int values) {
  using espalier::Time;
  espalier::Random random(static_cast<std::uint64_t>(number));
  const espalier::TrialId id(number + 1);
  const Time start{number * 1'000'000};
  std::vector<espalier::Change> changes;
  changes.push_back(espalier::TrialCreated{id, espalier::StudyId(1), number, spec.space.Sample(random), start});
  changes.push_back(espalier::TrialStateChanged{id, espalier::TrialState::kRunning, start, "", {}, ""});
  changes.push_back(espalier::SlotsHeldChanged{id, start, {{espalier::NodeId(1), 0}}});
  changes.push_back(espalier::DecisionMade{
      espalier::StudyId(1),
      {start, number, espalier::DecisionKind::kStart, 0, 1, "starts on 1 slot: promise 0.50, 1 slot was free"}});
  double value = 1;
  for (int step = 1; step <= values; ++step) {
    value *= random.Uniform(0.8, 1);
    changes.push_back(espalier::ValueReported{id, {step, value, 0, {start.us + step * 1000}, 64}});
  }
  const Time end{start.us + 900'000};
  changes.push_back(espalier::DecisionMade{
      espalier::StudyId(1), {end, number, espalier::DecisionKind::kFinish, 1, 0, "ran to its end"}});
  changes.push_back(espalier::TrialStateChanged{id, espalier::TrialState::kComplete, end, "ran to its end", value, ""});
  changes.push_back(espalier::SlotsHeldChanged{id, end, {}});
  return changes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_fill_database FILE TRIALS VALUES\n");
    return 2;
  }
  auto storage = espalier::OpenSqliteStorage(argv[1]);
  auto spec = espalier::ParseStudy(kStudy, "study", "/");
  if (!storage.ok() || !spec.ok()) {
    std::fprintf(stderr, "%s %s\n", storage.status().ToString().c_str(), spec.status().ToString().c_str());
    return 1;
  }
  std::vector<espalier::Change> batch{espalier::StudyCreated{espalier::StudyId(1), *spec, espalier::Time{1}},
                                      espalier::NodeRegistered{espalier::NodeId(1), "local"}};
  for (std::int64_t number = 0; number < std::atoll(argv[2]); ++number) {
    for (auto& change : FinishedTrial(*spec, number, std::atoi(argv[3]))) batch.push_back(std::move(change));
    if (number % 100 != 99) continue;
    if (absl::Status status = (*storage)->Commit(batch); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    batch.clear();
  }
  return (*storage)->Commit(batch).ok() ? 0 : 1;
}
