// Loads a server of Optuna's storage protocol: bench_optuna_load ADDRESS CONNECTIONS IN_FLIGHT
// TRIALS. Each connection runs IN_FLIGHT trials at once, each one call after another: create, 2
// parameters, 5 reports, 1 attribute, state and value: 10 calls. One line of JSON says how fast
// that went.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "storage.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCalls = 10;
constexpr char kDistribution[] =
    R"({"name": "FloatDistribution", "attributes": {"step": null, "low": -10.0, "high": 10.0, "log": false}})";

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "bench_optuna_load: %s\n", what.c_str());
  std::exit(1);
}

template <typename Message>
grpc::ByteBuffer ToBytes(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// One trial after another.
class Worker {
 public:
  Worker(std::shared_ptr<grpc::Channel> channel, std::int64_t study, grpc::CompletionQueue& queue)
      : stub_(std::move(channel)), study_(study), queue_(queue) {}

  void Begin() {
    const auto [method, request] = Request();
    context_ = std::make_unique<grpc::ClientContext>();
    started_ = Clock::now();
    reader_ = stub_.PrepareUnaryCall(context_.get(), method, request, &queue_);
    reader_->StartCall();
    reader_->Finish(&reply_, &status_, this);
  }

  // Seconds that the call took. Moves on to the next one.
  double Take() {
    if (!status_.ok()) Die("call " + std::to_string(call_) + ": " + status_.error_message());
    if (call_ == 0) {
      optuna::CreateNewTrialReply created;
      if (!grpc::SerializationTraits<optuna::CreateNewTrialReply>::Deserialize(&reply_, &created)
               .ok()) {
        Die("a reply cannot be read");
      }
      trial_ = created.trial_id();
    }
    call_ = (call_ + 1) % kCalls;
    return std::chrono::duration<double>(Clock::now() - started_).count();
  }

  bool between_trials() const { return call_ == 0; }

 private:
  std::pair<std::string, grpc::ByteBuffer> Request() const {
    const std::string service = "/optuna.StorageService/";
    if (call_ == 0) {
      optuna::CreateNewTrialRequest create;
      create.set_study_id(study_);
      create.set_template_trial_is_none(true);
      return {service + "CreateNewTrial", ToBytes(create)};
    }
    if (call_ <= 2) {
      optuna::SetTrialParameterRequest parameter;
      parameter.set_trial_id(trial_);
      parameter.set_param_name(call_ == 1 ? "x" : "y");
      parameter.set_param_value_internal(0.5);
      parameter.set_distribution(kDistribution);
      return {service + "SetTrialParameter", ToBytes(parameter)};
    }
    if (call_ <= 7) {
      optuna::SetTrialIntermediateValueRequest report;
      report.set_trial_id(trial_);
      report.set_step(call_ - 3);
      report.set_intermediate_value(1.5);
      return {service + "SetTrialIntermediateValue", ToBytes(report)};
    }
    if (call_ == 8) {
      optuna::SetTrialUserAttributeRequest attribute;
      attribute.set_trial_id(trial_);
      attribute.set_key("note");
      attribute.set_value("\"hello\"");
      return {service + "SetTrialUserAttribute", ToBytes(attribute)};
    }
    optuna::SetTrialStateValuesRequest state;
    state.set_trial_id(trial_);
    state.set_state(optuna::COMPLETE);
    state.add_values(1);
    return {service + "SetTrialStateValues", ToBytes(state)};
  }

  grpc::GenericStub stub_;
  const std::int64_t study_;
  grpc::CompletionQueue& queue_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer reply_;
  grpc::Status status_;
  Clock::time_point started_;
  std::int64_t trial_ = 0;
  int call_ = 0;
};

std::int64_t CreateStudy(const std::string& address) {
  const auto stub = optuna::StorageService::NewStub(Connect(address));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  optuna::CreateNewStudyRequest request;
  request.add_directions(optuna::MINIMIZE);
  request.set_study_name("load-" + std::to_string(Clock::now().time_since_epoch().count()));
  optuna::CreateNewStudyReply reply;
  const grpc::Status status = stub->CreateNewStudy(&context, request, &reply);
  if (!status.ok()) Die(address + ": " + status.error_message());
  return reply.study_id();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_optuna_load ADDRESS CONNECTIONS IN_FLIGHT TRIALS\n");
    return 2;
  }
  const int connections = std::atoi(argv[2]);
  const int in_flight = std::atoi(argv[3]);
  const int trials = std::atoi(argv[4]);
  const std::int64_t study = CreateStudy(argv[1]);
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int c = 0; c < connections; ++c) {
    const std::shared_ptr<grpc::Channel> channel = Connect(argv[1]);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(60))) {
      Die(std::string("cannot connect to ") + argv[1]);
    }
    for (int w = 0; w < in_flight; ++w) {
      workers.push_back(std::make_unique<Worker>(channel, study, queue));
    }
  }
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(trials) * kCalls);
  int begun = 0;
  std::size_t busy = 0;
  const Clock::time_point start = Clock::now();
  for (const auto& worker : workers) {
    if (begun == trials) break;
    ++begun;
    ++busy;
    worker->Begin();
  }
  while (busy > 0) {
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok) || !ok) Die("a call was lost");
    auto* worker = static_cast<Worker*>(tag);
    seconds.push_back(worker->Take());
    if (worker->between_trials() && begun == trials) {
      --busy;
      continue;
    }
    if (worker->between_trials()) ++begun;
    worker->Begin();
  }
  const double total_s = std::chrono::duration<double>(Clock::now() - start).count();
  std::sort(seconds.begin(), seconds.end());
  const auto quantile_ms = [&](double q) {
    const auto at = static_cast<std::size_t>(q * static_cast<double>(seconds.size()));
    return 1e3 * seconds[std::min(at, seconds.size() - 1)];
  };
  std::printf(
      "{\"calls\": %zu, \"seconds\": %.3f, \"calls_per_s\": %.1f, \"p50_ms\": %.3f, "
      "\"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
      seconds.size(), total_s, static_cast<double>(seconds.size()) / total_s, quantile_ms(0.5),
      quantile_ms(0.99), quantile_ms(1));
  return 0;
}
