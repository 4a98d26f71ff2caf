#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/clock.h"
#include "tuner/base/ids.h"
#include "tuner/base/status.h"
#include "tuner/core/state/change.h"
#include "tuner/credentials/permissions.h"
#include "tuner/credentials/socket_owner.h"
#include "tuner/messages/membership.h"

namespace espalier {

struct AccessControlOptions {
  std::string word{};          // that everybody is to show, administrators' (--token-file)
  bool open_loopback = false;  // all users of this machine are let in as the service's own
  // What trials' tokens and the secrets of their groups follow from; empty: a new one.
  std::string trial_key{};
  std::function<Time()> clock = Now;
};

// What a caller shows by the time that somebody looks at it.
struct Shown {
  bool own_user = false;  // the kernel says so, or nobody asks
  std::string token{};    // empty: none
};

// Who is let in at which call. The endpoints ask before they read more than the head of a request.
// May be called from any thread.
class AccessControl {
 public:
  explicit AccessControl(AccessControlOptions options);

  // The tokens that are kept, at the start and after each commit.
  void Load(const TunerState& state);
  void Take(const std::vector<Change>& changes);

  // Whether a connection's user is taken for the service's own.
  bool Trusts(const Peer& peer) const;

  // `call` is a row of the table of permissions. UNAUTHENTICATED: nothing, or nothing good, is
  // shown. PERMISSION_DENIED: its role is too small, or there is no such row. Both say what to do.
  absl::Status Admit(std::string_view call, const Shown& shown) const;

  // What a replica of a trial is to show; good for its trial, as long as that has not ended.
  std::string TrialToken(TrialId trial, ReplicaId replica,
                         const std::string& certificate_hash) const;
  // By which the members of that group know one another: the same for each of them, another for
  // every group.
  std::string GroupSecret(const Membership& group) const;
  // Whose token that is; none: no trial's.
  std::optional<TrialId> TrialOf(const std::string& token) const;

 private:
  struct Caller {
    Role role = Role::kNobody;
    std::string name;  // for messages: "token ada"
  };
  absl::StatusOr<Caller> Recognise(const std::string& token) const;
  std::string TrialSecret(std::string_view id) const;

  const AccessControlOptions options_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, KeptToken> tokens_;  // by id
};

// The token in "Bearer TOKEN"; empty: it is none.
std::string BearerToken(std::string_view authorization);

}  // namespace espalier
