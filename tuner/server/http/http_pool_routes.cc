// Routes of the HTTP endpoint: the pool's nodes, and the policy by which they are divided.

#include "tuner/api/operations.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {

namespace {

HttpAnswer ShowPool(const HttpCall& call) { return ToAnswer(api::GetPool(call.tuner, {})); }

HttpAnswer SetPolicy(const HttpCall& call) {
  v1::SetPoolPolicyRequest request;
  const absl::Status read = ReadBody(call, request, {});
  if (!read.ok()) return ToAnswer(read);
  return ToAnswer(api::SetPoolPolicy(call.tuner, request));
}

HttpAnswer Drain(const HttpCall& call) {
  v1::DrainNodeRequest request;
  const absl::Status read = ReadBody(call, request, {"name"});
  if (!read.ok()) return ToAnswer(read);
  request.set_name(call.path.at("node"));
  return ToAnswer(api::DrainNode(call.tuner, request));
}

}  // namespace

std::vector<HttpRoute> PoolRoutes() {
  return {{"GET", "/api/pool", "GetPool", ShowPool},
          {"POST", "/api/pool/policy", "SetPoolPolicy", SetPolicy},
          {"POST", "/api/nodes/{node}/drain", "DrainNode", Drain}};
}

}  // namespace espalier
