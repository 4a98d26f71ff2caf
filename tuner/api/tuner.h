#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/trial_folder.h"
#include "tuner/core/core.h"

namespace espalier {

// A GPU of a node, as its agent names it.
struct NodeGpu {
  std::string name;
  std::string uuid;
  std::int64_t memory_bytes = 0;
};

// Where browsers find the service's page.
struct ServedPage {
  std::string url{};         // "http://127.0.0.1:7078/"; empty: the service serves none
  bool needs_token = false;  // it asks each browser for one, that of the service's own user too
};

// What may be looked at between two steps of the core.
struct View {
  const Core& core;
  Time now;
  // of replicas whose agents have reported one
  const std::map<ReplicaId, int>& pids;
  const std::map<std::string, std::vector<NodeGpu>>& gpus;  // by node name
  const std::map<std::string, std::string>& folders;        // of trials' files, by node name
  const std::map<std::string, std::string>& hosts;          // where replicas are reached, likewise
  std::vector<std::string> engine_troubles{};               // see Engine::Troubles
  std::vector<std::string> disk_troubles{};                 // of the database, for people
  ServedPage page{};
  // Machines are in the pool only if users have them join it.
  bool users_add_machines = false;
  // Whether the reader may see what can be a secret: the values of environment variables.
  bool shows_secrets = true;
};

// What calls get from a service that ends.
inline absl::Status ShuttingDown() {
  return absl::UnavailableError("the tuner service is shutting down");
}

// Of what a trial has printed: the newest so many bytes, of one rank.
struct OutputPart {
  std::int64_t max_bytes = 0;
  int rank = 0;
};

// The seam between the operations and the owner of the core. May be called from any thread but the
// owner's: these calls wait for the owner.
class Tuner {
 public:
  virtual ~Tuner() = default;

  // Takes the event to the core. Returns the core's reply once all it changed is durable, or a
  // reply with UNAVAILABLE, in which case nothing was promised.
  virtual Reply Post(Event event) = 0;

  // Runs `look` on the owner's thread; it sees only what is durable. It must be short: everything
  // else waits.
  virtual absl::Status Read(const std::function<void(const View&)>& look) = 0;

  // Post, and a Read after it, for one wait: `look` sees what the event has led to. It is called
  // unless the reply is an error. The reply, or the error of the look.
  virtual Reply PostAndRead(Event event,
                            const std::function<void(const Reply&, const View&)>& look) {
    Reply reply = Post(std::move(event));
    if (!reply.status.ok()) return reply;
    reply.status.Update(Read([&](const View& view) { look(reply, view); }));
    return reply;
  }

  // These are for callers that do not wait: `done` gets Post's reply, and `look` gets a view, or
  // null once there is nothing to see any more. Where the core has an owner thread they are called
  // on that, and nothing waits; in this default they are called before these return.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): kept, where it is called later
  virtual void PostThen(Event event, std::function<void(const Reply&)> done) {
    done(Post(std::move(event)));
  }
  virtual void ReadThen(std::function<void(const View*)> look) {
    if (!Read([&look](const View& view) { look(&view); }).ok()) look(nullptr);
  }

  // A part of what the processes of a trial have printed on the node. Asks its agent and waits, but
  // not for long. UNAVAILABLE: the agent is not connected, or does not answer. Must not be called
  // on the owner's thread.
  virtual absl::StatusOr<std::string> ReadOutput(NodeId /*node*/, const TrialName& /*trial*/,
                                                 const OutputPart& /*part*/) {
    return absl::UnavailableError("no agent is connected");
  }

  // Whether a sampler that another process would ask (Sampler::outside) takes the study, which is
  // valid otherwise: InvalidArgument where it refuses, as it would be the first suggestion. OK,
  // with why not, where nobody could tell. ResourceExhausted: too many are being checked. Waits for
  // half a minute at the most. Must not be called on the owner's thread.
  virtual absl::StatusOr<std::string> CheckSampler(const StudySpec& /*spec*/) { return ""; }

  // The hash of the certificate by which the service is known, which new tokens end with; empty: it
  // has none.
  virtual std::string certificate_hash() const { return ""; }
};

}  // namespace espalier
