#include "trial_runner/torch/state_transfer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using Order = std::vector<std::int64_t>;

// Large tensors travel in pieces, so that a transport with several streams can use them all.
constexpr std::int64_t kPieceBytes = 16 << 20;
// Of one member, between two moments at which all come together.
constexpr std::int64_t kRoundBytes = 64 << 20;

std::vector<CollectiveBuffer> Pieces(const std::vector<CollectiveBuffer>& buffers) {
  std::vector<CollectiveBuffer> pieces;
  for (const CollectiveBuffer& buffer : buffers) {
    for (std::int64_t begin = 0; begin < buffer.count; begin += kPieceBytes) {
      CollectiveBuffer piece = buffer;
      piece.start = static_cast<std::uint8_t*>(buffer.start) + begin;
      piece.count = std::min(kPieceBytes, buffer.count - begin);
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

std::int64_t BytesOf(std::span<const CollectiveBuffer> pieces) {
  return std::accumulate(
      pieces.begin(), pieces.end(), std::int64_t{0},
      [](std::int64_t sum, const CollectiveBuffer& piece) { return sum + piece.count; });
}

// What this member moves, and with whom.
struct Share {
  std::vector<CollectiveBuffer> pieces;
  std::vector<int> takers;
  std::optional<int> source;
};

absl::Status Move(Collectives& collectives, const Share& share,
                  std::span<const CollectiveBuffer> pieces, GroupProgress& progress) {
  for (const CollectiveBuffer& piece : pieces) {
    for (const int taker : share.takers) collectives.StartSend(piece, taker);
    if (share.source) collectives.StartReceive(piece, *share.source);
  }
  ESPALIER_RETURN_IF_ERROR(collectives.WaitAll());
  const auto partners = static_cast<std::int64_t>(share.takers.size()) + (share.source ? 1 : 0);
  progress.Add(GroupPhase::kHandingOver, partners * BytesOf(pieces));
  return absl::OkStatus();
}

// Takes the next pieces, as many as travel in one round.
std::span<const CollectiveBuffer> NextRound(std::span<const CollectiveBuffer>& left) {
  std::size_t count = 0;
  std::int64_t bytes = 0;
  while (count < left.size() && bytes < kRoundBytes) bytes += left[count++].count;
  const std::span<const CollectiveBuffer> round = left.first(count);
  left = left.subspan(count);
  return round;
}

absl::Status MoveInRounds(Collectives& collectives, const Share& share, GroupProgress& progress) {
  std::span<const CollectiveBuffer> left = share.pieces;
  while (!left.empty()) {
    ESPALIER_RETURN_IF_ERROR(Move(collectives, share, NextRound(left), progress));
  }
  return absl::OkStatus();
}

// All members move their shares, and come together after each round, those who have none as well.
// So nobody waits for longer than a round takes, however large the whole is.
absl::Status MoveTogether(Collectives& collectives, const Share& share, GroupProgress& progress) {
  std::span<const CollectiveBuffer> left = share.pieces;
  while (true) {
    ESPALIER_RETURN_IF_ERROR(Move(collectives, share, NextRound(left), progress));
    ESPALIER_ASSIGN_OR_RETURN(const std::vector<Order> all, collectives.AllGather({BytesOf(left)}));
    if (std::all_of(all.begin(), all.end(), [](const Order& of) { return of.front() == 0; })) {
      return absl::OkStatus();
    }
  }
}

// Who takes has to know what is to come: first how long its description is, then that itself.
absl::Status Describe(Collectives& collectives, Share& share,
                      std::shared_ptr<std::vector<std::uint8_t>>& description,
                      GroupProgress& progress) {
  auto size = std::make_shared<std::vector<std::int64_t>>(
      1, description ? static_cast<std::int64_t>(description->size()) : 0);
  const std::array word{CollectiveBuffer::Of(size)};
  ESPALIER_RETURN_IF_ERROR(Move(collectives, share, word, progress));
  if (!description) {
    description =
        std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(size->front()));
  }
  share.pieces = Pieces({CollectiveBuffer::Of(description)});
  return MoveInRounds(collectives, share, progress);
}

absl::Status Hand(Collectives& collectives, SharedState& state, const std::vector<int>& takers,
                  GroupProgress& progress) {
  ESPALIER_ASSIGN_OR_RETURN(StateOffer offer, state.Offer());
  Share share{.pieces = {}, .takers = takers, .source = std::nullopt};
  progress.Expect(static_cast<std::int64_t>(takers.size()) *
                  (std::ssize(*offer.description) + BytesOf(offer.tensors)));
  ESPALIER_RETURN_IF_ERROR(Describe(collectives, share, offer.description, progress));
  share.pieces = Pieces(offer.tensors);
  return MoveTogether(collectives, share, progress);
}

absl::Status Take(Collectives& collectives, SharedState& state, int from, GroupProgress& progress) {
  Share share{.pieces = {}, .takers = {}, .source = from};
  std::shared_ptr<std::vector<std::uint8_t>> description;
  ESPALIER_RETURN_IF_ERROR(Describe(collectives, share, description, progress));
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<CollectiveBuffer> expected,
                            state.Expect(*description));
  progress.Expect(std::ssize(*description) + BytesOf(expected));
  share.pieces = Pieces(expected);
  if (absl::Status arrived = MoveTogether(collectives, share, progress); !arrived.ok()) {
    state.Forsake();
    return arrived;
  }
  return state.Accept();
}

// The orders of all members, by rank, once those that can have restored what they lost: that is
// done only if nobody else has a state to go on from.
absl::StatusOr<std::vector<Order>> Orders(Collectives& collectives, SharedState& state,
                                          bool running) {
  ESPALIER_ASSIGN_OR_RETURN(std::vector<Order> orders, collectives.AllGather(state.Order()));
  const bool trained =
      std::max_element(orders.begin(), orders.end())->front() == SharedState::kTrained;
  const bool spoiled =
      std::min_element(orders.begin(), orders.end())->front() == SharedState::kSpoiled;
  if (trained || !spoiled) return orders;
  if (state.Order().front() == SharedState::kSpoiled && !running) {
    if (const absl::Status restored = state.Restore(); !restored.ok()) {
      std::fprintf(stderr, "espalier: %s\n", std::string(restored.message()).c_str());
    }
  }
  return collectives.AllGather(state.Order());
}

// A program in mid-training cannot be sent back: it and those who join would do different things.
bool GoesBack(const Order& own, const Order& furthest) {
  return std::lexicographical_compare(furthest.begin() + 1, furthest.end(), own.begin() + 1,
                                      own.end());
}

}  // namespace

