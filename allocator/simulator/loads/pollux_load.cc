#include "allocator/simulator/loads/pollux_load.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/simulator/application.h"
#include "allocator/simulator/loads/csv_table.h"
#include "base/folder_entries.h"
#include "base/status.h"

namespace espalier {

namespace {

// What the paper's simulator knows of an application besides its measurements.
struct ApplicationRow {
  std::string_view name;
  int epochs;
  std::int64_t max_atomic;    // 0: the largest that was measured
  std::int64_t pinned_batch;  // on one slot; 0: it may be spread
};
constexpr std::array kApplications = {
    ApplicationRow{"bert", 2, 0, 0},         ApplicationRow{"cifar10", 100, 0, 0},
    ApplicationRow{"deepspeech2", 80, 0, 0}, ApplicationRow{"imagenet", 90, 0, 0},
    ApplicationRow{"ncf", 10, 0, 32768},     ApplicationRow{"yolov3", 50, 8, 0},
};

// The names of files of a folder that start and end so, without both; sorted.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& folder, std::string_view start,
                                                 std::string_view end) {
  std::error_code error;
  const auto entries = FolderEntries(folder, error);
  if (error) return absl::NotFoundError(absl::StrCat("folder \"", folder, "\" cannot be read"));
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= start.size() + end.size() || !name.starts_with(start) ||
        !name.ends_with(end)) {
      continue;
    }
    names.push_back(name.substr(start.size(), name.size() - start.size() - end.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<RecordedBatch>> ReadBatches(const std::string& folder) {
  std::vector<RecordedBatch> batches;
  ESPALIER_ASSIGN_OR_RETURN(const auto sizes, FilesOf(folder, "validation-", ".csv"));
  for (const std::string& size : sizes) {
    RecordedBatch& batch = batches.emplace_back();
    const std::string path = absl::StrCat(folder, "/validation-", size, ".csv");
    if (!absl::SimpleAtoi(size, &batch.global_batch) || batch.global_batch < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("file \"", path, "\": needs a batch size in its name"));
    }
    ESPALIER_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path, {"progress", "iteration",
                                                                          "grad_sqr", "grad_var"}));
    for (std::size_t row = 0; row < table.size(); ++row) {
      RecordedEpoch& epoch = batch.epochs.emplace_back();
      ESPALIER_ASSIGN_OR_RETURN(epoch.progress, table.Number(row, 0));
      ESPALIER_ASSIGN_OR_RETURN(epoch.steps, table.Number(row, 1));
      ESPALIER_ASSIGN_OR_RETURN(epoch.noise.sqr, table.Number(row, 2));
      ESPALIER_ASSIGN_OR_RETURN(epoch.noise.var, table.Number(row, 3));
    }
  }
  return batches;
}

