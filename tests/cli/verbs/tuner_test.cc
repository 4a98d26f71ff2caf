// The executable as scripts see it: exit codes, and messages that name the thing and the remedy.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "tests/cli/verbs/run_tuner.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string StudyText(const std::string& extra = "", const std::string& command = "/bin/true") {
  return R"({"name": "small", "command": [")" + command + R"("], "trials": 2,
  "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}})" +
         (extra.empty() ? "" : ", " + extra) + "}";
}

class Tuner : public ::testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& arguments) const {
    return RunTuner(arguments, directory_.path());
  }
  // `tuner run` of a study file with this text.
  Outcome RunStudy(const std::string& text, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run", directory_.Write("study.json", text), "--dir",
                                          directory_.File("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  void ExpectRefused(const Outcome& outcome, const std::vector<std::string>& words) const {
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output << outcome.errors;
    EXPECT_THAT(outcome.errors, StartsWith("tuner"));
    for (const std::string& word : words) EXPECT_THAT(outcome.errors, HasSubstr(word));
  }
  // The path of a program of trials.
  std::string Script(const std::string& text) const {
    const std::string path = directory_.Write("trial.sh", text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  TemporaryDirectory directory_;
};

TEST_F(Tuner, HelpListsVerbsAndExitCodes) {
  const Outcome outcome = Run({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("Exit codes"), HasSubstr("\n  74 "), HasSubstr("130"),
                                    HasSubstr("run")));
}

TEST_F(Tuner, HelpIsAlsoACommand) {
  EXPECT_EQ(Run({"help"}).output, Run({"--help"}).output);
  EXPECT_EQ(Run({"help", "tell"}).output, Run({"tell", "--help"}).output);
  EXPECT_EQ(Run({"help", "db", "check"}).output, Run({"db", "check", "--help"}).output);
  ExpectRefused(Run({"help", "exprot"}),
                {"tuner help: unknown command \"exprot\", did you mean \"export\"?"});
  ExpectRefused(Run({"help", "tell", "x"}), {"tuner help: unexpected argument \"x\""});
}

TEST_F(Tuner, EachVerbHasHelpWithAnExample) {
  for (const char* verb :
       {"run",  "serve",  "agent",   "submit", "ls",      "show",   "watch", "open",
        "stop", "resume", "pin",     "cancel", "export",  "report", "tell",  "simulate",
        "pool", "db",     "plugins", "help",   "version", "clone"}) {
    const Outcome outcome = Run({verb, "--help"});
    EXPECT_EQ(outcome.exit_code, 0) << verb;
    EXPECT_THAT(outcome.output, HasSubstr("Example:\n  tuner " + std::string(verb)));
  }
}

TEST_F(Tuner, HelpNamesThePoliciesWhereOneIsChosen) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "--help"}, {"simulate", "poolbench", "--help"}}) {
    EXPECT_THAT(Run(words).output,
                AllOf(HasSubstr("promise_goodput     maximizes"), HasSubstr("tiresias")));
  }
  EXPECT_THAT(Run({"run", "--help"}).output,
              HasSubstr("Policies, one of which the key \"policy\""));
}

TEST_F(Tuner, VersionIsPrinted) {
  for (const char* word : {"version", "--version"}) {
    const Outcome outcome = Run({word});
    EXPECT_EQ(outcome.exit_code, 0) << word;
    EXPECT_THAT(outcome.output, StartsWith("tuner 0.")) << word;
  }
}

TEST_F(Tuner, RefusesAnUnknownVerbAndListsTheKnown) {
  ExpectRefused(Run({"teleport"}), {"teleport", "export"});
  ExpectRefused(Run({}), {"run, serve"});
}

TEST_F(Tuner, RefusesAnUnknownOption) { ExpectRefused(Run({"run", "--frehs"}), {"--frehs"}); }

TEST_F(Tuner, NamesWhatWasProbablyMeant) {
  ExpectRefused(Run({"run", "--frehs"}),
                {"tuner run: unknown option \"--frehs\", did you mean \"--fresh\"?"});
  ExpectRefused(Run({"exprot"}), {"tuner: unknown command \"exprot\", did you mean \"export\"?"});
  ExpectRefused(Run({"db", "chek"}),
                {"tuner db: unknown command \"chek\", did you mean \"check\"?"});
  ExpectRefused(Run({"db"}), {"tuner db: a command is missing; the commands are check, backup"});
}

