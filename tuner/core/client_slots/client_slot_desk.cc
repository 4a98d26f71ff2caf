#include "tuner/core/client_slots/client_slot_desk.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "tuner/core/pool/engine_nodes.h"

namespace espalier {

namespace {

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

void ClientSlotDesk::Acquire(const Trial& trial, const AcquireSlots& event) {
  turn_.reply().status = CheckRequest(trial, event);
  if (!turn_.reply().status.ok()) return;
  ClientSlots& own = requests_[trial.id];
  if (own.slots.empty() &&
      (own.order == 0 || own.wanted != event.slots || own.node != event.node)) {
    own = {};
    own.wanted = event.slots;
    own.node = event.node;
    own.order = ++last_order_;
    own.asked = turn_.now();
    turn_.Wake();
  }
  own.heard = own.slots.empty() ? After(turn_.now(), event.wait_s) : turn_.now();
  due_ = std::min(due_, After(*own.heard, options_.slot_lease_s));
  answers_[trial.id] = After(turn_.now(), event.wait_s);
  turn_.reply().content = LaterReply{.trial = trial.id};
}

absl::Status ClientSlotDesk::CheckRequest(const Trial& trial, const AcquireSlots& event) const {
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
  const auto known = requests_.find(trial.id);
  if (known == requests_.end() && requests_.size() >= kMaxSlotRequests) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxSlotRequests, " clients hold slots or wait for them: try again later"));
  }
  if (known != requests_.end() && !known->second.slots.empty() &&
      std::ssize(known->second.slots) != event.slots) {
    return absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial.number, " holds ", SlotsText(static_cast<int>(known->second.slots.size())),
        ": give them back before you ask for ", SlotsText(event.slots)));
  }
  return CheckPossible(event);
}

// What no wait can bring is said at once. Nodes may join a pool at any time, so that a request for
// more than there is at present waits, unless it is known what there may be at most.
absl::Status ClientSlotDesk::CheckPossible(const AcquireSlots& event) const {
  if (!event.node.empty()) {
    const auto named = [&event](const auto& known) { return known.second == event.node; };
    if (std::none_of(turn_.state().nodes.begin(), turn_.state().nodes.end(), named)) {
      return absl::NotFoundError(
          absl::StrCat("no node \"", event.node, "\" has ever been in this pool"));
    }
    for (const auto& [id, node] : pool_.nodes) {
      if (node.name != event.node || node.slots >= event.slots) continue;
      return absl::OutOfRangeError(absl::StrCat(
          "node \"", event.node, "\" has ", SlotsText(node.slots), ", asked for ", event.slots));
    }
  }
  if (!options_.pool_size) return absl::OkStatus();
  const int most = MostSlots(pool_, options_.pool_size->templates);
  if (event.slots <= most) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the pool grows to ", SlotsText(most), " at most, asked for ", event.slots));
}

void ClientSlotDesk::Renew(const Trial& trial) {
  const auto it = requests_.find(trial.id);
  if (it == requests_.end() || it->second.slots.empty()) {
    turn_.reply().status = absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial.number, " holds no slots: they were given back, not renewed for ",
        options_.slot_lease_s, " s, or lost with their node"));
    return;
  }
  it->second.heard = turn_.now();
  Tell(it->second, turn_.reply());
}

void ClientSlotDesk::Tell(const ClientSlots& own, Reply& reply) const {
  reply.content = SlotsReply{own.slots, options_.slot_lease_s,
                             own.slots.empty() ? own.waits_for : std::string()};
}

// ---- what ends a hold or a request

