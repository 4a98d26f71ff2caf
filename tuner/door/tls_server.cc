#include "tuner/door/tls_server.h"

#include <openssl/ssl.h>
#include <signal.h>

namespace espalier {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};

int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, kHttp2, sizeof(kHttp2), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

absl::StatusOr<TlsContextPtr> MakeHttp2TlsServer(const Certificate& certificate) {
  ESPALIER_ASSIGN_OR_RETURN(TlsContextPtr context, MakeTlsServer(certificate));
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseHttp2, nullptr);
  return context;
}

void BlockSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace espalier
