// What verbs do where the service goes away in the middle of a call.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/verbs/run_tuner.h"
#include "tuner.grpc.pb.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kStudy[] =
    R"({"name": "small", "command": ["/bin/true"], "trials": 2,
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})";

class LostService : public ::testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& arguments) const {
    return RunTuner(arguments, directory_.path());
  }

  TemporaryDirectory directory_;
};

class FakeService : public v1::Tuner::Service {
 public:
  FakeService() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Goes away once, in the middle of a call.
class AwayOnce : public FakeService {
 public:
  grpc::Status Tell(grpc::ServerContext*, const v1::TellRequest* request,
                    v1::TellResponse*) override {
    step_ = request->step();
    return ++told_ == 1 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")
                        : grpc::Status::OK;
  }
  int told() const { return told_; }
  std::int64_t step() const { return step_; }

 private:
  std::atomic<int> told_ = 0;
  std::atomic<std::int64_t> step_ = -1;
};

// Has one study. Answers once, then is away for some calls; after these the study has ended.
class RestartedAmid : public FakeService {
 public:
  RestartedAmid(int calls, grpc::StatusCode code) : away_(calls), code_(code) {}

  grpc::Status ListStudies(grpc::ServerContext*, const v1::ListStudiesRequest*,
                           v1::ListStudiesResponse* response) override {
    return Answer(*response->add_studies());
  }
  grpc::Status GetStudy(grpc::ServerContext*, const v1::GetStudyRequest*,
                        v1::StudyDetails* response) override {
    return Answer(*response->mutable_study());
  }

 private:
  grpc::Status Answer(v1::Study& study) {
    const int call = calls_++;
    study.set_name("small");
    study.set_state(call == 0 ? v1::STUDY_RUNNING : v1::STUDY_COMPLETE);
    return call == 0 || call > away_ ? grpc::Status::OK : grpc::Status(code_, "Socket closed");
  }

  std::atomic<int> calls_ = 0;
  int away_;
  grpc::StatusCode code_;
};

TEST_F(LostService, TellIsRepeatedWhereThatCountsOnce) {
  const auto tell = [this](const AwayOnce& service, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"tell",      "--value",        "1", "--trial", "1",
                                          "--service", service.address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  };
  using Words = std::vector<std::string>;
  for (const Words& more : {Words{"--step", "3"}, Words{"--final"}}) {
    const AwayOnce service;
    EXPECT_EQ(tell(service, more).output, "continue\n");
    EXPECT_EQ(service.told(), 2);
  }
  const AwayOnce service;
  const Outcome outcome = tell(service, {});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("Socket closed"));
  EXPECT_EQ(service.told(), 1) << "it would be two values";
}

// Cuts its first calls off, after it has done what they ask.
class CutsOff : public FakeService {
 public:
  explicit CutsOff(int calls = 1) : away_(calls) {}

  grpc::Status CreateStudy(grpc::ServerContext*, const v1::CreateStudyRequest* request,
                           v1::Study* study) override {
    const std::lock_guard lock(mutex_);
    made_.insert(request->request_key());
    study->set_name("small");
    return Answer();
  }
  grpc::Status ListStudies(grpc::ServerContext*, const v1::ListStudiesRequest*,
                           v1::ListStudiesResponse*) override {
    const std::lock_guard lock(mutex_);
    return Answer();
  }
  grpc::Status StopStudy(grpc::ServerContext*, const v1::StudyName*, v1::Study*) override {
    const std::lock_guard lock(mutex_);
    return Answer();
  }

  std::set<std::string> made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  grpc::Status Answer() {
    return calls_++ < away_ ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")
                            : grpc::Status::OK;
  }

  const int away_;
  mutable std::mutex mutex_;
  std::set<std::string> made_;  // by the keys of their requests
  int calls_ = 0;
};

TEST_F(LostService, ACallThatIsCutOffIsRepeatedWhereThatCountsOnce) {
  for (const int times : {1, 3}) {
    const CutsOff service(times);
    const std::string study = directory_.Write("s.json", kStudy);
    const Outcome outcome = Run({"submit", study, "--service", service.address()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(service.calls(), times + 1);
    EXPECT_EQ(service.made().size(), 1U) << "by its key the service knows the same study";
    EXPECT_FALSE(service.made().contains(""));
  }
  const CutsOff reading;
  EXPECT_EQ(Run({"ls", "--service", reading.address()}).exit_code, 0);
  EXPECT_EQ(reading.calls(), 2);
  const CutsOff stopping;
  const Outcome outcome = Run({"stop", "small", "--service", stopping.address()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("Socket closed"));
  EXPECT_EQ(stopping.calls(), 1) << "somebody may have resumed it meanwhile";
}

TEST_F(LostService, WholeNumbersAreDecimal) {
  for (const auto& [text, step] : {std::pair("010", 10), {"008", 8}, {"+7", 7}}) {
    const AwayOnce service;
    const Outcome outcome = Run(
        {"tell", "--value", "1", "--step", text, "--trial", "1", "--service", service.address()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(service.step(), step);
  }
}

TEST_F(LostService, WatchWaitsForAServiceThatIsRestarted) {
  for (const auto code : {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED}) {
    const RestartedAmid service(2, code);
    const Outcome outcome = Run({"watch", "small", "--service", service.address()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("the service at " + service.address() + " is away; waiting for it"),
                      HasSubstr("is back"), HasSubstr("study small COMPLETE")));
  }
}

TEST_F(LostService, WatchSaysHowToGoOnWhereTheServiceStaysAway) {
  const RestartedAmid service(1'000'000, grpc::StatusCode::UNAVAILABLE);
  const Outcome outcome =
      Run({"watch", "small", "--service", service.address(), "--reconnect", "0.1"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.output;
  EXPECT_THAT(
      outcome.errors,
      AllOf(HasSubstr("the service at \"" + service.address() + "\" went away"),
            HasSubstr("the study is not affected; go on with: tuner watch small --service " +
                      service.address()),
            Not(HasSubstr("TLS"))));
}

}  // namespace
}  // namespace espalier
