#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/status.h"
#include "tuner/credentials/tls_context.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/access/proxied_at.h"
#include "tuner/server/http/http_connections.h"

namespace httplib {
struct Request;
}  // namespace httplib

namespace espalier {

// An HTTP server with its address and the thread that listens. Its owner adds routes and handlers
// before Listen, and calls Stop before what they use is gone.
class HttpListener {
 public:
  // Null `tls`: it speaks in the clear. Bodies of more than max_body bytes are refused. Who is
  // trusted and known at the door is AccessControl's affair, which must outlive it.
  HttpListener(TlsContextPtr tls, const AccessControl& access, std::size_t max_body,
               HttpDoor door = {});
  ~HttpListener();

  httplib::Server& server() { return *server_; }

  // Port 0 takes any free one. The error names the address and the remedy.
  absl::Status Listen(ListenAddress address);
  void Stop();

  const std::string& address() const { return address_; }

 private:
  const std::unique_ptr<httplib::Server> server_;
  std::string address_;
  std::thread thread_;
};

// What a request's head says of its body and can be read in one way only: one length, or chunks, of
// plain bytes. InvalidArgument names the header.
absl::Status CheckFraming(const httplib::Request& request);

// What pages send with requests that change something: a page of another origin may not.
inline constexpr char kPageHeader[] = "X-Espalier";

// Any page may make a browser send requests to this machine. Browsers name the site of that page
// (Origin), and the name under which they found us (Host). Of the service's own user, who need show
// no token, a foreign name is refused: it may be the site's own. A token that is shown is checked.
// The names of a proxy are as good as ours.
// With a session's cookie, which a browser sends whoever asks for it, changes have to show that
// they are of a page of ours.
absl::Status CheckSite(const httplib::Request& request, const Shown& shown,
                       const ProxiedAt& proxied = {});

// The scheme of a header "Authorization" by which a browser shows the code that begins a session.
inline constexpr char kCodeScheme[] = "Espalier-Code ";

// The sender of a request, by what the kernel says and by its header "Authorization: Bearer TOKEN".
Shown ShownBy(const httplib::Request& request);

}  // namespace espalier
