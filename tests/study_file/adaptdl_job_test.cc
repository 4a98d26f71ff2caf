#include "tuner/study_file/adaptdl_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Pair;

constexpr char kJob[] = R"yaml(apiVersion: adaptdl.petuum.com/v1
kind: AdaptDLJob
metadata:
  name: cifar
  labels: {team: vision}
spec:
  minReplicas: 2
  maxReplicas: 8
  template:
    metadata: {annotations: {a: b}}
    spec:
      restartPolicy: Never
      nodeSelector: {disk: ssd}
      containers:
      - name: main
        image: registry/cifar:1
        command: [python3, "main.py"]
        args: ["--data=$(DATA)/x", "$$(DATA)", "$(UNKNOWN)"]
        workingDir: /srv/cifar
        env:
        - {name: DATA, value: /data}
        - {name: CACHE, value: $(DATA)/cache}
        - {name: EMPTY}
        resources:
          limits: {nvidia.com/gpu: 1, cpu: 4}
)yaml";

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

StudySpec StudyOf(const std::string& yaml) {
  const absl::StatusOr<AdaptDLJob> job = ReadAdaptDLJob(yaml, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
  if (!job.ok()) return {};
  absl::StatusOr<StudySpec> spec = ParseStudy(job->study_json, "job.yaml", "/home/me");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *std::move(spec) : StudySpec{};
}

std::string ErrorOf(const std::string& what, const std::string& by) {
  return std::string(ReadAdaptDLJob(Replaced(kJob, what, by), "job.yaml").status().message());
}

// A variable with this value, as trials get it.
std::string VariableOf(const std::string& value) {
  return StudyOf(Replaced(kJob, "$(DATA)/cache", value)).environment["CACHE"];
}

TEST(AdaptDLJob, BecomesOneElasticTrial) {
  const StudySpec spec = StudyOf(kJob);
  EXPECT_EQ(spec.name, "cifar");
  EXPECT_FALSE(spec.has_metric) << "its program need not report";
  EXPECT_EQ(spec.max_trials, 1);
  EXPECT_TRUE(spec.space.dimensions().empty());
  EXPECT_EQ(spec.min_slots, 2);
  EXPECT_EQ(spec.max_slots, 8);
  EXPECT_EQ(spec.batch_mode, BatchMode::kAdaptive);
  EXPECT_EQ(spec.directory, "/srv/cifar");
  EXPECT_THAT(spec.command,
              ElementsAre("python3", "main.py", "--data=/data/x", "$(DATA)", "$(UNKNOWN)"));
  EXPECT_THAT(spec.environment,
              ElementsAre(Pair("CACHE", "/data/cache"), Pair("DATA", "/data"), Pair("EMPTY", "")));
}

TEST(AdaptDLJob, HasBracesOfItsOwn) {
  const StudySpec spec = StudyOf(
      Replaced(kJob, "command: [python3, \"main.py\"]", "command: [python3, \"{seed}.py\"]"));
  EXPECT_THAT(spec.command[1], "{{seed}}.py");
  EXPECT_TRUE(CheckPlaceholders(spec).ok());
}

TEST(AdaptDLJob, TellsWhatAPoolHasNoUseFor) {
  EXPECT_THAT(
      ReadAdaptDLJob(kJob, "job.yaml")->unused,
      ElementsAre("spec.template.spec.nodeSelector", "spec.template.spec.containers[0].image",
                  "spec.template.spec.containers[0].resources.limits.cpu"));
}

TEST(AdaptDLJob, GetsANameLikeThoseOfKubernetes) {
  const std::string yaml = Replaced(kJob, "name: cifar", "generateName: cifar-");
  const std::string name = StudyOf(yaml).name;
  EXPECT_THAT(name, MatchesRegex("cifar-[a-z0-9]{5}"));
  EXPECT_NE(name, StudyOf(yaml).name);
}

TEST(AdaptDLJob, WithoutBoundsMayTakeThePool) {
  const StudySpec spec = StudyOf(Replaced(kJob, "  minReplicas: 2\n  maxReplicas: 8\n", ""));
  EXPECT_EQ(spec.min_slots, 1);
  EXPECT_EQ(spec.max_slots, 0);
}

TEST(AdaptDLJob, ThatIsNotPreemptibleKeepsItsReplicas) {
  const StudySpec spec = StudyOf(Replaced(kJob, "maxReplicas: 8", "preemptible: false"));
  EXPECT_EQ(spec.min_slots, 2);
  EXPECT_EQ(spec.max_slots, 2);
}

TEST(AdaptDLJob, ErrorsNameTheFieldAndWhatWouldBeRight) {
  EXPECT_EQ(ErrorOf("AdaptDLJob", "Job"),
            "job.yaml: kind: needs AdaptDLJob, the one kind with an apiVersion that is taken, got "
            "\"Job\"");
  EXPECT_EQ(ErrorOf("adaptdl.petuum.com/v1", "batch/v1"),
            "job.yaml: apiVersion: needs adaptdl.petuum.com/v1, got \"batch/v1\"");
  EXPECT_EQ(
      ErrorOf("minReplicas: 2", "minReplica: 2"),
      "job.yaml: spec.minReplica is unknown; known are minReplicas, maxReplicas, preemptible, "
      "template; did you mean minReplicas?");
  EXPECT_EQ(ErrorOf("minReplicas: 2", "minReplicas: -1"),
            "job.yaml: spec.minReplicas: needs a count of 0 or more, got \"-1\"");
  EXPECT_EQ(ErrorOf("maxReplicas: 8", "maxReplicas: 1"),
            "job.yaml: spec.maxReplicas: needs at least minReplicas, 2, got \"1\"");
  EXPECT_EQ(
      ErrorOf("nvidia.com/gpu: 1", "nvidia.com/gpu: 2"),
      "job.yaml: spec.template.spec.containers[0].resources.limits.nvidia.com/gpu: needs 0 or "
      "1: a replica trains on one slot, so give spec.minReplicas instead, got \"2\"");
  EXPECT_THAT(ErrorOf("command: [python3, \"main.py\"]", "tty: true"),
              HasSubstr("containers[0].command: needs the words of a command"));
  EXPECT_THAT(ErrorOf("{name: EMPTY}", "{name: S, valueFrom: {secretKeyRef: {}}}"),
              HasSubstr("containers[0].env.S: needs a value"));
  EXPECT_THAT(ErrorOf("spec:\n  minReplicas", "specs:\n  minReplicas"),
              HasSubstr("spec: needs an object, got nothing"));
  // YAML's library never comes to the end of the first two.
  for (const std::string& bytes :
       {std::string("\0,|", 3), std::string("\0", 1), std::string("a: \x01"),
        std::string("a: \x7f"), std::string("a: \x1b[0m")}) {
    EXPECT_THAT(std::string(ReadAdaptDLJob("# a job\n" + bytes, "job.yaml").status().message()),
                HasSubstr("job.yaml: line 2: needs a text, got the byte "));
  }
  // YAML's library passes on what is no UTF-8.
  for (const char* text : {"command: [python3", "args: [\"--data", "workingDir: /srv",
                           "value: /data", "{name: CACHE", "name: cifar"}) {
    EXPECT_THAT(ErrorOf(text, std::string(text) + "\xff"), HasSubstr("needs UTF-8, got "));
  }
  EXPECT_THAT(ErrorOf("metadata:\n  name", "metadata: ["), HasSubstr("job.yaml: line "));
  EXPECT_EQ(std::string(ReadAdaptDLJob("a: 1\n---\nb: 2\n", "two.yaml").status().message()),
            "two.yaml: needs one YAML document, an AdaptDLJob, got more");
  EXPECT_EQ(std::string(ReadAdaptDLJob("# nothing\n", "job.yaml").status().message()),
            "job.yaml: needs one YAML document, an AdaptDLJob, got none");
  // For YAML's library these are documents without end.
  for (const char* text : {",z", ",", "}", "]", "? a\n,b", "a: b\n---\n,"}) {
    EXPECT_THAT(std::string(ReadAdaptDLJob(text, "job.yaml").status().message()),
                HasSubstr("job.yaml: "));
  }
  EXPECT_THAT(std::string(ReadAdaptDLJob("[1]", "job.yaml").status().message()),
              HasSubstr("got a list"));
}

TEST(AdaptDLJob, NamesInTextsAreReplacedAsInKubernetes) {
  EXPECT_EQ(VariableOf("$(DATA)$(DATA"), "/data$(DATA");
  EXPECT_EQ(VariableOf("$(A$(DATA)) $$$(DATA) $"), "$(A$(DATA)) $/data $");
  EXPECT_EQ(VariableOf("$($($("), "$($($(");
}

TEST(AdaptDLJob, VariablesThatRepeatOneAnotherHaveAnEnd) {
  const std::string last = "- {name: EMPTY}";
  std::string list = last + "\n        - {name: V0, value: 0123456789}";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "$(V" + std::to_string(i - 1) + ")";
    absl::StrAppend(&list, "\n        - {name: V", i, ", value: ", before, before, "}");
  }
  // 10 bytes, 20, 40 and so on: those up to the 17th are 2.6 million together.
  EXPECT_EQ(
      ErrorOf(last, list),
      "job.yaml: spec.template.spec.containers[0].env.V17: needs at most 2097152 bytes in all "
      "words and variables, each $(NAME) replaced, got more");
}

TEST(AdaptDLJob, IsReadFromAFileByItsName) {
  const ScratchFolder folder;
  std::ofstream(folder.File("mine.yml")) << Replaced(kJob, "        workingDir: /srv/cifar\n", "");
  std::vector<std::string> unused;
  const absl::StatusOr<StudySpec> spec = ReadStudyFile(folder.File("mine.yml"), &unused);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->directory, folder.path());
  EXPECT_EQ(unused.size(), 3U);
}

}  // namespace
}  // namespace espalier
