// `tuner simulate`: what it accepts. tuner/cli/simulate is what it does.

#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "tuner/cli/options/plugin_argument.h"
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
    "  tuner simulate pollux workload-1 --policy pollux --policy promise_goodput:urgency=1\n"
    "  tuner simulate pollux allocator/simulator/loads/pollux workload-1    # from a source tree\n";

std::string CheckFinite(const std::string& text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return "";
  return "\"" + text + "\": want a number";
}

void AddPool(CliCommand& command, SimulateStudyArguments& a) {
  command.AddOption("--slots", a.slots, "Slots of the pool, divided evenly among the nodes")
      .Between(1, 1 << 20)
      .ShowDefault();
  command.AddOption("--nodes", a.nodes, "Number of nodes").Between(1, 1 << 16).ShowDefault();
  command
      .AddOption("--resize-s", a.resize_s,
                 "Seconds for which a trial stands still when its slots change (default: 1, or the "
                 "mean recorded with the study; emulated: 0.01)")
      .Check(CheckSimulatedSeconds);
  command
      .AddOption("--start-s", a.start_s,
                 "Seconds from a process's start until it is ready, without the processor time "
                 "(default: 0.5; emulated: 0)")
      .Check(CheckSimulatedSeconds);
  command
      .AddOption("--start-cpu-s", a.start_cpu_s,
                 "Processor seconds that a start takes, on cores shared by all starts of the node "
                 "(default: 0; emulated: 0.23)")
      .Check(CheckSimulatedSeconds);
  command
      .AddOption(
          "--cores", a.cores,
          "Cores per node that starts share; 0: one for each start (default: 0; emulated: 2)")
      .Between(0.0, 1e6);
  command
      .AddOption("--start-spread", a.start_spread,
                 "Random variation of the processor time of a start, up or down, as a share of it "
                 "(default: 0; emulated: 0.08)")
      .Between(0.0, 0.99);
  command.AddOption("--start-seed", a.start_seed, "Seed of this variation")
      .NonNegative()
      .ShowDefault();
  command
      .AddOption("--spare-start-s", a.spare_start_s,
                 "Seconds until a replica that its agent kept as a spare is ready again (default: "
                 "no spares are kept; emulated: 0.02)")
      .Check(CheckSimulatedSeconds);
  command
      .AddOption("--until-s", a.until_s,
                 "Virtual seconds after which the simulation ends (default: 30 days)")
      .Positive()
      .Check(CheckSimulatedSeconds);
}

void AddPoolSize(CliCommand& command, SimulateStudyArguments& a) {
  constexpr const char* kGroup = "A pool that grows and shrinks";
  command
      .AddOption(
          "--pool-size", a.pool_sizes,
          "Rule by which the pool grows, up to --nodes, and shrinks: NAME or "
          "NAME:option=value,..., "
          "where NAME is utility_price, utility_band or least_cost; or fixed: all nodes from the "
          "start. Give it several times to compare rules (default: fixed)")
      .Group(kGroup);
  command.AddOption("--min-nodes", a.min_nodes, "Nodes that are always kept, with such a rule")
      .Between(0, kMaxEngineNodes)
      .ShowDefault()
      .Group(kGroup);
  command
      .AddOption(
          "--node-start", a.node_start_s,
          "Seconds from requesting a node until it joins; it is paid for from the request on")
      .Check(CheckSimulatedSeconds)
      .ShowDefault()
      .Group(kGroup);
  command.AddOption("--node-price", a.node_price, "Price of a node per hour, in any currency")
      .NonNegative()
      .Group(kGroup);
  command
      .AddOption("--node-templates", a.node_templates,
                 "File of node templates among which such a rule chooses, as for `tuner serve`; "
                 "instead of --min-nodes, --node-start and --node-price")
      .Group(kGroup);
}

void AddStudy(CliCommand& command, SimulateStudyArguments& a) {
  command.AddOption("--policy", a.policies,
                    "NAME or NAME:option=value,...; give it several times to compare policies "
                    "(default: the study's)");
  command.AddOption("--pruner", a.pruner, "NAME or NAME:option=value,... (default: the study's)");
  command.AddOption("--trials", a.trials, "Trials of the study (default: the load's, or 32)")
      .Positive();
  command.AddOption("--concurrent", a.concurrent, "Most trials alive at a time (default: no limit)")
      .Positive();
  command
      .AddOption("--time-limit", a.time_limit_s,
                 "Time limit of the study in virtual seconds, like time_limit_s in a study file")
      .Positive()
      .Check(CheckSimulatedSeconds);
  command
      .AddOption("--seed", a.seed,
                 "Seed of the load and the study; the same seed gives the same bytes of output")
      .NonNegative();
  command
      .AddNumber(
          "--target",
          [&a](const double& target) {
            a.target = target;
            a.has_target = true;
          },
          "Value of the metric; the time to reach it is printed, and with --stream the study ends "
          "there")
      .Check(CheckFinite);
}

