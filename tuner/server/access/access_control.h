#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "tuner/core/state/change.h"
#include "tuner/credentials/socket_owner.h"
#include "tuner/messages/membership.h"
#include "tuner/server/access/permissions.h"

namespace espalier {

inline constexpr std::size_t kMaxTokenBytes = 8 << 10;  // as gRPC takes them

struct AccessControlOptions {
  // The shared token that every caller has to show (--token-file); empty: there is none.
  std::string shared_token{};
  bool open_loopback = false;  // all users of this machine are let in as the service's own
  // Nobody is let in by the kernel's word: the service's own user shows a token, too.
  bool no_loopback_trust = false;
  // The key from which trials' tokens and the secrets of their groups are derived; empty: a new
  // one.
  std::string trial_key{};
  std::function<Time()> clock = Now;
  // The file of the token that the service's own user shows, where it needs one: its connections
  // use TLS too, and a token tells them the certificate. Empty: it needs none.
  std::string own_token_file{};
};

// What is known of a caller when its rights are checked.
struct Shown {
  bool own_user = false;  // the kernel says so, or it is not asked
  std::string token{};    // empty: none
};

// Decides which callers may make which calls. The endpoints ask it before they read more than the
// head of a request. Methods may be called from any thread.
class AccessControl {
 public:
  explicit AccessControl(AccessControlOptions options);

  // Sets the tokens that are kept: to be called at the start and after each commit.
  void Load(const TunerState& state);
  void Take(const std::vector<Change>& changes);

  // Whether a connection's user is taken for the service's own.
  bool Trusts(const Peer& peer) const;

  // Whether a token is good, whatever it allows. Takes microseconds.
  bool Knows(const std::string& token) const { return Recognise(token).ok(); }

  // `call` is a row of the table of permissions. A token that is shown decides, whoever shows it;
  // the service's own user is let in without one. UNAUTHENTICATED: the caller shows no token, or
  // none that is good. PERMISSION_DENIED: its role is too small, or there is no such row. Both say
  // what to do.
  absl::Status Admit(std::string_view call, const Shown& shown) const;

  // Whether a caller that was admitted may see what can be a secret of those who submit, such as
  // the values of environment variables: it may submit itself.
  bool SeesSecrets(const Shown& shown) const;

  // What a caller that was admitted may do.
  Role RoleOf(const Shown& shown) const;

  // A name by which browsers tell this service's cookies from those of others: the same after a
  // restart with the same key of trials.
  std::string CookieName() const;

  // The token that a replica of a trial has to show, which is good for its trial until that ends.
  std::string TrialToken(TrialId trial, ReplicaId replica,
                         const std::string& certificate_hash) const;
  // The secret by which the members of that group know one another. Each group has another.
  std::string GroupSecret(const Membership& group) const;
  // The trial to which that token belongs; none: it is no trial's.
  std::optional<TrialId> TrialOf(const std::string& token) const;

 private:
  struct Caller {
    Role role = Role::kNobody;
    std::string name;  // for messages: "token ada"
  };
  // `permission` is that of the call; null: there is no such call.
  absl::Status AdmitToken(const Permission* permission, const std::string& token) const;
  absl::StatusOr<Caller> Recognise(const std::string& token) const;
  std::string TrialSecret(std::string_view id) const;

  const AccessControlOptions options_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, KeptToken> tokens_;  // by id
};

// The token in "Bearer TOKEN"; empty: it is none.
std::string BearerToken(std::string_view authorization);
// The same, or the password in "Basic ...", where browsers put it.
std::string TokenIn(std::string_view authorization);

}  // namespace espalier
