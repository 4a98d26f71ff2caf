#include "tuner/cli/simulate/studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/json/parse_json.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/options/node_templates.h"
#include "tuner/cli/options/plugin_argument.h"
#include "tuner/cli/report/page.h"
#include "tuner/cli/simulate/lanes.h"
#include "tuner/cli/simulate/output_files.h"
#include "tuner/cli/study_source.h"
#include "tuner/cli/views/simulation_page.h"
#include "tuner/cli/views/simulation_text.h"
#include "tuner/cli/views/text.h"
#include "tuner/simulator/emulated_load.h"
#include "tuner/simulator/poolbench_load.h"
#include "tuner/simulator/recorded_load.h"
#include "tuner/simulator/study_simulator.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

constexpr const char* kFixedPool = "fixed";
constexpr double kStreamed_s = 6 * 3600.0;  // of virtual time, unless --until-s says another

// How the replicas of a load start and regroup.
struct ProcessModel {
  double start_s = 0.5;
  StartLoad load;
  std::optional<double> spare_start_s;
  bool whole_steps = false;
  double resize_s = 1;
};

// Measured with examples/emulated and one agent on a machine of two processors.
constexpr ProcessModel kEmulatedProcesses = {
    .start_s = 0,
    .load = {.cpu_s = 0.23, .cores = 2, .spread = 0.08, .seed = 0},
    .spare_start_s = 0.02,
    .whole_steps = true,
    .resize_s = 0.01};

struct Prepared {
  std::unique_ptr<Workload> load;
  RecordedLoad* recorded = nullptr;  // the same, if it is one
  std::optional<double> resize_s;    // what the load's record says
  RecordedFigures recorded_figures;
  ProcessModel processes;  // how its replicas start and regroup, unless options say it
  std::string remark;      // what to tell people besides
};

absl::StatusOr<EmulatedProfile> ReadProfile(const std::string& path) {
  EmulatedProfile profile;
  if (path.empty()) return profile;
  ESPALIER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json json = ParseJson(text, kMaxRecordDepth);
  if (!json.is_object()) return absl::InvalidArgumentError("\"" + path + "\": want a JSON object");
  const std::pair<const char*, double*> keys[] = {{"alpha_c_s", &profile.alpha_c_s},
                                                  {"beta_c_s", &profile.beta_c_s},
                                                  {"alpha_r_s", &profile.alpha_r_s},
                                                  {"beta_r_s", &profile.beta_r_s},
                                                  {"noise_scale", &profile.noise_scale},
                                                  {"best_lr", &profile.best_lr},
                                                  {"jitter", &profile.jitter}};
  for (const auto& [key, value] : keys) {
    if (!json.contains(key) || !json[key].is_number()) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\": \"{}\" is missing or not a number", path, key));
    }
    *value = json[key].get<double>();
  }
  return profile;
}

// What the option of a command is given; empty: it is not among the words.
std::string OptionIn(const std::vector<std::string>& command, const std::string& option) {
  const auto at = std::find(command.begin(), command.end(), option);
  return at == command.end() || at + 1 == command.end() ? "" : *(at + 1);
}

// As --NAME says, or else the command; its own `otherwise`.
absl::StatusOr<std::int64_t> CountIn(const std::vector<std::string>& command,
                                     const std::string& option, std::int64_t given,
                                     std::int64_t otherwise) {
  if (given > 0) return given;
  const std::string text = OptionIn(command, option);
  if (text.empty()) return otherwise;
  std::int64_t count = 0;
  if (absl::SimpleAtoi(text, &count) && count > 0) return count;
  return absl::InvalidArgumentError(
      fmt::format("the study's command has {} {}: want a whole number above 0", option, text));
}

