#include "trial_runner/agent/trial_environment.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <tuple>

namespace espalier {
namespace {

TEST(TrialEnvironment, YieldsToThreadsTheUserSet) {
  AgentOptions options;
  options.tuner_executable = "/opt/espalier/tuner";
  v1::StartReplica start;
  start.set_parameters_json(R"({"lr": 0.1, "rule": "adascale", "deep": true})");
  (*start.mutable_environment())["OMP_NUM_THREADS"] = "7";
  const auto variables = TrialEnvironment({{"PATH", "/bin"},
                                           {"ESPALIER_CHECKPOINT", "stale"},
                                           {"ESPALIER_LAST_STEP", "7"},
                                           {"ESPALIER_JOINS", "3"}},
                                          options, {}, 3, {}, start, {});
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_LR"), "0.1");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_RULE"), "adascale");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_DEEP"), "true");
  EXPECT_EQ(variables->at("ESPALIER_NODE_ID"), "3");
  EXPECT_EQ(variables->at("PATH"), "/opt/espalier:/bin");
  EXPECT_FALSE(variables->contains("ESPALIER_CHECKPOINT"));
  EXPECT_FALSE(variables->contains("ESPALIER_LAST_STEP"));
  EXPECT_FALSE(variables->contains("ESPALIER_JOINS"));
  start.set_joins(4);
  EXPECT_EQ(TrialEnvironment({}, options, {}, 3, {}, start, {})->at("ESPALIER_JOINS"), "4");
}

TEST(TrialEnvironment, SharesTheCoresAmongTheSlots) {
  v1::StartReplica start;
  start.set_parameters_json("{}");
  for (const auto& [cores, slots, threads] :
       {std::tuple(16, 4, "4"), {7, 2, "3"}, {1, 3, "1"}, {5, 1, "5"}}) {
    AgentOptions options;
    options.cores = cores;
    options.slots = slots;
    const auto variables = *TrialEnvironment({}, options, {}, 3, {}, start, {});
    EXPECT_EQ(variables.at("ESPALIER_THREADS"), threads) << cores << " by " << slots;
    EXPECT_EQ(variables.at("OMP_NUM_THREADS"), threads) << cores << " by " << slots;
  }
}

