// `tuner simulate`: what it accepts. tuner/cli/simulate is what it does.

#include <memory>

#include "tuner/cli/plugin_argument.h"
#include "tuner/cli/simulate/cluster.h"
#include "tuner/cli/simulate/studies.h"
#include "tuner/cli/verb.h"
#include "tuner/core/core.h"

namespace espalier {
namespace {

constexpr const char* kPoolbenchExample =
    "Example:\n"
    "  tuner simulate poolbench --trials 32 --slots 32 --nodes 4 --policy fixed --policy "
    "promise_goodput\n"
    "  tuner simulate poolbench --stream --target 0.085 --slots 8 --pruner asha:eta=3\n"
    "  tuner simulate poolbench --trials 32 --slots 32 --nodes 8 --pool-size fixed --pool-size "
    "utility_price\n";
constexpr const char* kEmulatedExample =
    "Example:\n"
    "  tuner simulate emulated examples/emulated/study.json --slots 16 --html page.html\n";
constexpr const char* kStudyExample =
    "Example:\n"
    "  tuner simulate study --db espalier.db --study cifar --policy fixed --decisions log.txt\n";
constexpr const char* kPolluxExample =
    "Example:\n"
    "  tuner simulate pollux workload-1 --policy pollux --policy promise_goodput\n"
    "  tuner simulate pollux allocator/simulator/loads/pollux workload-1    # from a source tree\n";

void AddPool(CLI::App& app, SimulateStudyArguments& a) {
  app.add_option("--slots", a.slots, "Slots of the pool, the same number on each node")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--nodes", a.nodes, "Nodes that the slots are on")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--resize-s", a.resize_s,
                 "Seconds in which a trial stands still when its slots change (default: 1, or the "
                 "mean that a study recorded)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--start-s", a.start_s,
                 "Seconds from a process's start until it is ready, besides its processor time "
                 "(default: 0.5; emulated 0)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--start-cpu-s", a.start_cpu_s,
                 "Processor seconds of a start, for which the starts of a node share its cores "
                 "(default: 0; emulated 0.23)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--cores", a.cores,
                 "Processors of each node that starts share; 0: one for each (default: 0; emulated "
                 "2)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--start-spread", a.start_spread,
                 "Starts need up to this share more or less processor time (default: 0; emulated "
                 "0.08)")
      ->check(CLI::Range(0.0, 0.99));
  app.add_option("--start-seed", a.start_seed, "Draws which starts need more and which less")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--spare-start-s", a.spare_start_s,
                 "Seconds until a replica that its agent kept as a spare is ready again (default: "
                 "no spares are kept; emulated 0.02)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--until-s", a.until_s, "Virtual seconds after which the simulation ends")
      ->check(CLI::PositiveNumber);
}

void AddPoolSize(CLI::App& app, SimulateStudyArguments& a) {
  constexpr const char* kGroup = "A pool that grows and shrinks";
  app.add_option(
         "--pool-size", a.pool_sizes,
         "NAME or NAME:option=value,... of a rule by which the pool grows up to --nodes and "
         "shrinks (utility_price, utility_band, least_cost), or fixed: all from the start; "
         "give it several times to compare rules (default: fixed)")
      ->group(kGroup);
  app.add_option("--min-nodes", a.min_nodes, "Nodes that stay in any case, under such a rule")
      ->check(CLI::Range(0, kMaxEngineNodes))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--node-start", a.node_start_s,
                 "Seconds from asking for a node until it joins; it costs from the beginning")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--node-price", a.node_price, "Of a node's hour, in any currency")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  app.add_option("--node-templates", a.node_templates,
                 "File of what nodes such a rule may choose among, as tuner serve takes it; "
                 "--min-nodes, --node-start and --node-price are for pools without")
      ->group(kGroup);
}

void AddStudy(CLI::App& app, SimulateStudyArguments& a) {
  app.add_option("--policy", a.policies,
                 "NAME or NAME:option=value,...; give it several times to compare policies "
                 "(default: the study's)");
  app.add_option("--pruner", a.pruner, "NAME or NAME:option=value,... (default: the study's)");
  app.add_option("--trials", a.trials, "Trials of the study (default: the load's, or 32)")
      ->check(CLI::PositiveNumber);
  app.add_option("--concurrent", a.concurrent, "Trials alive at a time (default: no limit)")
      ->check(CLI::PositiveNumber);
  app.add_option("--time-limit", a.time_limit_s,
                 "Virtual seconds that the study has, as time_limit_s in its file")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", a.seed, "Of the load and the study; the same gives the same bytes")
      ->check(CLI::NonNegativeNumber);
  app.add_option_function<double>(
      "--target",
      [&a](const double& target) {
        a.target = target;
        a.has_target = true;
      },
      "Value of the metric whose time is told; with --stream the study ends there");
}