TEST_F(Tuner, SaysWhichValuesAnOptionTakes) {
  ExpectRefused(Run({"tell", "--value", "low"}), {"tuner tell: --value low: must be a number"});
  ExpectRefused(Run({"tell", "--value", "1", "--step", "x"}), {"--step x: must be a whole number"});
  ExpectRefused(Run({"cancel", "mine", "x"}), {"trial x: must be a whole number"});
  ExpectRefused(Run({"report", "mine", "--format", "pdf"}),
                {"--format pdf: must be one of html, text"});
}

// A program that has failed leaves an empty text where its value should be.
TEST_F(Tuner, RefusesAnEmptyTextAsANumber) {
  ExpectRefused(Run({"tell", "--value", "", "--trial", "1"}),
                {"tuner tell: --value \"\": must be a number; see tuner tell --help"});
  ExpectRefused(Run({"tell", "--value", "1", "--step", "", "--trial", "1"}),
                {"--step \"\": must be a whole number"});
  ExpectRefused(Run({"pin", "mine", "", "--slots", "1"}), {"trial \"\": must be a whole number"});
  ExpectRefused(Run({"simulate", "poolbench", "--start-spread", ""}),
                {"--start-spread \"\": must be a number from 0 to 0.99"});
}

TEST_F(Tuner, SaysBetweenWhatANumberMustBe) {
  ExpectRefused(Run({"show", "mine", "--trial", "1x"}),
                {"tuner show: --trial 1x: must be a whole number, 0 or more; see"});
  ExpectRefused(Run({"show", "mine", "--trial", "-1"}),
                {"--trial -1: must be a whole number, 0 or more"});
  ExpectRefused(Run({"tell", "--value", "1", "--timeout", "0"}),
                {"--timeout 0: must be a number above 0"});
  ExpectRefused(Run({"logs", "mine", "0", "-n", "0"}), {"must be a whole number, 1 or more"});
  ExpectRefused(Run({"simulate", "poolbench", "--slots", "0"}),
                {"--slots 0: must be a whole number from 1 to 1048576"});
  ExpectRefused(Run({"resume", "mine", "--trials", "0"}), {"--trials 0: must be 1 or more"});
  ExpectRefused(Run({"resume", "mine", "--time-limit", "0"}),
                {"--time-limit 0: must be more than 0 seconds"});
}

TEST_F(Tuner, AsksForNoStudyThatCannotBeWritten) {
  ExpectRefused(Run({"init", "/absent/study.json"}),
                {"/absent/study.json: its folder /absent cannot be written: No such file"});
}

TEST_F(Tuner, SaysWhyARunsFolderCannotBeRead) {
  std::filesystem::create_symlink("service.json", directory_.File("service.json"));
  ExpectRefused(Run({"ls", "--dir", directory_.path()}),
                {"service.json\": Too many levels of symbolic links"});
}

TEST_F(Tuner, RefusesAMissingArgument) { ExpectRefused(Run({"run"}), {"study", "--help"}); }

TEST_F(Tuner, RefusesAMissingStudyFile) {
  ExpectRefused(Run({"run", "nowhere.json"}), {"tuner run: ", "nowhere.json"});
  ExpectRefused(Run({"submit", "nowhere.json"}), {"tuner submit: ", "nowhere.json"});
}

TEST_F(Tuner, RefusesAMalformedStudyFile) {
  ExpectRefused(RunStudy("{\"name\": "), {"study.json"});
}

TEST_F(Tuner, RefusesAnUnknownKey) {
  ExpectRefused(RunStudy(StudyText("\"max_trails\": 3")), {"study.json", "max_trails"});
}

TEST_F(Tuner, RefusesUnknownPluginsAndListsTheKnown) {
  ExpectRefused(RunStudy(StudyText("\"sampler\": {\"name\": \"magic\"}")),
                {"sampler", "magic", "tpe"});
  ExpectRefused(RunStudy(StudyText("\"pruner\": {\"name\": \"axe\"}")),
                {"pruner", "axe", "median"});
  ExpectRefused(RunStudy(StudyText("\"policy\": {\"name\": \"luck\"}")),
                {"policy", "luck", "promise_goodput"});
}

TEST_F(Tuner, RefusesAnEmptyAndAContradictorySearchSpace) {
  ExpectRefused(RunStudy(R"({"name": "s", "command": ["/bin/true"], "trials": 1,
                            "search_space": {}})"),
                {"search space is empty"});
  ExpectRefused(RunStudy(R"({"name": "s", "command": ["/bin/true"], "trials": 1,
      "search_space": {"x": {"_type": "uniform", "_value": [2, 1]}}})"),
                {"\"x\"", "uniform"});
}

