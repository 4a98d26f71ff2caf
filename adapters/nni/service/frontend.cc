#include "adapters/nni/service/frontend.h"

#include <string>
#include <vector>

#include "adapters/nni/service/channel.h"
#include "adapters/nni/service/event_feed.h"
#include "adapters/nni/service/experiments.h"
#include "tuner/server/http/http_message.h"

namespace espalier::nni {

namespace {

const std::string& ExperimentIn(const HttpCall& call) { return call.path.at("experiment"); }
const std::string& TrialIn(const HttpCall& call) { return call.path.at("trial"); }
const std::string& SecretIn(const HttpCall& call) { return call.path.at("secret"); }

std::string Query(const HttpCall& call, const char* name) {
  const auto given = call.query.find(name);
  return given == call.query.end() ? "" : given->second;
}

HttpAnswer JsonAnswer(const absl::StatusOr<std::string>& body) {
  return {body.status(), body.ok() ? *body : ""};
}

HttpAnswer TextAnswer(const absl::StatusOr<std::string>& text) {
  return {text.status(), text.ok() ? *text : "", "text/plain; charset=utf-8"};
}

HttpAnswer FromChannel(const Experiments::ChannelAnswer& answer) {
  return {answer.status, answer.body, "application/json", answer.code};
}

class NniFrontend final : public Frontend {
 public:
  const char* name() const override { return "nni"; }

  void Load(const TunerState& state) override { feed_.Load(state); }
  void Take(const std::vector<Change>& changes, const TunerState& state) override {
    feed_.Take(changes, state);
  }
  void Close() override { feed_.Close(); }

  std::vector<HttpRoute> Routes(Tuner& tuner) override {
    experiments_ = std::make_unique<Experiments>(tuner, feed_);
    const auto by = [this](HttpAnswer (NniFrontend::*answer)(const HttpCall&)) {
      return [this, answer](const HttpCall& call) { return (this->*answer)(call); };
    };
    const auto open = [this](const HttpCall& call) {
      return experiments_->OpenChannel(ExperimentIn(call), TrialIn(call), SecretIn(call));
    };
    return {
        {"GET", "/nni/v1/service", "NniService", by(&NniFrontend::Describe)},
        {"PUT", "/nni/v1/experiments/{experiment}", "NniOpenExperiment", by(&NniFrontend::Open)},
        {"POST", "/nni/v1/experiments/{experiment}/stop", "NniStopExperiment",
         by(&NniFrontend::Stop)},
        {"GET", "/nni/v1/experiments/{experiment}/events", "NniEvents", by(&NniFrontend::Events)},
        {"PUT", "/nni/v1/experiments/{experiment}/trials/{trial}", "NniSubmitTrial",
         by(&NniFrontend::Submit)},
        {"DELETE", "/nni/v1/experiments/{experiment}/trials/{trial}", "NniCancelTrial",
         by(&NniFrontend::Cancel)},
        {"PUT", "/nni/v1/experiments/{experiment}/trials/{trial}/parameter", "NniSetParameter",
         by(&NniFrontend::SetParameter)},
        {.method = "GET",
         .path = "/nni/v1/experiments/{experiment}/trials/{trial}/files/{name}",
         .operation = "NniTrialFile",
         .answer = by(&NniFrontend::File),
         .waits = true},
        {.method = "PUT",
         .path = "/nni/v1/channel/{experiment}/{trial}/{secret}",
         .operation = "NniChannelPut",
         .answer = by(&NniFrontend::ChannelPut),
         .open = open},
        {.method = "GET",
         .path = "/nni/v1/channel/{experiment}/{trial}/{secret}",
         .operation = "NniChannelGet",
         .answer = by(&NniFrontend::ChannelGet),
         .open = open}};
  }

 private:
  HttpAnswer Describe(const HttpCall&) { return JsonAnswer(experiments_->Describe()); }
  HttpAnswer Open(const HttpCall& call) {
    return JsonAnswer(experiments_->Open(ExperimentIn(call), call.body));
  }
  HttpAnswer Stop(const HttpCall& call) {
    return JsonAnswer(experiments_->Stop(ExperimentIn(call)));
  }
  HttpAnswer Events(const HttpCall& call) {
    return JsonAnswer(
        experiments_->Events(ExperimentIn(call), Query(call, "after"), Query(call, "wait_s")));
  }
  HttpAnswer Submit(const HttpCall& call) {
    return JsonAnswer(
        experiments_->Submit(ExperimentIn(call), TrialIn(call), call.body, call.service_url));
  }
  HttpAnswer Cancel(const HttpCall& call) {
    return JsonAnswer(experiments_->Cancel(ExperimentIn(call), TrialIn(call),
                                           Flag(call, "early_stopped", false)));
  }
  HttpAnswer SetParameter(const HttpCall& call) {
    return JsonAnswer(experiments_->SetParameter(ExperimentIn(call), TrialIn(call), call.body));
  }
  HttpAnswer File(const HttpCall& call) {
    return TextAnswer(experiments_->File(ExperimentIn(call), TrialIn(call), call.path.at("name")));
  }
  HttpAnswer ChannelPut(const HttpCall& call) {
    return FromChannel(
        experiments_->ChannelPut(ExperimentIn(call), TrialIn(call), SecretIn(call), call.body));
  }
  HttpAnswer ChannelGet(const HttpCall& call) {
    return FromChannel(experiments_->ChannelGet(ExperimentIn(call), TrialIn(call), SecretIn(call)));
  }

  EventFeed feed_{NewIncarnation()};
  std::unique_ptr<Experiments> experiments_;  // as long as there are routes
};

}  // namespace

std::unique_ptr<Frontend> MakeFrontend() { return std::make_unique<NniFrontend>(); }

}  // namespace espalier::nni
