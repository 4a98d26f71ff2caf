// Routes of the HTTP door: NNI's experiments, and the channel of their trials. docs/nni_protocol.md
// describes them.

#include "adapters/nni/service/experiments.h"
#include "tuner/server/http_message.h"
#include "tuner/server/http_routes.h"

namespace espalier {

namespace {

HttpAnswer Json(const absl::StatusOr<std::string>& body) {
  return {body.status(), body.ok() ? *body : ""};
}

std::string Query(const HttpCall& call, const char* name) {
  const auto given = call.query.find(name);
  return given == call.query.end() ? "" : given->second;
}

const std::string& Experiment(const HttpCall& call) { return call.path.at("experiment"); }
const std::string& Trial(const HttpCall& call) { return call.path.at("trial"); }

HttpAnswer Describe(const HttpCall& call) { return Json(call.nni.Describe()); }

HttpAnswer Open(const HttpCall& call) { return Json(call.nni.Open(Experiment(call), call.body)); }

HttpAnswer Stop(const HttpCall& call) { return Json(call.nni.Stop(Experiment(call))); }

HttpAnswer Submit(const HttpCall& call) {
  return Json(call.nni.Submit(Experiment(call), Trial(call), call.body, call.service_url));
}

HttpAnswer SetParameter(const HttpCall& call) {
  return Json(call.nni.SetParameter(Experiment(call), Trial(call), call.body));
}

HttpAnswer Cancel(const HttpCall& call) {
  return Json(call.nni.Cancel(Experiment(call), Trial(call), Flag(call, "early_stopped", false)));
}

HttpAnswer Events(const HttpCall& call) {
  return Json(call.nni.Events(Experiment(call), Query(call, "after"), Query(call, "wait_s")));
}

HttpAnswer File(const HttpCall& call) {
  const auto text = call.nni.File(Experiment(call), Trial(call), call.path.at("name"));
  return {text.status(), text.ok() ? *text : "", "text/plain; charset=utf-8"};
}

HttpAnswer OfChannel(const nni::Experiments::ChannelAnswer& answer) {
  return {answer.status, answer.body, "application/json", answer.code};
}

HttpAnswer ChannelPut(const HttpCall& call) {
  return OfChannel(
      call.nni.ChannelPut(Experiment(call), Trial(call), call.path.at("secret"), call.body));
}

HttpAnswer ChannelGet(const HttpCall& call) {
  return OfChannel(call.nni.ChannelGet(Experiment(call), Trial(call), call.path.at("secret")));
}

}  // namespace

std::vector<HttpRoute> NniRoutes() {
  return {
      {"GET", "/nni/v1/service", "NniService", Describe},
      {"PUT", "/nni/v1/experiments/{experiment}", "NniOpenExperiment", Open},
      {"POST", "/nni/v1/experiments/{experiment}/stop", "NniStopExperiment", Stop},
      {"GET", "/nni/v1/experiments/{experiment}/events", "NniEvents", Events},
      {"PUT", "/nni/v1/experiments/{experiment}/trials/{trial}", "NniSubmitTrial", Submit},
      {"DELETE", "/nni/v1/experiments/{experiment}/trials/{trial}", "NniCancelTrial", Cancel},
      {"PUT", "/nni/v1/experiments/{experiment}/trials/{trial}/parameter", "NniSetParameter",
       SetParameter},
      {"GET", "/nni/v1/experiments/{experiment}/trials/{trial}/files/{name}", "NniTrialFile", File},
      {"PUT", "/nni/v1/channel/{experiment}/{trial}/{secret}", "NniChannelPut", ChannelPut},
      {"GET", "/nni/v1/channel/{experiment}/{trial}/{secret}", "NniChannelGet", ChannelGet}};
}

}  // namespace espalier