TEST_F(Tuner, RefusesACommandThatDoesNotExist) {
  ExpectRefused(RunStudy(StudyText("", "./no-such-program")), {"no-such-program"});
}

TEST_F(Tuner, RefusesZeroSlots) {
  for (const char* slots : {"0", "-1"}) {
    ExpectRefused(RunStudy(StudyText(), {"--slots", slots}),
                  {"--slots " + std::string(slots) + ": must be 1"});
    ExpectRefused(RunStudy(StudyText(), {"--slots-per-gpu", slots}),
                  {"--slots-per-gpu " + std::string(slots) + ": must be 1"});
  }
  ExpectRefused(Run({"agent", "--join", "127.0.0.1:1", "--slots", "0"}), {"--slots 0"});
  ExpectRefused(Run({"serve", "--db", "x.db", "--stall-timeout", "0.5"}),
                {"--stall-timeout 0.5: must be 1 or more seconds"});
  ExpectRefused(Run({"agent", "--join", "127.0.0.1:1", "--replica-lease", "0.01"}),
                {"--replica-lease 0.01: must be 0 (none) or 0.1 to 86400 seconds"});
  ExpectRefused(Run({"agent", "--join", "127.0.0.1:1", "--max-log", "1M"}),
                {"--max-log 1M: must be 0 (no limit) or 4M at least"});
  ExpectRefused(Run({"agent", "--join", "127.0.0.1:1", "--disk-reserve", "much"}),
                {"--disk-reserve \"much\": must be a number of bytes"});
  for (const char* size : {"2GB", "-1", "G", "99999999T"}) {
    ExpectRefused(Run({"agent", "--join", "127.0.0.1:1", "--spare-memory", size}),
                  {"--spare-memory \"" + std::string(size) + "\": must be a number of bytes"});
  }
}

TEST_F(Tuner, RefusesAStudyThatNeedsMoreSlotsThanThereAre) {
  ExpectRefused(RunStudy(StudyText("\"slots\": {\"min\": 3}"), {"--slots", "2"}),
                {"at least 3 slots", "--slots"});
}

TEST_F(Tuner, RefusesAPortInUse) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string taken = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  ExpectRefused(RunStudy(StudyText(), {"--grpc", taken}), {taken});
  ExpectRefused(RunStudy(StudyText(), {"--http", taken}), {taken});
  close(listener);
}

TEST_F(Tuner, RefusesADatabaseThatIsNotOurs) {
  std::filesystem::create_directories(directory_.File("out"));
  directory_.Write("out/espalier.db", "this is a letter to my grandmother, and no database\n");
  ExpectRefused(RunStudy(StudyText()), {"espalier.db"});
  ExpectRefused(RunStudy(StudyText(), {"--fresh"}), {"espalier.db"});
  ExpectRefused(Run({"ls", "--db", directory_.File("out/espalier.db")}), {"espalier.db"});
}

TEST_F(Tuner, RefusesADirectoryThatCannotBeMade) {
  const std::string file = directory_.Write("file", "");
  ExpectRefused(Run({"run", directory_.Write("study.json", StudyText()), "--dir", file + "/out"}),
                {file, "--dir"});
}

TEST_F(Tuner, RefusesAReportThatCannotBeWritten) {
  ExpectRefused(RunStudy(StudyText(), {"--report", directory_.File("nowhere/report.html")}),
                {"--report", "nowhere", "No such file or directory"});
  ExpectRefused(RunStudy(StudyText(), {"--report", directory_.path()}), {"is a directory"});
}

TEST_F(Tuner, RefusesATokenFileThatIsEmptyAndAnOpenServiceWithoutOne) {
  ExpectRefused(RunStudy(StudyText(), {"--token-file", directory_.Write("token", "\n")}),
                {"--token-file: the first line of", "is empty"});
  ExpectRefused(RunStudy(StudyText(), {"--token-file", "/no/token"}),
                {"--token-file: cannot read \"/no/token\": No such file"});
  for (const std::string address : {"--grpc", "--http"}) {
    ExpectRefused(RunStudy(StudyText(), {address, "0.0.0.0:0"}),
                  {address + " 0.0.0.0:0", "`tuner run` encrypts nothing", "--plaintext"});
    ExpectRefused(RunStudy(StudyText(), {address, "0.0.0.0:0", "--plaintext"}),
                  {address + " 0.0.0.0:0", "give a token (--token-file)"});
    ExpectRefused(RunStudy(StudyText(), {address, "nowhere"}), {address + ": ", "nowhere"});
  }
}

