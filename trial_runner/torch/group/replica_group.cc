#include "trial_runner/torch/group/replica_group.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "trial_runner/collectives/narrowed_collectives.h"
#include "trial_runner/control/group_progress.h"
#include "trial_runner/torch/group/state_transfer.h"
#include "trial_runner/torch/process/device.h"

namespace espalier {
namespace {

// If two regroups follow one another quickly, a member may have left for the second while others
// still wait for it in the first. They give up after this long, or this many steps.
// What takes no step's time, as evaluations do, is given this many times what it took here.
constexpr double kMinGrace_s = 2.0;
constexpr double kGraceSteps = 4.0;

// How long members wait, after losing touch with rank 0 at the very end, to hear whether it had
// said so to the service.
constexpr double kFinishPatience_s = 5.0;

double SecondsSince(ReplicaGroup::Clock::time_point start) {
  return std::chrono::duration<double>(ReplicaGroup::Clock::now() - start).count();
}

GroupPlan PlanOf(const Membership& membership, int rank) {
  return {.generation = membership.generation,
          .rank = rank,
          .size = static_cast<int>(membership.members.size()),
          .rendezvous = membership.members.front().address,
          .secret = membership.secret};
}

// What is not the loss of a member or of the group is not mended by another one.
void EndUnlessLost(const absl::Status& status) {
  const bool lost =
      absl::IsAborted(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (!status.ok() && !lost) EndProcess(status, 1);
}

bool HasOthers(const Membership& membership, const std::vector<ReplicaId>& known) {
  return std::any_of(membership.members.begin(), membership.members.end(), [&](const Member& m) {
    return std::find(known.begin(), known.end(), m.replica) == known.end();
  });
}

}  // namespace

ReplicaGroup::ReplicaGroup(TrialContext& trial, Collectives& collectives, SharedState& state,
                           std::function<void()> release_memory,
                           std::function<void()> prepare_memory)
    : trial_(trial),
      collectives_(collectives),
      state_(state),
      release_memory_(std::move(release_memory)),
      prepare_memory_(std::move(prepare_memory)),
      grace_s_(kMinGrace_s),
      watch_(*trial.control, collectives,
             [this](std::int64_t generation) { collectives_.Abandon(generation + 1); }) {
  trial_.control->Listen([this](const Membership& announced) { Follow(announced); });
  trial_.finish_group = [this](const ReplicaFinished& finished) { Finish(finished); };
}

ReplicaGroup::~ReplicaGroup() {
  trial_.control->Listen({});
  trial_.finish_group = {};
}

void ReplicaGroup::Follow(const Membership& announced) {
  // Who is told before rank 0 has come to its step boundary can prepare meanwhile.
  if (!announced.members.empty() && announced.members.front().address == collectives_.Address()) {
    collectives_.Expect(announced.generation, announced.secret);
  }
  // And so does this one, where it trains on until then.
  if (!forming_ && !announced.abandon) {
    const std::optional<int> rank = announced.RankOf(trial_.replica);
    if (rank) collectives_.Prepare(PlanOf(announced, *rank));
  }
  if (announced.abandon || forming_) {
    abandoned_below_ = announced.generation;
    collectives_.Abandon(announced.generation);
  } else {
    collectives_.Abandon(announced.generation, grace_s_);
  }
}

void ReplicaGroup::EndStep(std::optional<double> step_time_s) {
  together_ = Clock::now();
  if (step_time_s) grace_s_ = std::max(kMinGrace_s, kGraceSteps * *step_time_s);
}

absl::Status ReplicaGroup::WaitPatiently(const std::function<absl::Status()>& wait) {
  collectives_.SetLeastGrace(kGraceSteps * SecondsSince(together_));
  absl::Status status = wait();
  collectives_.SetLeastGrace(0);
  if (status.ok()) together_ = Clock::now();
  return status;
}

absl::Status ReplicaGroup::AllReduceSum(const CollectiveBuffer& buffer) {
  return WaitPatiently([&] { return collectives().AllReduceSum(buffer); });
}

void ReplicaGroup::Join(ReplicaReady ready) {
  ESPALIER_CHECK(!joined(), "joins once");
  ready_ = std::move(ready);
  ready_.address = collectives_.Address();
  forming_ = true;
  ReplicaRegrouped times;
  FormNewest(AwaitMembership(0), times);
  forming_ = false;
  ready_.not_rehearsed.clear();  // as a spare it will have trained
  trial_.control->Send(times);
}

Membership ReplicaGroup::AwaitMembership(std::int64_t above) {
  trial_.control->Send(ready_);
  Membership membership = trial_.control->WaitAbove(above);
  while (!membership.members.empty() && !membership.RankOf(trial_.replica)) {
    membership = trial_.control->WaitAbove(membership.generation);
  }
  return membership;
}

absl::Status ReplicaGroup::Meet(const ProgramPlace& place) {
  watch_.At(place);
  if (size() == 1) return absl::OkStatus();
  return WaitPatiently([&] { return ComparePlaces(place); });
}

// By rank 0, which tells the others what it has heard. What goes between two members cannot be
// taken for a part of a step's sums.
absl::Status ReplicaGroup::ComparePlaces(const ProgramPlace& place) {
  using Numbers = std::vector<std::int64_t>;
  const auto own = std::make_shared<Numbers>(place.ToNumbers());
  own->push_back(state_.left_out());
  // Whether members have left out other steps; a rank at another place than rank 0 (0: there is
  // none), rank 0's place and its own.
  const auto verdict = std::make_shared<Numbers>(2 + 2 * ProgramPlace::kNumbers);
  std::int64_t& unlike = verdict->front();
  std::int64_t& elsewhere = (*verdict)[1];
  const auto first = verdict->begin() + 2;
  const auto second = first + ProgramPlace::kNumbers;
  if (rank_ == 0) {
    std::vector<std::shared_ptr<Numbers>> heard;
    for (int from = 1; from < size(); ++from) {
      heard.push_back(std::make_shared<Numbers>(ProgramPlace::kNumbers + 1));
      collectives_.StartReceive(CollectiveBuffer::Of(heard.back()), from);
    }
    ESPALIER_RETURN_IF_ERROR(collectives_.WaitAll());
    std::copy(own->begin(), own->end() - 1, first);
    for (int other = 1; other < size() && elsewhere == 0; ++other) {
      const Numbers& others = *heard[static_cast<std::size_t>(other) - 1];
      if (others.back() != own->back()) unlike = 1;
      if (std::equal(others.begin(), others.end() - 1, own->begin())) continue;
      elsewhere = other;
      std::copy(others.begin(), others.end() - 1, second);
    }
    for (int to = 1; to < size(); ++to) {
      collectives_.StartSend(CollectiveBuffer::Of(verdict), to);
    }
  } else {
    collectives_.StartSend(CollectiveBuffer::Of(own), 0);
    ESPALIER_RETURN_IF_ERROR(collectives_.WaitAll());
    collectives_.StartReceive(CollectiveBuffer::Of(verdict), 0);
  }
  ESPALIER_RETURN_IF_ERROR(collectives_.WaitAll());
  if (elsewhere != 0) {
    BadUse(PlacesDiffer(0, ProgramPlace::Of(&*first), static_cast<int>(elsewhere),
                        ProgramPlace::Of(&*second)));
  }
  if (unlike != 0) return absl::FailedPreconditionError("members have left out other steps");
  return absl::OkStatus();
}

absl::Status ReplicaGroup::Equalise() {
  absl::Status equal =
      EqualiseState(collectives(), state_, rank_, size(), {.running = true, .offers = false},
                    trial_.control->progress());
  if (equal.ok()) together_ = Clock::now();
  EndUnlessLost(equal);
  return equal;
}

absl::Status ReplicaGroup::TakeStateOfRank0() {
  absl::Status taken = BroadcastState(collectives(), state_, rank_, 0);
  EndUnlessLost(taken);
  return taken;
}

void ReplicaGroup::Narrow(int size) {
  ESPALIER_CHECK(size > 0 && size < size_ && !narrowed(), "a part of the group");
  narrowed_ = std::make_unique<NarrowedCollectives>(collectives_, rank_, size);
  narrowed_size_ = size;
}

absl::StatusOr<std::vector<std::vector<std::int64_t>>> ReplicaGroup::Widen(
    const ProgramPlace& place, const std::vector<std::int64_t>& says) {
  narrowed_.reset();
  watch_.At(place);
  ESPALIER_ASSIGN_OR_RETURN(auto said, collectives_.AllGather(says));
  const absl::Status equal = EqualiseState(collectives_, state_, rank_, size_,
                                           {.running = true, .offers = rank_ < narrowed_size_},
                                           trial_.control->progress());
  if (equal.ok()) {
    together_ = Clock::now();
    return said;
  }
  EndUnlessLost(equal);
  return equal;
}

void ReplicaGroup::Regroup(Clock::time_point training_until) {
  narrowed_.reset();
  if (const std::string why = watch_.Hopeless(); !why.empty()) BadUse(why);
  forming_ = true;
  ReplicaRegrouped times;
  const bool new_here = FormNewest(AwaitNewer(generation_), times);
  forming_ = false;
  if (!new_here) times.pause_s = SecondsSince(training_until);
  trial_.control->Send(times);
}

Membership ReplicaGroup::AwaitNewer(std::int64_t generation) {
  std::optional<Membership> newer = trial_.control->WaitAboveFor(generation, kStuckAfter_s);
  if (!newer) {
    trial_.control->Send(ReplicaStuck{generation, kStuckAfter_s, watch_.Try()});
    newer = trial_.control->WaitAboveFor(generation, kRegroupPatience_s - kStuckAfter_s);
  }
  if (!newer) {
    EndProcess(absl::UnavailableError(
                   absl::StrCat("lost touch with the group of generation ", generation,
                                ", and was told of no newer one for ", kRegroupPatience_s, " s")),
               1);
  }
  return *std::move(newer);
}

bool ReplicaGroup::FormNewest(Membership newest, ReplicaRegrouped& times) {
  bool reported = joined() && rank_ == 0;
  bool broken = false;
  bool new_here = false;
  while (true) {
    const std::optional<int> rank = newest.RankOf(trial_.replica);
    if (!rank) {
      newest = Leave(newest, broken || newest.abandon);
      new_here = true;
      reported = broken = false;
      continue;
    }
    const absl::Status formed = FormAndEqualise(newest, *rank, times);
    if (formed.ok()) {
      rank_ = *rank;
      break;
    }
    if (absl::IsInvalidArgument(formed)) FailTogether(*rank, formed);
    EndUnlessLost(formed);
    // Another member was lost, or the service thought better of it: it says so.
    if (!absl::IsAborted(formed)) {
      std::fprintf(stderr, "espalier: the group does not form: %s\n",
                   std::string(formed.message()).c_str());
    }
    newest = AwaitNewer(newest.generation);
    broken = true;
  }
  together_ = Clock::now();
  generation_ = newest.generation;
  size_ = static_cast<int>(newest.members.size());
  nodes_ = newest.Nodes();
  members_.clear();
  for (const Member& member : newest.members) members_.push_back(member.replica);
  trial_.generation = generation_;
  trial_.rank = rank_;
  times.generation = generation_;
  times.step = state_.step();
  if (rank_ == 0 && !reported) trial_.ResendReports();
  return new_here;
}

// All members have found the same before they train: rank 0 says it, and the others leave no
// sooner.
void ReplicaGroup::FailTogether(int rank, const absl::Status& why) {
  if (rank == 0) {
    ++trial_.checks.unlike;
    SendEnd({.value = std::nullopt, .failure = std::string(why.message())});
  }
  collectives_.Broadcast(CollectiveBuffer::Of(std::make_shared<std::vector<std::uint8_t>>(1)), 0)
      .IgnoreError();
  if (rank != 0) EndProcess(0);
  EndProcess(why, 1);
}

absl::Status ReplicaGroup::FormAndEqualise(const Membership& membership, int rank,
                                           ReplicaRegrouped& times) {
  const Clock::time_point start = Clock::now();
  const int size = static_cast<int>(membership.members.size());
  GroupProgress& progress = trial_.control->progress();
  const absl::Cleanup end = [&progress] { progress.End(); };
  progress.Begin(GroupPhase::kMeeting, membership.generation);
  watch_.Follow(membership, trial_.replica);
  ESPALIER_RETURN_IF_ERROR(collectives_.Form(PlanOf(membership, rank)));
  times.form_s = SecondsSince(start);
  times.transport = collectives_.Way().text;
  const Clock::time_point formed = Clock::now();
  progress.Begin(GroupPhase::kHandingOver, membership.generation);
  ESPALIER_RETURN_IF_ERROR(EqualiseState(
      collectives_, state_, rank, size,
      {.running = joined(), .offers = joined() && HasOthers(membership, members_)}, progress));
  if (size > 1 && state_.HasProgramStates()) {
    // A batch that came to nothing with the group before may have been counted by the program of
    // one member and not by that of another.
    state_.SetProgramStatesAlone(true);
    const absl::Cleanup all = [this] { state_.SetProgramStatesAlone(false); };
    ESPALIER_RETURN_IF_ERROR(BroadcastState(collectives_, state_, rank, 0));
  }
  times.broadcast_s = SecondsSince(formed);
  return absl::OkStatus();
}

Membership ReplicaGroup::Leave(const Membership& membership, bool broken) {
  // If the group is broken nobody knows who is left of it: then each saves. Equal names hold equal
  // states.
  const bool paused = membership.members.empty();
  trial_.control->progress().Begin(GroupPhase::kSaving, membership.generation);
  if (paused && joined() && (rank_ == 0 || broken)) state_.SaveCheckpoint();
  state_.AwaitCheckpoint();
  trial_.control->progress().End();
  watch_.Follow({}, trial_.replica);
  // A group of one holds no connections.
  (void)collectives_.Form({membership.generation, 0, 1, ready_.address});
  release_memory_();
  std::fflush(nullptr);
#ifdef __GLIBC__
  malloc_trim(0);  // spares are kept by what memory they hold
#endif
  const std::optional<Adopted> adopted = trial_.control->Park(AllocatedBytes(trial_.device));
  if (!adopted) EndProcess(0);
  trial_.replica = adopted->as.replica;
  trial_.checkpoint = adopted->as.checkpoint;
  if (!trial_.checkpoint.empty()) {
    const absl::Status caught_up = state_.CatchUp();
    if (!caught_up.ok()) EndProcess(caught_up, 1);
  }
  prepare_memory_();
  return AwaitMembership(adopted->generation);
}

void ReplicaGroup::Finish(const ReplicaFinished& finished) {
  state_.AwaitCheckpoint();  // the service listens no more when it has heard of the end
  while (joined()) {
    // Who has left out other steps has done so after the last epoch: nothing comes of them.
    const absl::Status met = Meet({.kind = ProgramPlace::Kind::kEnd, .step = state_.step()});
    if (!met.ok() && !absl::IsFailedPrecondition(met)) {
      Regroup(Clock::now());
      continue;
    }
    if (rank_ == 0) SendEnd(finished);
    // Whether rank 0 has come to its end; if it was lost before, another has to say it.
    const absl::Status said = collectives().Broadcast(
        CollectiveBuffer::Of(std::make_shared<std::vector<std::uint8_t>>(1)), 0);
    if (said.ok() || rank_ == 0) return;
    if (!trial_.control->WaitAboveFor(generation_, kFinishPatience_s)) return;
    Regroup(Clock::now());
  }
  SendEnd(finished);
}

void ReplicaGroup::SendEnd(ReplicaFinished finished) {
  finished.checks = std::exchange(trial_.checks, {});
  trial_.control->Send(finished);
}

}  // namespace espalier
