// Slots of the pool for trials that clients run by themselves.
//
// A client's slots are exactly as many as it asked for, and nobody moves or takes them before it
// gives them back, falls silent or loses their node. So they are kept out of the pool that policies
// divide, and requests wait outside of it too. How the two sides share the pool: ServeClients.

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tuner/base/check.h"
#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

std::string Count(int slots) { return absl::StrCat(slots, slots == 1 ? " slot" : " slots"); }

// Takes them from what is left for the requests that follow.
void Take(const Placement& placement, std::vector<ClientNode>& nodes) {
  for (ClientNode& node : nodes) {
    const auto taken = placement.find(node.id);
    if (taken == placement.end()) continue;
    node.open -= taken->second;
    node.free = std::min(node.open, std::max(0, node.free - taken->second));
  }
}

bool AllOpen(const Placement& placement, const std::vector<ClientNode>& nodes) {
  return std::all_of(placement.begin(), placement.end(), [&nodes](const auto& entry) {
    return std::any_of(nodes.begin(), nodes.end(), [&entry](const ClientNode& node) {
      return node.id == entry.first && node.open >= entry.second;
    });
  });
}

}  // namespace

// ---- what clients say

void Core::Impl::On(const AcquireSlots& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial == nullptr) return;
  turn_.reply().status = CheckRequest(*trial, event);
  if (!turn_.reply().status.ok()) return;
  ClientSlots& own = client_slots_[trial->id];
  if (own.slots.empty() &&
      (own.order == 0 || own.wanted != event.slots || own.node != event.node)) {
    own = {};
    own.wanted = event.slots;
    own.node = event.node;
    own.order = ++next_slot_request_;
    own.asked = turn_.now();
    turn_.Wake();
  }
  own.heard = own.slots.empty() ? After(turn_.now(), event.wait_s) : turn_.now();
  client_slots_due_ = std::min(client_slots_due_, After(*own.heard, options_.slot_lease_s));
  slot_answers_[trial->id] = After(turn_.now(), event.wait_s);
  turn_.reply().trial = trial->id;
  turn_.reply().later = true;
}

absl::Status Core::Impl::CheckRequest(const Trial& trial, const AcquireSlots& event) const {
  const Study& study = turn_.state().studies.at(trial.study);
  if (event.slots < 1) {
    return absl::InvalidArgumentError(absl::StrCat("slots must be 1 or more, got ", event.slots));
  }
  if (!(event.wait_s >= 0 && event.wait_s <= kMaxSlotWait_s)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait_s must be 0 to ", kMaxSlotWait_s, " seconds, got ", event.wait_s));
  }
  if (study.state != StudyState::kRunning) {
    return absl::FailedPreconditionError(
        absl::StrCat("study \"", study.spec.name,
                     "\" was stopped: its trials get no slots until it is resumed"));
  }
  if (trial.state != TrialState::kRunning) {
    return absl::FailedPreconditionError(absl::StrCat("trial ", trial.number, " is ",
                                                      std::string(ToString(trial.state)),
                                                      ": only a trial that runs gets slots"));
  }
  const auto known = client_slots_.find(trial.id);
  if (known == client_slots_.end() && client_slots_.size() >= kMaxSlotRequests) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxSlotRequests, " clients hold slots or wait for them: try again later"));
  }
  if (known != client_slots_.end() && !known->second.slots.empty() &&
      std::ssize(known->second.slots) != event.slots) {
    return absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial.number, " holds ", Count(static_cast<int>(known->second.slots.size())),
        ": give them back before you ask for ", Count(event.slots)));
  }
  return CheckPossible(event);
}

// What no wait can bring is said at once. Nodes may join a pool at any time, so that a request for
// more than there is at present waits, unless it is known what there may be at most.
absl::Status Core::Impl::CheckPossible(const AcquireSlots& event) const {
  if (!event.node.empty()) {
    const auto named = [&event](const auto& known) { return known.second == event.node; };
    if (std::none_of(turn_.state().nodes.begin(), turn_.state().nodes.end(), named)) {
      return absl::NotFoundError(
          absl::StrCat("no node \"", event.node, "\" has ever been in this pool"));
    }
    for (const auto& [id, node] : pool_.nodes) {
      if (node.name != event.node || node.slots >= event.slots) continue;
      return absl::OutOfRangeError(absl::StrCat("node \"", event.node, "\" has ", Count(node.slots),
                                                ", asked for ", event.slots));
    }
  }
  if (!options_.pool_size) return absl::OkStatus();
  const int most = MostSlots(pool_, options_.pool_size->node);
  if (event.slots <= most) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the pool grows to ", Count(most), " at most, asked for ", event.slots));
}

