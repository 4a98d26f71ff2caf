#include "tuner/server/engines/kubernetes_lease.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/json/parse_json.h"
#include "spdlog/spdlog.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

constexpr const char* kGroup = "coordination.k8s.io/v1";
// Within its duration: renewals, attempts while they fail, and looks at whether it is lost.
constexpr double kRenewals = 6;
constexpr double kAttempts = 10;
constexpr double kLooks = 30;
// Of its duration, without a renewal: as Kubernetes' own programs, 10 of 15 s.
constexpr double kHeld = 2.0 / 3;
constexpr int kGiveBacks = 3;             // attempts
constexpr double kGiveBackPause_s = 1.5;  // between them, at most

// Goes on while the machine sleeps, and never jumps.
double SecondsSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

KubernetesLease::Options WithClock(KubernetesLease::Options options) {
  if (options.clock_s == nullptr) options.clock_s = SecondsSinceBoot;
  return options;
}

// As Kubernetes writes moments with microseconds.
std::string MomentNow() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone());
}

}  // namespace

// The lease as the API server has it.
struct KubernetesLease::Seen {
  Json lease;  // null: there is none

  std::string version() const { return Text("metadata", "resourceVersion"); }
  std::string holder() const { return Text("spec", "holderIdentity"); }
  double duration_s() const {
    const auto spec = lease.find("spec");
    if (spec == lease.end() || !spec->is_object()) return 0;
    const auto seconds = spec->find("leaseDurationSeconds");
    return seconds != spec->end() && seconds->is_number() ? seconds->get<double>() : 0;
  }

 private:
  std::string Text(const char* part, const char* name) const {
    if (!lease.is_object() || !lease.contains(part) || !lease[part].is_object()) return "";
    const auto at = lease[part].find(name);
    return at != lease[part].end() && at->is_string() ? at->get<std::string>() : "";
  }
};

KubernetesLease::KubernetesLease(ApiServer server, Options options)
    : options_(WithClock(std::move(options))),
      api_(std::move(server), std::max(0.5, options_.duration_s / kAttempts)) {}

KubernetesLease::~KubernetesLease() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread* thread : {&renewing_, &guarding_}) {
    if (thread->joinable()) thread->join();
  }
  if (ours_) GiveBack();
}

// Whoever waits for it would otherwise wait for its whole duration.
void KubernetesLease::GiveBack() {
  for (int attempt = 0; attempt < kGiveBacks; ++attempt) {
    if (attempt > 0) {
      absl::SleepFor(absl::Seconds(std::min(kGiveBackPause_s, options_.duration_s / kAttempts)));
    }
    const absl::StatusOr<Seen> seen = Look();
    if (!seen.ok()) continue;
    if (seen->holder() != options_.holder || Write(*seen, "").ok()) return;
  }
}

absl::StatusOr<KubernetesLease::Seen> KubernetesLease::Look() {
  const absl::StatusOr<std::string> body =
      api_.Ask({.method = "GET", .path = "/leases/" + options_.name, .group = kGroup});
  if (absl::IsNotFound(body.status())) return Seen{};
  if (!body.ok()) return body.status();
  Seen seen{ParseJson(*body)};
  if (seen.version().empty()) {
    return absl::InternalError("the API server answers with what is no Lease");
  }
  return seen;
}

// Makes it this holder's, or nobody's; the error is Aborted where it is not as it was seen.
absl::Status KubernetesLease::Write(const Seen& seen, const std::string& holder) {
  const bool is_new = seen.lease.is_null();
  Json lease = is_new ? Json{{"apiVersion", kGroup},
                             {"kind", "Lease"},
                             {"metadata", {{"name", options_.name}}},
                             {"spec", Json::object()}}
                      : seen.lease;
  Json& spec = lease["spec"];
  if (!spec.is_object()) spec = Json::object();
  const std::string now = MomentNow();
  if (seen.holder() != holder && !holder.empty()) {
    spec["acquireTime"] = now;
    const auto transitions = spec.find("leaseTransitions");
    const bool counted = transitions != spec.end() && transitions->is_number_integer();
    spec["leaseTransitions"] = is_new ? 0 : 1 + (counted ? transitions->get<int>() : 0);
  }
  spec["holderIdentity"] = holder;
  spec["leaseDurationSeconds"] = static_cast<int>(std::ceil(options_.duration_s));
  spec["renewTime"] = now;
  const absl::Status written = api_.Ask({.method = is_new ? "POST" : "PUT",
                                         .path = is_new ? "/leases" : "/leases/" + options_.name,
                                         .group = kGroup,
                                         .body = lease.dump()})
                                   .status();
  return absl::IsAlreadyExists(written) ? absl::AbortedError(written.message()) : written;
}

