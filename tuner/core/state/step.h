#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/pool_size/pool_size.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/event.h"

namespace espalier {

inline constexpr int kMaxEngineNodes = 256;

struct PlanRequest;         // scheduling/plan.h
struct DrawRequest;         // samplers/draw.h
struct TerminatorQuestion;  // terminators/question.h

// A pool with nodes from an engine: what the nodes are, and which rule decides how many. If there
// are several templates, each has a name.
struct PoolSizeOptions {
  PluginSpec rule{"utility_price", {}};
  std::vector<NodeTemplate> templates{NodeTemplate{}};
};

// What happens to a trial when the client that runs it has fallen silent.
struct ClientLease {
  double seconds = 0;  // without a write; 0: clients may be silent forever
  // How often a trial is queued again, as Optuna's retry callback does: WAITING, with the same
  // parameters, and the system attributes failed_trial and retry_history.
  int max_retries = 0;
};

struct CoreOptions {
  double lease_s = 10;                         // a silent agent's replicas are lost after this
  TrialTimeouts timeouts{};                    // of studies that say nothing else
  std::optional<PoolSizeOptions> pool_size{};  // none: nodes come and go as they like
  ClientLease client_lease{};
  double slot_lease_s = 60;  // a client that holds slots and is silent for so long loses them
  // The policy by which the pool is divided until a client says otherwise (SetPoolPolicy); none:
  // the policy of the pool's oldest running study.
  std::optional<PluginSpec> policy{};
  // Whether what takes long (a policy's search, promise, fits; a sampler's draws, a terminator's
  // answers) is left to the caller: see StepResult::plan, draws and questions. Else it is done
  // within the step.
  bool plan_aside = false;
  // Whether the caller can ask samplers outside (Sampler::outside), which is always left to it.
  bool asks_outside = false;
};

// What samplers and terminators do within a step where others can do it aside, at the most: about
// half a millisecond (see Sampler::Work).
inline constexpr double kMostWorkHere = 20'000;

// What the engine must do. A request may come twice.
struct NodeRequest {
  bool start = false;  // else release
  std::string name;
};

struct StepResult {
  std::vector<Change> changes;    // commit these before anything else is done
  std::vector<Command> commands;  // then send these
  std::vector<NodeRequest> node_requests{};
  std::vector<std::string> nodes_joined{};  // whose agents have said Hello: for the engine, too
  // The plan to be made by a Planner, on any thread, and brought back as PlanMade. There is never
  // more than one under way: the next one sees what happens meanwhile.
  std::shared_ptr<const PlanRequest> plan{};
  // Suggestions to be made by MakeDraw, or by who is asked outside, on any thread, and brought back
  // as DrawMade. There is never more than one of a study under way.
  std::vector<std::shared_ptr<const DrawRequest>> draws{};
  // To be answered by AnswerTo, on any thread, and brought back as TerminatorAnswered.
  std::vector<std::shared_ptr<const TerminatorQuestion>> questions{};
  Reply reply;  // then answer
  // and answer those calls that had no answer so far: all that wait for the same.
  std::map<LaterReply, Reply> late{};
};

// Appends a later result to an earlier one and keeps the reply of the earlier one.
void Append(StepResult&& from, StepResult& to);

}  // namespace espalier