TEST(TrialEnvironment, AFirstProcessHasThePartOfAllItsSlots) {
  AgentOptions options;
  options.cores = 10;
  options.slots = 4;
  v1::StartReplica start;
  start.set_parameters_json("{}");
  start.add_command("train");
  const auto of = [&](const std::map<std::string, std::string>& inherited) {
    return *TrialEnvironment(inherited, options, {}, 3, {}, start, {});
  };
  EXPECT_EQ(of({}).at("ESPALIER_SLOTS"), "1");
  EXPECT_FALSE(of({{"ESPALIER_OWN_THREADS", "7"}}).contains("ESPALIER_OWN_THREADS"));
  start.add_more_slots(1);
  start.add_more_slots(3);
  EXPECT_EQ(of({}).at("ESPALIER_SLOTS"), "3");
  EXPECT_EQ(of({}).at("ESPALIER_THREADS"), "7");
  EXPECT_EQ(of({}).at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(of({}).at("ESPALIER_OWN_THREADS"), "2") << "for an elastic program";
  const auto told = of({{"ESPALIER_THREADS", "3"}});
  EXPECT_EQ(told.at("OMP_NUM_THREADS"), "3");
  EXPECT_FALSE(told.contains("ESPALIER_OWN_THREADS")) << "what the user says is for all";
  start.set_command(0, "/opt/bin/torchrun");
  EXPECT_EQ(of({}).at("OMP_NUM_THREADS"), "2") << "each process that it starts inherits them";
}

TEST(TrialEnvironment, RanksHaveOneSlotsThreadsAndNothingOfAnElasticReplica) {
  AgentOptions options;
  options.cores = 8;
  options.slots = 4;
  v1::StartReplica start;
  start.set_parameters_json("{}");
  start.add_command("train");
  start.add_more_slots(1);
  start.mutable_launch()->add_words("torchrun");
  const auto variables = *TrialEnvironment({}, options, {}, 3, {}, start, {});
  EXPECT_EQ(variables.at("OMP_NUM_THREADS"), "2");
  for (const char* const name :
       {"ESPALIER_CONTROL_FD", "ESPALIER_OWN_GPU", "ESPALIER_OWN_THREADS", "PET_RDZV_ENDPOINT"}) {
    EXPECT_FALSE(variables.contains(name)) << name;
  }
  EXPECT_FALSE(variables.contains("ACCELERATE_USE_CPU"));
  start.mutable_launch()->set_words(0, "accelerate");
  const auto has = [&] { return *TrialEnvironment({}, options, {}, 3, {}, start, {}); };
  EXPECT_EQ(has().at("ACCELERATE_USE_CPU"), "true") << "or each of its ranks trains alone";
  options.gpus.resize(4);
  EXPECT_FALSE(has().contains("ACCELERATE_USE_CPU"));
}

TEST(TrialEnvironment, TwoOfTorchrunDoNotMeetUnlessTheyAreToldWhere) {
  v1::StartReplica start;
  start.set_parameters_json("{}");
  start.add_command("torchrun");
  start.add_command("--nproc-per-node=gpu");
  const auto has = [&](const std::map<std::string, std::string>& inherited) {
    return TrialEnvironment(inherited, {}, {}, 3, {}, start, {})->contains("PET_RDZV_ENDPOINT");
  };
  EXPECT_TRUE(has({}));
  EXPECT_TRUE(has({{"PET_NNODES", "2"}})) << "of the job that the agent runs in";
  start.add_command("");
  for (const char* const word : {"--master-port=29501", "--master_addr", "--rdzv-endpoint",
                                 "--node_rank=1", "torchrun --master_port 1 train.py"}) {
    start.set_command(2, word);
    EXPECT_FALSE(has({})) << word;
  }
  start.set_command(2, "train.py");
  (*start.mutable_environment())["PET_MASTER_PORT"] = "29501";
  EXPECT_FALSE(has({}));
}

TEST(TrialEnvironment, HasNothingOfTheJobThatTheAgentRunsIn) {
  v1::StartReplica start;
  start.set_parameters_json("{}");
  (*start.mutable_environment())["MASTER_PORT"] = "29500";
  std::map<std::string, std::string> inherited = {
      {"PATH", "/bin"},          {"LOCAL_DATA", "/data"},  {"RANKING", "yes"},
      {"OMP_PROC_BIND", "no"},   {"SLURM_CONF", "/etc/c"}, {"MY_SLURM_JOB", "1"},
      {"HYDRA_FULL_ERROR", "1"}, {"FLUX_DEV", "/flux"},    {"HOROVOD_FUSION_THRESHOLD", "0"}};
  const auto kept = inherited;
  for (const char* const name : {"SLURM_NTASKS",
                                 "SLURM_PROCID",
                                 "SLURM_JOB_ID",
                                 "SLURMD_NODENAME",
                                 "SRUN_DEBUG",
                                 "PMI_RANK",
                                 "PMIX_NAMESPACE",
                                 "OMPI_COMM_WORLD_RANK",
                                 "MV2_COMM_WORLD_RANK",
                                 "MPI_LOCALRANKID",
                                 "PBS_NODEFILE",
                                 "LSB_JOBID",
                                 "JSM_NAMESPACE_RANK",
                                 "PE_HOSTFILE",
                                 "RANK",
                                 "WORLD_SIZE",
                                 "LOCAL_RANK",
                                 "LOCAL_WORLD_SIZE",
                                 "GROUP_RANK",
                                 "ROLE_NAME",
                                 "NODE_RANK",
                                 "MASTER_ADDR",
                                 "MASTER_PORT",
                                 "TORCHELASTIC_RUN_ID",
                                 "HYDRA_LAUNCHER",
                                 "HYDI_CONTROL_FD",
                                 "PALS_RANKID",
                                 "FLUX_TASK_RANK",
                                 "FLUX_JOB_ID",
                                 "HOROVOD_RANK",
                                 "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                 "PET_NNODES",
                                 "NOTIFY_SOCKET",
                                 "LISTEN_FDS",
                                 "LISTEN_FDNAMES",
                                 "WATCHDOG_USEC"}) {
    inherited[name] = "3";
  }
  const auto variables = *TrialEnvironment(inherited, {}, {}, 3, {}, start, {});
  for (const auto& [name, value] : inherited) {
    if (name == "PATH") continue;
    if (name == "MASTER_PORT") {
      EXPECT_EQ(variables.at(name), "29500") << "as its study says";
    } else {
      EXPECT_EQ(variables.contains(name), kept.contains(name)) << name;
    }
  }
}

TEST(TrialEnvironment, ReachesItsMachineWithoutTheProxyForTheWeb) {
  v1::StartReplica start;
  start.set_parameters_json("{}");
  const auto of = [&](const std::map<std::string, std::string>& inherited) {
    const auto variables = *TrialEnvironment(inherited, {}, {}, 3, {}, start, {});
    const auto lower = variables.find("no_proxy");
    const auto upper = variables.find("NO_PROXY");
    return std::pair(lower == variables.end() ? "" : lower->second,
                     upper == variables.end() ? "" : upper->second);
  };
  EXPECT_EQ(of({}).first, "") << "without a proxy nothing is set";
  EXPECT_EQ(of({{"http_proxy", ""}}).first, "");
  for (const char* const name : {"http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"}) {
    EXPECT_EQ(of({{name, "http://proxy:3128"}}).first, "127.0.0.1,localhost,::1") << name;
  }
  const auto [lower, upper] = of({{"http_proxy", "http://proxy:3128"},
                                  {"no_proxy", ".example.org,localhost"},
                                  {"NO_PROXY", "10.0.0.0/8"}});
  EXPECT_EQ(lower, ".example.org,localhost,10.0.0.0/8,127.0.0.1,::1");
  EXPECT_EQ(upper, lower);
}

TEST(TrialEnvironment, AVariableThatTwoParametersWouldShareIsNotSet) {
  v1::StartReplica start;
  start.set_parameters_json(R"({"lr": 0.1, "a-b": 1, "a_b": 2})");
  const auto variables =
      TrialEnvironment({{"ESPALIER_PARAM_A_B", "of an outer trial"}}, {}, {}, 1, {}, start, {});
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at("ESPALIER_PARAM_LR"), "0.1");
  EXPECT_FALSE(variables->contains("ESPALIER_PARAM_A_B"));
}

