// `tuner submit`: hands a study to a running service.

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "tuner/cli/connected_verb.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/verb.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/storage/utf8.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

constexpr std::size_t kKeyBytes = 16;

struct SubmitArguments {
  WatchOptions options{.from_the_start = true};
  std::string file;
  std::string like;
  bool wait = false;
};

// What a user may want to know of a study that the service has taken.
void SayNotes(const v1::Study& study) {
  const absl::StatusOr<StudySpec> spec = ReadForNotes(study.study_json());
  if (!spec.ok()) return;
  for (const std::string& note : {DirectionNote(*spec), ParameterNote(*spec)}) {
    if (!note.empty()) std::fprintf(stderr, "tuner submit: %s\n", note.c_str());
  }
  if (const absl::Status found = CheckCommand(*spec); !spec->by_clients() && !found.ok()) {
    std::fprintf(stderr, "tuner submit: on this machine, %s; the agents' machines must have it\n",
                 std::string(found.message()).c_str());
  }
}

absl::StatusOr<ExitCode> Submit(Client& client, const SubmitArguments& arguments) {
  absl::StatusOr<StudyForService> file = ReadForService(arguments.file);
  // A file that is not there is bad input; "not found" is for studies and trials.
  if (!file.ok()) return absl::InvalidArgumentError(file.status().message());
  if (!file->unused.empty()) {
    std::fprintf(stderr, "tuner submit: ignored, as agents run the command: %s\n",
                 absl::StrJoin(file->unused, ", ").c_str());
  }
  v1::CreateStudyRequest request;
  request.set_study_json(std::move(file->json));
  request.set_directory(file->folder);
  if (IsUtf8(arguments.file)) request.set_label(arguments.file);
  request.set_like(arguments.like);
  request.set_request_key(RandomHexadecimal(kKeyBytes));  // so that it counts once
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, client.Call<api::CreateStudy>(request));
  SayNotes(study);
  std::printf("study %s submitted\n", study.name().c_str());
  if (!study.like().empty()) std::printf("it %s\n", study.like().c_str());
  const bool shown = arguments.wait && !arguments.options.quiet;  // by what follows the study
  if (!study.notice().empty() && !shown) {
    std::fprintf(stderr, "tuner submit: %s\n", study.notice().c_str());
  }
  std::fflush(stdout);
  return arguments.wait ? WatchStudy(client, study.name(), arguments.options) : ExitCode::kOk;
}

}  // namespace

VerbAction AddSubmit(CliCommand& command) {
  auto a = std::make_shared<SubmitArguments>();
  command.AddOption("study", a->file, "Study file, or an AdaptDL job")
      .Required()
      .TypeName("STUDY.json|STUDY.yaml|JOB.yaml");
  command.AddOption("--like", a->like, "Have the sampler learn from the trials of this study, too");
  a->options.AddTo(command);
  command.AddFlag("--wait", a->wait,
                  "Follow the study until it ends, and exit as `tuner run` does");
  command.AddFlag("--quiet", a->options.quiet, "With --wait: print only the result");
  return [a] {
    return WithClient("submit", a->options.service,
                      [a](Client& client) { return Submit(client, *a); });
  };
}

}  // namespace espalier
