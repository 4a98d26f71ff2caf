#include "tuner/cli/study_source.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/trial_output.h"
#include "tuner/api/operations.h"
#include "tuner/api/resting_tuner.h"
#include "tuner/cli/client.h"
#include "tuner/cli/options/command.h"
#include "tuner/cli/views/record.h"
#include "tuner/core/state/change.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

class ServiceSource : public StudySource {
 public:
  explicit ServiceSource(ClientOptions options) : client_(std::move(options)) {}

  absl::StatusOr<v1::ListStudiesResponse> ListStudies() override {
    return client_.Call<api::ListStudies>({});
  }
  absl::StatusOr<v1::StudyDetails> GetStudy(const std::string& name, bool with_values) override {
    v1::GetStudyRequest request;
    request.set_name(name);
    request.set_without_values(!with_values);
    return client_.Call<api::GetStudy>(request);
  }
  absl::StatusOr<v1::TrialOutput> GetTrialOutput(const v1::TrialOutputRequest& request) override {
    return client_.Call<api::GetTrialOutput>(request);
  }
  bool live() const override { return true; }
  double Now() const override { return Seconds(espalier::Now()); }

 private:
  Client client_;
};

// The last moment that anything in the state speaks of. The clock of a study that runs no more
// because its service is gone stands there.
Time LastMomentOf(const TunerState& state) {
  Time last;
  for (const auto& [id, study] : state.studies) {
    last = std::max({last, study.created, study.ended, study.running_since});
    if (!study.decisions.empty()) last = std::max(last, study.decisions.back().at);
  }
  for (const auto& [id, trial] : state.trials) {
    last = std::max({last, trial.created, trial.started, trial.ended});
    if (!trial.values.empty()) last = std::max(last, trial.values.back().at);
    if (!trial.spans.empty())
      last = std::max({last, trial.spans.back().from, trial.spans.back().to});
  }
  return last;
}

// The operations of the API over a state at rest.
class DatabaseSource : public StudySource, private RestingTuner {
 public:
  // Trials' files are below `trials`, if there is such a folder.
  DatabaseSource(TunerState state, Time now, std::string trials)
      : RestingTuner(std::move(state), now), trials_(std::move(trials)) {}

  absl::StatusOr<v1::ListStudiesResponse> ListStudies() override {
    return api::ListStudies(*this, v1::ListStudiesRequest());
  }

  absl::StatusOr<v1::StudyDetails> GetStudy(const std::string& name, bool with_values) override {
    v1::GetStudyRequest request;
    request.set_name(name);
    request.set_without_values(!with_values);
    auto details = api::GetStudy(*this, request);
    if (!details.ok()) return details;
    // No agent is connected, but the names of the nodes are known.
    for (const auto& [id, node_name] : state().nodes) {
      v1::Node* node = details->mutable_pool()->add_nodes();
      node->set_id(id.value);
      node->set_name(node_name);
    }
    return details;
  }

  absl::StatusOr<v1::TrialOutput> GetTrialOutput(const v1::TrialOutputRequest& request) override {
    return api::GetTrialOutput(*this, request);
  }

  bool live() const override { return false; }
  double Now() const override { return Seconds(now()); }

 private:
  absl::StatusOr<std::string> ReadOutput(NodeId, const TrialName& trial,
                                         const OutputPart& part) override {
    const std::string folder = FindTrialFolder(trials_, trial);
    if (!Exists(folder)) {
      return absl::UnavailableError("no service is asked, and there is no folder " + folder);
    }
    return espalier::TrialOutput(folder, static_cast<std::size_t>(part.max_bytes), part.rank);
  }

  const std::string trials_;
};

// As it last was.
std::unique_ptr<StudySource> SourceOf(TunerState state, std::string trials) {
  const Time now = LastMomentOf(state);
  return std::make_unique<DatabaseSource>(std::move(state), now, std::move(trials));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StudySource>> OpenDatabase(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Storage>> storage = OpenSqliteStorage(path, /*read_only=*/true);
  if (!storage.ok()) return absl::InvalidArgumentError(storage.status().message());
  absl::StatusOr<TunerState> state = (*storage)->Load();
  if (!state.ok()) return absl::InvalidArgumentError(state.status().message());
  return SourceOf(*std::move(state),
                  TrialsPath(std::filesystem::path(path).parent_path().string()));
}

std::unique_ptr<StudySource> SourceOfState(TunerState state) {
  return SourceOf(std::move(state), "");
}

void SourceArguments::AddTo(CliCommand& command) {
  service.AddTo(command);
  command.option("--dir").Describe(kRunOrItsRecord);
  command.AddOption("--db", database, "Read this database file, without a service")
      .Excludes(command.option("--service"))
      .Excludes(command.option("--dir"));
}

absl::StatusOr<std::unique_ptr<StudySource>> SourceArguments::Open() const {
  if (!database.empty()) return OpenDatabase(database);
  if (!service.directory.empty()) {
    const std::string path = DatabasePath(service.directory);
    if (!Exists(ServiceFilePath(service.directory)) && Exists(path)) return OpenDatabase(path);
  }
  ESPALIER_ASSIGN_OR_RETURN(ClientOptions options, service.Resolve());
  auto source = std::make_unique<ServiceSource>(std::move(options));
  if (!service.directory.empty()) {
    // The file of a run that was killed names a service that is gone.
    const auto studies = source->ListStudies();
    const std::string path = DatabasePath(service.directory);
    if (absl::IsUnavailable(studies.status()) && Exists(path)) return OpenDatabase(path);
  }
  return source;
}

}  // namespace espalier
