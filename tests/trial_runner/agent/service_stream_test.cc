// The stream to the service, over calls that fail as the test says.

#include "trial_runner/agent/service_stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"

namespace espalier {
namespace {

enum class Throws { kDialling, kOpening, kReading, kWriting, kFinishing, kNowhere };

// Throws where it is told to; else it says nothing and takes everything, until it is cancelled.
class FailingCall final : public ServiceCall {
 public:
  explicit FailingCall(Throws in) : in_(in) {}
  void Open() override { ThrowIf(Throws::kOpening); }
  bool Read(v1::ServiceMessage*) override {
    ThrowIf(Throws::kReading);
    if (in_ == Throws::kFinishing) return false;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return cancelled_; });
    return false;
  }
  bool Write(const v1::AgentMessage&) override {
    ThrowIf(Throws::kWriting);
    return true;
  }
  std::string peer() const override { return ""; }
  void Cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  absl::Status Finish() override {
    ThrowIf(Throws::kFinishing);
    return absl::CancelledError("cancelled");
  }

 private:
  void ThrowIf(Throws where) const {
    if (in_ == where) throw std::runtime_error("no memory");
  }

  const Throws in_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;
};

// What has arrived by the next time that it wakes.
std::vector<ServiceStream::Arrival> NextOf(ServiceStream& stream, const FileDescriptor& wake) {
  pollfd ready{wake.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 60'000), 1);
  std::uint64_t count = 0;
  EXPECT_EQ(read(wake.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  return stream.TakeArrivals();
}

class ServiceStreamTest : public ::testing::TestWithParam<Throws> {};

TEST_P(ServiceStreamTest, WhatThrowsBreaksTheStreamAndItDialsAgain) {
  const FileDescriptor wake(eventfd(0, EFD_CLOEXEC));
  std::atomic<int> dialled = 0;
  ServiceStream stream(
      [&]() -> absl::StatusOr<std::unique_ptr<ServiceCall>> {
        ++dialled;
        if (GetParam() == Throws::kDialling) throw std::runtime_error("no memory");
        return std::make_unique<FailingCall>(GetParam());
      },
      wake.get());
  int broken = 0;
  while (broken < 2) {
    for (const ServiceStream::Arrival& arrival : NextOf(stream, wake)) {
      if (arrival.kind == ServiceStream::ArrivalKind::kOpened) stream.Send(arrival.stream, {});
      if (arrival.kind != ServiceStream::ArrivalKind::kBroken) continue;
      ++broken;
      if (GetParam() == Throws::kWriting) continue;  // the call says why it is over
      EXPECT_NE(arrival.status.message().find("no memory"), std::string::npos) << arrival.status;
    }
  }
  EXPECT_GE(dialled, 2);
}

INSTANTIATE_TEST_SUITE_P(EachPlace, ServiceStreamTest,
                         ::testing::Values(Throws::kDialling, Throws::kOpening, Throws::kReading,
                                           Throws::kWriting, Throws::kFinishing));

// A connection that is cut before the service's first word may never end by itself.
TEST(ServiceStream, OneThatHearsNothingIsGivenUpAndTheNextIsWaitedForLonger) {
  const FileDescriptor wake(eventfd(0, EFD_CLOEXEC));
  ServiceStream stream([] { return std::make_unique<FailingCall>(Throws::kNowhere); }, wake.get(),
                       std::chrono::milliseconds(20));
  std::vector<std::string> told;
  while (told.size() < 2) {
    for (const ServiceStream::Arrival& arrival : NextOf(stream, wake)) {
      if (arrival.kind == ServiceStream::ArrivalKind::kOpened) stream.Send(arrival.stream, {});
      if (arrival.kind != ServiceStream::ArrivalKind::kBroken) continue;
      EXPECT_TRUE(absl::IsDeadlineExceeded(arrival.status)) << arrival.status;
      told.emplace_back(arrival.status.message());
    }
  }
  EXPECT_EQ(told[0], "it has said nothing for 0.02 s");
  EXPECT_EQ(told[1], "it has said nothing for 0.04 s");
}

// Says a word, and then nothing more until it is cancelled.
class AnsweringCall final : public ServiceCall {
 public:
  explicit AnsweringCall(std::atomic<bool>& cancelled) : cancelled_(cancelled) {}
  void Open() override {}
  bool Read(v1::ServiceMessage*) override {
    if (!std::exchange(answered_, true)) return true;
    cancelled_.wait(false);
    return false;
  }
  bool Write(const v1::AgentMessage&) override { return true; }
  std::string peer() const override { return "ipv4:127.0.0.1:1"; }
  void Cancel() override {
    cancelled_ = true;
    cancelled_.notify_all();
  }
  absl::Status Finish() override { return absl::CancelledError("cancelled"); }

 private:
  std::atomic<bool>& cancelled_;
  bool answered_ = false;
};

TEST(ServiceStream, OneThatHasHeardAWordAndIsBrokenIsOverAtOnce) {
  const FileDescriptor wake(eventfd(0, EFD_CLOEXEC));
  std::atomic<bool> cancelled = false;
  ServiceStream stream([&] { return std::make_unique<AnsweringCall>(cancelled); }, wake.get(),
                       std::chrono::hours(1));
  bool broken = false;
  while (!broken) {
    for (const ServiceStream::Arrival& arrival : NextOf(stream, wake)) {
      if (arrival.kind == ServiceStream::ArrivalKind::kMessage) stream.Break();
      if (arrival.kind != ServiceStream::ArrivalKind::kBroken) continue;
      broken = true;
      EXPECT_TRUE(absl::IsCancelled(arrival.status)) << arrival.status;
    }
  }
}

}  // namespace
}  // namespace espalier