template <typename Arguments>
void AddOutput(CLI::App& app, Arguments& a) {
  app.add_option("--json", a.json_file, "File for figures, trials or jobs, slots and decisions");
  app.add_option("--decisions", a.decisions_file, "File for the decision log with reasons");
  app.add_option("--html", a.html_file,
                 "File for the page with who held which slot when; with several policies one page "
                 "each, named FILE-POLICY");
}

void AddRecordedJobs(CLI::App& app, SimulateClusterArguments& a) {
  app.add_option_function<std::vector<std::string>>(
         "load",
         [&a](const std::vector<std::string>& words) {
           if (words.size() == 2) a.folder = words.front();
           a.workload = words.back();
         },
         "Folder with recorded applications and workloads (default: what was installed with this "
         "program), and one of its workloads, e.g. workload-1")
      ->required()
      ->expected(1, 2)
      ->type_name("[FOLDER] WORKLOAD");
  app.add_option("--policy", a.policies,
                 "NAME or NAME:option=value,...; give it several times to compare policies");
  app.add_option("--nodes", a.nodes, "Nodes of four slots")
      ->check(CLI::Range(1, 1 << 10))
      ->capture_default_str();
  app.add_option("--resize-s", a.resize_s, "Seconds in which a resized job does not train")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--interval-s", a.interval_s, "Seconds between decisions, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--on-events", a.on_events,
               "Decisions also at once after an arrival, an end, an epoch or a new measurement");
  app.add_flag("--requested-batch", a.requested,
               "Jobs keep the batch size their users asked for (always so under optimus and "
               "tiresias)");
  AddOutput(app, a);
  app.footer(kPolluxExample + PoliciesHelp());
}

struct LoadAction {
  CLI::App* app;
  SimulatedLoad load;
};

}  // namespace

VerbAction AddSimulate(CLI::App& app) {
  auto a = std::make_shared<SimulateStudyArguments>();
  app.require_subcommand(1);
  CLI::App* poolbench = app.add_subcommand(
      "poolbench", "Analytic learning curves, batch efficiency and scaling, 81 epochs a trial");
  CLI::App* emulated = app.add_subcommand("emulated", "What examples/emulated would do");
  CLI::App* study = app.add_subcommand("study", "A recorded study again, from its database");
  for (CLI::App* load : {poolbench, emulated, study}) {
    AddPool(*load, *a);
    AddPoolSize(*load, *a);
    AddStudy(*load, *a);
    AddOutput(*load, *a);
  }
  for (CLI::App* load : {poolbench, emulated}) {
    load->add_flag("--stream", a->stream,
                   "Trials without end, until one reports the target (0.085 if none is named) or "
                   "--until-s (6 hours)");
    load->add_option("--sampler", a->sampler,
                     "NAME or NAME:option=value,... (default: poolbench's own list, by trial "
                     "number; the study's for emulated)");
  }
  poolbench
      ->add_option("--rule", a->rule,
                   "How the best learning rate grows with the batch: sqrt or linear")
      ->capture_default_str();
  poolbench->footer(kPoolbenchExample + PoliciesHelp());
  emulated->add_option("study_file", a->study_file, "Study file")
      ->required()
      ->type_name("STUDY.json");
  emulated->add_option("--profile", a->profile,
                       "The program's profile.json (default: that of examples/emulated)");
  emulated->add_option("--epochs", a->epochs, "As the program's")->capture_default_str();
  emulated->add_option("--samples", a->samples, "As the program's")->capture_default_str();
  emulated->footer(kEmulatedExample + PoliciesHelp());
  study->add_option("--db", a->database, "Database file of a service")->required();
  study->add_option("--study", a->study, "Its name (default: the only one there is)");
  study->footer(kStudyExample + PoliciesHelp());
  auto jobs = std::make_shared<SimulateClusterArguments>();
  CLI::App* pollux = app.add_subcommand(
      "pollux", "Recorded training jobs, as in the simulator of the Pollux paper");
  AddRecordedJobs(*pollux, *jobs);
  return [a, jobs, pollux,
          loads = std::vector<LoadAction>{{poolbench, SimulatedLoad::kPoolbench},
                                          {emulated, SimulatedLoad::kEmulated},
                                          {study, SimulatedLoad::kStudy}}] {
    for (const LoadAction& row : loads) {
      if (!row.app->parsed()) continue;
      const absl::Status status = SimulateStudies(row.load, *a);
      return status.ok() ? ExitCode::kOk : Fail("simulate " + row.app->get_name(), status);
    }
    const absl::Status status = SimulateRecordedCluster(*jobs);
    return status.ok() ? ExitCode::kOk : Fail("simulate " + pollux->get_name(), status);
  };
}

}  // namespace espalier
