#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/status.h"
#include "tuner/server/http/http_route.h"

namespace espalier {

// Answers that come later, and what they wait for, by the names under which connections wait for
// them. Any number of threads.
class LaterAnswers {
 public:
  using Start = decltype(HttpAnswer::later);

  explicit LaterAnswers(std::size_t most) : most_(most) {}

  struct Named {
    const char* operation = "none";  // outlives it
    bool closes = false;             // the connection, after it
    HttpAnswer answer{absl::InternalError("there is no such answer"), ""};
  };

  // The name. ResourceExhausted: as many wait as may.
  absl::StatusOr<std::string> Add(const char* operation, bool closes, Start start);
  // Starts it, and calls `answered` once Take has its answer.
  void Begin(const std::string& name, std::function<void()> answered);
  // Its client has hung up: what it waits for is taken back, if that can be, so that its place is
  // free.
  void HungUp(const std::string& name);
  Named Take(const std::string& name);

 private:
  struct Waiting {
    Named named;
    Start start;
    std::function<void()> answered{};
    api::TakeBack take_back{};
    bool hung_up = false;
  };

  void Give(const std::string& name, HttpAnswer answer);

  const std::size_t most_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, Waiting> waiting_;
  std::int64_t last_ = 0;
};

}  // namespace espalier