void Core::Impl::On(const RenewSlots& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial == nullptr) return;
  const auto it = client_slots_.find(trial->id);
  if (it == client_slots_.end() || it->second.slots.empty()) {
    turn_.reply().status = absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial->number, " holds no slots: they were given back, not renewed for ",
        options_.slot_lease_s, " s, or lost with their node"));
    return;
  }
  it->second.heard = turn_.now();
  Tell(it->second, turn_.reply());
}

void Core::Impl::On(const ReleaseSlots& event) {
  const auto it = turn_.state().trials.find(event.trial);
  // With the trial its slots have been given back.
  if (it != turn_.state().trials.end() && Ended(it->second.state)) return;
  if (TrialToTell(event.trial) == nullptr) return;
  GiveBack(event.trial, "given back by its client");
}

void Core::Impl::Tell(const ClientSlots& own, Reply& reply) const {
  reply.slots = own.slots;
  reply.lease_s = options_.slot_lease_s;
  if (own.slots.empty()) reply.waits_for = own.waits_for;
}

// ---- what ends a hold or a request

void Core::Impl::GiveBack(TrialId id, const std::string& why) {
  const auto it = client_slots_.find(id);
  if (it == client_slots_.end()) return;
  const ClientSlots own = std::move(it->second);
  client_slots_.erase(it);
  turn_.Wake();
  if (slot_answers_.erase(id) > 0) {
    Reply reply;
    reply.status = absl::FailedPreconditionError(absl::StrCat("gets no slots: ", why));
    reply.trial = id;
    turn_.AnswerLate(id, reply);
  }
  for (const Slot& slot : own.slots) pool_.held_by_clients.erase(slot);
  const auto trial = turn_.state().trials.find(id);
  if (own.slots.empty() || trial == turn_.state().trials.end()) return;
  pool_.SlotsChange(id);
  turn_.Decide(trial->second, DecisionKind::kShrink, static_cast<int>(own.slots.size()), 0, why);
  if (!own.in_turn || trial->second.spans.empty()) return;
  const auto [clients, pool] = SharesOfSides();
  const double held_s = SecondsBetween(trial->second.spans.back().from, turn_.now());
  trials_turn_ends_ =
      After(turn_.now(), std::max(kShareTurn_s, held_s * pool / std::max(1e-9, clients)));
}

void Core::Impl::GiveBackOn(NodeId node, int from_slot, const std::string& why) {
  std::set<TrialId> holders;
  for (const auto& [slot, trial] : pool_.held_by_clients) {
    if (slot.node == node && slot.index >= from_slot) holders.insert(trial);
  }
  for (const TrialId id : holders) GiveBack(id, why);
}

// Of trials that a loaded state shows with slots.
void Core::Impl::TakeUpClientSlots(const Trial& trial) {
  if (trial.spans.empty() || trial.spans.back().to != Time{}) return;
  ClientSlots& own = client_slots_[trial.id];
  own.slots = trial.spans.back().slots;
  own.wanted = static_cast<int>(own.slots.size());
  own.order = ++next_slot_request_;
  for (const Slot& slot : own.slots) pool_.held_by_clients[slot] = trial.id;
  client_nodes_unsure_ = true;
}

void Core::Impl::NoteLeft(TrialId id, TrialState state) {
  if (!client_slots_.contains(id)) return;
  if (state == TrialState::kRunning) {
    left_by_clients_.erase(id);
  } else {
    left_by_clients_[id] = state;
  }
}

