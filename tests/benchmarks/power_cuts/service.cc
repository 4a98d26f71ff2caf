#include "tests/benchmarks/power_cuts/service.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <utility>

#include "tuner/server/access/access_control.h"
#include "tuner/server/loop/loop.h"
#include "tuner/storage/storage.h"

namespace espalier::power_cuts {
namespace {

constexpr std::int64_t kBegin_us = 1'700'000'000'000'000;
constexpr std::int64_t kBetweenEvents_us = 1000;

// Notes when what was given to the database.
class WatchedStorage final : public Storage {
 public:
  WatchedStorage(std::unique_ptr<Storage> storage, Watched watched, TunerState state)
      : storage_(std::move(storage)), watched_(watched), state_(std::move(state)) {}

  absl::StatusOr<TunerState> Load() override { return storage_->Load(); }
  absl::Status Commit(std::span<const Change> changes) override {
    for (const Change& change : changes) state_.Apply(change);
    std::vector<Story::Commit>& commits = watched_.story->commits;
    commits.push_back(
        {.begun = watched_.recorder->Now(), .after = std::make_shared<const TunerState>(state_)});
    absl::Status status = storage_->Commit(changes);
    if (status.ok()) commits.back().done = watched_.recorder->Now();
    return status;
  }
  absl::Status CommitSlices(const NextSlice& next) override { return storage_->CommitSlices(next); }
  absl::StatusOr<bool> CleanUp() override { return storage_->CleanUp(); }
  absl::Status CheckStillThere() override { return storage_->CheckStillThere(); }

 private:
  std::unique_ptr<Storage> storage_;
  const Watched watched_;
  TunerState state_;
};

class LoopWithoutPorts final : public TestedService {
 public:
  explicit LoopWithoutPorts(Watched watched) : watched_(watched) {}
  ~LoopWithoutPorts() override {
    if (loop_) loop_->Stop();
  }

  absl::Status Open(const std::string& folder);

  Reply Post(Event event) override;
  absl::Status Read(const std::function<void(const View&)>& look) override {
    return loop_->Read(look);
  }
  std::string certificate_hash() const override { return credentials_.certificate_hash; }
  std::vector<Command> TakeCommands() override;
  void Pass(double seconds) override;
  void WaitForCleaning() override;
  SharedState loaded() const override { return loaded_; }
  const ServiceCredentials& credentials() const override { return credentials_; }

 private:
  void StartLoop(std::unique_ptr<Storage> storage);
  std::int64_t Moment() const;
  void NoteCredentials() const;

