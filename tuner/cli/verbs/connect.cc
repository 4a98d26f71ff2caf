// `tuner connect`: a service of another machine on a port of loopback, for programs that can send
// neither a token nor TLS.

#include <fmt/format.h>
#include <poll.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "tuner/cli/client.h"
#include "tuner/cli/interrupts.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/verb.h"
#include "tuner/credentials/access_token.h"
#include "tuner/forwarding/forwarder.h"
#include "tuner/forwarding/loopback_listener.h"
#include "tuner/forwarding/service_end.h"

namespace espalier {
namespace {

constexpr double kAnswer_s = 10;                   // for a service to identify itself
constexpr std::size_t kMaxAnswer = 64 << 10;       // bytes of that
constexpr double kBetweenInterruptLooks_s = 3600;  // an interrupt ends the wait

struct ConnectArguments {
  ServiceArguments service;
  std::vector<std::string> services;
  std::string listen;
};

TlsTrust TrustFor(const ClientOptions& options) {
  if (!options.tls_roots.empty()) return {{}, options.tls_roots};
  return {PinOf(options.token), {}};
}

// What an endpoint of HTTP answers to a request that shows the token, as far as it is of interest.
absl::StatusOr<std::string> AskByHttp(const ClientOptions& options) {
  const DialLimit limit = DialLimit::Within(kAnswer_s);
  ESPALIER_ASSIGN_OR_RETURN(
      const std::unique_ptr<ServiceEnd> service,
      DialService(options.address, TrustFor(options), /*http2=*/false, limit));
  const std::string request = fmt::format(
      "GET /api/studies HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: "
      "close\r\n\r\n",
      options.token);
  std::string_view left = request;
  std::string answer;
  while (answer.size() < kMaxAnswer) {
    const ssize_t sent = left.empty() ? ServiceEnd::kNotReady : service->Write(left);
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    char piece[4096];
    const ssize_t got = service->Read(piece, sizeof(piece));
    if (got > 0) answer.append(piece, static_cast<std::size_t>(got));
    if (got == 0 || got == ServiceEnd::kBroken) break;
    const bool waits = got < 0 && sent < 0;
    if (waits && !AwaitSocket(service->socket(), left.empty() ? POLLIN : POLLOUT, limit)) break;
  }
  return answer;
}

enum class EndpointProtocol { kGrpc, kHttp };

// Which of a service's endpoints that is. An error if nothing answers, if it is another program, or
// if the token is not good there.
absl::StatusOr<EndpointProtocol> LookAtEndpoint(const ClientOptions& options) {
  const absl::Status grpc = Client(options).Call<api::ListStudies>({}).status();
  // The token's role may not list studies: it is an endpoint all the same.
  if (grpc.ok() || absl::IsPermissionDenied(grpc)) return EndpointProtocol::kGrpc;
  if (!absl::IsUnavailable(grpc)) return grpc;
  const absl::StatusOr<std::string> answer = AskByHttp(options);
  if (!answer.ok() || !answer->starts_with("HTTP/1.")) return grpc;
  if (answer->substr(0, answer->find('\r')).find(" 401") == std::string::npos)
    return EndpointProtocol::kHttp;
  const std::size_t body = answer->find("\r\n\r\n");
  return absl::UnauthenticatedError(body == std::string::npos ? *answer : answer->substr(body + 4));
}

// As asked for; else at the service's own port, or at a free one.
absl::StatusOr<int> ListenFor(const ConnectArguments& arguments, const HostPort& service) {
  if (!arguments.listen.empty()) return ListenOnLoopback(arguments.listen);
  const absl::StatusOr<int> same = ListenOnLoopback(HostPort{"127.0.0.1", service.port}.text());
  return same.ok() ? same : ListenOnAnyLoopback();
}

absl::StatusOr<std::unique_ptr<Forwarder>> OpenPort(const ConnectArguments& arguments,
                                                    const std::string& address) {
  ServiceArguments service = arguments.service;
  service.service = address;
  ESPALIER_ASSIGN_OR_RETURN(ClientOptions options, service.Resolve());
  ESPALIER_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  if (options.token.empty()) {
    return absl::InvalidArgumentError(
        "a token is needed, which is added to what programs send: --token-file FILE, or "
        "ESPALIER_TOKEN_FILE; `tuner token create --role submit --name NAME`, by the service's own "
        "user, makes one");
  }
  options.timeout_s = kAnswer_s;
  ESPALIER_ASSIGN_OR_RETURN(const EndpointProtocol protocol, LookAtEndpoint(options));
  ESPALIER_ASSIGN_OR_RETURN(const int listener, ListenFor(arguments, where));
  const auto failed = [](const absl::Status& status) {
    std::fprintf(stderr, "tuner connect: %s\n", std::string(status.message()).c_str());
  };
  auto forwarder = Forwarder::Start(listener, {.service = address,
                                               .trust = TrustFor(options),
                                               .token = options.token,
                                               .limits = ForwarderLimits{},
                                               .failed = failed});
  const std::string here = forwarder->address();
  ESPALIER_ASSIGN_OR_RETURN(const HostPort opened, ParseHostPort(here));
  std::printf("%s is the service at %s, for programs of this user\n", here.c_str(),
              address.c_str());
  if (protocol == EndpointProtocol::kGrpc) {
    std::printf("  optuna.storages.GrpcStorageProxy(host=\"%s\", port=%d)\n", opened.host.c_str(),
                opened.port);
  } else {
    std::printf("  http://%s\n", here.c_str());
  }
  return forwarder;
}

ExitCode Connect(const ConnectArguments& arguments) {
  IgnoreBrokenPipes();
  if (!arguments.listen.empty() && arguments.services.size() > 1) {
    return Fail("connect", ExitCode::kBadInput, "--listen is for one HOST:PORT");
  }
  const Interrupts interrupts;
  std::vector<std::unique_ptr<Forwarder>> open;
  for (const std::string& address : arguments.services) {
    absl::StatusOr<std::unique_ptr<Forwarder>> port = OpenPort(arguments, address);
    if (!port.ok()) return Fail("connect", port.status());
    open.push_back(*std::move(port));
  }
  std::printf("until Ctrl-C\n");
  std::fflush(stdout);
  while (!interrupts.interrupted()) interrupts.Wait(kBetweenInterruptLooks_s);
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddConnect(CliCommand& command) {
  auto a = std::make_shared<ConnectArguments>();
  command
      .AddOption("service", a->services,
                 "A service's gRPC or HTTP address, HOST:PORT; may be several")
      .Required()
      .TypeName("HOST:PORT");
  command.AddOption(
      "--listen", a->listen,
      "Loopback address to listen on, HOST:PORT (default: 127.0.0.1 with the service's "
      "port, or a free port where that is taken)");
  command.AddOption("--token-file", a->service.token_file,
                    "File with your token (default: ESPALIER_TOKEN_FILE), which is added to each "
                    "request. Its last part is the hash of the service's certificate");
  command.AddOption("--tls-ca", a->service.tls_ca,
                    "PEM file of the certificates to trust instead (default: ESPALIER_TLS_CA)");
  return [a] { return Connect(*a); };
}

}  // namespace espalier
