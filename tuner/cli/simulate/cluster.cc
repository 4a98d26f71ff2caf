#include "tuner/cli/simulate/cluster.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "allocator/simulator/cluster.h"
#include "allocator/simulator/loads/pollux_load.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/cli/options/plugin_argument.h"
#include "tuner/cli/report/page.h"
#include "tuner/cli/simulate/lanes.h"
#include "tuner/cli/simulate/output_files.h"
#include "tuner/cli/views/simulation_page.h"
#include "tuner/cli/views/simulation_text.h"

namespace espalier {

namespace {

ClusterOptions OptionsOf(const SimulateClusterArguments& a, const std::string& policy) {
  // Optimus and Tiresias go by what users asked for, as in the paper.
  ClusterOptions options = PublishedOptions(policy);
  if (a.requested) options.batch = BatchRule::kRequested;
  options.interval_s = a.interval_s;
  options.on_events = a.on_events;
  options.resize_cost_s = a.resize_s;
  return options;
}

// cmake/EspalierInstall.cmake puts the recorded jobs beside the program.
absl::StatusOr<std::string> FolderOf(const SimulateClusterArguments& a) {
  if (!a.folder.empty()) return a.folder;
  const std::filesystem::path prefix =
      std::filesystem::path(OwnExecutable()).parent_path().parent_path();
  const std::filesystem::path folder = prefix / "share" / "espalier" / "pollux";
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return folder.string();
  return absl::InvalidArgumentError(
      fmt::format("no recorded jobs are installed at \"{}\": name their folder before {}, in a "
                  "source tree allocator/simulator/loads/pollux",
                  folder.string(), a.workload));
}

std::string TitleOf(const SimulateClusterArguments& a, const ClusterLoad& load) {
  return fmt::format("{}: {} jobs on {} slots of {} node{}, {:g} s a resize, decisions {} {:g} s",
                     load.name, load.jobs.size(), load.nodes * load.slots_per_node, load.nodes,
                     load.nodes == 1 ? "" : "s", a.resize_s,
                     a.on_events ? "on events and after at most" : "each", a.interval_s);
}

}  // namespace

absl::Status SimulateRecordedCluster(const SimulateClusterArguments& a) {
  ESPALIER_RETURN_IF_ERROR(CheckOutputFiles(
      {{"--json", a.json_file}, {"--decisions", a.decisions_file}, {"--html", a.html_file}}));
  ESPALIER_ASSIGN_OR_RETURN(const std::string folder, FolderOf(a));
  ESPALIER_ASSIGN_OR_RETURN(ClusterLoad load, ReadPolluxLoad(folder, a.workload));
  load.nodes = a.nodes;
  const std::vector<std::string> policies =
      a.policies.empty() ? std::vector<std::string>{StudySpec{}.policy.name} : a.policies;
  // All of them before any takes minutes.
  std::vector<std::pair<PluginSpec, std::unique_ptr<Policy>>> made;
  for (const std::string& text : policies) {
    ESPALIER_ASSIGN_OR_RETURN(PluginSpec spec, ParsePlugin("--policy", text));
    ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy, MakePolicy(spec.name, spec.options));
    made.emplace_back(std::move(spec), std::move(policy));
  }
  std::vector<SimulationRun> runs;
  for (const auto& [spec, policy] : made) {
    absl::StatusOr<Timeline> timeline = SimulateCluster(load, *policy, OptionsOf(a, spec.name));
    if (!timeline.ok()) {
      // What the others have come to is not lost.
      if (!runs.empty()) std::printf("%s\n", SimulationTable(runs).c_str());
      return absl::FailedPreconditionError(
          fmt::format("--policy {}: {}", TextOf(spec), std::string(timeline.status().message())));
    }
    runs.push_back({TextOf(spec), *std::move(timeline), {}});
  }
  const std::string title = TitleOf(a, load);
  std::printf("%s\n\n%s", title.c_str(), SimulationTable(runs).c_str());
  if (!a.json_file.empty()) {
    ESPALIER_RETURN_IF_ERROR(WriteFile(a.json_file, SimulationJson(title, runs)));
    std::printf("%s\n", a.json_file.c_str());
  }
  if (!a.decisions_file.empty()) {
    ESPALIER_RETURN_IF_ERROR(WriteFile(a.decisions_file, SimulationDecisions(runs)));
    std::printf("%s\n", a.decisions_file.c_str());
  }
  std::vector<std::string> figures;
  for (const SimulationRun& run : runs) figures.push_back(FigureRunJson(run));
  const ReportOptions beside{.target = {}, .comparison = LanesJson(figures, {})};
  PageNames names;
  for (const SimulationRun& run : runs) {
    if (a.html_file.empty()) break;
    const std::string path = SimulationPagePath(a.html_file, names.Next(run.policy), runs.size());
    const v1::StudyDetails details = DetailsOf(load.name + " under " + run.policy, run.timeline);
    ESPALIER_ASSIGN_OR_RETURN(const std::string page,
                              ReportPage(details, details.study().ended_at(), beside));
    ESPALIER_RETURN_IF_ERROR(WriteFile(path, page));
    std::printf("%s\n", path.c_str());
  }
  return absl::OkStatus();
}

}  // namespace espalier