absl::StatusOr<Prepared> PrepareEmulated(const SimulateStudyArguments& a) {
  Prepared prepared;
  EmulatedLoadOptions options;
  ESPALIER_ASSIGN_OR_RETURN(options.study, ReadStudyFile(a.study_file));
  std::vector<std::string> command = options.study.command;
  const bool own =
      !command.empty() && std::filesystem::path(command.front()).filename() == "emulated";
  if (!own) command.clear();
  std::string profile = a.profile;
  if (profile.empty() && !OptionIn(command, "--profile").empty()) {
    profile = std::filesystem::path(options.study.directory) / OptionIn(command, "--profile");
  }
  ESPALIER_ASSIGN_OR_RETURN(options.profile, ReadProfile(profile));
  ESPALIER_ASSIGN_OR_RETURN(options.epochs, CountIn(command, "--epochs", a.epochs, options.epochs));
  ESPALIER_ASSIGN_OR_RETURN(options.samples,
                            CountIn(command, "--samples", a.samples, options.samples));
  if (!own) {
    prepared.remark = fmt::format(
        "Its program is not that of examples/emulated: each trial is simulated as one of those, "
        "with {} epochs of {} samples.",
        options.epochs, options.samples);
  }
  prepared.load = MakeEmulatedLoad(std::move(options));
  prepared.processes = kEmulatedProcesses;
  return prepared;
}

absl::StatusOr<Prepared> PrepareStudy(const SimulateStudyArguments& a) {
  Prepared prepared;
  ESPALIER_ASSIGN_OR_RETURN(const auto storage, OpenSqliteStorage(a.database, true));
  ESPALIER_ASSIGN_OR_RETURN(const TunerState state, storage->Load());
  std::string name = a.study;
  if (name.empty() && state.studies.size() == 1) name = state.studies.begin()->second.spec.name;
  if (state.studies.empty()) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" holds no study", a.database));
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" holds {} studies: name one with --study",
                                                  a.database, state.studies.size()));
  }
  ESPALIER_ASSIGN_OR_RETURN(auto recorded, MakeRecordedLoad(state, name));
  prepared.resize_s = recorded->MeanPause();
  prepared.recorded_figures = FiguresOfRecord(state, *state.FindStudy(name));
  prepared.recorded = recorded.get();
  prepared.load = std::move(recorded);
  return prepared;
}

absl::StatusOr<Prepared> Prepare(SimulatedLoad load, const SimulateStudyArguments& a) {
  Prepared prepared;
  switch (load) {
    case SimulatedLoad::kPoolbench: {
      ESPALIER_ASSIGN_OR_RETURN(const PoolbenchRule rule, ParsePoolbenchRule(a.rule));
      prepared.load = MakePoolbenchLoad(
          {rule, static_cast<std::uint64_t>(a.seed < 0 ? 0 : a.seed), !a.sampler.empty()});
      return prepared;
    }
    case SimulatedLoad::kEmulated:
      return PrepareEmulated(a);
    case SimulatedLoad::kStudy:
      return PrepareStudy(a);
  }
  return absl::InternalError("no such load");
}

absl::StatusOr<StudySpec> SpecOf(const Workload& load, bool recorded,
                                 const SimulateStudyArguments& a) {
  StudySpec spec = load.Study();
  if (!a.pruner.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(spec.pruner, ParsePlugin("--pruner", a.pruner));
  }
  if (!a.sampler.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(spec.sampler, ParsePlugin("--sampler", a.sampler));
    spec.SetKindBySampler();
  }
  if (a.seed >= 0) spec.seed = static_cast<std::uint64_t>(a.seed);
  if (a.trials > 0) {
    if (recorded && a.trials > spec.max_trials) {
      return absl::InvalidArgumentError(
          fmt::format("--trials {}: the record holds {} with values", a.trials, spec.max_trials));
    }
    spec.max_trials = a.trials;
  }
  if (a.time_limit_s > 0) spec.time_limit_s = a.time_limit_s;
  if (a.concurrent > 0) spec.max_concurrent_trials = a.concurrent;
  if (spec.max_trials == 0 && !a.stream) spec.max_trials = 32;
  if (a.stream) {
    if (recorded) {
      return absl::InvalidArgumentError("--stream: a record holds a set number of trials");
    }
    if (a.trials > 0) {
      return absl::InvalidArgumentError(
          "--trials and --stream: a stream of trials has no number of them: want one of the two");
    }
    spec.max_trials = 0;
    spec.target = a.has_target ? a.target : spec.target.value_or(kPoolbenchTarget);
  }
  return spec;
}

