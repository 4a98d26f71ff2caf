#include "trial_runner/collectives/device_group.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tuner/base/check.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

// A member that leaves aborts its communicator when the others have long ended what they had begun.
constexpr double kLeaverLingers_s = 2;

// What a member tells of its attempt to join.
enum Attempt : std::int64_t { kFailed, kOutOfMemory, kJoined };

Attempt AttemptOf(const absl::Status& status) {
  if (status.ok()) return kJoined;
  return absl::StrContains(status.message(), "out of memory") ? kOutOfMemory : kFailed;
}

}  // namespace

absl::Status DeviceGroup::Form(const GroupPlan& plan, const Wait& wait) {
  in_use_ = false;
  way_.clear();
  if (plan.size == 1) {
    if (communicator_) communicator_->LingerFor(kLeaverLingers_s);
    communicator_.reset();
    return absl::OkStatus();
  }
  ESPALIER_ASSIGN_OR_RETURN(const auto told, host_.AllGather(Offer().ToNumbers()));
  std::vector<DeviceOffer> offers;
  for (const std::vector<std::int64_t>& numbers : told) {
    ESPALIER_ASSIGN_OR_RETURN(const DeviceOffer offer, DeviceOffer::FromNumbers(numbers));
    offers.push_back(offer);
  }
  const DeviceGroupPlan device_plan = PlanDeviceGroup(offers);
  switch (device_plan.kind) {
    case DeviceGroupPlan::Kind::kStaged:
      communicator_.reset();
      Go(plan, absl::StrCat("through host memory: ", std::string(device_plan.reason)));
      return absl::OkStatus();
    case DeviceGroupPlan::Kind::kKeep:
      in_use_ = true;
      Go(plan, "by NCCL");
      return absl::OkStatus();
    case DeviceGroupPlan::Kind::kInit: {
      ESPALIER_ASSIGN_OR_RETURN(in_use_, FormCommunicator(plan, wait));
      if (in_use_) Go(plan, "by NCCL");
      return absl::OkStatus();
    }
  }
  ESPALIER_CHECK(false, "unknown plan of a device group");
}

void DeviceGroup::GiveUp() {
  in_use_ = false;
  if (communicator_ && !communicator_->idle()) communicator_.reset();
}

DeviceOffer DeviceGroup::Offer() const {
  DeviceOffer offer;
  offer.usable = options_.usable;
  offer.gpu = options_.gpu;
  if (communicator_) {
    offer.generation = communicator_plan_.generation;
    offer.rank = communicator_plan_.rank;
    offer.size = communicator_plan_.size;
  }
  return offer;
}

absl::StatusOr<bool> DeviceGroup::FormCommunicator(const GroupPlan& plan, const Wait& wait) {
  // All have come here, so whatever the members of the old one had begun has ended.
  communicator_.reset();
  // The second attempt is for when a member's GPU was full of memory that LibTorch only keeps.
  for (const bool last : {false, true}) {
    ESPALIER_ASSIGN_OR_RETURN(const auto id, ShareId(plan));
    Formed formed = Join(plan, id, wait);
    if (absl::IsAborted(formed.status())) return formed.status();
    ESPALIER_ASSIGN_OR_RETURN(const auto told, host_.AllGather({AttemptOf(formed.status())}));
    const auto all = [&](Attempt attempt) {
      return std::all_of(told.begin(), told.end(),
                         [&](const auto& of) { return of[0] == attempt; });
    };
    const auto some = [&](Attempt attempt) {
      return std::any_of(told.begin(), told.end(),
                         [&](const auto& of) { return of[0] == attempt; });
    };
    if (all(kJoined)) {
      communicator_ = *std::move(formed);
      communicator_plan_ = plan;
      return true;
    }
    if (!last && some(kOutOfMemory)) {
      options_.free_cached_memory();
      continue;
    }
    // Each member that failed says why; the others know of it by rank 0's word alone.
    if (!formed.ok()) {
      std::fprintf(stderr, "espalier: generation %lld, rank %d: %s\n",
                   static_cast<long long>(plan.generation), plan.rank,
                   std::string(formed.status().message()).c_str());
    }
    break;
  }
  Go(plan, "through host memory: NCCL failed, and is tried again when the replicas change");
  return false;
}

absl::StatusOr<std::vector<std::int64_t>> DeviceGroup::ShareId(const GroupPlan& plan) {
  // Zeros if NCCL gives rank 0 none: the others wait to hear.
  std::vector<std::int64_t> id(NcclCommunicator::kIdNumbers);
  if (plan.rank == 0) {
    if (auto made = NcclCommunicator::NewId(options_.nccl); made.ok()) id = *std::move(made);
  }
  ESPALIER_ASSIGN_OR_RETURN(auto ids, host_.AllGather(id));
  return std::move(ids[0]);
}

DeviceGroup::Formed DeviceGroup::Join(const GroupPlan& plan, const std::vector<std::int64_t>& id,
                                      const Wait& wait) {
  const auto is_zero = [](std::int64_t number) { return number == 0; };
  if (std::all_of(id.begin(), id.end(), is_zero)) {
    return absl::UnavailableError("NCCL gives rank 0 no id");
  }
  return NcclCommunicator::Join(
      options_.nccl, options_.make_stream(), id, plan.rank, plan.size,
      [&](const std::function<bool()>& done) { return wait(options_.formation_limit_s, done); });
}

void DeviceGroup::Go(const GroupPlan& plan, std::string way) {
  way_ = std::move(way);
  if (plan.rank != 0 || way_ == told_) return;
  told_ = way_;
  std::fprintf(stderr, "espalier: from generation %lld on gradients go %s\n",
               static_cast<long long>(plan.generation), way_.c_str());
}

}  // namespace espalier
