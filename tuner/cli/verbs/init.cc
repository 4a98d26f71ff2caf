// `tuner init`: asks for a study, and writes its file.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/first_study.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

struct InitArguments {
  std::string file = "study.json";
  bool force = false;
};

// Questions go to stderr, so that a redirected stdout hides none.
absl::StatusOr<std::string> Ask(const std::string& question, const std::string& suggested) {
  std::fprintf(stderr, "%s%s: ", question.c_str(),
               suggested.empty() ? "" : absl::StrCat(" [", suggested, "]").c_str());
  std::string line;
  if (!std::getline(std::cin, line)) {
    std::fputc('\n', stderr);
    return absl::OutOfRangeError("the input has ended before all was answered; nothing is written");
  }
  if (isatty(STDIN_FILENO) == 0) std::fprintf(stderr, "%s\n", line.c_str());
  const std::string answer(absl::StripAsciiWhitespace(line));
  return answer.empty() ? suggested : answer;
}

// What `tuner run` would say of the study, now that something can be done about it.
void SayNotes(const StudySpec& spec) {
  for (const absl::Status& status : {CheckPlaceholders(spec), CheckCommand(spec)}) {
    if (!status.ok()) {
      std::fprintf(stderr, "note: %s\n", std::string(status.message()).c_str());
    }
  }
}

absl::StatusOr<ExitCode> Init(const InitArguments& arguments) {
  std::error_code error;
  if (!arguments.force && std::filesystem::exists(arguments.file, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.file, " is there already; give another name, or --force to write over it"));
  }
  if (std::filesystem::path(arguments.file).extension() != ".json") {
    return absl::InvalidArgumentError(
        absl::StrCat("needs a name that ends in .json, got \"", arguments.file, "\""));
  }
  // Before all is asked in vain.
  const std::filesystem::path folder = std::filesystem::absolute(arguments.file).parent_path();
  if (access(folder.c_str(), W_OK) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(arguments.file, ": its folder ", folder.string(),
                                                   " cannot be written: ", std::strerror(errno)));
  }
  const Conversation conversation{.ask = Ask, .say = [](const std::string& line) {
                                    std::fprintf(stderr, "%s\n", line.c_str());
                                  }};
  ESPALIER_ASSIGN_OR_RETURN(const std::string study, AskForStudy(conversation));
  ESPALIER_RETURN_IF_ERROR(WriteFile(arguments.file, study));
  ESPALIER_ASSIGN_OR_RETURN(const StudySpec spec, ReadStudyFile(arguments.file));
  SayNotes(spec);
  std::printf("%s is written. To run it: tuner run %s\n", arguments.file.c_str(),
              arguments.file.c_str());
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddInit(CliCommand& command) {
  auto a = std::make_shared<InitArguments>();
  command.AddOption("study", a->file, "File to write").TypeName("STUDY.json").ShowDefault();
  command.AddFlag("--force", a->force, "Write over a file that is there");
  return [a] {
    const absl::StatusOr<ExitCode> code = Init(*a);
    return code.ok() ? *code : Fail("init", code.status());
  };
}

}  // namespace espalier
