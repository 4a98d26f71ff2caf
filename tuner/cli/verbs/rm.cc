// `tuner rm`: deletes a study that does not run.

#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/table.h"

namespace espalier {
namespace {

struct RemoveArguments {
  ServiceArguments service;
  std::string study;
};

absl::StatusOr<ExitCode> Remove(Client& client, const RemoveArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study,
                            client.Call<api::DeleteStudy>(StudyNamed(arguments.study)));
  std::printf("study %s is deleted; it had %s\n", study.name().c_str(), TrialCounts(study).c_str());
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddRemove(CliCommand& command) {
  auto a = std::make_shared<RemoveArguments>();
  AddStudyName(command, a->study);
  a->service.AddWithLocalRunTo(command);
  return [a] {
    return WithClient("rm", a->study, a->service,
                      [a](Client& client) { return Remove(client, *a); });
  };
}

}  // namespace espalier