void Core::Impl::CheckClientSlots() {
  const bool studies_changed = std::exchange(studies_changed_, false);
  if (client_slots_.empty()) return;
  for (const auto& [id, state] : std::exchange(left_by_clients_, {})) {
    GiveBack(id, absl::StrCat("its trial is ", std::string(ToString(state))));
  }
  if (client_nodes_unsure_ && !pool_.recovery_ends) {
    client_nodes_unsure_ = false;
    std::set<NodeId> gone;
    for (const auto& [slot, trial] : pool_.held_by_clients) {
      if (!pool_.nodes.contains(slot.node)) gone.insert(slot.node);
    }
    for (const NodeId id : gone) GiveBackOn(id, 0, "its node did not come back");
  }
  if (!studies_changed && client_slots_due_ > turn_.now()) return;
  client_slots_due_ = After(turn_.now(), options_.slot_lease_s);
  std::map<TrialId, std::string> ended;
  for (auto& [id, own] : client_slots_) {
    const auto trial = turn_.state().trials.find(id);
    if (!own.heard) own.heard = turn_.now();
    if (trial == turn_.state().trials.end()) {
      ended[id] = "its study was deleted";
    } else if (own.slots.empty() &&
               turn_.StudyAt(trial->second.study).state != StudyState::kRunning) {
      ended[id] = "its study was stopped";
    } else if (SecondsBetween(*own.heard, turn_.now()) >= options_.slot_lease_s) {
      ended[id] = absl::StrCat("its client was silent for ", options_.slot_lease_s, " s");
    } else {
      client_slots_due_ = std::min(client_slots_due_, After(*own.heard, options_.slot_lease_s));
    }
  }
  for (const auto& [id, why] : ended) GiveBack(id, why);
}

// ---- who gets slots

// Slots there that the pool's trials may not count on.
int Core::Impl::KeptForClients(NodeId node) const {
  const auto reserved = reserved_.find(node);
  return pool_.ClientSlotsOn(node) + (reserved == reserved_.end() ? 0 : reserved->second);
}

// Nodes that take trials, without what is held or reserved there.
std::vector<ClientNode> Core::Impl::NodesForClients() const {
  std::map<NodeId, int> busy;
  std::map<std::pair<NodeId, TrialId>, int> staying;
  for (const auto& [id, replica] : pool_.replicas) {
    ++busy[replica.node];
    if (!replica.leaving && !replica.stopping) ++staying[{replica.node, replica.trial}];
  }
  for (const Slot& slot : pool_.SlotsToRecover()) ++busy[slot.node];
  std::vector<ClientNode> nodes;
  for (const auto& [id, node] : pool_.nodes) {
    if (!node.connected || node.draining) continue;
    ClientNode added{id, node.name, node.gpu_type, node.slots, node.slots - KeptForClients(id),
                     0,  0};
    added.free = added.open - busy[id];
    for (const auto& [trial, group] : pool_.groups) {
      const auto planned = group.target.find(id);
      if (planned == group.target.end()) continue;
      added.free -= std::max(0, planned->second - staying[{id, trial}]);
      added.gives += pool_.MayGiveOn(trial, group, id);
    }
    added.free = std::max(0, added.free);
    nodes.push_back(std::move(added));
  }
  return nodes;
}

// Of studies whose clients hold slots or ask for them, and of those that the tuner runs.
std::pair<double, double> Core::Impl::SharesOfSides() const {
  std::set<StudyId> asking;
  for (const auto& [id, own] : client_slots_) {
    if (const auto trial = turn_.state().trials.find(id); trial != turn_.state().trials.end()) {
      asking.insert(trial->second.study);
    }
  }
  std::pair<double, double> shares{0, 0};
  for (const auto& [id, study] : turn_.state().studies) {
    if (asking.contains(id)) shares.first += study.spec.share;
    if (pool_.studies.contains(id)) shares.second += study.spec.share;
  }
  return shares;
}

