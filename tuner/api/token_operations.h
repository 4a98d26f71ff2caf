#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// Tokens of those who are let in (tuner/credentials). `certificate_hash` is what the texts of new
// ones end with, empty where there is no certificate to know the service by.
absl::StatusOr<v1::Token> CreateToken(Tuner& tuner, const v1::CreateTokenRequest& request,
                                      const std::string& certificate_hash);
// All that are good, and those that ended in the last month, by name.
absl::StatusOr<v1::ListTokensResponse> ListTokens(Tuner& tuner, const v1::ListTokensRequest&);
absl::StatusOr<v1::Token> RemoveToken(Tuner& tuner, const v1::RemoveTokenRequest& request);

}  // namespace espalier::api
