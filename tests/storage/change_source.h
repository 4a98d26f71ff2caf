#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "base/random.h"
#include "tuner/core/state/change.h"

namespace espalier {

// A study as a study file would give it, with text that is hard to store.
StudySpec SpecForTests(const std::string& name);

// Random changes, each fit for the state that those before it made. They hold what is hard to
// store: any bit pattern of a double, unicode, quotes, empty strings, zero bytes, broken UTF-8,
// outputs of full length, the largest integers.
class ChangeSource {
 public:
  static constexpr std::size_t kKinds = std::variant_size_v<Change>;

  explicit ChangeSource(std::uint64_t seed) : random_(seed) {}

  // Draws the next change and applies it to state().
  Change Next();

  const TunerState& state() const { return state_; }
  // How many of each alternative of Change were drawn.
  const std::array<int, kKinds>& counts() const { return counts_; }

 private:
  // One overload for each alternative; nullopt where the state has no place for one yet. A new
  // kind of Change does not compile before it has one, and then is part of every storage test.
  template <typename Kind>
  using Draw = std::type_identity<Kind>;
  std::optional<Change> Make(Draw<StudyCreated>);
  std::optional<Change> Make(Draw<StudyStateChanged>);
  std::optional<Change> Make(Draw<StudyLimitsChanged>);
  std::optional<Change> Make(Draw<StudyClockSet>);
  std::optional<Change> Make(Draw<StudyDeleted>);
  std::optional<Change> Make(Draw<StudyRenamed>);
  std::optional<Change> Make(Draw<StudyAttributeSet>);
  std::optional<Change> Make(Draw<SuggestionAdded>);
  std::optional<Change> Make(Draw<TrialCreated>);
  std::optional<Change> Make(Draw<TrialDrawn>);
  std::optional<Change> Make(Draw<TrialCloned>);
  std::optional<Change> Make(Draw<TrialTold>);
  std::optional<Change> Make(Draw<ParameterSuggested>);
  std::optional<Change> Make(Draw<TrialAttributeSet>);
  std::optional<Change> Make(Draw<TrialHeld>);
  std::optional<Change> Make(Draw<TrialEnvironmentSet>);
  std::optional<Change> Make(Draw<FinalValueReported>);
  std::optional<Change> Make(Draw<TrialStateChanged>);
  std::optional<Change> Make(Draw<ValueReported>);
  std::optional<Change> Make(Draw<RankValueTold>);
  std::optional<Change> Make(Draw<RankValuesForgotten>);
  std::optional<Change> Make(Draw<VerdictAgreed>);
  std::optional<Change> Make(Draw<GenerationAdvanced>);
  std::optional<Change> Make(Draw<SlotsHeldChanged>);
  std::optional<Change> Make(Draw<ResizeMeasured>);
  std::optional<Change> Make(Draw<FiguresRecorded>);
  std::optional<Change> Make(Draw<CheckpointRecorded>);
  std::optional<Change> Make(Draw<CheckpointCopySet>);
  std::optional<Change> Make(Draw<CheckpointCopyGone>);
  std::optional<Change> Make(Draw<TrialPinned>);
  std::optional<Change> Make(Draw<TrialRestarted>);
  std::optional<Change> Make(Draw<JoinsFailed>);
  std::optional<Change> Make(Draw<DecisionMade>);
  std::optional<Change> Make(Draw<NodeRegistered>);
  std::optional<Change> Make(Draw<NodeTermsTold>);
  std::optional<Change> Make(Draw<NodeSeen>);
  std::optional<Change> Make(Draw<NodeDrained>);
  std::optional<Change> Make(Draw<PoolPolicySet>);
  std::optional<Change> Make(Draw<TokenKept>);
  std::optional<Change> Make(Draw<ReplicaIdsReserved>);

  template <std::size_t... kIndex>
  std::optional<Change> MakeKind(std::size_t kind, std::index_sequence<kIndex...>) {
    std::optional<Change> change;
    ((kIndex == kind ? void(change = Make(Draw<std::variant_alternative_t<kIndex, Change>>{}))
                     : void()),
     ...);
    return change;
  }

  const Study* AnyStudy();
  const Trial* AnyTrial();
  const NodeId* AnyNode();
  CheckpointLabel AnyLabel();
  NodeTerms AnyTerms();
  float AnyFigure();  // as the core keeps them: finite
  double AnyDouble();
  std::int64_t AnyInteger();
  std::string AnyText();
  std::string ReadableText();  // valid UTF-8, for what is stored as JSON
  Parameters AnyParameters();
  Time LaterTime();
  int Small(int below) {
    return static_cast<int>(random_.Below(static_cast<std::uint64_t>(below)));
  }

  Random random_;
  TunerState state_;
  std::array<int, kKinds> counts_{};
  Time now_{1'700'000'000'000'000};
};

}  // namespace espalier
