#include "trial_runner/torch/group/place_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {
namespace {

// A member that goes on waiting says so each second, so what it said last may be a second old. Of
// one that said it this often, likely or certainly, that is not so.
constexpr int kLikely = 2;
constexpr int kCertain = 4;

// A rank 0 that says nothing for this long is none to ask: its machine may be cut off.
constexpr std::chrono::seconds kAnswer{2};

// A note: the wait, the tick within it, the place.
constexpr std::size_t kNoteNumbers = 2 + ProgramPlace::kNumbers;

std::string KeyOf(int rank) { return absl::StrCat("place/", rank); }

std::string NoteOf(std::int64_t wait, std::int64_t tick, const ProgramPlace& place) {
  std::vector<std::int64_t> numbers{wait, tick};
  const std::vector<std::int64_t> of_place = place.ToNumbers();
  numbers.insert(numbers.end(), of_place.begin(), of_place.end());
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]};
}

}  // namespace

bool PlaceExchange::Connect(const Membership& group) {
  if (client_ && generation_ == group.generation) return true;
  client_.reset();
  noted_ = false;
  auto client = RendezvousClient::Connect(group.members.front().address, group.generation,
                                          group.secret, cancelled_, kAnswer);
  if (!client.ok()) return false;  // a lost member is found by others
  client_ = *std::move(client);
  generation_ = group.generation;
  return true;
}

// False: the rendezvous is gone.
bool PlaceExchange::Read(int other) {
  const absl::StatusOr<std::string> note = client_->Peek(KeyOf(other));
  if (!note.ok()) return false;
  Seen& seen = seen_[other];
  std::int64_t numbers[kNoteNumbers] = {};
  if (note->size() != sizeof numbers) {
    seen.times = 0;
    ++seen.absent;
    return true;
  }
  std::memcpy(numbers, note->data(), sizeof numbers);
  const ProgramPlace place = ProgramPlace::Of(numbers + 2);
  if (numbers[0] != seen.wait || place != seen.place) seen = {.wait = numbers[0], .place = place};
  seen.absent = 0;
  if (numbers[1] != seen.tick) ++seen.times;
  seen.tick = numbers[1];
  return true;
}

std::optional<PlaceExchange::Finding> PlaceExchange::Judge(int rank, int size,
                                                           const ProgramPlace& place) {
  std::vector<int> absent;
  std::optional<int> elsewhere;
  int seen_waiting = kCertain;
  for (const auto& [other, seen] : seen_) {
    if (seen.absent >= kLikely) absent.push_back(other);
    if (seen.place != place && !elsewhere) elsewhere = other;
    seen_waiting = std::min(seen_waiting, seen.times);
  }
  if (seen_waiting >= kLikely && elsewhere) {
    return Finding{PlacesDiffer(rank, place, *elsewhere, seen_.at(*elsewhere).place), true,
                   seen_waiting == kCertain};
  }
  if (said_ || absent.empty()) return std::nullopt;
  said_ = true;
  return Finding{
      absl::StrCat("replica ", rank, " of ", size, " has waited for some seconds at ", place.text(),
                   " for replica ", absl::StrJoin(absent, ", "), ", which has not come there yet"),
      false, false};
}

std::optional<PlaceExchange::Finding> PlaceExchange::Look(const Membership& group, int rank,
                                                          std::int64_t wait,
                                                          const ProgramPlace& place) {
  if (!Connect(group)) return std::nullopt;
  if (wait != wait_) {
    wait_ = wait;
    seen_.clear();
    said_ = false;
  }
  noted_ = true;
  const int size = static_cast<int>(group.members.size());
  bool reached = client_->Set(KeyOf(rank), NoteOf(wait, ++tick_, place)).ok();
  for (int other = 0; other < size && reached; ++other) {
    if (other != rank) reached = Read(other);
  }
  if (!reached) {
    client_.reset();
    return std::nullopt;
  }
  return Judge(rank, size, place);
}

void PlaceExchange::End(int rank) {
  if (!noted_ || !client_) return;
  noted_ = false;
  if (!client_->Set(KeyOf(rank), "").ok()) client_.reset();
}

}  // namespace espalier
