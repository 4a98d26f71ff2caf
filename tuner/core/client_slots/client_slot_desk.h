#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core/client_slots/client_slots.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/step.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Gives slots of the pool to clients for trials that they run by themselves.
//
// A client's slots are exactly as many as it asked for, and they are not moved or taken away before
// it gives them back, falls silent or loses their node. So they are kept out of the pool that
// policies divide, and requests wait outside of it too. How the two sides share the pool: see
// Serve.
//
// The slots that a trial holds are durable as its open span of slots, and
// PoolState::held_by_clients shows them by slot, which nothing else changes. Requests are not
// durable. One owner.
class ClientSlotDesk {
 public:
  ClientSlotDesk(Turn& turn, PoolState& pool, const CoreOptions& options, const Promises& promises,
                 Trials& trials)
      : turn_(turn), pool_(pool), options_(options), promises_(promises), trials_(trials) {}

  // A trial of a loaded state: its client goes on holding the slots that it held.
  void TakeUp(const Trial& trial);
  void Observe(const Change& change);

  // ---- what is said. The reply says what was refused; slots are given, and those that wait are
  // answered, when the step settles. Requires a trial that its client runs, and that has not ended.
  void Acquire(const Trial& trial, const AcquireSlots& event);
  void Renew(const Trial& trial);
  // Whatever the trial holds or waits for.
  void GiveBack(TrialId id, const std::string& why);
  // Gives back the slots of a node from `from_slot` on.
  void GiveBackOn(NodeId node, int from_slot, const std::string& why);

  // ---- phases of a step
  // Ends what is due to end: holds of clients that are silent, of trials that have ended.
  void Check();
  void Serve();
  // After the policy has divided the pool: clients that ask for more than the clients' part may
  // have slots that have been left over for a while.
  void ServeFromUnused();
  void Answer();
  // When time alone changes something.
  std::optional<Time> Next() const;

  // ---- what others go by
  bool empty() const { return requests_.empty(); }
  // In ascending order.
  const std::vector<Slot>& SlotsOf(TrialId id) const;
  // Held or asked for by all clients.
  int SlotsWanted() const;
  // Slots there that the pool's trials may not count on: held, or reserved for waiting requests.
  int KeptOn(NodeId node) const;
  int ReservedOn(NodeId node) const;
  // What the pool's trials may have in all: usable slots of nodes that stay, without these.
  int SlotsToShare() const;

 private:
  absl::Status CheckRequest(const Trial& trial, const AcquireSlots& event) const;
  absl::Status CheckPossible(const AcquireSlots& event) const;
  void Tell(const ClientSlots& own, Reply& reply) const;
  void NoteLeft(TrialId id, TrialState state);
  void CheckNodes();
  std::vector<ClientNode> Nodes() const;
  std::pair<double, double> SharesOfSides() const;
  std::vector<TrialId> Waiting() const;
  std::string WhyNotNow(const ClientSlots& own, const std::vector<ClientNode>& nodes) const;
  // The pool's trials are to leave all slots of the node but `left` to clients.
  void MakeRoomOn(NodeId node, int left);
  void Grant(TrialId id, const Placement& placement, bool in_turn);

  Turn& turn_;
  PoolState& pool_;
  const CoreOptions& options_;
  const Promises& promises_;
  Trials& trials_;
  std::map<TrialId, ClientSlots> requests_;  // of trials that hold slots or ask for some
  // Trials among those that their clients have stopped running since the last look.
  std::map<TrialId, TrialState> left_;
  bool studies_changed_ = false;     // since then, in their states
  std::map<NodeId, int> reserved_;   // for requests that wait
  std::map<TrialId, Time> answers_;  // requests that wait for one, and until when
  std::int64_t last_order_ = 0;
  Time due_;            // no lease of theirs ends before
  TrialId unused_for_;  // the trial for which nothing else has wanted some slots since
  Time unused_since_;
  Time trials_turn_ends_;      // after a request beyond the clients' part
  bool nodes_unsure_ = false;  // after a restart: their agents have not all come back
};

}  // namespace espalier
