// `tuner open`: a service's page, in the user's browser.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/served_page.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct OpenArguments {
  ServiceArguments service;
  std::string study;
  bool print = false;
};

// The part of the page that shows the study: by its id, since names may hold anything.
absl::StatusOr<std::string> PathOf(Client& client, const std::string& study) {
  if (study.empty()) return "";
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse all, client.Call<api::ListStudies>({}));
  const auto found = std::find_if(all.studies().begin(), all.studies().end(),
                                  [&study](const v1::Study& each) { return each.name() == study; });
  if (found == all.studies().end()) {
    return absl::NotFoundError(fmt::format("there is no study \"{}\"", study));
  }
  return fmt::format("ui/studies/{}", found->id());
}

// Where a browser begins a session by itself, as this client, and goes on to the page; empty: it is
// said why not, and the page asks for a token.
std::string LoginOf(Client& client, const std::string& root, const std::string& path) {
  const absl::StatusOr<std::string> code = client.CreateLoginCode();
  if (code.ok()) return fmt::format("{}login?to={}#code={}", root, path, *code);
  std::fprintf(stderr, "tuner open: the browser is given no code: %s\n",
               std::string(code.status().message()).c_str());
  return "";
}

absl::StatusOr<ExitCode> Open(Client& client, const OpenArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Pool pool, client.Call<api::GetPool>({}));
  if (pool.page().empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the service at {} has no page: it comes with `tuner serve --http HOST:PORT`",
                    client.address()));
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string path, PathOf(client, arguments.study));
  ServedPage page{.url = pool.page() + path, .needs_token = pool.page_needs_token()};
  const std::string login =
      page.needs_token && !arguments.print ? LoginOf(client, pool.page(), path) : "";
  page.needs_token = page.needs_token && login.empty();
  std::printf("%s\n", page.url.c_str());  // alone, for scripts
  std::fflush(stdout);
  const std::vector<std::string> lines = PageLines(page);
  for (std::size_t i = 1; i < lines.size(); ++i) std::fprintf(stderr, "%s\n", lines[i].c_str());
  if (arguments.print) return ExitCode::kOk;
  return OpenInBrowser("open", page, login) ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace

VerbAction AddOpen(CliCommand& command) {
  auto a = std::make_shared<OpenArguments>();
  command.AddOption("study", a->study, "Study to show (default: the pool and all studies)")
      .TypeName("STUDY");
  a->service.AddWithLocalRunTo(command);
  command.AddFlag("--print", a->print, "Only print where the page is");
  return [a] {
    return WithClient("open", a->study, a->service,
                      [a](Client& client) { return Open(client, *a); });
  };
}

}  // namespace espalier
