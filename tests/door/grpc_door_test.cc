// A gRPC server behind a door: who gets to it, and what becomes of all others.

#include "tuner/door/grpc_door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/door/http2_client.h"
#include "tuner/credentials/certificate.h"
#include "tuner/door/first_call.h"
#include "tuner/door/silent_connections.h"
#include "tuner/door/tls_server.h"

namespace espalier {
namespace {

using http2::Frame;
using testing::HasSubstr;

constexpr char kReason[] = "100% of strangers show a token (wörtlich)";
constexpr std::size_t kEndless = 64 << 20;

// Answers each call with the message that it brought.
class Echo final : public grpc::CallbackGenericService {
 public:
  std::atomic<int> calls = 0;

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      if (ok) {
        StartWriteAndFinish(&message_, {}, grpc::Status::OK);
      } else {
        Finish(grpc::Status::OK);
      }
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    ++calls;
    return new Reactor();
  }
};

// A client of any kind: bytes over TCP, or over TLS on it.
class RawClient {
 public:
  RawClient(int port, bool tls) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    // Else its kernel holds what it says next until this is acknowledged, and sends it as one
    // piece.
    const int yes = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (!tls) return;
    constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_alpn_protos(context_.get(), kHttp2.data(), kHttp2.size());
    tls_.reset(SSL_new(context_.get()));
    SSL_set_fd(tls_.get(), socket_.get());
    EXPECT_EQ(SSL_connect(tls_.get()), 1);
  }

  // False: the other end has ended the connection.
  bool Say(const std::string& bytes) {
    if (tls_ != nullptr) return SSL_write(tls_.get(), bytes.data(), ToInt(bytes.size())) > 0;
    return send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  // The next piece; empty: the other end has ended the connection.
  std::string Hear() {
    std::string bytes(16 << 10, '\0');
    const auto got = tls_ != nullptr
                         ? SSL_read(tls_.get(), bytes.data(), ToInt(bytes.size()))
                         : static_cast<int>(recv(socket_.get(), bytes.data(), bytes.size(), 0));
    bytes.resize(static_cast<std::size_t>(std::max(0, got)));
    return bytes;
  }

  // Until a frame of that type has come; its payload.
  std::string HearFrame(std::uint8_t type) {
    while (true) {
      while (heard_.size() >= http2::kHeadBytes) {
        const http2::FrameHead head =
            http2::ReadFrameHead(std::string_view(heard_).substr(0, http2::kHeadBytes));
        if (heard_.size() < http2::kHeadBytes + head.payload) break;
        const std::string payload = heard_.substr(http2::kHeadBytes, head.payload);
        heard_.erase(0, http2::kHeadBytes + head.payload);
        if (head.type == type) return payload;
      }
      const std::string more = Hear();
      if (more.empty()) return "nothing: the connection has ended";
      heard_ += more;
    }
  }

  // Says the same for ever; how many bytes until the other end had enough.
  std::size_t SayUntilEnded(const std::function<std::string()>& next) {
    std::size_t said = 0;
    while (said < kEndless) {
      const std::string bytes = next();
      if (!Say(bytes)) break;
      said += bytes.size();
    }
    return said;
  }

 private:
  static int ToInt(std::size_t n) { return static_cast<int>(n); }

  FileDescriptor socket_;
  TlsContextPtr context_;
  TlsPtr tls_;
  std::string heard_;
};

// With TLS, and without.
class GrpcDoorTest : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { BlockSigpipe(); }
  ~GrpcDoorTest() override {
    listener_.reset();
    if (door_ != nullptr) door_->Shut();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  void Open(const GrpcDoorLimits& limits = {}) {
    grpc::ServerBuilder builder;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(&echo_);
    server_ = builder.BuildAndStart();
    GrpcDoorOptions options;
    options.limits = limits;
    if (GetParam()) options.certificate = certificate_ = *MakeCertificate();
    options.admits = [](const CallHead& head) {
      const auto& shown = head.authorizations;
      return std::find(shown.begin(), shown.end(), "Bearer good") != shown.end()
                 ? absl::OkStatus()
                 : absl::UnauthenticatedError(kReason);
    };
    options.refused = [this](const absl::Status&) { ++refused_; };
    options.let_in = [this](int socket, const std::string& said) {
      ++let_in_;
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = socket;
      const grpc::Slice slice(said);
      connection.read_buffer = grpc::ByteBuffer(&slice, 1);
      acceptor_->HandleNewConnection(&connection);
    };
    auto door = GrpcDoor::Open(std::move(options));
    ASSERT_TRUE(door.ok()) << door.status();
    door_ = *std::move(door);
    auto listener = SilentConnections::Listen(
        {"127.0.0.1", 0}, [](const Peer&) { return false; },
        [this](int socket, bool) { door_->Take(socket); });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  int port() const { return listener_->address().port; }
  RawClient Raw() const { return {port(), GetParam()}; }

  std::shared_ptr<grpc::Channel> Channel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (GetParam()) {
      arguments.SetSslTargetNameOverride(kAgentCertificateName);
      credentials = grpc::SslCredentials({certificate_.pem, "", ""});
    }
    return grpc::CreateCustomChannel(listener_->address().text(), credentials, arguments);
  }

  // Whether the answer is what was sent.
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
                           std::size_t bytes = 10) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    const std::string sent(bytes, 'm');
    const grpc::Slice slice(sent);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel);
    const auto call = stub.PrepareUnaryCall(&context, "/a.B/C", request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) return status;
    grpc::Slice answer;
    (void)response.DumpToSingleSlice(&answer);
    EXPECT_EQ(answer.size(), bytes);
    return status;
  }

  Echo echo_;
  Certificate certificate_;
  std::atomic<int> refused_ = 0;
  std::atomic<int> let_in_ = 0;
  std::unique_ptr<GrpcDoor> door_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<SilentConnections> listener_;
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutTls, GrpcDoorTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "Tls" : "InTheClear"; });

