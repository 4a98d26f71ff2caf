#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/private_files.h"
#include "base/trial_folder.h"
#include "tests/benchmarks/power_cuts/agents.h"
#include "tests/benchmarks/power_cuts/stage.h"
#include "tests/storage/undo_schema.h"
#include "trial_runner/agent/agent_home.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"
#include "trial_runner/agent/log_limit.h"
#include "tuner/api/operations.h"
#include "tuner/storage/database.h"
#include "tuner/storage/upkeep.h"

namespace espalier::power_cuts {
namespace {

namespace fs = std::filesystem;

constexpr int kSchemaBefore = 12;
constexpr int kOlderSchema = 9;
constexpr Time kRestoredAt{1'800'000'000'000'000};

v1::CreateStudyRequest Study(const std::string& json) {
  v1::CreateStudyRequest request;
  request.set_study_json(json);
  request.set_directory("/tmp");
  return request;
}

void Submit(TestedService& service, const std::string& name, const std::string& rest) {
  api::CreateStudy(service,
                   Study(absl::StrCat(R"({"name": ")", name, R"(", "sampler": "random", "seed": 3,
      "search_space": {"lr": {"_type": "uniform", "_value": [0.1, 0.2]}},)",
                                      rest, "}")))
      .IgnoreError();
}

void SubmitAsked(TestedService& service, const std::string& name) {
  Submit(service, name,
         R"("ask_and_tell": true, "pruner": {"name": "median", "startup_trials": 1},
            "metric": {"name": "loss", "direction": "minimize"})");
}

v1::StudyName Named(const std::string& name) {
  v1::StudyName request;
  request.set_name(name);
  return request;
}

std::int64_t Ask(TestedService& service, const std::string& study) {
  v1::AskRequest request;
  request.set_study(study);
  const auto trial = api::Ask(service, request);
  return trial.ok() ? trial->trial_id() : 0;
}

bool ReportAndAsk(TestedService& service, std::int64_t trial, double value) {
  v1::ReportRequest request;
  request.set_trial_id(trial);
  request.set_value(value);
  const auto verdict = api::Report(service, request);
  return verdict.ok() && verdict->prune();
}

void End(TestedService& service, std::int64_t trial, v1::TrialState state, double value) {
  v1::TellRequest request;
  request.set_trial_id(trial);
  request.set_state(state);
  if (state == v1::TRIAL_COMPLETE) request.set_value(value);
  api::Tell(service, request).IgnoreError();
}

// A client's trial from its beginning to its end, which is early where the pruner says so.
void RunTrial(TestedService& service, const std::string& study, int number, int reports) {
  const std::int64_t trial = Ask(service, study);
  for (int step = 0; step < reports; ++step) {
    if (ReportAndAsk(service, trial, number + 1.0 / (1 + step))) {
      End(service, trial, v1::TRIAL_PRUNED, 0);
      return;
    }
  }
  v1::SetAttributesRequest note;
  note.set_trial_id(trial);
  (*note.mutable_user())["note"] = absl::StrCat("\"of trial ", number, "\"");
  api::SetAttributes(service, note).IgnoreError();
  End(service, trial, v1::TRIAL_COMPLETE, number);
}

void CreateToken(TestedService& service, const std::string& name, const std::string& role) {
  v1::CreateTokenRequest request;
  request.set_name(name);
  request.set_role(role);
  api::CreateToken(service, request).IgnoreError();
}

void RemoveToken(TestedService& service, const std::string& name) {
  v1::RemoveTokenRequest request;
  request.set_token(name);
  api::RemoveToken(service, request).IgnoreError();
}

void Drain(TestedService& service, const std::string& node, bool undo) {
  v1::DrainNodeRequest request;
  request.set_name(node);
  request.set_undo(undo);
  request.set_within_s(undo ? 0 : 0.001);
  api::DrainNode(service, request).IgnoreError();
}

// kill -9, as far as the disk is concerned.
void Kill(const Stage& stage) { stage.recorder->Freeze(); }

// ---- Sessions --------------------------------------------------------------------------------

// The service makes its database, its certificate and its tokens, and is stopped.
void FirstStart(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  CreateToken(*service, "ada", "submit");
  CreateToken(*service, "bob", "view");
  SubmitAsked(*service, "first");
  RunTrial(*service, "first", 0, 2);
  RemoveToken(*service, "bob");
}

template <int kRound>
void Clients(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  if (kRound == 0) SubmitAsked(*service, "tuned");
  for (int i = 0; i < 4; ++i) RunTrial(*service, "tuned", 4 * kRound + i, 3);
  if (kRound % 2 == 1) {
    api::StopStudy(*service, Named("tuned")).IgnoreError();
    v1::ResumeStudyRequest resume;
    resume.set_name("tuned");
    api::ResumeStudy(*service, resume).IgnoreError();
  }
  CreateToken(*service, absl::StrCat("user-", kRound), "submit");
  if (kRound > 0) RemoveToken(*service, absl::StrCat("user-", kRound - 1));
  Kill(stage);
}

// Two trials of the pool on two machines train, save, report; one is moved by a drain.
void Pool(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  TwoAgents agents(stage, *service);
  agents.Join();
  Submit(
      *service, "pool",
      R"("command": ["/bin/true"], "trials": 4, "metric": {"name": "loss", "direction": "minimize"},
            "pruner": {"name": "median", "startup_trials": 1})");
  agents.Serve();
  agents.Train(1, 0.9);
  agents.Train(2, 0.8);
  Drain(*service, "a", false);
  service->Pass(5);
  agents.Serve();
  agents.Train(3, 0.7);
  Kill(stage);
}

// The machines come back to a service that was killed; the drain is taken back.
void PoolAgain(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  TwoAgents agents(stage, *service);
  agents.Join();
  agents.Serve();
  Drain(*service, "a", true);
  for (int i = 0; i < 3; ++i) {
    service->Pass(60);
    agents.Serve();
  }
  agents.Train(4, 0.6);
  agents.Train(5, 0.5);
  v1::SetPoolPolicyRequest policy;
  policy.set_name("fixed");
  api::SetPoolPolicy(*service, policy).IgnoreError();
  agents.Finish(0.4);
  agents.Train(6, 0.5);
  agents.Finish(0.3);
  Kill(stage);
}

// A study of many trials is deleted, and what it occupied is freed, some at a time.
void Delete(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  SubmitAsked(*service, "doomed");
  for (int i = 0; i < 8; ++i) RunTrial(*service, "doomed", i, 2);
  api::DeleteStudy(*service, Named("doomed")).IgnoreError();
  service->WaitForCleaning();
  SubmitAsked(*service, "doomed");
  RunTrial(*service, "doomed", 0, 1);
}

template <int kSchema>
void BackToSchema(const std::string& root) {
  const auto database = Database::Open(root + "/" + kDatabase, /*read_only=*/false);
  ESPALIER_CHECK(database.ok() && (*database)->Execute(UndoTo(kSchema).c_str()).ok(),
                 "the schema cannot be undone");
}

// A database of an earlier schema is brought up to date when the service starts.
template <int kSchema>
void Upgrade(const Stage& stage) {
  const std::string copy = absl::StrCat(kDatabase, ".schema-", kSchema);
  const auto service = stage.StartService();
  if (service == nullptr) return;
  stage.Promise(stage.Path(copy));
  RunTrial(*service, "tuned", 90, 2);
}

// The disk of "a" has a program's own checkpoint folder, which "b" is given twice.
void FolderCopies(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  TwoAgents agents(stage, *service);
  const std::string a = OwnDisk(stage.Path("a"))->FolderOf("own", 0);
  const std::string b = OwnDisk(stage.Path("b"))->FolderOf("own", 0);
  for (const char* machine : {"a", "b"}) {
    ClaimTrialFolder(stage.Path(machine), {"own", IdentityFor("own"), 0}).status().IgnoreError();
  }
  for (const char* version : {"first", "second", "third"}) {
    // Contents are told apart by their ends.
    const std::string content = version + std::string(6000, 'w') + version;
    bool written = true;
    for (const char* part : {"weights", "deep/moments", "epoch"}) {
      const std::string file = absl::StrCat(a, "/", part);
      written = written && MakePrivateFolders(fs::path(file).parent_path().string()).ok() &&
                WritePrivateFile(file, content).ok();
    }
    if (!written) break;  // the program ends: what it has left is no version
    stage.BeginFolder(b, version);
    if (agents.Copy("own", 0, "").ok()) stage.EndFolder(b, version);
  }
  Kill(stage);
}

// What agents write for themselves: their record, the mark of a shared folder, logs that are cut.
void AgentsOwnFiles(const Stage& stage) {
  {
    absl::StatusOr<AgentHome> home = AgentHome::Take(stage.Path("a"), "a");
    if (home.ok()) home->Begin().status().IgnoreError();
  }
  if (MarkOfSharedFolder(stage.Path("shared")).ok()) {
    stage.Promise(stage.Path("shared/.espalier-shared-folder"));
  }
  const std::string log = TrialFolder(stage.Path("a"), "own", 0) + "/replica-1.log";
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  for (int line = 0; line < 70; ++line) {
    const std::string text = absl::StrCat("line ", line, std::string(100, '.'), "\n");
    if (write(file, text.data(), text.size()) < 0) break;
  }
  close(file);
  TrimLog(log, 4096, TrimBy::kAnyMeans).IgnoreError();
}

// A backup while the service runs; then it goes on, and is killed.
void BackUp(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  const std::string database = stage.Path(kDatabase);
  const std::string backup = stage.Path("backup.db");
  const auto keys = BackUpCredentials(CredentialsFolderOf(database), CredentialsFolderOf(backup));
  if (keys.ok() && BackUpDatabase(database, backup).ok()) {
    stage.Promise(backup);
    stage.Promise(CredentialsFolderOf(backup) + "/trial.key");
    stage.Promise(CredentialsFolderOf(backup) + "/certificate.pem");
  }
  RunTrial(*service, "tuned", 91, 3);
  Kill(stage);
}

// Without a service: the database is as the backup was, under the same name.
void RestoreBackup(const Stage& stage, bool keep_tokens) {
  const std::string database = stage.Path(kDatabase);
  const std::string backup = stage.Path("backup.db");
  stage.story->credentials.push_back({.at = stage.Now()});  // the key of trials is made anew
  const std::int64_t begun = stage.Now();
  RestoreOptions options{.now = kRestoredAt, .keep_tokens = keep_tokens};
  options.before_it_is_there = [&] {
    return RestoreCredentials(CredentialsFolderOf(backup), CredentialsFolderOf(database),
                              keep_tokens);
  };
  const auto restored = RestoreDatabase(backup, database, options);
  const std::int64_t done = restored.ok() ? stage.Now() : kNever;
  stage.story->commits.push_back({.begun = begun, .done = done, .after = stage.restored});
  if (restored.ok() && !restored->former.empty()) stage.Promise(restored->former);
}

void Restore(const Stage& stage) { RestoreBackup(stage, /*keep_tokens=*/false); }

void LoseDatabase(const std::string& root) {
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    fs::remove(root + "/" + kDatabase + beside);
  }
}

void RestoreWhereNothingIs(const Stage& stage) { RestoreBackup(stage, /*keep_tokens=*/true); }

void AfterRestore(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  CreateToken(*service, "ada-again", "submit");
  RunTrial(*service, "tuned", 92, 3);
  api::DeleteStudy(*service, Named("first")).IgnoreError();
  service->WaitForCleaning();
}

void Compact(const Stage& stage) { CompactDatabase(stage.Path(kDatabase)).status().IgnoreError(); }

// A program such as SQLite's shell writes the log back while the service runs, which then writes
// over it from its beginning.
void LogBegunAnew(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  for (int i = 0; i < 3; ++i) {
    RunTrial(*service, "tuned", 93 + i, 2);
    const auto other = Database::Open(stage.Path(kDatabase), /*read_only=*/false);
    if (other.ok()) (*other)->Execute("PRAGMA wal_checkpoint(RESTART)").IgnoreError();
  }
  RunTrial(*service, "tuned", 96, 2);
  Kill(stage);
}

// Trials that clients enqueue, cancel and let fail, and a study that ends and is resumed.
void Enqueued(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  SubmitAsked(*service, "enqueued");
  std::vector<std::int64_t> trials;
  for (const char* lr : {"0.11", "0.12", "0.13", "0.14"}) {
    v1::EnqueueRequest request;
    request.set_study("enqueued");
    request.set_parameters(absl::StrCat(R"({"lr": )", lr, "}"));
    const auto trial = api::Enqueue(*service, request);
    if (trial.ok()) trials.push_back(trial->trial_id());
  }
  if (!trials.empty()) {
    v1::CancelTrialRequest cancel;
    cancel.set_trial_id(trials.back());
    cancel.set_reason("not wanted");
    api::CancelTrial(*service, cancel).IgnoreError();
  }
  RunTrial(*service, "enqueued", 0, 2);
  const std::int64_t failing = Ask(*service, "enqueued");
  ReportAndAsk(*service, failing, 0.5);
  End(*service, failing, v1::TRIAL_FAIL, 0);
  api::StopStudy(*service, Named("enqueued")).IgnoreError();
  v1::ResumeStudyRequest resume;
  resume.set_name("enqueued");
  resume.set_max_trials(7);
  api::ResumeStudy(*service, resume).IgnoreError();
  RunTrial(*service, "enqueued", 1, 2);
  Kill(stage);
}

}  // namespace

