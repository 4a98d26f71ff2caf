#include "tuner/server/access/browser_sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {

namespace {

constexpr std::size_t kValueBytes = 32;

}  // namespace

// A browser takes a cookie with "__Host-" over TLS alone, and from no other host.
BrowserSessions::BrowserSessions(std::string_view name, bool secure, std::function<Time()> clock)
    : name_(absl::StrCat(secure ? "__Host-" : "", "espalier-", std::string(name))),
      secure_(secure),
      clock_(std::move(clock)) {}

std::string BrowserSessions::Begin(const std::string& token) {
  const std::string value = RandomHexadecimal(kValueBytes);
  const Time now = clock_();
  const std::lock_guard lock(mutex_);
  sessions_.remove_if([now](const Session& session) { return session.ends <= now; });
  if (sessions_.size() >= kMaxSessions) sessions_.pop_front();
  sessions_.push_back({HashOf(value), token, After(now, kSession_s)});
  return Cookie(value, kSession_s);
}

std::string BrowserSessions::TokenOf(std::string_view cookies) const {
  const std::string value = ValueIn(cookies);
  if (value.empty()) return "";
  const std::string hash = HashOf(value);
  const Time now = clock_();
  const std::lock_guard lock(mutex_);
  for (const Session& session : sessions_) {
    if (session.ends > now && SameText(session.hash, hash)) return session.token;
  }
  return "";
}

std::string BrowserSessions::End(std::string_view cookies) {
  const std::string value = ValueIn(cookies);
  if (!value.empty()) {
    const std::string hash = HashOf(value);
    const std::lock_guard lock(mutex_);
    sessions_.remove_if([&hash](const Session& session) { return session.hash == hash; });
  }
  return Cookie("", 0);
}

std::string BrowserSessions::ValueIn(std::string_view cookies) const {
  const absl::string_view header(cookies.data(), cookies.size());
  for (const absl::string_view pair : absl::StrSplit(header, ';')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(parts.first) == name_) {
      const std::string value(absl::StripAsciiWhitespace(parts.second));
      if (IsHexadecimal(value, 2 * kValueBytes)) return value;
    }
  }
  return "";
}

std::string BrowserSessions::Cookie(std::string_view value, double seconds) const {
  return absl::StrCat(name_, "=", std::string(value),
                      "; Path=/; Max-Age=", static_cast<std::int64_t>(seconds),
                      "; HttpOnly; SameSite=Strict", secure_ ? "; Secure" : "");
}

}  // namespace espalier
