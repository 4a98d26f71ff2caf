// `tuner completion`: what a shell needs to complete command lines.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct Shell {
  const char* name;
  const char* script;
};

// Each asks `tuner completion --words -- WORD...`, and offers files where that says nothing.
constexpr Shell kShells[] = {
    {"bash", R"(# source <(tuner completion bash)
_tuner() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" completion --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tuner tuner
)"},
    {"zsh", R"(# source <(tuner completion zsh)
_tuner() {
  local -a found
  found=("${(@f)$("${words[1]}" completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _tuner tuner
)"},
    {"fish", R"(# tuner completion fish | source
complete -c tuner -a '(tuner completion --words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
)"},
};

ExitCode Complete(const CliCommand& tuner, const std::vector<std::string>& words) {
  for (const std::string& word : tuner.Completions(words)) std::puts(word.c_str());
  return ExitCode::kOk;
}

ExitCode PrintScript(const std::vector<std::string>& words) {
  for (const Shell& shell : kShells) {
    if (words.size() != 1 || words[0] != shell.name) continue;
    std::fputs(shell.script, stdout);
    return ExitCode::kOk;
  }
  return Fail("completion", ExitCode::kBadInput,
              "needs a shell: bash, zsh or fish" +
                  (words.empty() ? std::string() : ", got \"" + words[0] + "\""));
}

}  // namespace

VerbAction AddCompletion(CliCommand& command) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto complete = std::make_shared<bool>(false);
  command.AddOption("shell", *words, "bash, zsh or fish").TypeName("SHELL");
  command.AddFlag("--words", *complete, "Complete the last of these words").Group("");
  return [&command, words, complete] {
    return *complete ? Complete(*command.parent(), *words) : PrintScript(*words);
  };
}

}  // namespace espalier