void ClientSlotDesk::GiveBack(TrialId id, const std::string& why) {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return;
  const ClientSlots own = std::move(it->second);
  requests_.erase(it);
  turn_.Wake();
  if (answers_.erase(id) > 0) {
    Reply reply;
    reply.status = absl::FailedPreconditionError(absl::StrCat("gets no slots: ", why));
    turn_.AnswerLate({.trial = id}, reply);
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

void ClientSlotDesk::GiveBackOn(NodeId node, int from_slot, const std::string& why) {
  std::set<TrialId> holders;
  for (const auto& [slot, trial] : pool_.held_by_clients) {
    if (slot.node == node && slot.index >= from_slot) holders.insert(trial);
  }
  for (const TrialId id : holders) GiveBack(id, why);
}

void ClientSlotDesk::TakeUp(const Trial& trial) {
  if (trial.spans.empty() || trial.spans.back().to != Time{}) return;
  ClientSlots& own = requests_[trial.id];
  own.slots = trial.spans.back().slots;
  own.wanted = static_cast<int>(own.slots.size());
  own.order = ++last_order_;
  for (const Slot& slot : own.slots) pool_.held_by_clients[slot] = trial.id;
  nodes_unsure_ = true;
}

void ClientSlotDesk::Observe(const Change& change) {
  if (const auto* set = std::get_if<TrialStateChanged>(&change)) NoteLeft(set->id, set->state);
  if (const auto* told = std::get_if<TrialTold>(&change)) NoteLeft(told->id, told->state);
  if (std::holds_alternative<StudyDeleted>(change) ||
      std::holds_alternative<StudyStateChanged>(change)) {
    studies_changed_ = true;
  }
}

void ClientSlotDesk::NoteLeft(TrialId id, TrialState state) {
  if (!requests_.contains(id)) return;
  if (state == TrialState::kRunning) {
    left_.erase(id);
  } else {
    left_[id] = state;
  }
}

void ClientSlotDesk::Check() {
  const bool studies_changed = std::exchange(studies_changed_, false);
  if (requests_.empty()) return;
  for (const auto& [id, state] : std::exchange(left_, {})) {
    GiveBack(id, absl::StrCat("its trial is ", std::string(ToString(state))));
  }
  CheckNodes();
  if (!studies_changed && due_ > turn_.now()) return;
  due_ = After(turn_.now(), options_.slot_lease_s);
  std::map<TrialId, std::string> ended;
  for (auto& [id, own] : requests_) {
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
      due_ = std::min(due_, After(*own.heard, options_.slot_lease_s));
    }
  }
  for (const auto& [id, why] : ended) GiveBack(id, why);
}

// After a restart, when nobody is waited for any more.
void ClientSlotDesk::CheckNodes() {
  if (!nodes_unsure_ || pool_.recovery_ends) return;
  nodes_unsure_ = false;
  std::set<NodeId> gone;
  for (const auto& [slot, trial] : pool_.held_by_clients) {
    if (!pool_.nodes.contains(slot.node)) gone.insert(slot.node);
  }
  for (const NodeId id : gone) GiveBackOn(id, 0, "its node did not come back");
}

// ---- who gets slots

const std::vector<Slot>& ClientSlotDesk::SlotsOf(TrialId id) const {
  static const std::vector<Slot> kNone;
  const auto own = requests_.find(id);
  return own == requests_.end() ? kNone : own->second.slots;
}

int ClientSlotDesk::SlotsWanted() const {
  int slots = 0;
  for (const auto& [id, own] : requests_) slots += own.wanted;
  return slots;
}

int ClientSlotDesk::KeptOn(NodeId node) const {
  return pool_.ClientSlotsOn(node) + ReservedOn(node);
}

int ClientSlotDesk::ReservedOn(NodeId node) const {
  const auto reserved = reserved_.find(node);
  return reserved == reserved_.end() ? 0 : reserved->second;
}

int ClientSlotDesk::SlotsToShare() const {
  int slots = 0;
  for (const auto& [id, node] : pool_.nodes) {
    if (!node.connected || node.draining) continue;
    slots += node.slots - pool_.UnusableSlotsOn(node) - KeptOn(id);
  }
  return std::max(0, slots);
}

// Nodes that take trials, without what is held or reserved there.
std::vector<ClientNode> ClientSlotDesk::Nodes() const {
  std::map<NodeId, int> busy;
  std::map<std::pair<NodeId, TrialId>, int> staying;
  for (const auto& [id, replica] : pool_.replicas) {
    busy[replica.node] += replica.slots();
    if (replica.leaving || replica.stopping) continue;
    staying[{replica.node, replica.trial}] += replica.slots();
  }
  for (const Slot& slot : pool_.SlotsToRecover()) ++busy[slot.node];
  std::vector<ClientNode> nodes;
  for (const auto& [id, node] : pool_.nodes) {
    if (!node.connected || node.draining) continue;
    ClientNode added{.id = id,
                     .name = node.name,
                     .gpu_type = node.gpu_type,
                     .slots = node.slots,
                     .open = node.slots - pool_.UnusableSlotsOn(node) - KeptOn(id),
                     .free = 0,
                     .gives = 0};
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

// The shares of studies whose clients hold slots or ask for them, and of those that the tuner runs.
std::pair<double, double> ClientSlotDesk::SharesOfSides() const {
  std::set<StudyId> asking;
  for (const auto& [id, own] : requests_) {
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

// The request that has waited longest comes first; where several studies ask, the first slots of
// each before further ones of any, by their shares.
std::vector<TrialId> ClientSlotDesk::Waiting() const {
  std::map<StudyId, int> served;
  std::vector<std::pair<std::int64_t, TrialId>> waiting;
  for (const auto& [id, own] : requests_) {
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
    const int slots = served[study.id] += requests_.at(id).wanted;
    turns.emplace_back(slots / study.spec.share, order, id);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<TrialId> ids;
  for (const auto& [turn, order, id] : turns) ids.push_back(id);
  return ids;
}

// Why the request cannot be served whatever becomes free; empty: it can.
std::string ClientSlotDesk::WhyNotNow(const ClientSlots& own,
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
  return absl::StrCat("the pool has ", SlotsText(most),
                      of_type.size() > 1 ? " of one GPU type" : "", ", ", own.wanted,
                      " are wanted: more nodes must join");
}

// Both sides, studies that the tuner runs and studies whose clients ask for slots, have a part of
// the pool by their shares. Within their part clients are served first come first served: what is
// free at once, else the pool's trials make room: elastic ones shrink, then pause with a
// checkpoint, and nothing new starts where one that cannot be resized ends. A request for more than
// the part takes turns with the pool's trials, which have the slots for as long afterwards as it
// held them. What clients want beyond their part they get from slots that the pool's trials leave
// unused (ServeFromUnused). Nobody who waits is passed but by requests for other nodes, and,
// in the trials' turn, by such as fit into the part.
void ClientSlotDesk::Serve() {
  reserved_.clear();
  if (requests_.empty()) return;
  std::vector<ClientNode> nodes = Nodes();
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
  for (const TrialId id : Waiting()) {
    ClientSlots& own = requests_.at(id);
    own.waits_for = WhyNotNow(own, nodes);
    if (own.waits_for.empty() && blocked) own.waits_for = "others have asked before it";
    const bool within = spoken_for + own.wanted <= part;
    const bool its_turn = spoken_for == 0 && trials_turn_ends_ <= turn_.now();
    if (own.waits_for.empty() && !within && !its_turn) {
      blocked = own.node.empty() && (spoken_for > 0 || pool == 0);
      own.waits_for =
          spoken_for > 0
              ? absl::StrCat("trials of clients hold ", spoken_for, " of the ", SlotsText(part),
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
      MakeRoomOn(node, pool_.nodes.at(node).slots - KeptOn(node));
    }
  }
}

// Where elastic trials cannot leave the node all but so many slots by shrinking, the least
// promising one that may pause does so.
void ClientSlotDesk::MakeRoomOn(NodeId node, int left) {
  int planned = 0;
  int gives = 0;
  std::optional<TrialId> least;
  for (const auto& [trial, group] : pool_.groups) {
    const auto here = group.target.find(node);
    if (here == group.target.end()) continue;
    planned += here->second;
    gives += pool_.MayGiveOn(trial, group, node);
    if (!pool_.MayPauseForOthers(trial, group)) continue;
    if (!least || promises_.Of(trial) < promises_.Of(*least)) least = trial;
  }
  if (!least || planned - gives <= left) return;
  trials_.PauseTrial(*least, "makes room for slots that a client waits for");
}

void ClientSlotDesk::ServeFromUnused() {
  if (requests_.empty()) return;
  const std::vector<ClientNode> nodes = Nodes();
  const TrialId before = std::exchange(unused_for_, {});
  for (const TrialId id : Waiting()) {
    const ClientSlots& own = requests_.at(id);
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

void ClientSlotDesk::Grant(TrialId id, const Placement& placement, bool in_turn) {
  ClientSlots& own = requests_.at(id);
  std::vector<std::string> where;
  for (const auto& [node, slots] : placement) {
    for (int i = 0; i < slots; ++i) {
      const std::optional<int> index = pool_.FreeSlot(node, id);
      ESPALIER_CHECK(index.has_value(), "a free slot is one that nobody is on");
      own.slots.push_back({node, *index});
      pool_.held_by_clients[own.slots.back()] = id;
      if (pool_.nodes.at(node).gpus > 0) turn_.Send(EndSparesCommand{node, *index});
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
      absl::StrCat("its client asked for ", SlotsText(own.wanted), ": ", absl::StrJoin(where, ", "),
                   waited_s < 0.05 ? "" : absl::StrFormat(", after %.1f s", waited_s)));
}

// ---- answers and deadlines

void ClientSlotDesk::Answer() {
  for (auto it = answers_.begin(); it != answers_.end();) {
    const auto [id, answer_by] = *it;
    ClientSlots& own = requests_.at(id);
    if (own.slots.empty() && !own.waits_was_told) {
      own.waits_was_told = true;
      turn_.Decide(turn_.TrialAt(id), DecisionKind::kPause, 0, 0,
                   absl::StrCat("waits for ", SlotsText(own.wanted), ": ", own.waits_for));
    }
    if (own.slots.empty() && answer_by > turn_.now()) {
      ++it;
      continue;
    }
    Reply reply;
    Tell(own, reply);
    turn_.AnswerLate({.trial = id}, reply);
    it = answers_.erase(it);
  }
}

std::optional<Time> ClientSlotDesk::Next() const {
  if (requests_.empty()) return std::nullopt;
  Time next = due_;
  const auto consider = [&next](Time t) { next = std::min(next, t); };
  if (nodes_unsure_ && pool_.recovery_ends) consider(*pool_.recovery_ends);
  for (const auto& [id, answer_by] : answers_) consider(answer_by);
  if (unused_for_) consider(After(unused_since_, kUnusedSlots_s));
  if (trials_turn_ends_ > turn_.now()) consider(trials_turn_ends_);
  return next;
}

}  // namespace espalier