TEST_F(Tuner, RunsNoStudyWhoseTrialsClientsRun) {
  ExpectRefused(RunStudy(R"({"name": "a", "ask_and_tell": true})"),
                {"study.json: \"ask_and_tell\"", "`tuner serve`", "`tuner submit`"});
}

TEST_F(Tuner, NamesTheVariableThatNamesAFileThatIsNotThere) {
  for (const char* variable : {"ESPALIER_TOKEN_FILE", "ESPALIER_TLS_CA"}) {
    setenv(variable, "/no/file", 1);
    const Outcome outcome = Run({"ls", "--service", "127.0.0.1:1"});
    unsetenv(variable);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.errors, HasSubstr(std::string(variable) + ": cannot read \"/no/file\""));
  }
}

TEST_F(Tuner, SaysWhenNoServiceAnswers) {
  const Outcome outcome = Run({"ls", "--service", "127.0.0.1:1"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors,
              AllOf(StartsWith("tuner ls: "), HasSubstr("127.0.0.1:1"), HasSubstr("tuner serve")));
  EXPECT_EQ(Run({"stop", "small", "--dir", directory_.path()}).exit_code, 3);
}

// Answers as a web server does, once.
class WebServer {
 public:
  WebServer() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    ESPALIER_CHECK(bind(listener_, address, size) == 0 && listen(listener_, 8) == 0 &&
                       getsockname(listener_, address, &size) == 0,
                   "a port is needed");
    thread_ = std::thread([this] {
      for (int client; (client = accept(listener_, nullptr, nullptr)) >= 0; close(client)) {
        char request[1024];
        [[maybe_unused]] const ssize_t got = read(client, request, sizeof(request));
        const std::string answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
        [[maybe_unused]] const ssize_t sent = write(client, answer.data(), answer.size());
        shutdown(client, SHUT_WR);
        while (read(client, request, sizeof(request)) > 0) continue;
      }
    });
  }
  ~WebServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  int listener_;
  sockaddr_in address_{};
  std::thread thread_;
};

TEST_F(Tuner, TellsAWebServerFromAService) {
  const WebServer server;
  const std::string said = "\"" + server.address() +
                           "\" speaks HTTP/1: it may be a service's --http port, and its --grpc "
                           "port is needed";
  const Outcome outcome = Run({"ls", "--service", server.address()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr(said));
  ExpectRefused(Run({"agent", "--join", server.address(), "--slots", "1"}), {said});
  const std::string url = "http://" + server.address();
  ExpectRefused(Run({"ls", "--service", url}), {"service \"" + url + "\": must be HOST:PORT"});
  ExpectRefused(Run({"agent", "--join", url}), {"--join \"" + url + "\": must be HOST:PORT"});
}

TEST_F(Tuner, TellWantsATrial) {
  ExpectRefused(Run({"tell", "--value", "1"}), {"ESPALIER_TRIAL_ID"});
  ExpectRefused(Run({"tell", "--value", "much", "--trial", "1"}), {"--value"});
}

TEST_F(Tuner, AWholeNumberIsDecimal) {
  ExpectRefused(Run({"tell", "--value", "1", "--step", "0x10", "--trial", "1"}),
                {"--step 0x10: must be a whole number"});
}

TEST_F(Tuner, RunsAStudyAndLeavesItsRecord) {
  const std::string command = Script("#!/bin/sh\ntuner tell --value 1 --final\n");
  const Outcome outcome = RunStudy(StudyText("", command), {"--slots", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("2/2 trials done: 2 complete"),
                                    HasSubstr("trial 0 started"), HasSubstr("best trial")));
  EXPECT_TRUE(std::filesystem::exists(directory_.File("out/report.html")));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("out/service.json")));

  const std::string database = directory_.File("out/espalier.db");
  EXPECT_THAT(Run({"ls", "--db", database}).output, HasSubstr("COMPLETE"));
  EXPECT_THAT(Run({"ls", "--dir", directory_.File("out")}).output, HasSubstr("COMPLETE"));
  EXPECT_THAT(Run({"show", "small", "--db", database, "--trial", "0"}).output, HasSubstr("x"));
  EXPECT_THAT(Run({"export", "small", "--db", database}).output, StartsWith("trial,state,x,step"));
  EXPECT_EQ(Run({"show", "large", "--db", database}).exit_code, 4);
  EXPECT_EQ(Run({"show", "small", "--db", database, "--trial", "9"}).exit_code, 4);

  const Outcome again = RunStudy(StudyText("", command), {"--slots", "2"});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("already complete"));
  ExpectRefused(RunStudy(StudyText("\"max_concurrent_trials\": 1", command)),
                {"\"max_concurrent_trials\" differs (none there, 1 here)", "--fresh"});
  const Outcome fresh =
      RunStudy(StudyText("\"max_concurrent_trials\": 1", command), {"--fresh", "--quiet"});
  EXPECT_EQ(fresh.exit_code, 0) << fresh.errors;
  EXPECT_TRUE(std::filesystem::exists(directory_.File("out/old-1/espalier.db")));
}

