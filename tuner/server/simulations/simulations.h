#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "tuner/api/tuner.h"
#include "tuner/server/loop/aside_thread.h"

namespace espalier {

inline constexpr double kSimulation_s = 60;  // after which one is ended
inline constexpr std::int64_t kMaxSimulationMemory = std::int64_t{1} << 30;
inline constexpr std::size_t kSimulationsKept = 4;  // the newest; each may be some megabytes
inline constexpr int kMaxSimulatedSlots = 4096;

struct SimulationWanted {
  std::string policy;                  // NAME or NAME:option=value,...
  std::string pruner{};                // likewise; empty: the study's own
  std::optional<int> slots{};          // none: those that the pool has
  std::optional<std::int64_t> seed{};  // none: the study's
};

// What other policies would have made of recorded studies: `tuner simulate study` in processes of
// their own, at the lowest priority and within bounds, which read the database file beside the
// service. The owner of the core does nothing for it but look once. One at a time, on a thread of
// its own. May be called from any thread.
class Simulations {
 public:
  // The program `tuner`, and the database's file; empty: there is none.
  Simulations(std::string program, std::string database);
  ~Simulations() { Stop(); }

  // The id by which it is asked for. NotFound: no such study. InvalidArgument: no such policy or
  // pruner. FailedPrecondition: this service, or this study, cannot be simulated.
  // ResourceExhausted: one is under way.
  absl::StatusOr<std::int64_t> Start(Tuner& tuner, const std::string& study,
                                     const SimulationWanted& wanted);
  // JSON: GET /api/simulations/{id} in docs/http.md. NotFound: there is none, or none any more.
  absl::StatusOr<std::string> Json(std::int64_t id) const;

  // Ends what is under way.
  void Stop() { thread_.Stop(); }

 private:
  // What is asked of the program, complete.
  struct Order {
    std::string study;
    bool goes_on = false;  // the study has not ended
    struct Variant {
      std::string policy;
      std::string pruner;  // empty: the study's own
    };
    Variant as_it_was{}, other{};
    int slots = 0;
    int nodes = 1;
    std::optional<std::int64_t> seed{};
  };
  struct Simulation {
    Order order;
    Time asked;
    bool running = true;
    std::string error{};   // empty: none
    std::string result{};  // members of the answer, where it is done
  };

  absl::StatusOr<Order> OrderOf(Tuner& tuner, const std::string& study,
                                const SimulationWanted& wanted) const;
  void Run(std::int64_t id, const Order& order, const std::stop_token& stop);
  absl::StatusOr<std::string> Simulate(const Order& order, const std::stop_token& stop) const;

  const std::string program_;
  const std::string database_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::int64_t, Simulation> simulations_;
  std::int64_t last_ = 0;
  bool busy_ = false;
  AsideThread thread_;
};

}  // namespace espalier