  const Watched watched_;
  SharedState loaded_;
  ServiceCredentials credentials_;
  std::unique_ptr<AccessControl> access_;
  Metrics metrics_;
  std::atomic<std::int64_t> now_us_ = 0;
  // Of the owner's thread: the core's own state, where it has been seen.
  const TunerState* state_ = nullptr;
  std::mutex mutex_;  // guards the commands
  std::vector<Command> commands_;
  std::unique_ptr<Loop> loop_;
};

absl::Status LoopWithoutPorts::Open(const std::string& folder) {
  const std::string database = folder + "/" + kDatabase;
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, OpenSqliteStorage(database));
  ESPALIER_ASSIGN_OR_RETURN(TunerState state, storage->Load());
  loaded_ = std::make_shared<const TunerState>(std::move(state));
  const std::string credentials = CredentialsFolderOf(database);
  ESPALIER_ASSIGN_OR_RETURN(credentials_,
                            PrepareCredentials({.folder = credentials}, /*reachable=*/true));
  NoteCredentials();
  access_ = std::make_unique<AccessControl>(
      AccessControlOptions{.trial_key = credentials_.trial_key,
                           .clock = [this] { return Time{now_us_}; },
                           .own_token_file = credentials_.own_user_token_file()});
  access_->Load(*loaded_);
  StartLoop(std::move(storage));
  ESPALIER_RETURN_IF_ERROR(PrepareTokens(credentials, *access_, *this, credentials_));
  NoteCredentials();
  return absl::OkStatus();
}

void LoopWithoutPorts::StartLoop(std::unique_ptr<Storage> storage) {
  if (watched_.story != nullptr) {
    storage = std::make_unique<WatchedStorage>(std::move(storage), watched_, *loaded_);
  }
  now_us_ = kBegin_us;
  for (const auto& [id, token] : loaded_->tokens) {  // later than before a restart
    now_us_ = std::max({now_us_.load(), token.created.us, token.removed.us}) + kBetweenEvents_us;
  }
  LoopOptions options;
  options.clock = [this] { return Time{now_us_}; };
  options.max_batch_s = 1e9;
  options.core.lease_s = 1e6;
  options.core.policy = StudySpec{}.policy;
  options.certificate_hash = credentials_.certificate_hash;
  options.committed = [this](const std::vector<Change>& changes, const TunerState& now) {
    access_->Take(changes);
    state_ = &now;
  };
  options.terminate = [this](int) {
    if (watched_.recorder != nullptr) watched_.recorder->Freeze();
  };
  loop_ =
      std::make_unique<Loop>(std::move(storage), *loaded_, options, metrics_,
                             [this](const std::vector<Command>& commands, const TunerState&) {
                               const std::lock_guard lock(mutex_);
                               commands_.insert(commands_.end(), commands.begin(), commands.end());
                             });
}

std::int64_t LoopWithoutPorts::Moment() const {
  return watched_.recorder == nullptr ? 0 : watched_.recorder->Now();
}

void LoopWithoutPorts::NoteCredentials() const {
  if (watched_.story == nullptr) return;
  watched_.story->credentials.push_back({.at = Moment(),
                                         .trial_key = credentials_.trial_key,
                                         .certificate_hash = credentials_.certificate_hash,
                                         .join_token = credentials_.join_token});
}

Reply LoopWithoutPorts::Post(Event event) {
  const auto answered = std::make_shared<std::promise<Reply>>();
  // Called on the owner's thread, at the very moment at which the caller can know. Time goes on
  // there, too, so that each run sees the same times.
  loop_->PostThen(std::move(event), [this, answered](const Reply& given) {
    if (watched_.story != nullptr && state_ != nullptr && given.status.ok()) {
      watched_.story->answers.push_back(
          {.at = Moment(), .seen = std::make_shared<const TunerState>(*state_)});
    }
    now_us_ += kBetweenEvents_us;
    answered->set_value(given);
  });
  Reply reply = answered->get_future().get();
  // What follows from the time that has passed is done.
  loop_->Read([](const View&) {}).IgnoreError();
  return reply;
}

void LoopWithoutPorts::Pass(double seconds) {
  loop_->Read([this, seconds](const View&) { now_us_ += static_cast<std::int64_t>(seconds * 1e6); })
      .IgnoreError();
  for (int i = 0; i < 2; ++i) loop_->Read([](const View&) {}).IgnoreError();
}

std::vector<Command> LoopWithoutPorts::TakeCommands() {
  // Commands come after the answer, so that a look, which is later still, finds them sent.
  loop_->Read([](const View&) {}).IgnoreError();
  const std::lock_guard lock(mutex_);
  return std::exchange(commands_, {});
}

void LoopWithoutPorts::WaitForCleaning() {
  const auto look = [this] {
    std::int64_t moment = 0;
    loop_->Read([&](const View&) { moment = Moment(); }).IgnoreError();
    return moment;
  };
  for (std::int64_t before = look(), now = look(); before != now; now = look()) before = now;
}

bool SameStudies(const TunerState& a, const TunerState& b) {
  return std::equal(a.studies.begin(), a.studies.end(), b.studies.begin(), b.studies.end(),
                    [](const auto& one, const auto& other) {
                      const Study& x = one.second;
                      const Study& y = other.second;
                      return x.id == y.id && x.spec == y.spec && x.asked == y.asked &&
                             x.state == y.state && x.reason == y.reason && x.created == y.created &&
                             x.ended == y.ended && x.active_s == y.active_s &&
                             x.running_since == y.running_since && x.trials == y.trials &&
                             x.decisions == y.decisions && x.attributes == y.attributes &&
                             x.suggestions == y.suggestions;
                    });
}

}  // namespace

bool Same(const TunerState& a, const TunerState& b) {
  return a.nodes == b.nodes && a.node_terms == b.node_terms && a.node_events == b.node_events &&
         a.drained == b.drained && a.policy == b.policy && a.tokens == b.tokens &&
         a.replica_ids_below == b.replica_ids_below && a.replica_ids_from == b.replica_ids_from &&
         a.last_study == b.last_study && a.last_trial == b.last_trial &&
         a.study_ids == b.study_ids && SameStudies(a, b) && a.trials == b.trials;
}

absl::StatusOr<std::unique_ptr<TestedService>> TestedService::Start(const std::string& folder,
                                                                    Watched watched) {
  auto service = std::make_unique<LoopWithoutPorts>(watched);
  ESPALIER_RETURN_IF_ERROR(service->Open(folder));
  return std::unique_ptr<TestedService>(std::move(service));
}

}  // namespace espalier::power_cuts