TEST_P(GrpcDoorTest, WhoShowsATokenIsServedOnThatConnection) {
  Open();
  const auto channel = Channel();
  for (const std::size_t bytes : {0, 10, 100'000, 3 << 20}) {
    const grpc::Status status = Call(channel, "good", bytes);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(let_in_, 1);
  // What is called later on it is the server's to judge.
  EXPECT_TRUE(Call(channel, "").ok());
  EXPECT_EQ(let_in_, 1);
  EXPECT_EQ(echo_.calls, 5);
}

TEST_P(GrpcDoorTest, AStrangerIsToldWhyAndMayTryAgain) {
  Open();
  const auto channel = Channel();
  for (int i = 1; i <= 3; ++i) {
    const grpc::Status status = Call(channel, "bad", 100'000);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(status.error_message(), kReason);
    EXPECT_EQ(refused_, i);
  }
  EXPECT_EQ(let_in_, 0);
  EXPECT_EQ(echo_.calls, 0);
  EXPECT_TRUE(Call(channel, "good").ok());
}

TEST_P(GrpcDoorTest, AClientNeedNotWaitForSettings) {
  Open();
  RawClient client = Raw();
  const std::string message = std::string(5, '\0');  // of gRPC, empty
  ASSERT_TRUE(client.Say(
      kBegin + Frame(http2::kHeaders, http2::kEndHeaders, 1, HeaderBlock("/a.B/C", "Bearer good")) +
      Frame(http2::kData, http2::kEndStream, 1, message)));
  EXPECT_EQ(client.HearFrame(http2::kSettings), "") << "ours, which change nothing";
  ASSERT_TRUE(client.Say(kAcknowledge));
  EXPECT_NE(client.HearFrame(http2::kSettings), "") << "the server's";
  EXPECT_EQ(client.HearFrame(http2::kData), message);
}

// What a stranger may say without end, before it knows our SETTINGS and after.
TEST_P(GrpcDoorTest, WhoeverGoesOnForEverIsCutOff) {
  Open();
  const std::string half(8 << 10, 'x');
  const std::string to_8_mib = "\x7f\x81\xff\xff\x03";
  const auto headers = [](const std::string& payload) {
    return Frame(http2::kHeaders, 0, 1, payload);
  };
  const auto more = [](const std::string& payload) {
    return Frame(http2::kContinuation, 0, 1, payload);
  };
  std::string names;
  for (int i = 0; i < 100; ++i) names += HeaderField(absl::StrCat("name-", i), "");
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {headers(HeaderField("a", "b")), more(half)},
      {headers(std::string("\0\1a", 3) + to_8_mib + half), more(half)},  // one value
      {headers(std::string(1, '\0') + to_8_mib + half), more(half)},     // one name
      {headers(""), more(HeaderField("a", "b"))},
      {headers(""), more(names)},
      {headers("\xff"), more(std::string(1000, '\x80'))},  // a number that begins with zeros
      {headers(""), more("")},
      {"", Frame(6, 0, 0, "12345678")},
      {"", Frame(http2::kSettings, 0, 0, std::string(600, '\0'))},
      {"", Frame(0x77, 0, 1, half)},  // of no known type
      {"", half},
  };
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (const std::string& acknowledged : {std::string(), kAcknowledge}) {
      RawClient client = Raw();
      client.Say(kBegin + acknowledged + kinds[kind].first);
      const std::string& then = kinds[kind].second;
      EXPECT_LT(client.SayUntilEnded([&] { return then; }), kEndless) << "kind " << kind;
    }
  }
  EXPECT_EQ(let_in_, 0);
  EXPECT_TRUE(Call(Channel(), "good").ok());
}

TEST_P(GrpcDoorTest, DripsAreCounted) {
  GrpcDoorLimits limits;
  limits.pieces = 20;
  const std::string half(8 << 10, 'x');
  Open(limits);
  RawClient client = Raw();
  ASSERT_TRUE(client.Say(kBegin));
  ASSERT_EQ(client.HearFrame(http2::kSettings), "");
  client.Say(Frame(http2::kHeaders, 0, 1, half).substr(0, http2::kHeadBytes));
  // Some may be read together.
  const int most = 10 * limits.pieces;
  int drips = 0;
  while (drips < most && client.Say("x")) {
    ++drips;
    // Whoever comes after it is answered, mostly, after it was read.
    RawClient other = Raw();
    ASSERT_TRUE(other.Say(kBegin));
    ASSERT_EQ(other.HearFrame(http2::kSettings), "");
  }
  EXPECT_LT(drips, most);
  EXPECT_TRUE(Call(Channel(), "good").ok());
}

TEST_P(GrpcDoorTest, WhoWasLetInIsBoundedOverTlsToo) {
  if (!GetParam()) return;  // in the clear the server has the socket
  Open();
  RawClient client = Raw();
  const std::string good =
      Frame(http2::kHeaders, http2::kEndHeaders, 1, HeaderBlock("/a.B/C", "Bearer good"));
  ASSERT_TRUE(client.Say(kBegin + kAcknowledge + good +
                         Frame(http2::kData, http2::kEndStream, 1, std::string(5, '\0'))));
  client.HearFrame(http2::kData);
  ASSERT_TRUE(client.Say(Frame(http2::kHeaders, 0, 3, "")));
  const std::string half = Frame(http2::kContinuation, 0, 3, std::string(8 << 10, 'x'));
  EXPECT_LT(client.SayUntilEnded([&] { return half; }), kEndless);
}

TEST_P(GrpcDoorTest, OfTooManyTheLongestWaitingGoes) {
  GrpcDoorLimits limits;
  limits.strangers = 8;
  Open(limits);
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (std::size_t i = 0; i <= limits.strangers; ++i) {
    waiting.push_back(std::make_unique<RawClient>(port(), GetParam()));
    ASSERT_TRUE(waiting.back()->Say(kBegin));
    // Our SETTINGS: it is in.
    ASSERT_EQ(waiting.back()->HearFrame(http2::kSettings), "");
  }
  EXPECT_EQ(waiting.front()->HearFrame(http2::kGoAway), std::string(8, '\0'));
  EXPECT_EQ(waiting.front()->Hear(), "");
  EXPECT_TRUE(Call(Channel(), "good").ok());
}

TEST_P(GrpcDoorTest, WhoCallsNothingIsClosedInTheEnd) {
  GrpcDoorLimits limits;
  limits.first_call_s = 0.1;
  Open(limits);
  RawClient client = Raw();
  ASSERT_TRUE(client.Say(kBegin));
  EXPECT_EQ(client.HearFrame(http2::kGoAway), std::string(8, '\0'));
  EXPECT_EQ(client.Hear(), "");
}

TEST_P(GrpcDoorTest, WhoWaitsWhenItIsShutKnowsThatNothingWasHeard) {
  Open();
  RawClient client = Raw();
  ASSERT_TRUE(client.Say(kBegin));
  ASSERT_EQ(client.HearFrame(http2::kSettings), "");
  door_->Shut();
  EXPECT_EQ(client.HearFrame(http2::kGoAway), std::string(8, '\0'));
  EXPECT_EQ(client.Hear(), "");
}

TEST_P(GrpcDoorTest, NoiseIsNoCall) {
  Open();
  for (const std::string& noise : {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                                   std::string(1000, '\0'), std::string(1000, '\xff')}) {
    RawClient client = Raw();
    client.Say(noise);
    EXPECT_EQ(client.Hear(), "");
  }
  // Nor a handshake.
  RawClient client(port(), false);
  client.Say(std::string("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11));
  EXPECT_LT(client.SayUntilEnded([] { return std::string(8 << 10, 'x'); }), kEndless);
  EXPECT_TRUE(Call(Channel(), "good").ok());
}

TEST(GrpcDoor, NamesABadCertificate) {
  GrpcDoorOptions options;
  options.certificate = *MakeCertificate();
  options.certificate.key_pem = MakeCertificate()->key_pem;
  EXPECT_THAT(std::string(GrpcDoor::Open(options).status().message()),
              HasSubstr("TLS key: key values mismatch"));
}

}  // namespace
}  // namespace espalier
