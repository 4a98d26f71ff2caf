// Which nodes of the simulated pool cannot talk, and what replicas there say of it.

#include <algorithm>
#include <utility>

#include "tests/simulation/simulated_pool.h"

namespace espalier {

void SimulatedPool::Cut(std::size_t from, std::size_t to, Contact how, double for_s) {
  cuts_[{from, to}] = {After(agenda_.now(), for_s), how};
}

bool SimulatedPool::IsCut(std::size_t from, std::size_t to) const {
  const auto cut = cuts_.find({from, to});
  return cut != cuts_.end() && cut->second.until > agenda_.now();
}

// A group needs connections both ways between all its members.
bool SimulatedPool::IsCut(const std::vector<Member>& members) const {
  for (const Member& a : members) {
    for (const Member& b : members) {
      if (IsCut(NodeIndex(a.node), NodeIndex(b.node))) return true;
    }
  }
  return false;
}

void SimulatedPool::CutSome(const std::vector<Member>& members) {
  if (members.size() < 2 || random_.Uniform() >= faults_.cut_nodes) return;
  const std::size_t from = NodeIndex(members.front().node);
  const std::size_t to = NodeIndex(members.back().node);
  if (from == to) return;
  const Contact how = random_.Below(2) == 0 ? Contact::kRefused : Contact::kSilent;
  const double for_s = random_.Uniform(1, 60);
  ++met_[how == Contact::kRefused ? "nodes cut, refused" : "nodes cut, silent"];
  const std::uint64_t ways = random_.Below(3);
  if (ways > 0) ++met_["nodes cut one way"];
  if (ways != 1) Cut(from, to, how, for_s);
  if (ways != 2) Cut(to, from, how, for_s);
}

// As a replica finds the others that it waits for.
std::vector<ReplicaContact> SimulatedPool::ContactsOf(const Process& process) const {
  std::vector<ReplicaContact> contacts;
  const auto own = process.regroup->RankOf(process.id);
  if (!own) return contacts;
  const std::size_t here = NodeIndex(process.regroup->members[static_cast<std::size_t>(*own)].node);
  for (const Member& member : process.regroup->members) {
    if (member.replica == process.id) continue;
    const std::size_t there = NodeIndex(member.node);
    ReplicaContact contact{member.replica, member.address, Contact::kAnswered};
    if (IsCut(here, there)) {
      contact.contact = cuts_.at({here, there}).how;
      contact.error = contact.contact == Contact::kRefused ? "Connection refused" : "no answer";
    }
    contacts.push_back(std::move(contact));
  }
  return contacts;
}

// One whose attempts all succeed says nothing, however long it waits: as the real one.
bool SimulatedPool::SaysWhomItCannotReach(std::size_t index, const Process& process) {
  std::vector<ReplicaContact> contacts = ContactsOf(process);
  const bool cut = std::any_of(contacts.begin(), contacts.end(), [](const ReplicaContact& contact) {
    return contact.contact != Contact::kAnswered;
  });
  if (!cut) return false;
  Emit(index, process.id,
       FromReplica{process.id, ReplicaStuck{process.regroup->generation, 5, std::move(contacts)}});
  return true;
}

}  // namespace espalier