template <typename Arguments>
void AddOutput(CliCommand& command, Arguments& a) {
  command.AddOption("--json", a.json_file,
                    "JSON file to write: figures, trials or jobs, slots and decisions");
  command.AddOption("--decisions", a.decisions_file,
                    "Text file to write: the decisions, with their reasons");
  command.AddOption("--html", a.html_file,
                    "HTML page to write: curves, slots and decisions, and all policies side by "
                    "side; with several "
                    "policies, one page each, named FILE-POLICY");
}

void AddRecordedJobs(CliCommand& command, SimulateClusterArguments& a) {
  command
      .AddWords(
          "load",
          [&a](const std::vector<std::string>& words) {
            if (words.size() == 2) a.folder = words.front();
            a.workload = words.back();
          },
          "Folder with recorded applications and workloads (default: the one installed with this "
          "program), and one of its workloads, e.g. workload-1")
      .Required()
      .Values(1, 2)
      .TypeName("[FOLDER] WORKLOAD");
  command.AddOption("--policy", a.policies,
                    "NAME or NAME:option=value,...; give it several times to compare policies");
  command.AddOption("--nodes", a.nodes, "Number of nodes, of four slots each")
      .Between(1, 1 << 10)
      .ShowDefault();
  command.AddOption("--resize-s", a.resize_s, "Seconds for which a resized job does not train")
      .NonNegative()
      .ShowDefault();
  command.AddOption("--interval-s", a.interval_s, "Most seconds between decisions")
      .Positive()
      .ShowDefault();
  command.AddFlag("--on-events", a.on_events,
                  "Also decide at once after an arrival, an end, an epoch or a new measurement");
  command.AddFlag(
      "--requested-batch", a.requested,
      "Jobs keep the batch size that their users asked for (always so with optimus and tiresias)");
  AddOutput(command, a);
  command.Footer(kPolluxExample + PoliciesHelp());
}

struct LoadAction {
  CliCommand* command;
  SimulatedLoad load;
};

}  // namespace

VerbAction AddSimulate(CliCommand& command) {
  auto a = std::make_shared<SimulateStudyArguments>();
  command.RequireCommand();
  CliCommand* poolbench = command.AddCommand(
      "poolbench",
      "Trials with analytic learning curves, batch efficiency and scaling, 81 epochs each");
  CliCommand* emulated = command.AddCommand("emulated", "The trials of examples/emulated");
  CliCommand* study = command.AddCommand("study", "A recorded study once more, from its database");
  for (CliCommand* load : {poolbench, emulated, study}) {
    AddPool(*load, *a);
    AddPoolSize(*load, *a);
    AddStudy(*load, *a);
    AddOutput(*load, *a);
    load->AddOption("--lanes", a->lanes_file,
                    "JSON file to write: figures, and who held which slot when, as pages draw it");
  }
  for (CliCommand* load : {poolbench, emulated}) {
    load->AddFlag("--stream", a->stream,
                  "Start ever more trials, until one reports the target (default: 0.085) or "
                  "--until-s is over (default: 6 hours)");
    load->AddOption("--sampler", a->sampler,
                    "NAME or NAME:option=value,... (default: poolbench's own list, by trial "
                    "number; the study's for emulated)");
  }
  poolbench
      ->AddOption("--rule", a->rule,
                  "How the best learning rate grows with the batch size: sqrt or linear")
      .ShowDefault();
  poolbench->Footer(kPoolbenchExample + PoliciesHelp());
  emulated->AddOption("study_file", a->study_file, "Study file")
      .Required()
      .TypeName("STUDY.json|STUDY.yaml");
  emulated->AddOption(
      "--profile", a->profile,
      "The program's profile.json (default: what the study's command gives it, or that "
      "of examples/emulated)");
  emulated
      ->AddOption("--epochs", a->epochs,
                  "As the program's (default: what the study's command gives it, or 9)")
      .Positive();
  emulated
      ->AddOption("--samples", a->samples,
                  "As the program's (default: what the study's command gives it, or 6144)")
      .Positive();
  emulated->Footer(kEmulatedExample + PoliciesHelp());
  study->AddOption("--db", a->database, "Database file of a service").Required();
  study->AddOption("--study", a->study, "Name of the study (default: the only one in the file)");
  study->Footer(kStudyExample + PoliciesHelp());
  auto jobs = std::make_shared<SimulateClusterArguments>();
  CliCommand* pollux = command.AddCommand(
      "pollux", "Recorded training jobs, as in the simulator of the Pollux paper");
  AddRecordedJobs(*pollux, *jobs);
  return [a, jobs, pollux,
          loads = std::vector<LoadAction>{{poolbench, SimulatedLoad::kPoolbench},
                                          {emulated, SimulatedLoad::kEmulated},
                                          {study, SimulatedLoad::kStudy}}] {
    for (const LoadAction& row : loads) {
      if (!row.command->parsed()) continue;
      const absl::Status status = SimulateStudies(row.load, *a);
      return status.ok() ? ExitCode::kOk : Fail("simulate " + row.command->name(), status);
    }
    const absl::Status status = SimulateRecordedCluster(*jobs);
    return status.ok() ? ExitCode::kOk : Fail("simulate " + pollux->name(), status);
  };
}

}  // namespace espalier
