#include "trial_runner/collectives/cuda/device_group.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace espalier {
namespace {

// A member that leaves aborts its communicator when the others have long ended what they had begun.
constexpr double kLeaverLingers_s = 2;

// Places in a vote. Each member counts one in one of the first, by how far it is. The id with which
// the members join comes last, from rank 0.
enum Place : std::int64_t { kWaiting, kFailed, kOutOfMemory, kJoined, kId };
constexpr std::size_t kVoteNumbers = kId + NcclCommunicator::kIdNumbers;

}  // namespace

absl::Status DeviceGroup::Form(const GroupPlan& plan) {
  plan_ = plan;
  in_use_ = meant_for_nccl_ = false;
  forming_.reset();
  way_ = {};
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
      Go(GradientTransport::kHost,
         absl::StrCat("through host memory: ", std::string(device_plan.reason)));
      return absl::OkStatus();
    case DeviceGroupPlan::Kind::kKeep:
      in_use_ = meant_for_nccl_ = true;
      Go(GradientTransport::kNccl, "by NCCL");
      return absl::OkStatus();
    case DeviceGroupPlan::Kind::kInit: {
      // All have come here, so whatever the members of the old one had begun has ended.
      communicator_.reset();
      ESPALIER_ASSIGN_OR_RETURN(const auto ids, host_.AllGather(NewId()));
      forming_ = Forming();
      way_ = {GradientTransport::kHostUntilNccl, "by NCCL once its communicator is formed"};
      Begin(ids[0]);
      meant_for_nccl_ = forming();
      return absl::OkStatus();
    }
  }
  ESPALIER_CHECK(false, "unknown plan of a device group");
}

void DeviceGroup::GiveUp() {
  in_use_ = meant_for_nccl_ = false;
  forming_.reset();
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

std::vector<std::int64_t> DeviceGroup::NewId() const {
  std::vector<std::int64_t> id(NcclCommunicator::kIdNumbers);
  if (plan_.rank == 0) {
    if (auto made = NcclCommunicator::NewId(options_.nccl); made.ok()) id = *std::move(made);
  }
  return id;
}

void DeviceGroup::Begin(const std::vector<std::int64_t>& id) {
  const auto is_zero = [](std::int64_t number) { return number == 0; };
  if (std::all_of(id.begin(), id.end(), is_zero)) {
    forming_->failure = "NCCL gives rank 0 no id";
    Fail();
    return;
  }
  forming_->ends = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       std::chrono::duration<double>(options_.formation_limit_s));
  forming_->communicator =
      NcclCommunicator::Begin(options_.nccl, options_.make_stream(), id, plan_.rank, plan_.size);
}

std::int64_t DeviceGroup::Look() {
  if (!forming_->failure.empty()) return kFailed;
  if (!forming_->communicator) return kWaiting;
  const absl::StatusOr<bool> joined = forming_->communicator->Joined();
  if (!joined.ok()) {
    forming_->failure = std::string(joined.status().message());
    return absl::StrContains(forming_->failure, "out of memory") ? kOutOfMemory : kFailed;
  }
  if (*joined) return kJoined;
  if (std::chrono::steady_clock::now() < forming_->ends) return kWaiting;
  forming_->failure =
      absl::StrCat("NCCL's communicator was not formed within ", options_.formation_limit_s, " s");
  return kFailed;
}

std::vector<std::int64_t> DeviceGroup::Vote() {
  std::vector<std::int64_t> vote(kVoteNumbers);
  ++vote[static_cast<std::size_t>(Look())];
  if (!forming_->communicator) {
    const std::vector<std::int64_t> id = NewId();
    std::copy(id.begin(), id.end(), vote.begin() + kId);
  }
  return vote;
}

void DeviceGroup::CountVotes(const std::vector<std::int64_t>& sum) {
  ESPALIER_CHECK(forming_ && sum.size() == kVoteNumbers, "votes that nobody waits for");
  if (!forming_->communicator) {
    Begin({sum.begin() + kId, sum.end()});
  } else if (sum[kOutOfMemory] > 0 && !forming_->is_second) {
    // A member's GPU was full, perhaps of memory that LibTorch only keeps.
    forming_ = Forming();
    forming_->is_second = true;
    options_.free_cached_memory();
  } else if (sum[kOutOfMemory] + sum[kFailed] > 0) {
    Fail();
  } else if (sum[kJoined] == plan_.size) {
    communicator_ = std::move(forming_->communicator);
    communicator_plan_ = plan_;
    forming_.reset();
    in_use_ = true;
    Go(GradientTransport::kNccl, "by NCCL");
  }
}

void DeviceGroup::Fail() {
  // Each member that failed says why; the others know of it by what rank 0 says alone.
  if (!forming_->failure.empty()) {
    std::fprintf(stderr, "espalier: generation %lld, rank %d: %s\n",
                 static_cast<long long>(plan_.generation), plan_.rank, forming_->failure.c_str());
  }
  forming_.reset();
  Go(GradientTransport::kHost,
     "through host memory: NCCL failed, and is tried again when the replicas change");
}

void DeviceGroup::Go(GradientTransport transport, std::string text) {
  way_ = {transport, std::move(text)};
  if (plan_.rank != 0 || way_.text == told_) return;
  told_ = way_.text;
  std::fprintf(stderr, "espalier: from generation %lld on gradients go %s\n",
               static_cast<long long>(plan_.generation), told_.c_str());
}

}  // namespace espalier