absl::StatusOr<StudySimulationOptions> OptionsOf(const SimulateStudyArguments& a,
                                                 const Prepared& prepared) {
  if (a.nodes < 1 || a.slots < a.nodes || a.slots % a.nodes != 0) {
    return absl::InvalidArgumentError(
        fmt::format("--slots {} on --nodes {}: want the same number of slots on each node, at "
                    "least 1, e.g. --slots {} --nodes {}",
                    a.slots, a.nodes, 8 * std::max(1, a.nodes), std::max(1, a.nodes)));
  }
  StudySimulationOptions options;
  const ProcessModel& own = prepared.processes;
  const auto given = [](double value, double otherwise) { return value >= 0 ? value : otherwise; };
  options.pool.start_s = given(a.start_s, own.start_s);
  options.pool.start_load = {given(a.start_cpu_s, own.load.cpu_s), given(a.cores, own.load.cores),
                             given(a.start_spread, own.load.spread),
                             static_cast<std::uint64_t>(a.start_seed)};
  options.pool.spare_start_s = own.spare_start_s;
  if (a.spare_start_s >= 0) options.pool.spare_start_s = a.spare_start_s;
  options.pool.whole_steps = own.whole_steps;
  options.pool.resize_s = a.resize_s >= 0 ? a.resize_s : prepared.resize_s.value_or(own.resize_s);
  if (a.stream) options.until_s = kStreamed_s;
  if (a.until_s > 0) options.until_s = a.until_s;
  if (a.has_target) options.target = a.target;
  return options;
}

// The largest pool from the start, or what a rule makes of it.
absl::Status SetPoolSize(const SimulateStudyArguments& a, const PluginSpec& rule,
                         VirtualPoolOptions& pool) {
  pool.nodes.clear();
  pool.core.pool_size.reset();
  if (rule.name == kFixedPool) {
    if (!rule.options.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("--pool-size {}: \"{}\" has no options", TextOf(rule), kFixedPool));
    }
    for (int i = 0; i < a.nodes; ++i) {
      pool.nodes.push_back({fmt::format("node-{}", i), a.slots / a.nodes});
      pool.nodes.back().price_per_hour = a.node_price;
    }
    return absl::OkStatus();
  }
  pool.core.pool_size = PoolSizeOptions{.rule = rule,
                                        .templates = {{.slots = a.slots / a.nodes,
                                                       .price_per_hour = a.node_price,
                                                       .start_s = a.node_start_s,
                                                       .min_nodes = a.min_nodes,
                                                       .max_nodes = a.nodes}}};
  if (!a.node_templates.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(const std::vector<GivenTemplate> given,
                              ReadNodeTemplates(a.node_templates));
    std::vector<NodeTemplate>& templates = pool.core.pool_size->templates;
    templates.clear();
    for (const GivenTemplate& of : given) {
      templates.push_back(of.node);
      templates.back().start_s = of.start_s.value_or(a.node_start_s);
    }
  }
  const absl::Status known = CheckPoolSize(*pool.core.pool_size);
  if (known.ok()) return known;
  return absl::InvalidArgumentError(
      fmt::format("--pool-size {}: {}", TextOf(rule), std::string(known.message())));
}