absl::Status ReadStepTimes(const std::string& folder, ApplicationRecord& record) {
  ESPALIER_ASSIGN_OR_RETURN(const CsvTable rings,
                            CsvTable::Read(folder + "/placements.csv",
                                           {"placement", "local_bsz", "step_time", "sync_time"}));
  for (std::size_t row = 0; row < rings.size(); ++row) {
    RingMeasurement& m = record.rings.emplace_back();
    ESPALIER_RETURN_IF_ERROR(rings.Count(row, 0).status());
    m.ring = rings.Text(row, 0);
    ESPALIER_ASSIGN_OR_RETURN(m.atomic_batch, rings.Count(row, 1));
    ESPALIER_ASSIGN_OR_RETURN(m.time.step_s, rings.Number(row, 2));
    ESPALIER_ASSIGN_OR_RETURN(m.time.sync_s, rings.Number(row, 3));
  }
  ESPALIER_ASSIGN_OR_RETURN(
      const CsvTable scales,
      CsvTable::Read(folder + "/scalability.csv",
                     {"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"}));
  for (std::size_t row = 0; row < scales.size(); ++row) {
    ScaleMeasurement& m = record.scales.emplace_back();
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t nodes, scales.Count(row, 0));
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t replicas, scales.Count(row, 1));
    m.nodes = static_cast<int>(nodes);
    m.replicas = static_cast<int>(replicas);
    ESPALIER_ASSIGN_OR_RETURN(m.atomic_batch, scales.Count(row, 2));
    ESPALIER_ASSIGN_OR_RETURN(m.time.step_s, scales.Number(row, 3));
    ESPALIER_ASSIGN_OR_RETURN(m.time.sync_s, scales.Number(row, 4));
  }
  ESPALIER_ASSIGN_OR_RETURN(const CsvTable cells,
                            CsvTable::Read(folder + "/simplices.csv", {"a", "b", "c", "d"}));
  for (std::size_t row = 0; row < cells.size(); ++row) {
    StepTimes::Tetrahedron& cell = record.tetrahedra.emplace_back();
    for (std::size_t corner = 0; corner < cell.size(); ++corner) {
      ESPALIER_ASSIGN_OR_RETURN(const std::int64_t point, cells.Count(row, corner));
      cell[corner] = static_cast<int>(point);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Application>> ReadApplication(const std::string& folder,
                                                                   const std::string& name) {
  const auto row = std::find_if(kApplications.begin(), kApplications.end(),
                                [&](const ApplicationRow& r) { return r.name == name; });
  if (row == kApplications.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "application \"", name, "\" is unknown; known are ",
        absl::StrJoin(kApplications, ", ",
                      [](std::string* out, const ApplicationRow& r) { out->append(r.name); })));
  }
  ApplicationRecord record{.name = name,
                           .epochs = row->epochs,
                           .max_atomic = row->max_atomic,
                           .pinned_batch = row->pinned_batch};
  const std::string traces = absl::StrCat(folder, "/traces/", name);
  ESPALIER_ASSIGN_OR_RETURN(record.batches, ReadBatches(traces));
  ESPALIER_RETURN_IF_ERROR(ReadStepTimes(traces, record));
  return Application::Make(record);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PolluxWorkloads(const std::string& folder) {
  return FilesOf(folder + "/workloads", "", ".csv");
}

absl::StatusOr<ClusterLoad> ReadPolluxLoad(const std::string& folder, const std::string& workload) {
  ESPALIER_ASSIGN_OR_RETURN(const auto known, PolluxWorkloads(folder));
  if (std::find(known.begin(), known.end(), workload) == known.end()) {
    return absl::NotFoundError(absl::StrCat("workload \"", workload, "\" is unknown; known are ",
                                            absl::StrJoin(known, ", ")));
  }
  ESPALIER_ASSIGN_OR_RETURN(
      const CsvTable table,
      CsvTable::Read(absl::StrCat(folder, "/workloads/", workload, ".csv"),
                     {"name", "time", "application", "num_replicas", "batch_size"}));
  ClusterLoad load{.name = workload, .jobs = {}};
  std::map<std::string, std::shared_ptr<const Application>> applications;
  for (std::size_t row = 0; row < table.size(); ++row) {
    ClusterJob& job = load.jobs.emplace_back();
    job.name = table.Text(row, 0);
    ESPALIER_ASSIGN_OR_RETURN(job.submitted_s, table.Number(row, 1));
    auto& application = applications[table.Text(row, 2)];
    if (!application) {
      ESPALIER_ASSIGN_OR_RETURN(application, ReadApplication(folder, table.Text(row, 2)));
    }
    job.application = application;
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t slots, table.Count(row, 3));
    job.requested_slots = static_cast<int>(slots);
    ESPALIER_ASSIGN_OR_RETURN(job.requested_batch, table.Count(row, 4));
  }
  return load;
}

absl::StatusOr<std::vector<PublishedResult>> ReadPublishedResults(const std::string& folder) {
  ESPALIER_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(folder + "/published_baseline.csv",
                                                                 {"policy", "workload", "avg_jct",
                                                                  "p99_jct", "makespan"}));
  std::vector<PublishedResult> results;
  for (std::size_t row = 0; row < table.size(); ++row) {
    PublishedResult& result = results.emplace_back();
    result.policy = table.Text(row, 0);
    result.workload = table.Text(row, 1);
    ESPALIER_ASSIGN_OR_RETURN(result.average_s, table.Number(row, 2));
    ESPALIER_ASSIGN_OR_RETURN(result.p99_s, table.Number(row, 3));
    ESPALIER_ASSIGN_OR_RETURN(result.makespan_s, table.Number(row, 4));
  }
  return results;
}

}  // namespace espalier
