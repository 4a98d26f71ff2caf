#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "httplib.h"

namespace espalier {

inline constexpr int kTrialsBeforeLongDraws = 10;

// The study "long", whose draws take long from now on: seconds, or until the service ends. False:
// it could not be made.
inline bool MakeStudyOfLongDraws(httplib::Client& client) {
  constexpr int kParameters = 256;
  const auto post = [&client](const std::string& path, const std::string& body) {
    const auto answer = client.Post(path, body, "application/json");
    const bool done = answer && answer->status < 300;
    EXPECT_TRUE(done) << path << ": " << (answer ? answer->body : "no answer");
    return done;
  };
  std::string space;
  for (int i = 0; i < kParameters; ++i) {
    absl::StrAppend(&space, i > 0 ? "," : "", "\"p", i,
                    R"(": {"_type": "uniform", "_value": [0, 1]})");
  }
  bool done =
      post("/api/studies", absl::StrCat(
                               R"({"name": "long", "ask_and_tell": true, "metric": {"name": "loss"},
               "sampler": {"name": "tpe", "candidates": 10000, "startup_trials": )",
                               kTrialsBeforeLongDraws, R"(}, "search_space": {)", space, "}}"));
  for (int i = 1; done && i <= kTrialsBeforeLongDraws; ++i) {
    done = post("/api/studies/long/ask", "") &&
           post(absl::StrCat("/api/trials/", i, "/tell"), R"({"state": "complete", "value": 1})");
  }
  return done;
}

// How asks after those were answered that have come by this frontend, once one of them is.
inline std::string CodeOfNextAsk(httplib::Client& client, const std::string& frontend) {
  const int before = frontend == "http" ? kTrialsBeforeLongDraws : 0;
  while (true) {
    const auto metrics = client.Get("/metrics");
    if (!metrics) return "no metrics";
    const auto count = [&](const std::string& code) {
      const std::string series = absl::StrCat("espalier_requests_total{code=\"", code,
                                              "\",frontend=\"", frontend, "\",method=\"Ask\"} ");
      const std::size_t at = metrics->body.find(series);
      return at == std::string::npos ? 0 : std::atoi(metrics->body.c_str() + at + series.size());
    };
    if (count("CANCELLED") > 0) return "CANCELLED";
    if (count("OK") > before) return "OK";
  }
}

}  // namespace espalier
