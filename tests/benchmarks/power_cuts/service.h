#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/benchmarks/power_cuts/recorder.h"
#include "tests/benchmarks/power_cuts/story.h"

namespace espalier::power_cuts {

inline constexpr char kDatabase[] = "tuner.db";

// Who notes what happens; nobody, where there are none.
struct Watched {
  Recorder* recorder = nullptr;
  Story* story = nullptr;
};

// The tuner service without its ports: storage, credentials, core and loop are started in the order
// of tuner/server/service.cc, as for a service that other machines reach. One client at a time
// calls it. Its end is as on SIGTERM.
class TestedService : public Tuner {
 public:
  // On the database and the credentials in the folder.
  static absl::StatusOr<std::unique_ptr<TestedService>> Start(const std::string& folder,
                                                              Watched watched = {});

  // What the service asked of agents since the last call.
  virtual std::vector<Command> TakeCommands() = 0;
  // So much time, by the service's clock.
  virtual void Pass(double seconds) = 0;
  // Waits until nothing of deleted studies is left.
  virtual void WaitForCleaning() = 0;

  virtual SharedState loaded() const = 0;
  virtual const ServiceCredentials& credentials() const = 0;
};

}  // namespace espalier::power_cuts
