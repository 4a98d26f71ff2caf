// `tuner stop`: stops a study, which can be resumed.

#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/study_text.h"

namespace espalier {
namespace {

struct StopArguments {
  ServiceArguments service;
  std::string study;
};

absl::StatusOr<ExitCode> Stop(Client& client, const StopArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study,
                            client.Call<api::StopStudy>(StudyNamed(arguments.study)));
  std::printf("study %s is %s\n", study.name().c_str(), StateName(study.state()).c_str());
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddStop(CliCommand& command) {
  auto a = std::make_shared<StopArguments>();
  AddStudyName(command, a->study);
  a->service.AddWithLocalRunTo(command);
  return [a] {
    return WithClient("stop", a->study, a->service,
                      [a](Client& client) { return Stop(client, *a); });
  };
}

}  // namespace espalier
