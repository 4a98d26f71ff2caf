// The stream to the service, over calls that fail as the test says.

#include "trial_runner/agent/service_stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "base/file_descriptor.h"

namespace espalier {
namespace {

enum class Throws { kDialling, kOpening, kReading, kWriting, kFinishing };

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
    pollfd ready{wake.get(), POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, 60'000), 1);
    std::uint64_t count = 0;
    ASSERT_EQ(read(wake.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
    for (const ServiceStream::Arrival& arrival : stream.TakeArrivals()) {
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

}  // namespace
}  // namespace espalier