TEST(TrialEnvironment, ThreadsThatWaitSpinForAWhileUnlessTheUserSaysOtherwise) {
  v1::StartReplica start;
  start.set_parameters_json("{}");
  const auto spin_count = [&](const std::map<std::string, std::string>& inherited) {
    const auto variables = TrialEnvironment(inherited, {}, {}, 1, {}, start, {});
    EXPECT_TRUE(variables.ok()) << variables.status();
    const auto found = variables->find("GOMP_SPINCOUNT");
    return found == variables->end() ? "none" : found->second;
  };
  EXPECT_EQ(spin_count({}), "1000");
  EXPECT_EQ(spin_count({{"GOMP_SPINCOUNT", "infinity"}}), "infinity");
  EXPECT_EQ(spin_count({{"OMP_WAIT_POLICY", "active"}}), "none");
  (*start.mutable_environment())["GOMP_SPINCOUNT"] = "7";
  EXPECT_EQ(spin_count({}), "7");
  start.mutable_environment()->clear();
  (*start.mutable_environment())["OMP_WAIT_POLICY"] = "passive";
  EXPECT_EQ(spin_count({}), "none");
}

TEST(TrialEnvironment, TellsWhereOtherMachinesReachTheReplica) {
  AgentOptions options;
  v1::StartReplica start;
  start.set_parameters_json("{}");
  const std::map<std::string, std::string> inherited = {{"ESPALIER_HOST_ADDRESS", "10.9.9.9"},
                                                        {"ESPALIER_INTERFACE", "eth9"},
                                                        {"ESPALIER_PORT_RANGE", "9000-9999"}};
  const auto alone = TrialEnvironment(inherited, options, {}, 3, {}, start, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->at("ESPALIER_HOST_ADDRESS"), "127.0.0.1");
  EXPECT_FALSE(alone->contains("ESPALIER_INTERFACE"));
  EXPECT_FALSE(alone->contains("ESPALIER_PORT_RANGE"));
  options.ports = {7100, 7163};
  const auto pooled = TrialEnvironment(inherited, options, {}, 3, {"10.0.0.2", "eth0"}, start, {});
  ASSERT_TRUE(pooled.ok()) << pooled.status();
  EXPECT_EQ(pooled->at("ESPALIER_HOST_ADDRESS"), "10.0.0.2");
  EXPECT_EQ(pooled->at("ESPALIER_INTERFACE"), "eth0");
  EXPECT_EQ(pooled->at("ESPALIER_PORT_RANGE"), "7100-7163");
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TrialEnvironment, ThroughTheAgentATrialKnowsNeitherAddressNorCertificate) {
  AgentOptions options;
  options.directory = testing::TempDir() + "/espalier_trial_environment";
  options.service_address = "10.0.0.1:7077";
  options.http_address = "https://10.0.0.1:7078";
  options.tls_ca_file = "/ca.pem";
  const std::string secret(64, 'a');
  const std::string hash(64, 'b');
  options.token = "esp1.01234567." + secret + "." + hash;
  options.token_file = "/agent.token";
  v1::StartReplica start;
  start.set_study("s");
  start.set_parameters_json("{}");
  start.set_token("esp1.trial-3-17." + secret + "." + hash);
  const auto told = [&](const ServiceAccess& access) {
    const absl::StatusOr<TrialFiles> files = MakeTrialFiles(options, access, start);
    EXPECT_TRUE(files.ok()) << files.status();
    return *TrialEnvironment({{"ESPALIER_TLS_CA", "/old"}}, options, access, 1, {}, start, *files);
  };
  const auto direct = told(DirectAccess(options));
  EXPECT_EQ(direct.at("ESPALIER_SERVICE"), "10.0.0.1:7077");
  EXPECT_EQ(direct.at("ESPALIER_HTTP"), "https://10.0.0.1:7078");
  EXPECT_EQ(direct.at("ESPALIER_TLS_CA"), "/ca.pem");
  EXPECT_EQ(TextOf(direct.at("ESPALIER_TOKEN_FILE")), start.token() + "\n");

  const ServiceAccess access{"127.0.0.1:1234", "http://127.0.0.1:1235", "", /*forwarded=*/true};
  const auto forwarded = told(access);
  EXPECT_EQ(forwarded.at("ESPALIER_SERVICE"), "127.0.0.1:1234");
  EXPECT_EQ(forwarded.at("ESPALIER_HTTP"), "http://127.0.0.1:1235");
  EXPECT_FALSE(forwarded.contains("ESPALIER_TLS_CA"));
  EXPECT_EQ(TextOf(forwarded.at("ESPALIER_TOKEN_FILE")), "esp1.trial-3-17." + secret + "\n");
  // A service of an older release gives trials no token: they show the agent's.
  start.clear_token();
  EXPECT_EQ(TextOf(told(access).at("ESPALIER_TOKEN_FILE")), "esp1.01234567." + secret + "\n");
  EXPECT_EQ(told(DirectAccess(options)).at("ESPALIER_TOKEN_FILE"), "/agent.token");
  options.token = "a word";
  EXPECT_EQ(told(access).at("ESPALIER_TOKEN_FILE"), "/agent.token");
}

TEST(TrialEnvironment, FlattensNestedChoices) {
  v1::StartReplica start;
  start.set_parameters_json(
      R"({"opt": {"_name": "sgd", "momentum": 0.9, "decay": {"_name": "none"}}, "list": [1]})");
  const auto variables = TrialEnvironment({}, {}, {}, 1, {}, start, {});
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at("ESPALIER_PARAM_OPT"), "sgd");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_OPT_SGD_MOMENTUM"), "0.9");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_OPT_SGD_DECAY"), "none");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_LIST"), "[1]");
}

TEST(TrialEnvironment, RefusesParametersThatAreNotAnObject) {
  v1::StartReplica start;
  start.set_parameters_json("[1]");
  const auto variables = TrialEnvironment({}, {}, {}, 1, {}, start, {});
  EXPECT_EQ(variables.status().message(),
            "cannot start the trial: its parameters should be one JSON object, got [1]");
}

}  // namespace
}  // namespace espalier
