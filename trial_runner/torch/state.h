#pragma once

#include <istream>
#include <ostream>
#include <string>

namespace espalier {

// Something of the program's own that belongs to its training state: a schedule's position, a
// replay buffer, a vocabulary that grows. Give it to Trial::AddState before training begins, in
// each replica; then it is saved in checkpoints, and handed to replicas that join.
//
// A replica that joins takes it as it is where the group changes: within Step, Evaluate or
// NextEpoch, and then does what is left of the epoch. So change it between NextBatch and Step, or
// after the last batch in a way that comes out the same when done again: set `epoch = 3`, not
// `++epoch`.
//
// All functions are called on the thread that trains. What they throw ends the replica, or for a
// checkpoint that checkpoint.
class State {
 public:
  virtual ~State() = default;

  // Its name in checkpoints: letters, digits, '_', '-' and '.'; one of its own for each state.
  virtual std::string name() const = 0;
  virtual void Save(std::ostream& to) const = 0;
  // In place of what was there. Reads what Save wrote, maybe on another replica.
  virtual void Load(std::istream& from) = 0;
  // Called on every replica at the end of an epoch and when the group changes, before the state may
  // be saved or handed over. No place to wait for other replicas: they may have been lost.
  virtual void Sync() {}
};

}  // namespace espalier