void GoOn(const Stage& stage) {
  const auto service = stage.StartService();
  if (service == nullptr) return;
  CreateToken(*service, "later", "submit");
  SubmitAsked(*service, "later");
  Kill(stage);
}

const std::vector<Session>& Sessions() {
  static const auto& sessions = *new std::vector<Session>{
      {"first start", FirstStart},
      {"clients", Clients<0>},
      {"clients", Clients<1>},
      {"clients", Clients<2>},
      {"pool", Pool},
      {"pool again", PoolAgain},
      {"clients", Clients<3>},
      {"clients", Clients<4>},
      {"clients", Clients<5>},
      {"clients", Clients<6>},
      {"clients", Clients<7>},
      {"clients", Clients<8>},
      {"clients", Clients<9>},
      {"clients", Clients<10>},
      {"clients", Clients<11>},
      {"clients", Clients<12>},
      {"clients", Clients<13>},
      {"clients", Clients<14>},
      {"clients", Clients<15>},
      {"delete", Delete},
      {"upgrade", Upgrade<kSchemaBefore>, BackToSchema<kSchemaBefore>},
      {"folder copies", FolderCopies},
      {"agents' own files", AgentsOwnFiles},
      {"backup", BackUp},
      {"restore", Restore},
      {"after the restore", AfterRestore},
      {"compact", Compact},
      {"log begun anew", LogBegunAnew},
      {"enqueued", Enqueued},
      {"upgrade from older", Upgrade<kOlderSchema>, BackToSchema<kOlderSchema>},
      {"restore where nothing is", RestoreWhereNothingIs, LoseDatabase},
      {"after the restore", AfterRestore},
  };
  return sessions;
}

}  // namespace espalier::power_cuts
