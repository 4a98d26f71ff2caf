#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trial_runner/python/parcel.h"
#include "trial_runner/python/python_parts.h"
#include "trial_runner/torch/engine/training_engine.h"
#include "trial_runner/torch/trial.h"

namespace espalier::python {

// What the C interface is about: the process's trial and its engine. Use it from the thread that
// trains. Its functions throw ProgramError where they are used wrongly.
class Session {
 public:
  // The one of this process, which lives as long as it does: groups that were abandoned may still
  // have threads.
  static Session& The();

  void Open(int argc, const char* const* argv, const EspalierCallbacks& callbacks);
  Trial& trial();
  TrialContext& context() { return trial().context(); }

  bool has_engine() const { return engine_ != nullptr; }
  TrainingEngine& engine();

  // Adds the model that is described in the exchange.
  std::int64_t AddModel(const EspalierModelOptions& options);
  void AddState(const std::string& name);
  void SetRates(std::int64_t model, std::vector<double> rates);
  void SetSecondMoments(std::int64_t model, SecondMoments moments);

  void Fill(EspalierPosition& position) const;
  struct NoiseArrays {
    double* sqr;
    double* var;
    std::int64_t groups;
  };
  void Noise(std::int64_t model, const NoiseArrays& arrays) const;

 private:
  struct Parts {
    PythonModel* model;
    PythonOptimizer* optimizer;
  };
  const Parts& At(std::int64_t model) const;

  std::vector<char*> arguments_;
  std::unique_ptr<Trial> trial_;
  std::shared_ptr<TrainingEngine> engine_;
  std::vector<Parts> parts_;  // the engine's own
  std::vector<std::unique_ptr<PythonState>> states_;
};

}  // namespace espalier::python
