#include "trial_runner/torch/state_transfer.h"

#include <algorithm>
#include <cstdio>
#include <memory>
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

absl::Status Hand(Collectives& collectives, SharedState& state, const std::vector<int>& takers) {
  ESPALIER_ASSIGN_OR_RETURN(const StateOffer offer, state.Offer());
  auto size = std::make_shared<std::vector<std::int64_t>>(
      1, static_cast<std::int64_t>(offer.description->size()));
  // In three rounds, since whoever takes it has to know what is to come.
  for (const int taker : takers) collectives.StartSend(CollectiveBuffer::Of(size), taker);
  ESPALIER_RETURN_IF_ERROR(collectives.WaitAll());
  for (const int taker : takers) {
    collectives.StartSend(CollectiveBuffer::Of(offer.description), taker);
  }
  ESPALIER_RETURN_IF_ERROR(collectives.WaitAll());
  for (const CollectiveBuffer& piece : Pieces(offer.tensors)) {
    for (const int taker : takers) collectives.StartSend(piece, taker);
  }
  return collectives.WaitAll();
}

absl::Status Take(Collectives& collectives, SharedState& state, int from) {
  auto size = std::make_shared<std::vector<std::int64_t>>(1);
  collectives.StartReceive(CollectiveBuffer::Of(size), from);
  ESPALIER_RETURN_IF_ERROR(collectives.WaitAll());
  auto description =
      std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(size->front()));
  collectives.StartReceive(CollectiveBuffer::Of(description), from);
  ESPALIER_RETURN_IF_ERROR(collectives.WaitAll());
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<CollectiveBuffer> expected,
                            state.Expect(*description));
  for (const CollectiveBuffer& piece : Pieces(expected)) collectives.StartReceive(piece, from);
  if (absl::Status arrived = collectives.WaitAll(); !arrived.ok()) {
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
                           bool running) {
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
    if (takers[i] == rank) return Take(collectives, state, source);
    if (source == rank) mine.push_back(takers[i]);
  }
  return mine.empty() ? absl::OkStatus() : Hand(collectives, state, mine);
}

}  // namespace espalier
