#include "trial_runner/torch/group/state_transfer.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

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

// What a member tells the others about its state.
struct StateMessage {
  Order order;
  // Of its offer; 0: it has made none.
  std::int64_t description_bytes = 0;
  std::int64_t tensor_bytes = 0;
};

constexpr std::size_t kOfferNumbers = 2;

// One member's part in an exchange of states.
class Exchange {
 public:
  Exchange(Collectives& collectives, SharedState& state, int rank, GroupProgress& progress)
      : collectives_(collectives), state_(state), rank_(rank), progress_(progress) {}

  absl::Status MakeOffer() {
    ESPALIER_ASSIGN_OR_RETURN(offer_, state_.Offer());
    return absl::OkStatus();
  }

  // The messages of all members, by rank, once those that can have restored what they lost: that is
  // done only if nobody else has a state to go on from.
  absl::StatusOr<std::vector<StateMessage>> Messages(bool running);
  // The same after those of `sources` that had no offer have made one.
  absl::StatusOr<std::vector<StateMessage>> MessagesWithOffers(std::vector<StateMessage> messages,
                                                               const std::vector<int>& sources);
  // How many bytes the largest offer has decides whether it is moved in several rounds, after each
  // of which all members come together.
  absl::Status Hand(const std::vector<int>& takers, bool in_rounds);
  absl::Status Take(int source, const StateMessage& of_source, bool in_rounds);
  absl::Status LookOn(bool in_rounds) {
    return in_rounds ? MoveTogether(collectives_, {}, progress_) : absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<StateMessage>> Tell();
  absl::Status Move(const Share& share, bool in_rounds) {
    return in_rounds ? MoveTogether(collectives_, share, progress_)
                     : MoveInRounds(collectives_, share, progress_);
  }

  Collectives& collectives_;
  SharedState& state_;
  const int rank_;
  GroupProgress& progress_;
  StateOffer offer_;
};

absl::StatusOr<std::vector<StateMessage>> Exchange::Tell() {
  Order own = state_.Order();
  own.push_back(offer_.description ? std::ssize(*offer_.description) : 0);
  own.push_back(BytesOf(offer_.tensors));
  ESPALIER_ASSIGN_OR_RETURN(std::vector<Order> all, collectives_.AllGather(own));
  std::vector<StateMessage> messages;
  for (Order& of : all) {
    const std::size_t size = of.size() - kOfferNumbers;
    StateMessage message{.order = {}, .description_bytes = of[size], .tensor_bytes = of[size + 1]};
    of.resize(size);
    message.order = std::move(of);
    messages.push_back(std::move(message));
  }
  return messages;
}

absl::StatusOr<std::vector<StateMessage>> Exchange::Messages(bool running) {
  ESPALIER_ASSIGN_OR_RETURN(std::vector<StateMessage> messages, Tell());
  const auto any = [&messages](SharedState::Kind kind) {
    return std::any_of(messages.begin(), messages.end(), [kind](const StateMessage& message) {
      return message.order.front() == kind;
    });
  };
  if (any(SharedState::kTrained) || !any(SharedState::kSpoiled)) return messages;
  if (state_.Order().front() == SharedState::kSpoiled && !running) {
    if (const absl::Status restored = state_.Restore(); !restored.ok()) {
      std::fprintf(stderr, "espalier: %s\n", std::string(restored.message()).c_str());
    }
  }
  return Tell();
}

absl::StatusOr<std::vector<StateMessage>> Exchange::MessagesWithOffers(
    std::vector<StateMessage> messages, const std::vector<int>& sources) {
  const auto lacks = [&messages](int source) {
    return messages[static_cast<std::size_t>(source)].description_bytes == 0;
  };
  if (std::none_of(sources.begin(), sources.end(), lacks)) return messages;
  const bool mine = std::find(sources.begin(), sources.end(), rank_) != sources.end();
  if (mine && lacks(rank_)) ESPALIER_RETURN_IF_ERROR(MakeOffer());
  return Tell();
}

absl::Status Exchange::Hand(const std::vector<int>& takers, bool in_rounds) {
  Share share{.pieces = {}, .takers = takers, .source = std::nullopt};
  progress_.Expect(static_cast<std::int64_t>(takers.size()) *
                   (std::ssize(*offer_.description) + BytesOf(offer_.tensors)));
  share.pieces = Pieces({CollectiveBuffer::Of(offer_.description)});
  ESPALIER_RETURN_IF_ERROR(MoveInRounds(collectives_, share, progress_));
  share.pieces = Pieces(offer_.tensors);
  return Move(share, in_rounds);
}

// Who takes has to know what is to come: first its description, then that itself.
absl::Status Exchange::Take(int source, const StateMessage& of_source, bool in_rounds) {
  Share share{.pieces = {}, .takers = {}, .source = source};
  const auto description = std::make_shared<std::vector<std::uint8_t>>(
      static_cast<std::size_t>(of_source.description_bytes));
  progress_.Expect(of_source.description_bytes + of_source.tensor_bytes);
  share.pieces = Pieces({CollectiveBuffer::Of(description)});
  ESPALIER_RETURN_IF_ERROR(MoveInRounds(collectives_, share, progress_));
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<CollectiveBuffer> expected,
                            state_.Expect(*description));
  share.pieces = Pieces(expected);
  if (absl::Status arrived = Move(share, in_rounds); !arrived.ok()) {
    state_.Forsake();
    return arrived;
  }
  return state_.Accept();
}

