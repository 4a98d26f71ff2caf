#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace espalier {

inline constexpr double kSession_s = 12 * 3600;
inline constexpr std::size_t kMaxSessions = 256;  // then the oldest ends
inline constexpr double kLoginCode_s = 60;
inline constexpr std::size_t kMaxLoginCodes = 64;  // likewise

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
  // A code that begins one session for whoever has shown that token, within kLoginCode_s: whoever
  // opens a browser for its user hands it that code, so that no token gets into an address.
  std::string NewCode(const std::string& token);
  // The token that a code stands for, and Begin by it, after which it stands for nothing.
  // UNAUTHENTICATED: the code is used, or has ended, or is none.
  absl::StatusOr<std::string> TokenOfCode(std::string_view code) const;
  absl::StatusOr<std::string> BeginByCode(std::string_view code);
  // Ends the session in a header "Cookie", if there is one. The value of a header "Set-Cookie".
  std::string End(std::string_view cookies);

 private:
  struct Session {
    std::string hash;  // of what the cookie, or the code, says
    std::string token;
    Time ends;
  };

  // Of the code, or the end. Requires the lock.
  std::list<Session>::const_iterator FindCode(std::string_view code) const;

  // What the service's cookie says in a header "Cookie"; empty: it is not there.
  std::string ValueIn(std::string_view cookies) const;
  std::string Cookie(std::string_view value, double seconds) const;

  const std::string name_;
  const bool secure_;
  const std::function<Time()> clock_;
  mutable std::mutex mutex_;
  std::list<Session> sessions_;  // the oldest first
  std::list<Session> codes_;     // of sessions that have not begun, likewise
};

}  // namespace espalier
