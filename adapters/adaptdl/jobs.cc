#include "adapters/adaptdl/jobs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "spdlog/spdlog.h"
#include "tuner/core/clients/request_keys.h"
#include "tuner/study_file/adaptdl_job.h"
#include "tuner/study_file/study_file.h"

namespace espalier::adaptdl {

namespace {

constexpr const char* kGroup = "adaptdl.petuum.com/v1";
constexpr const char* kObjects = "/adaptdljobs";
constexpr const char* kInvalid = "Invalid";  // the reason of one that cannot be taken up
constexpr double kCallLimit_s = 5;
constexpr int kPage = 500;     // objects of one answer
constexpr int kMostLists = 3;  // that expire while they are read
constexpr std::size_t kUidShown = 8;

// Another object of the same name gets another study.
std::string StudyNameOf(const JobObject& job) {
  return absl::StrCat(job.name, "-", job.uid.substr(0, kUidShown));
}

std::string InLog(const std::string& text) { return absl::StrReplaceAll(text, {{"\"", "'"}}); }

JobFacts FactsOf(const Study& study, const View& view) {
  const TunerState& state = view.core.state();
  JobFacts facts{.study = study.spec.name,
                 .state = study.state,
                 .reason = study.reason,
                 .min_slots = study.spec.min_slots,
                 .ended = study.ended};
  if (study.state == StudyState::kStopped && !study.decisions.empty()) {
    facts.ended = std::max(facts.ended, study.decisions.back().at);
  }
  if (study.trials.empty()) return facts;
  const Trial& trial = state.trials.at(study.trials.back());
  facts.trial = trial.state;
  facts.trial_reason = trial.reason;
  facts.started = trial.started != Time{};
  facts.restarts = trial.restarts;
  if (trial.ended != Time{}) facts.ended = trial.ended;
  return facts;
}

// The node of each replica, and whether its process runs.
void AddReplicas(const View& view, const std::map<TrialId, JobFacts*>& of) {
  for (const NodeView& node : view.core.Nodes()) {
    for (const ReplicaView& replica : node.replicas) {
      const auto job = of.find(replica.trial);
      if (job == of.end()) continue;
      job->second->allocation.push_back(node.name);
      job->second->ready_replicas += view.pids.contains(replica.replica) ? 1 : 0;
    }
  }
}

void NoteEdit(JobStatus& status) {
  if (status.reason.empty()) status.reason = "Edited";
  absl::StrAppend(&status.message, status.message.empty() ? "" : "; ",
                  "it was edited after it had been taken up, and goes on as it was: delete it and "
                  "create it anew");
}

}  // namespace

Jobs::Jobs(ApiServer server, Tuner& tuner) : api_(std::move(server), kCallLimit_s), tuner_(tuner) {}

std::string Jobs::RequestKeyOf(const std::string& uid) const {
  return absl::StrCat("adaptdljob/", api_.server().space, "/", uid);
}

absl::Status Jobs::Compare(const std::function<bool()>& goes_on) {
  // The objects first: of a study that is there later than they are, its object was there before.
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<JobObject> objects, List());
  ESPALIER_ASSIGN_OR_RETURN(const Seen seen, ReadTuner());
  std::set<std::string> wanted;
  for (const JobObject& job : objects) {
    if (!job.deleted) wanted.insert(job.uid);
  }
  absl::Status first;
  for (const auto& [uid, job] : seen.jobs) {
    if (!goes_on()) return first;
    if (!wanted.contains(uid)) first.Update(Stop(job));
  }
  for (const JobObject& job : objects) {
    if (!goes_on()) return first;
    const absl::StatusOr<JobStatus> status = StatusFor(job, seen);
    first.Update(status.status());
    if (status.ok() && *status != job.status) first.Update(Write(job, *status));
  }
  return first;
}

absl::StatusOr<std::vector<JobObject>> Jobs::List() {
  absl::StatusOr<std::vector<JobObject>> jobs = ListOnce();
  for (int i = 1; i < kMostLists && absl::IsOutOfRange(jobs.status()); ++i) jobs = ListOnce();
  if (!absl::IsNotFound(jobs.status())) return jobs;
  return absl::NotFoundError(absl::StrCat(
      "the cluster does not know AdaptDLJobs: kubectl apply -f deploy/kubernetes/adaptdljobs.yaml "
      "(",
      jobs.status().message(), ")"));
}

absl::StatusOr<std::vector<JobObject>> Jobs::ListOnce() {
  std::vector<JobObject> jobs;
  std::string next;
  do {
    const std::string path = absl::StrCat(kObjects, "?limit=", kPage);
    ESPALIER_ASSIGN_OR_RETURN(
        const std::string body,
        api_.Ask({.method = "GET",
                  .path = next.empty() ? path : absl::StrCat(path, "&continue=", InQuery(next)),
                  .group = kGroup}));
    ESPALIER_ASSIGN_OR_RETURN(JobPage page, ReadJobs(body));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs));
    next = page.next;
  } while (!next.empty());
  return jobs;
}

