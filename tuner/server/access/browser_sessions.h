#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace espalier {

inline constexpr double kSession_s = 12 * 3600;
inline constexpr std::size_t kMaxSessions = 256;  // then the oldest ends

// Browsers that have shown a token once and show a cookie instead from then on, since a browser
// sends no header "Authorization" with an address that is typed or with a stream of events. A
// session is as good as its token, which is asked about at each call: it ends with it. Nothing is
// stored; after a restart of the service the token is to be shown again. Methods may be called from
// any thread.
class BrowserSessions {
 public:
  // `name`: tells the service's cookies from those of other services, whose ports browsers do not
  // tell apart. `secure`: over TLS.
  BrowserSessions(std::string_view name, bool secure, std::function<Time()> clock = Now);

  // Begins a session for whoever has shown that token. The value of a header "Set-Cookie".
  std::string Begin(const std::string& token);
  // The token of the session in a header "Cookie"; empty: there is none.
  std::string TokenOf(std::string_view cookies) const;
  // Ends the session in a header "Cookie", if there is one. The value of a header "Set-Cookie".
  std::string End(std::string_view cookies);

 private:
  struct Session {
    std::string hash;  // of what the cookie says
    std::string token;
    Time ends;
  };

  // What the service's cookie says in a header "Cookie"; empty: it is not there.
  std::string ValueIn(std::string_view cookies) const;
  std::string Cookie(std::string_view value, double seconds) const;

  const std::string name_;
  const bool secure_;
  const std::function<Time()> clock_;
  mutable std::mutex mutex_;
  std::list<Session> sessions_;  // the oldest first
};

}  // namespace espalier
