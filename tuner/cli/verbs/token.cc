// `tuner token`: access tokens, made, listed and removed.

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/private_files.h"
#include "tuner/cli/client.h"
#include "tuner/cli/connected_verb.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/text.h"
#include "tuner/credentials/certificate.h"

namespace espalier {
namespace {

struct TokenArguments {
  ServiceArguments service;
  std::string role;
  std::string name;
  std::string expires = "never";
  std::string out;
  std::string token;
  bool json = false;
};

// "30d", "12h", "45m", "90s"; "never" is 0.
absl::StatusOr<double> LifeOf(const std::string& text) {
  if (text == "never") return 0.0;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double seconds = unit == "d"   ? 86400
                         : unit == "h" ? 3600
                         : unit == "m" ? 60
                         : unit == "s" ? 1
                                       : 0;
  if (error == std::errc() && number > 0 && seconds > 0) return number * seconds;
  return absl::InvalidArgumentError(
      fmt::format("--expires {}: must be a time such as 30d, 12h, 45m or 90s, or never", text));
}

// Before a token is made that nobody would have.
absl::Status Reserve(const std::string& out) {
  std::error_code ignored;
  if (std::filesystem::exists(out, ignored)) {
    return absl::AlreadyExistsError(
        fmt::format("--out {}: exists already and is not overwritten; give another name", out));
  }
  return Prefixed("--out", WritePrivateFile(out, ""));
}

// The token alone goes to stdout, where it does not go to a file for its user alone.
absl::Status Hand(const v1::Token& token, const std::string& out) {
  if (!out.empty()) return WritePrivateFile(out, token.text() + "\n");
  return WriteOut("", token.text() + "\n");
}

absl::Status Create(const TokenArguments& arguments) {
  v1::CreateTokenRequest request;
  request.set_role(arguments.role);
  request.set_name(arguments.name);
  ESPALIER_ASSIGN_OR_RETURN(const double life_s, LifeOf(arguments.expires));
  request.set_expires_in_s(life_s);
  ESPALIER_ASSIGN_OR_RETURN(const ClientOptions options, arguments.service.Resolve());
  if (!arguments.out.empty()) ESPALIER_RETURN_IF_ERROR(Reserve(arguments.out));
  Client client(options);
  const absl::StatusOr<v1::Token> token = client.Call<api::CreateToken>(request);
  const absl::Status handed = token.ok() ? Hand(*token, arguments.out) : token.status();
  if (!handed.ok()) {
    std::error_code ignored;
    if (!arguments.out.empty()) std::filesystem::remove(arguments.out, ignored);
    if (!token.ok()) return handed;
    v1::RemoveTokenRequest removal;
    removal.set_token(token->id());
    const bool removed = client.Call<api::RemoveToken>(removal).ok();
    return Prefixed(fmt::format("token {} ({}) {}", token->name(), token->id(),
                                removed ? "is revoked again" : "is valid, and nobody has it"),
                    handed);
  }
  const std::string kept =
      arguments.out.empty() ? "it is shown only once: keep it in a file of mode 0600, and give"
                            : fmt::format("it is in {}, for its user alone: give", arguments.out);
  std::fprintf(stderr, "token %s (%s), role %s, %s; %s that file as --token-file\n",
               token->name().c_str(), token->id().c_str(), token->role().c_str(),
               token->expires_s() > 0
                   ? ("until " + MomentText(TimeFromSeconds(token->expires_s()))).c_str()
                   : "for ever",
               kept.c_str());
  return absl::OkStatus();
}

std::string StateOf(const v1::Token& token) {
  if (token.removed_s() > 0) {
    return "removed " + MomentText(TimeFromSeconds(token.removed_s()));
  }
  if (token.expires_s() <= 0) return "valid for ever";
  const Time expires = TimeFromSeconds(token.expires_s());
  return (expires <= Now() ? "expired " : "valid until ") + MomentText(expires);
}

absl::Status List(const TokenArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const ClientOptions options, arguments.service.Resolve());
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListTokensResponse tokens,
                            Client(options).Call<api::ListTokens>({}));
  if (arguments.json) {
    PrintMessage(tokens);
    return absl::OkStatus();
  }
  std::vector<std::vector<std::string>> rows = {{"id", "name", "role", "created", "state"}};
  for (const v1::Token& token : tokens.tokens()) {
    rows.push_back(std::vector<std::string>{token.id(), token.name(), token.role(),
                                            MomentText(TimeFromSeconds(token.created_s())),
                                            StateOf(token)});
  }
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
  return absl::OkStatus();
}

absl::Status Remove(const TokenArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const ClientOptions options, arguments.service.Resolve());
  v1::RemoveTokenRequest request;
  request.set_token(arguments.token);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Token token, Client(options).Call<api::RemoveToken>(request));
  std::printf("token %s (%s) is revoked\n", token.name().c_str(), token.id().c_str());
  return absl::OkStatus();
}

}  // namespace

VerbAction AddTokens(CliCommand& command) {
  auto a = std::make_shared<TokenArguments>();
  command.RequireCommand();
  CliCommand* create = command.AddCommand("create", "Create a token and print it");
  create->Footer(
      "Example:\n  tuner token create --role submit --name ada --expires 90d --out ada.token");
  create
      ->AddOption("--role", a->role,
                  "administer: everything; submit: studies and trials, and so any command on the "
                  "agents; view: reading only; agent: joining the pool")
      .Required()
      .OneOf({"administer", "submit", "view", "agent"});
  create->AddOption("--name", a->name, "Its owner or purpose; unique").Required();
  create->AddOption("--expires", a->expires, "Lifetime: 30d, 12h, 45m, 90s or never").ShowDefault();
  create->AddOption("--out", a->out,
                    "File to write it to, readable by you alone (default: it is printed)");
  CliCommand* list = command.AddCommand("ls", "List tokens, without their text");
  list->Footer("Example:\n  tuner token ls");
  AddJson(*list, a->json, "ListTokensResponse in tuner.proto");
  CliCommand* remove = command.AddCommand("rm", "Revoke a token, at once");
  remove->Footer("Example:\n  tuner token rm ada");
  remove->AddOption("token", a->token, "Its id or its name").Required().TypeName("TOKEN");
  for (CliCommand* part : {create, list, remove}) a->service.AddTo(*part);
  return [a, create, list] {
    const auto [part, status] = create->parsed() ? std::pair("token create", Create(*a))
                                : list->parsed() ? std::pair("token ls", List(*a))
                                                 : std::pair("token rm", Remove(*a));
    return status.ok() ? ExitCode::kOk : Fail(part, status);
  };
}

}  // namespace espalier