absl::Status EqualiseState(Collectives& collectives, SharedState& state, int rank, int size,
                           bool running, GroupProgress& progress) {
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<Order> orders, Orders(collectives, state, running));
  const Order& furthest = *std::max_element(orders.begin(), orders.end());
  const Order& own = orders[static_cast<std::size_t>(rank)];
  if (own.front() == SharedState::kSpoiled &&
      (furthest.front() == SharedState::kSpoiled || (running && GoesBack(own, furthest)))) {
    return absl::DataLossError(
        "the training state was lost: a member was lost while it handed over its own, and no other "
        "has it; the trial can only go on from a checkpoint");
  }
  std::vector<int> sources;
  std::vector<int> takers;
  for (int member = 0; member < size; ++member) {
    const bool first = sources.empty() || furthest.front() != SharedState::kFresh;
    const bool source = orders[static_cast<std::size_t>(member)] == furthest && first;
    (source ? sources : takers).push_back(member);
  }
  std::vector<int> mine;
  for (std::size_t i = 0; i < takers.size(); ++i) {
    const int source = sources[i % sources.size()];
    if (takers[i] == rank) return Take(collectives, state, source, progress);
    if (source == rank) mine.push_back(takers[i]);
  }
  if (takers.empty()) return absl::OkStatus();
  if (mine.empty()) return MoveTogether(collectives, {}, progress);
  return Hand(collectives, state, mine, progress);
}

}  // namespace espalier