absl::StatusOr<Jobs::Seen> Jobs::ReadTuner() {
  Seen seen;
  const std::string of_namespace = absl::StrCat("\"", RequestKeyOf(""));
  ESPALIER_RETURN_IF_ERROR(tuner_.Read([&](const View& view) {
    std::map<TrialId, JobFacts*> of;
    for (const auto& [id, study] : view.core.state().studies) {
      const auto key = study.attributes.system.find(kCreationKey);
      if (key == study.attributes.system.end()) continue;
      if (!absl::StartsWith(key->second, of_namespace)) continue;
      std::string uid = key->second.substr(of_namespace.size());
      uid.pop_back();  // a quote
      JobFacts& job = seen.jobs[uid] = FactsOf(study, view);
      if (!study.trials.empty()) of[study.trials.back()] = &job;
    }
    AddReplicas(view, of);
    seen.pool.slots = view.core.SlotsTotal();
    if (!view.engine_troubles.empty()) seen.pool.trouble = view.engine_troubles.front();
  }));
  return seen;
}

absl::StatusOr<JobStatus> Jobs::StatusFor(const JobObject& job, const Seen& seen) {
  const JobStatus& old = job.status;
  const bool edited = old.observed_generation != 0 && old.observed_generation != job.generation;
  if (const auto found = seen.jobs.find(job.uid); found != seen.jobs.end()) {
    // A service that has just begun learns from its agents what runs.
    const bool not_seen =
        found->second.trial == TrialState::kRunning && found->second.allocation.empty();
    if (not_seen && old.phase == JobPhase::kRunning) return old;
    JobStatus status = StatusOf(found->second, seen.pool);
    status.observed_generation = edited ? old.observed_generation : job.generation;
    if (edited && !Ended(status.phase)) NoteEdit(status);
    return status;
  }
  const bool to_try_again = old.reason == kInvalid && edited;
  if (job.deleted || (Ended(old.phase) && !to_try_again)) return old;
  if (!old.study.empty()) {
    JobStatus lost = FailedStatus(
        "Lost",
        absl::StrCat("its study \"", old.study,
                     "\" is gone: it was removed (tuner rm), or the service has another database"),
        Now());
    lost.study = old.study;
    lost.observed_generation = old.observed_generation;
    return lost;
  }
  return TakeUp(job, seen.pool);
}

absl::StatusOr<JobStatus> Jobs::TakeUp(const JobObject& job, const PoolFacts& pool) {
  const auto refused = [&job](const absl::Status& error) {
    spdlog::warn(R"(event=adaptdl_job_refused job="{}" error="{}")", job.name,
                 InLog(std::string(error.message())));
    JobStatus status = FailedStatus(kInvalid, std::string(error.message()), Now());
    status.observed_generation = job.generation;
    return status;
  };
  const absl::StatusOr<AdaptDLJob> read = ReadAdaptDLJob(job.job, job.name);
  if (!read.ok()) return refused(read.status());
  // Relative paths in an image start where a container does without a workingDir.
  absl::StatusOr<StudySpec> spec =
      ParseStudy(read->study_json, job.name, "/", SpaceFiles::kRefused);
  if (!spec.ok()) return refused(spec.status());
  spec->name = StudyNameOf(job);
  spec = WithWording(*spec, job.name);
  if (!spec.ok()) return refused(spec.status());
  const JobFacts facts{.study = spec->name, .min_slots = spec->min_slots};
  const Reply reply = tuner_.Post(CreateStudy{*std::move(spec), false, RequestKeyOf(job.uid)});
  if (absl::IsUnavailable(reply.status)) return reply.status;
  if (!reply.status.ok()) return refused(reply.status);
  spdlog::info(R"(event=adaptdl_job_taken job="{}" study="{}" not_used="{}")", job.name,
               facts.study, absl::StrJoin(read->unused, ", "));
  JobStatus status = StatusOf(facts, pool);
  status.observed_generation = job.generation;
  return status;
}

absl::Status Jobs::Stop(const JobFacts& job) {
  if (job.state != StudyState::kRunning) return absl::OkStatus();
  spdlog::info("event=adaptdl_job_deleted study=\"{}\"", job.study);
  return tuner_.Post(StopStudy{job.study}).status;
}

absl::Status Jobs::Write(const JobObject& job, const JobStatus& status) {
  const absl::Status written = api_.Ask({.method = "PATCH",
                                         .path = absl::StrCat(kObjects, "/", job.name, "/status"),
                                         .group = kGroup,
                                         .body = StatusPatch(job, status),
                                         .is_patch = true})
                                   .status();
  // It has changed or gone since it was listed: the next comparison sees it as it is.
  return absl::IsAborted(written) || absl::IsNotFound(written) ? absl::OkStatus() : written;
}

}  // namespace espalier::adaptdl
