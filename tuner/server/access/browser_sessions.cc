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

absl::Status NoCode() {
  return absl::UnauthenticatedError(
      absl::StrCat("this code begins no session: it is used, or more than ", kLoginCode_s,
                   " s old, or another service's. `tuner open` makes another one"));
}

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

std::string BrowserSessions::NewCode(const std::string& token) {
  const std::string code = RandomHexadecimal(kValueBytes);
  const Time now = clock_();
  const std::lock_guard lock(mutex_);
  codes_.remove_if([now](const Session& each) { return each.ends <= now; });
  if (codes_.size() >= kMaxLoginCodes) codes_.pop_front();
  codes_.push_back({HashOf(code), token, After(now, kLoginCode_s)});
  return code;
}

std::list<BrowserSessions::Session>::const_iterator BrowserSessions::FindCode(
    std::string_view code) const {
  if (!IsHexadecimal(code, 2 * kValueBytes)) return codes_.end();
  const std::string hash = HashOf(std::string(code));
  const Time now = clock_();
  return std::find_if(codes_.begin(), codes_.end(), [&](const Session& each) {
    return each.ends > now && SameText(each.hash, hash);
  });
}

absl::StatusOr<std::string> BrowserSessions::TokenOfCode(std::string_view code) const {
  const std::lock_guard lock(mutex_);
  const auto found = FindCode(code);
  if (found == codes_.end()) return NoCode();
  return found->token;
}

absl::StatusOr<std::string> BrowserSessions::BeginByCode(std::string_view code) {
  std::string token;
  {
    const std::lock_guard lock(mutex_);
    const auto found = FindCode(code);
    if (found == codes_.end()) return NoCode();
    token = found->token;
    codes_.erase(found);
  }
  return Begin(token);
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
