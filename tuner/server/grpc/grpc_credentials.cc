#include "tuner/server/grpc/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <string>
#include <string_view>
#include <utility>

namespace espalier {

namespace {

struct Guard {
  const AccessControl& access;
  bool own_user;
  std::function<void(const absl::Status&)> refused;
};

std::string_view SliceText(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Answers at once, on gRPC's thread.
void ProcessMetadata(void* state, grpc_auth_context*, const grpc_metadata* metadata,
                     std::size_t count, grpc_process_auth_metadata_done_cb done, void* call) {
  const auto& guard = *static_cast<const Guard*>(state);
  Shown shown{guard.own_user, {}};
  std::string_view path;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view key = SliceText(metadata[i].key);
    if (key == ":path") path = SliceText(metadata[i].value);
    if (key == "authorization" && shown.token.empty()) {
      shown.token = BearerToken(SliceText(metadata[i].value));
    }
  }
  const absl::Status status = guard.access.Admit(path, shown);
  if (!status.ok()) guard.refused(status);
  const std::string message(status.message());
  done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
       status.ok() ? nullptr : message.c_str());
}

void Free(void* state) { delete static_cast<Guard*>(state); }

class GuardedServerCredentials final : public grpc::ServerCredentials {
 public:
  GuardedServerCredentials(Certificate tls, Guard guard)
      : tls_(std::move(tls)), guard_(std::move(guard)) {}

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* credentials = Make();
    if (credentials == nullptr) return 0;
    grpc_server_credentials_set_auth_metadata_processor(credentials,
                                                        {ProcessMetadata, Free, new Guard(guard_)});
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  grpc_server_credentials* Make() const {
    if (tls_.pem.empty()) return grpc_insecure_server_credentials_create();
    grpc_ssl_pem_key_cert_pair pair{tls_.key_pem.c_str(), tls_.pem.c_str()};
    return grpc_ssl_server_credentials_create_ex(nullptr, &pair, 1,
                                                 GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, nullptr);
  }

  const Certificate tls_;
  const Guard guard_;
};

}  // namespace

std::string TokenOf(const grpc::ServerContextBase& context) {
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    std::string token = BearerToken({it->second.data(), it->second.size()});
    if (!token.empty()) return token;
  }
  return "";
}

std::shared_ptr<grpc::ServerCredentials> GuardedCredentials(
    const Certificate& tls, const AccessControl& access, bool own_user,
    std::function<void(const absl::Status&)> refused) {
  return std::make_shared<GuardedServerCredentials>(tls,
                                                    Guard{access, own_user, std::move(refused)});
}

}  // namespace espalier
