#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tests/protocol/recording.h"

namespace espalier {

// Stands between an agent and a service and writes down what both say.
class Relay {
 public:
  explicit Relay(const std::string& service_address);
  ~Relay();

  std::string address() const;  // for the agent
  // Notes what a client has said in a call, which does not pass through here.
  void Note(const std::string& by, const std::string& bytes);
  // Waits until the condition holds of what was said.
  void Await(const std::function<bool(const Recording&)>& condition);
  Recording TakeRecording();

 private:
  class Server;

  std::mutex mutex_;
  std::condition_variable heard_;
  Recording recording_;
  std::unique_ptr<Server> front_;
};

}  // namespace espalier