TEST_F(Tuner, ShowsExactDigitsAndTheDirectionAndWritesJson) {
  const std::string command = Script("#!/bin/sh\ntuner tell --value 0.123456789012 --final\n");
  const Outcome outcome = RunStudy(StudyText("\"metric\": \"loss\"", command), {"--slots", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("\"loss\" is minimized"));

  const std::string directory = directory_.File("out");
  const auto json = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--dir", directory, "--json"});
    return Json::parse(Run(arguments).output);
  };
  const Json list = json({"ls"});
  EXPECT_EQ(list["studies"][0]["state"], "STUDY_COMPLETE");
  EXPECT_THAT(Run({"ls", "--dir", directory}).output, HasSubstr("lowest loss 0.1235"));
  const Json details = json({"show", "small"});
  EXPECT_EQ(details["study"], list["studies"][0]);
  const Json trial = json({"show", "small", "--trial", "0"});
  EXPECT_EQ(trial, details["trials"][0]);
  EXPECT_EQ(trial["value"], 0.123456789012);

  const std::string x = trial["parameters"][0]["json"];
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("best trial 0: lowest loss 0.123456789012\n"),
                                    HasSubstr("  x = " + x + "\n")));
  EXPECT_THAT(Run({"show", "small", "--dir", directory, "--trial", "0"}).output,
              AllOf(HasSubstr(" 0.123456789012\n"), HasSubstr(" " + x + "\n")));
}

TEST_F(Tuner, PrintsTheResultAlsoWhereItsReportCannotBeWritten) {
  const std::string command = Script("#!/bin/sh\ntuner tell --value 1 --final\n");
  const Outcome outcome =
      RunStudy(StudyText("", command), {"--slots", "2", "--report", "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("best trial"), Not(HasSubstr("report:"))));
  EXPECT_THAT(outcome.errors, HasSubstr("cannot write \"/dev/full\": No space left on device"));
}

TEST_F(Tuner, GoesOnWithAStudyWhoseLimitsWereRaised) {
  const std::string command = Script("#!/bin/sh\ntuner tell --value 1 --final\n");
  const auto run = [&](const std::string& limits) {
    return RunStudy(R"({"name": "small", "command": [")" + command + R"("], "search_space": )" +
                        R"({"x": {"_type": "uniform", "_value": [0, 1]}}, )" + limits + "}",
                    {"--slots", "1"});
  };
  EXPECT_THAT(run("\"trials\": 1").output, HasSubstr("1/1 trials done"));
  const Outcome more = run("\"trials\": 2, \"time_limit_s\": 3600");
  EXPECT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_THAT(
      more.output,
      AllOf(HasSubstr("going on with study small: trials 1 -> 2, time_limit_s none -> 3600"),
            HasSubstr("2/2 trials done")));
  EXPECT_THAT(run("\"trials\": 2, \"time_limit_s\": 3600").output, HasSubstr("already complete"));
  ExpectRefused(run("\"time_limit_s\": 3600"), {"\"trials\" differs (1 there, none here)"});
  ExpectRefused(run("\"trials\": 2, \"time_limit_s\": 3600, \"seed\": 7"),
                {"another definition: \"seed\" differs (0 there, 7 here). Put it back"});
}

TEST_F(Tuner, ShowsTheLastOutputOfATrialThatFailsAndFailsAfterTooMany) {
  const std::string command = Script("#!/bin/sh\necho the data set is missing >&2\nexit 3\n");
  const Outcome outcome =
      RunStudy(StudyText("\"max_consecutive_failures\": 2", command), {"--slots", "1"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("trial 0 failed"), HasSubstr("| the data set is missing")));
  EXPECT_THAT(outcome.output, Not(HasSubstr("from before")));

  Script("#!/bin/sh\ntuner tell --value 1 --final\n");
  const Outcome mended =
      RunStudy(StudyText("\"max_consecutive_failures\": 2", command), {"--slots", "1"});
  EXPECT_THAT(
      mended.output,
      HasSubstr("2 trials from before, 2 of them failed, count among the study's 2; --fresh "
                "starts over without them"));
}

}  // namespace
}  // namespace espalier
