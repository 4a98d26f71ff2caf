// `tuner watch`: follows a study live until it ends.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/local_runs.h"
#include "tuner/cli/study_source.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct WatchArguments {
  WatchOptions options;
  std::string study;
};

// What a `tuner run` that has ended has left; nullopt if none is meant, or if it runs.
absl::StatusOr<std::optional<ExitCode>> ShowIfEnded(const WatchArguments& arguments) {
  const ServiceArguments& service = arguments.options.service;
  if (service.directory.empty()) return std::nullopt;
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<StudySource> source,
                            SourceArguments({service, ""}).Open());
  if (source->live()) return std::nullopt;
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details,
                            source->GetStudy(arguments.study, /*with_values=*/false));
  std::printf("%s", ResultText(details).c_str());
  if (details.study().state() != v1::STUDY_RUNNING) return ExitCodeOf(details.study().state());
  std::printf(
      "it was cut off while it ran; to continue: `tuner run` of its study file and --dir %s\n",
      service.directory.c_str());
  return ExitCode::kInterrupted;
}

absl::StatusOr<ExitCode> Watch(Client& client, const WatchArguments& arguments) {
  absl::StatusOr<ExitCode> code = WatchStudy(client, arguments.study, arguments.options);
  if (!absl::IsUnavailable(code.status())) return code;
  ESPALIER_ASSIGN_OR_RETURN(const std::optional<ExitCode> ended, ShowIfEnded(arguments));
  return ended ? *ended : code;
}

}  // namespace

VerbAction AddWatch(CliCommand& command) {
  auto a = std::make_shared<WatchArguments>();
  AddStudyName(command, a->study);
  a->options.AddTo(command);
  command.option("--dir").Describe(kRunOrItsRecord);
  return [a] {
    TakeLocalRun("watch", a->study, RunsWanted::kAll, a->options.service);
    const absl::StatusOr<std::optional<ExitCode>> ended = ShowIfEnded(*a);
    if (!ended.ok()) return Fail("watch", ended.status());
    if (*ended) return **ended;
    return WithClient("watch", a->study, a->options.service,
                      [a](Client& client) { return Watch(client, *a); });
  };
}

}  // namespace espalier