// A program in mid-training cannot be sent back: it and those who join would do different things.
bool GoesBack(const Order& own, const Order& furthest) {
  return std::lexicographical_compare(furthest.begin() + 1, furthest.end(), own.begin() + 1,
                                      own.end());
}

}  // namespace

absl::Status BroadcastState(Collectives& collectives, SharedState& state, int rank, int root) {
  StateOffer offer;
  if (rank == root) {
    ESPALIER_ASSIGN_OR_RETURN(offer, state.Offer());
  }
  const auto bytes = std::make_shared<std::vector<std::int64_t>>(
      1, offer.description ? std::ssize(*offer.description) : 0);
  ESPALIER_RETURN_IF_ERROR(collectives.Broadcast(CollectiveBuffer::Of(bytes), root));
  if (rank != root) {
    offer.description =
        std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(bytes->front()));
  }
  if (bytes->front() > 0) {
    ESPALIER_RETURN_IF_ERROR(collectives.Broadcast(CollectiveBuffer::Of(offer.description), root));
  }
  if (rank != root) {
    ESPALIER_ASSIGN_OR_RETURN(offer.tensors, state.Expect(*offer.description));
  }
  for (const CollectiveBuffer& piece : Pieces(offer.tensors)) {
    ESPALIER_RETURN_IF_ERROR(collectives.Broadcast(piece, root));
  }
  return rank == root ? absl::OkStatus() : state.Accept();
}

absl::Status EqualiseState(Collectives& collectives, SharedState& state, int rank, int size,
                           Readiness readiness, GroupProgress& progress) {
  Exchange exchange(collectives, state, rank, progress);
  if (readiness.offers && state.Order().front() == SharedState::kTrained) {
    ESPALIER_RETURN_IF_ERROR(exchange.MakeOffer());
  }
  ESPALIER_ASSIGN_OR_RETURN(std::vector<StateMessage> messages,
                            exchange.Messages(readiness.running));
  const Order furthest = std::max_element(messages.begin(), messages.end(),
                                          [](const StateMessage& a, const StateMessage& b) {
                                            return a.order < b.order;
                                          })
                             ->order;
  const Order& own = messages[static_cast<std::size_t>(rank)].order;
  if (own.front() == SharedState::kSpoiled && (furthest.front() == SharedState::kSpoiled ||
                                               (readiness.running && GoesBack(own, furthest)))) {
    return absl::DataLossError(
        "the training state was lost: a member was lost while it handed over its own, and no other "
        "has it; the trial can only go on from a checkpoint");
  }
  std::vector<int> sources;
  std::vector<int> takers;
  for (int member = 0; member < size; ++member) {
    const bool first = sources.empty() || furthest.front() != SharedState::kFresh;
    const bool source = messages[static_cast<std::size_t>(member)].order == furthest && first;
    (source ? sources : takers).push_back(member);
  }
  if (takers.empty()) return absl::OkStatus();
  const bool all_fresh = std::ranges::all_of(messages, [](const StateMessage& message) {
    return message.order.front() == SharedState::kFresh;
  });
  if (all_fresh) {
    ESPALIER_RETURN_IF_ERROR(state.CompareFresh(collectives, readiness.running));
  }
  sources.resize(std::min(sources.size(), takers.size()));
  ESPALIER_ASSIGN_OR_RETURN(messages, exchange.MessagesWithOffers(std::move(messages), sources));
  const auto message_of = [&messages](int source) -> const StateMessage& {
    return messages[static_cast<std::size_t>(source)];
  };
  const bool in_rounds = std::any_of(sources.begin(), sources.end(), [&](int source) {
    return message_of(source).tensor_bytes > kRoundBytes;
  });
  std::vector<int> mine;
  for (std::size_t i = 0; i < takers.size(); ++i) {
    const int source = sources[i % sources.size()];
    if (takers[i] == rank) return exchange.Take(source, message_of(source), in_rounds);
    if (source == rank) mine.push_back(takers[i]);
  }
  return mine.empty() ? exchange.LookOn(in_rounds) : exchange.Hand(mine, in_rounds);
}

}  // namespace espalier
