#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// Operations on access tokens (tuner/credentials). The texts of new tokens end with
// `certificate_hash`, which is empty where the service has no certificate to be known by.
absl::StatusOr<v1::Token> CreateToken(Tuner& tuner, const v1::CreateTokenRequest& request,
                                      const std::string& certificate_hash);
// All good tokens, and those that ended in the last month, by name.
absl::StatusOr<v1::ListTokensResponse> ListTokens(Tuner& tuner, const v1::ListTokensRequest&);
absl::StatusOr<v1::Token> RemoveToken(Tuner& tuner, const v1::RemoveTokenRequest& request);

}  // namespace espalier::api
