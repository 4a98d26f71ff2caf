#include "adapters/adaptdl/job_object.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json/parse_json.h"

namespace espalier::adaptdl {

namespace {

using Json = nlohmann::json;

constexpr std::array kPhases = {JobPhase::kPending,  JobPhase::kStarting,  JobPhase::kRunning,
                                JobPhase::kStopping, JobPhase::kSucceeded, JobPhase::kFailed};

// Others may write what they like into a status: what is not of the type is as if it were not
// there.
Json PartOf(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_object() ? *at : Json::object();
}

std::string TextIn(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

std::int64_t CountIn(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

JobPhase PhaseIn(const Json& status) {
  const std::string text = TextIn(status, "phase");
  for (const JobPhase phase : kPhases) {
    if (text == ToString(phase)) return phase;
  }
  return JobPhase::kNone;
}

JobStatus ReadStatus(const Json& status) {
  JobStatus read{.phase = PhaseIn(status),
                 .reason = TextIn(status, "reason"),
                 .message = TextIn(status, "message"),
                 .ready_replicas = CountIn(status, "readyReplicas"),
                 .group = CountIn(status, "group"),
                 .attempt_count = CountIn(status, "attemptCount"),
                 .completion_timestamp = TextIn(status, "completionTimestamp"),
                 .study = TextIn(status, "study"),
                 .observed_generation = CountIn(status, "observedGeneration")};
  const auto allocation = status.find("allocation");
  if (allocation == status.end() || !allocation->is_array()) return read;
  for (const Json& node : *allocation) {
    if (node.is_string()) read.allocation.push_back(node.get<std::string>());
  }
  return read;
}

JobObject ReadJob(const Json& item) {
  const Json metadata = PartOf(item, "metadata");
  JobObject job{.name = TextIn(metadata, "name"),
                .uid = TextIn(metadata, "uid"),
                .version = TextIn(metadata, "resourceVersion"),
                .generation = CountIn(metadata, "generation"),
                .deleted = metadata.contains("deletionTimestamp"),
                .job = {},
                .status = ReadStatus(PartOf(item, "status"))};
  Json text = {{"apiVersion", "adaptdl.petuum.com/v1"},
               {"kind", "AdaptDLJob"},
               {"metadata", {{"name", job.name}}}};
  if (const auto spec = item.find("spec"); spec != item.end()) text["spec"] = *spec;
  job.job = text.dump(1);
  return job;
}

// Null removes a field.
template <typename Value>
Json OrNull(const Value& value) {
  return value == Value() ? Json(nullptr) : Json(value);
}

}  // namespace

std::string_view ToString(JobPhase phase) {
  switch (phase) {
    case JobPhase::kNone:
      return "";
    case JobPhase::kPending:
      return "Pending";
    case JobPhase::kStarting:
      return "Starting";
    case JobPhase::kRunning:
      return "Running";
    case JobPhase::kStopping:
      return "Stopping";
    case JobPhase::kSucceeded:
      return "Succeeded";
    case JobPhase::kFailed:
      return "Failed";
  }
  return "";
}

absl::StatusOr<JobPage> ReadJobs(const std::string& body) {
  const Json json = ParseJson(body);
  const auto items = json.is_object() ? json.find("items") : json.end();
  if (!json.is_object() || items == json.end() || !items->is_array()) {
    return absl::UnavailableError("the API server answers with what is no list of AdaptDLJobs");
  }
  JobPage page{.jobs = {}, .next = TextIn(PartOf(json, "metadata"), "continue")};
  for (const Json& item : *items) {
    if (!item.is_object()) continue;
    JobObject job = ReadJob(item);
    if (job.name.empty() || job.uid.empty()) {
      return absl::UnavailableError("the API server lists an AdaptDLJob without a name or uid");
    }
    page.jobs.push_back(std::move(job));
  }
  return page;
}

std::string StatusPatch(const JobObject& job, const JobStatus& status) {
  const std::size_t replicas = status.allocation.size();
  Json fields = {{"phase", std::string(ToString(status.phase))},
                 {"reason", OrNull(status.reason)},
                 {"message", OrNull(status.message)},
                 {"allocation", OrNull(status.allocation)},
                 {"replicas", OrNull(replicas)},
                 {"readyReplicas", replicas == 0 ? Json(nullptr) : Json(status.ready_replicas)},
                 {"group", status.group},
                 {"attemptCount", status.attempt_count},
                 {"completionTimestamp", OrNull(status.completion_timestamp)},
                 {"study", OrNull(status.study)},
                 {"observedGeneration", status.observed_generation}};
  return Json{{"metadata", {{"resourceVersion", job.version}}}, {"status", std::move(fields)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace espalier::adaptdl
