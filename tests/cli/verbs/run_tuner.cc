#include "tests/cli/verbs/run_tuner.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"

namespace espalier {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The end of a pipe to write to, whose other end is closed.
int UnreadPipe() {
  int ends[2];
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || pipe(ends) != 0 || close(ends[0]) != 0) return -1;
  return ends[1];
}

// No `output`: nobody reads it.
[[noreturn]] void Exec(std::vector<char*> argv, const std::string& directory,
                       const std::string& output, const std::string& errors) {
  const int null = open("/dev/null", O_RDONLY);
  const int out =
      output.empty() ? UnreadPipe() : open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (chdir(directory.c_str()) == 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 &&
      dup2(err, 2) == 2) {
    execv(TUNER_EXECUTABLE, argv.data());
  }
  _exit(127);
}

Outcome Await(const std::vector<std::string>& arguments, const std::string& directory,
              bool is_read) {
  std::vector<std::string> words = {"tuner"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const TemporaryDirectory streams;
  const std::string output = is_read ? streams.File("output") : "";
  const std::string errors = streams.File("errors");
  // A service that happens to be known to the person who runs the tests is none of their business.
  unsetenv("ESPALIER_SERVICE");
  unsetenv("ESPALIER_TRIAL_ID");
  const pid_t child = fork();
  if (child == 0) Exec(argv, directory, output, errors);
  int status = 0;
  ESPALIER_CHECK(child > 0 && waitpid(child, &status, 0) == child, "the tuner must be started");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(output), ReadAll(errors)};
}

}  // namespace

Outcome RunTuner(const std::vector<std::string>& arguments, const std::string& directory) {
  return Await(arguments, directory, /*is_read=*/true);
}

Outcome RunTunerUnread(const std::vector<std::string>& arguments, const std::string& directory) {
  return Await(arguments, directory, /*is_read=*/false);
}

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "espalier-XXXXXX").string();
  ESPALIER_CHECK(mkdtemp(path_.data()) != nullptr, "a temporary directory is needed");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TemporaryDirectory::Write(const std::string& name, const std::string& text) const {
  std::ofstream(File(name), std::ios::binary) << text;
  return File(name);
}

}  // namespace espalier