std::string ValuesJson(const Trial& trial) {
  nlohmann::ordered_json json;
  for (const Parameter& parameter : trial.parameters) {
    json["parameters"][parameter.name] =
        ParseJson<nlohmann::ordered_json>(ToJson(parameter.value), kMaxRecordDepth);
  }
  json["values"] = nlohmann::ordered_json::array();
  for (const IntermediateValue& value : trial.values) {
    json["values"].push_back(
        {value.step, value.value, SecondsBetween(VirtualPool::kStart, value.at)});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

SimulationRun RunOf(const std::string& policy, const StudySimulation& simulation) {
  SimulationRun run{policy, TimelineOf(simulation), {}};
  const Study& study = simulation.state.studies.begin()->second;
  for (const TrialId id : study.trials) {
    run.row_json.push_back(ValuesJson(simulation.state.trials.at(id)));
  }
  return run;
}

// How often trials came true that were promised so much.
void PrintReliability(const Reliability& promise) {
  std::vector<std::vector<std::string>> rows = {
      {"promise", "predictions", "mean", "among the best in the end"}};
  for (const ReliabilityBin& bin : promise.bins) {
    if (bin.count == 0) continue;
    rows.push_back({fmt::format("{:.1f} to {:.1f}", bin.low, bin.high), std::to_string(bin.count),
                    fmt::format("{:.3f}", bin.predicted), fmt::format("{:.3f}", bin.happened)});
  }
  std::printf("\n");
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
}

// `comparison`: of all runs, as JSON.
absl::Status WritePage(const std::string& path, const StudySimulation& simulation,
                       const std::string& comparison) {
  const std::string name = simulation.state.studies.begin()->second.spec.name;
  const std::unique_ptr<StudySource> source = SourceOfState(simulation.state);
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source->GetStudy(name));
  ESPALIER_ASSIGN_OR_RETURN(
      const std::string page,
      ReportPage(details, source->Now(), {.target = {}, .comparison = comparison}));
  ESPALIER_RETURN_IF_ERROR(WriteFile(path, page));
  std::printf("%s\n", path.c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PluginSpec>> PluginsOr(const std::string& option,
                                                  const std::vector<std::string>& texts,
                                                  const PluginSpec& otherwise) {
  std::vector<PluginSpec> plugins;
  for (const std::string& text : texts) {
    ESPALIER_ASSIGN_OR_RETURN(PluginSpec plugin, ParsePlugin(option, text));
    plugins.push_back(std::move(plugin));
  }
  if (plugins.empty()) plugins.push_back(otherwise);
  return plugins;
}

std::string TitleOf(const StudySpec& spec, const StudySimulationOptions& options,
                    const SimulateStudyArguments& a) {
  std::string title = spec.name + ": ";
  title += spec.max_trials > 0 ? fmt::format("{} trials", spec.max_trials) : "a stream of trials";
  if (spec.target) title += fmt::format(" until {:g}", *spec.target);
  title += fmt::format(" on {} slots of {} node{}, {:g} s a resize, pruner {}, seed {}", a.slots,
                       a.nodes, a.nodes == 1 ? "" : "s", options.pool.resize_s, TextOf(spec.pruner),
                       spec.seed);
  return title;
}

std::string BeyondText(int trials) {
  return fmt::format("{} trials went on past what was recorded, with their last value held.",
                     trials);
}

std::string CutOffText(const SimulationRun& run, const StudyFigures& figures, double until_s) {
  return fmt::format(
      "Under {} {} of {} trials that were begun had not ended after {} of virtual time{}.",
      run.policy, figures.unfinished, figures.trials, FormatDuration(until_s),
      figures.unfinished == 0 ? ", nor had the study" : "");
}

absl::Status WriteFiles(const SimulateStudyArguments& a, const std::string& title,
                        const std::vector<SimulationRun>& runs, const RecordedFigures& recorded,
                        const std::vector<std::string>& lanes) {
  if (!a.json_file.empty()) {
    ESPALIER_RETURN_IF_ERROR(WriteFile(a.json_file, SimulationJson(title, runs, recorded)));
    std::printf("%s\n", a.json_file.c_str());
  }
  if (!a.lanes_file.empty()) {
    ESPALIER_RETURN_IF_ERROR(WriteFile(a.lanes_file, LanesJson(lanes, recorded)));
    std::printf("%s\n", a.lanes_file.c_str());
  }
  if (!a.decisions_file.empty()) {
    ESPALIER_RETURN_IF_ERROR(WriteFile(a.decisions_file, SimulationDecisions(runs)));
    std::printf("%s\n", a.decisions_file.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

std::string CheckSimulatedSeconds(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0 && seconds <= kMostSimulated_s) return "";
  return fmt::format("\"{}\": want seconds from 0 to {:.0f}", text, kMostSimulated_s);
}

absl::Status SimulateStudies(SimulatedLoad load, const SimulateStudyArguments& a) {
  ESPALIER_RETURN_IF_ERROR(CheckOutputFiles({{"--json", a.json_file},
                                             {"--lanes", a.lanes_file},
                                             {"--decisions", a.decisions_file},
                                             {"--html", a.html_file}}));
  ESPALIER_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(load, a));
  ESPALIER_ASSIGN_OR_RETURN(StudySpec spec,
                            SpecOf(*prepared.load, prepared.recorded != nullptr, a));
  ESPALIER_ASSIGN_OR_RETURN(StudySimulationOptions options, OptionsOf(a, prepared));
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<PluginSpec> policies,
                            PluginsOr("--policy", a.policies, spec.policy));
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<PluginSpec> pool_sizes,
                            PluginsOr("--pool-size", a.pool_sizes, {kFixedPool, {}}));

  const std::string title = TitleOf(spec, options, a);
  std::vector<SimulationRun> runs;
  std::vector<std::string> lanes;
  std::vector<std::pair<std::string, StudySimulation>> pages;
  PageNames page_names;
  std::vector<std::string> cut_off;
  int beyond = 0;
  Reliability promise;
  std::vector<std::pair<PluginSpec, PluginSpec>> variants;
  for (const PluginSpec& policy : policies) {
    ESPALIER_RETURN_IF_ERROR(CheckPolicy(policy));  // before any of them takes minutes
    for (const PluginSpec& pool_size : pool_sizes) variants.emplace_back(policy, pool_size);
  }
  for (const auto& [policy, pool_size] : variants) {
    spec.policy = policy;
    ESPALIER_RETURN_IF_ERROR(SetPoolSize(a, pool_size, options.pool));
    ESPALIER_ASSIGN_OR_RETURN(StudySimulation simulation,
                              SimulateStudy(*prepared.load, spec, options));
    const int past_record =
        prepared.recorded != nullptr ? prepared.recorded->BeyondRecord(simulation.state) : 0;
    beyond += past_record;
    std::string name = TextOf(policy);
    if (!a.pool_sizes.empty()) name += " on " + TextOf(pool_size);
    runs.push_back(RunOf(name, simulation));
    promise = simulation.promise;
    runs.back().timeline.slots = a.slots;
    if (past_record > 0) runs.back().remarks.push_back(BeyondText(past_record));
    if (!simulation.figures.ended) {
      cut_off.push_back(CutOffText(runs.back(), simulation.figures, options.until_s));
      runs.back().remarks.push_back(cut_off.back());
    }
    if (!a.lanes_file.empty() || !a.html_file.empty()) {
      lanes.push_back(LaneRunJson(runs.back(), spec, simulation, prepared.recorded,
                                  a.node_templates.empty() ? a.slots / a.nodes : 0));
    }
    if (!a.html_file.empty()) {
      std::string page = TextOf(policy);
      if (pool_sizes.size() > 1) page += "-" + TextOf(pool_size);
      pages.emplace_back(SimulationPagePath(a.html_file, page_names.Next(page), variants.size()),
                         std::move(simulation));
    }
  }
  std::printf("%s\n", title.c_str());
  if (!prepared.remark.empty()) std::printf("%s\n", prepared.remark.c_str());
  std::printf("\n%s", SimulationTable(runs).c_str());
  if (!cut_off.empty()) std::printf("\n");
  for (const std::string& line : cut_off) std::printf("%s\n", line.c_str());
  if (runs.size() == 1) PrintReliability(promise);
  if (beyond > 0) std::printf("\n%s\n", BeyondText(beyond).c_str());
  ESPALIER_RETURN_IF_ERROR(WriteFiles(a, title, runs, prepared.recorded_figures, lanes));
  for (const auto& [path, simulation] : pages) {
    ESPALIER_RETURN_IF_ERROR(
        WritePage(path, simulation, LanesJson(lanes, prepared.recorded_figures)));
  }
  return absl::OkStatus();
}

}  // namespace espalier