// Who has waited longest first; where several studies ask, the first slots of each before further
// ones of any, by their shares.
std::vector<TrialId> Core::Impl::WaitingClients() const {
  std::map<StudyId, int> served;
  std::vector<std::pair<std::int64_t, TrialId>> waiting;
  for (const auto& [id, own] : client_slots_) {
    if (own.slots.empty()) {
      waiting.emplace_back(own.order, id);
    } else {
      served[turn_.state().trials.at(id).study] += own.wanted;
    }
  }
  std::sort(waiting.begin(), waiting.end());
  std::vector<std::tuple<double, std::int64_t, TrialId>> turns;
  for (const auto& [order, id] : waiting) {
    const Study& study = turn_.state().studies.at(turn_.state().trials.at(id).study);
    const int slots = served[study.id] += client_slots_.at(id).wanted;
    turns.emplace_back(slots / study.spec.share, order, id);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<TrialId> ids;
  for (const auto& [turn, order, id] : turns) ids.push_back(id);
  return ids;
}

// Why the request cannot be served whatever becomes free; empty: it can.
std::string Core::Impl::WhyNotNow(const ClientSlots& own,
                                  const std::vector<ClientNode>& nodes) const {
  if (nodes.empty()) return "the pool has no node that takes trials";
  std::map<std::string, int> of_type;
  for (const ClientNode& node : nodes) {
    if (own.node.empty() || own.node == node.name) of_type[node.gpu_type] += node.slots;
  }
  if (of_type.empty()) {
    return absl::StrCat("node \"", own.node, "\" is not there at present, or is to be emptied");
  }
  int most = 0;
  for (const auto& [type, slots] : of_type) most = std::max(most, slots);
  if (most >= own.wanted) return "";
  return absl::StrCat("the pool has ", Count(most), of_type.size() > 1 ? " of one GPU type" : "",
                      ", ", own.wanted, " are wanted: more nodes must join");
}

// Both sides, studies that the tuner runs and studies whose clients ask for slots, have a part of
// the pool by their shares. Within their part clients are served first come first served: what is
// free at once, else the pool's trials make room: elastic ones shrink, then pause with a
// checkpoint, and nothing new starts where one that cannot be resized ends. A request for more than
// the part takes turns with the pool's trials, which have the slots for as long afterwards as it
// held them. What clients want beyond their part they get from slots that the pool's trials leave
// unused (ServeClientsFromUnused). Nobody who waits is passed but by requests for other nodes, and,
// in the trials' turn, by such as fit into the part.
void Core::Impl::ServeClients() {
  reserved_.clear();
  if (client_slots_.empty()) return;
  std::vector<ClientNode> nodes = NodesForClients();
  int total = 0;
  int spoken_for = 0;
  for (const ClientNode& node : nodes) {
    total += node.slots;
    spoken_for += node.slots - node.open;
  }
  const auto [clients, pool] = SharesOfSides();
  const int part =
      pool == 0 ? total : static_cast<int>(std::floor(total * clients / (clients + pool) + 1e-9));
  bool blocked = false;
  for (const TrialId id : WaitingClients()) {
    ClientSlots& own = client_slots_.at(id);
    own.waits_for = WhyNotNow(own, nodes);
    if (own.waits_for.empty() && blocked) own.waits_for = "others have asked before it";
    const bool within = spoken_for + own.wanted <= part;
    const bool its_turn = spoken_for == 0 && trials_turn_ends_ <= turn_.now();
    if (own.waits_for.empty() && !within && !its_turn) {
      blocked = own.node.empty() && (spoken_for > 0 || pool == 0);
      own.waits_for =
          spoken_for > 0
              ? absl::StrCat("trials of clients hold ", spoken_for, " of the ", Count(part),
                             pool == 0 ? " of the pool" : " that are their part of the pool")
              : absl::StrFormat("the tuner's own trials have the pool for another %.0f s",
                                SecondsBetween(turn_.now(), trials_turn_ends_));
    }
    if (!own.waits_for.empty()) {
      own.reserved.clear();
      continue;
    }
    if (const std::optional<Placement> free = PlaceOnFree(own, nodes)) {
      Take(*free, nodes);
      spoken_for += own.wanted;
      Grant(id, *free, !within);
      continue;
    }
    if (own.reserved.empty() || !AllOpen(own.reserved, nodes)) {
      own.reserved = PlaceOnOpen(own, nodes).value_or(Placement{});
    }
    if (own.reserved.empty()) {
      own.waits_for = "trials of other clients hold the slots that it could have";
      blocked = own.node.empty();
      continue;
    }
    spoken_for += own.wanted;
    own.waits_for = "trials of the pool make room for it";
    Take(own.reserved, nodes);
    for (const auto& [node, slots] : own.reserved) {
      reserved_[node] += slots;
      MakeRoomOn(node);
    }
  }
}

// Where elastic trials cannot give what is reserved there by shrinking, the least promising one
// that may pause does so.
void Core::Impl::MakeRoomOn(NodeId node) {
  int planned = 0;
  int gives = 0;
  std::optional<TrialId> least;
  for (const auto& [trial, group] : pool_.groups) {
    const auto here = group.target.find(node);
    if (here == group.target.end()) continue;
    planned += here->second;
    gives += pool_.MayGiveOn(trial, group, node);
    if (!pool_.MayPauseForOthers(trial, group)) continue;
    if (!least || promise_[trial] < promise_[*least]) least = trial;
  }
  if (!least || planned - gives <= pool_.nodes.at(node).slots - KeptForClients(node)) return;
  PauseTrial(*least, "makes room for slots that a client waits for");
}

// After the policy has divided the pool: whoever asks for more than the clients' part may have what
// has been left over for a while.
void Core::Impl::ServeClientsFromUnused() {
  if (client_slots_.empty()) return;
  const std::vector<ClientNode> nodes = NodesForClients();
  const TrialId before = std::exchange(unused_for_, {});
  for (const TrialId id : WaitingClients()) {
    const ClientSlots& own = client_slots_.at(id);
    if (!own.reserved.empty() || !WhyNotNow(own, nodes).empty()) continue;
    const std::optional<Placement> free = PlaceOnFree(own, nodes);
    if (!free) return;
    if (id != before) unused_since_ = turn_.now();
    if (SecondsBetween(unused_since_, turn_.now()) >= kUnusedSlots_s) {
      Grant(id, *free, /*in_turn=*/false);
    } else {
      unused_for_ = id;
    }
    return;
  }
}

void Core::Impl::Grant(TrialId id, const Placement& placement, bool in_turn) {
  ClientSlots& own = client_slots_.at(id);
  std::vector<std::string> where;
  for (const auto& [node, slots] : placement) {
    for (int i = 0; i < slots; ++i) {
      const std::optional<int> index = pool_.FreeSlot(node);
      ESPALIER_CHECK(index.has_value(), "a free slot is one that nobody is on");
      own.slots.push_back({node, *index});
      pool_.held_by_clients[own.slots.back()] = id;
    }
    where.push_back(absl::StrCat(slots, " on ", pool_.nodes.at(node).name));
  }
  std::sort(own.slots.begin(), own.slots.end());
  own.reserved.clear();
  own.waits_for.clear();
  own.in_turn = in_turn;
  own.heard = turn_.now();
  pool_.SlotsChange(id);
  const double waited_s = SecondsBetween(own.asked, turn_.now());
  turn_.Decide(
      turn_.TrialAt(id), DecisionKind::kStart, 0, own.wanted,
      absl::StrCat("its client asked for ", Count(own.wanted), ": ", absl::StrJoin(where, ", "),
                   waited_s < 0.05 ? "" : absl::StrFormat(", after %.1f s", waited_s)));
}

// ---- answers and deadlines

void Core::Impl::AnswerClients() {
  for (auto it = slot_answers_.begin(); it != slot_answers_.end();) {
    const auto [id, answer_by] = *it;
    ClientSlots& own = client_slots_.at(id);
    if (own.slots.empty() && !own.waits_was_told) {
      own.waits_was_told = true;
      turn_.Decide(turn_.TrialAt(id), DecisionKind::kPause, 0, 0,
                   absl::StrCat("waits for ", Count(own.wanted), ": ", own.waits_for));
    }
    if (own.slots.empty() && answer_by > turn_.now()) {
      ++it;
      continue;
    }
    Reply reply;
    reply.trial = id;
    Tell(own, reply);
    turn_.AnswerLate(id, reply);
    it = slot_answers_.erase(it);
  }
}

Time Core::Impl::NextClientSlots() const {
  Time next = client_slots_due_;
  const auto consider = [&next](Time t) { next = std::min(next, t); };
  if (client_nodes_unsure_ && pool_.recovery_ends) consider(*pool_.recovery_ends);
  for (const auto& [id, answer_by] : slot_answers_) consider(answer_by);
  if (unused_for_) consider(After(unused_since_, kUnusedSlots_s));
  if (trials_turn_ends_ > turn_.now()) consider(trials_turn_ends_);
  return next;
}

}  // namespace espalier