absl::StatusOr<bool> KubernetesLease::Take() {
  const double begun_s = options_.clock_s();
  ESPALIER_ASSIGN_OR_RETURN(const Seen seen, Look());
  holder_ = seen.holder();
  if (!holder_.empty() && holder_ != options_.holder) {
    const double now_s = options_.clock_s();
    if (seen.version() != version_seen_) {
      version_seen_ = seen.version();
      seen_at_s_ = now_s;
    }
    if (now_s - seen_at_s_ < seen.duration_s()) return false;
  }
  const absl::Status written = Write(seen, options_.holder);
  if (absl::IsAborted(written)) return false;
  ESPALIER_RETURN_IF_ERROR(written);
  holder_ = options_.holder;
  const std::lock_guard lock(mutex_);
  renewed_at_s_ = begun_s;
  return ours_ = true;
}

absl::Status KubernetesLease::Renew() {
  const double begun_s = options_.clock_s();
  const absl::StatusOr<Seen> seen = Look();
  absl::Status renewed = seen.status();
  std::string taken_by;
  if (seen.ok()) {
    const std::string holder = seen->holder();
    if (holder == options_.holder || holder.empty()) {
      renewed = Write(*seen, options_.holder);
    } else {
      taken_by = holder;
    }
  }
  const std::lock_guard lock(mutex_);
  trouble_ = std::string(renewed.message());
  taken_by_ = taken_by;
  if (renewed.ok() && taken_by.empty()) renewed_at_s_ = begun_s;
  wake_.notify_all();
  return renewed;
}

std::string KubernetesLease::WhyLost() const {
  const std::lock_guard lock(mutex_);
  if (!taken_by_.empty()) return absl::StrCat("another service has it: ", taken_by_);
  const double silent_s = options_.clock_s() - renewed_at_s_;
  if (silent_s < kHeld * options_.duration_s) return "";
  return absl::StrFormat("it has not been renewed for %.1f s: %s", silent_s,
                         trouble_.empty() ? "no attempt has ended" : trouble_);
}

void KubernetesLease::Keep(std::function<void(const std::string& why)> lost) {
  renewing_ = std::thread([this] { RenewAgainAndAgain(); });
  guarding_ = std::thread([this, lost = std::move(lost)] { Guard(lost); });
}

void KubernetesLease::RenewAgainAndAgain() {
  double pause_s = options_.duration_s / kRenewals;
  bool told = false;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::duration<double>(pause_s),
                     [this] { return stopping_ || !ours_; });
      if (stopping_ || !ours_) return;
    }
    const absl::Status renewed = Renew();
    if (!WhyLost().empty()) continue;  // which the guard says
    pause_s = options_.duration_s / (renewed.ok() ? kRenewals : kAttempts);
    if (renewed.ok() == told) {
      told = !renewed.ok();
      renewed.ok() ? spdlog::info("event=lease_renewed_again lease=\"{}\"", options_.name)
                   : spdlog::warn("event=lease_not_renewed lease=\"{}\" error=\"{}\"",
                                  options_.name, std::string(renewed.message()));
    }
  }
}

// Looks again and again instead of waiting until the moment comes: the clock that threads wait by
// stands still while the machine sleeps.
void KubernetesLease::Guard(const std::function<void(const std::string& why)>& lost) {
  const std::chrono::duration<double> pause(options_.duration_s / kLooks);
  while (true) {
    const std::string why = WhyLost();
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (!why.empty()) {
      ours_ = false;
      lock.unlock();
      wake_.notify_all();
      return lost(why);
    }
    if (taken_by_.empty()) wake_.wait_for(lock, pause);
  }
}

}  // namespace espalier
