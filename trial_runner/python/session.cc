#include "trial_runner/python/session.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier::python {

Session& Session::The() {
  static auto* const session = new Session;
  return *session;
}

void Session::Open(int argc, const char* const* argv, const EspalierCallbacks& callbacks) {
  if (trial_) BadUse("there is a trial already: a process has one");
  Exchange::The().callbacks = callbacks;
  HostEndings(callbacks.before_exit);
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  trial_ = std::make_unique<Trial>(argc, arguments.data());
}

Trial& Session::trial() {
  if (!trial_) BadUse("there is no trial yet");
  return *trial_;
}

TrainingEngine& Session::engine() {
  if (!engine_) {
    engine_ = std::make_shared<TrainingEngine>(context(), std::make_unique<PythonCheckpoints>());
    engine_->sums().SetProgramSums(std::make_unique<PythonSums>());
    context().engine = engine_;
  }
  return *engine_;
}

std::int64_t Session::AddModel(const EspalierModelOptions& options) {
  const ModelDescription described = std::exchange(Exchange::The().described, {});
  DataParallelOptions to;
  to.name = options.name;
  to.scaling_rule = options.scaling_rule;
  to.base_batch_size = options.base_batch_size;
  to.max_skipped_steps = options.max_skipped_steps;
  to.bucket_bytes = options.bucket_bytes;
  to.max_gradient_norm = options.max_gradient_norm;
  if (options.own_rule >= 0) to.rule = std::make_shared<PythonRule>(options.own_rule);
  auto model = std::make_unique<PythonModel>(std::ssize(parts_));
  auto optimizer =
      std::make_unique<PythonOptimizer>(std::ssize(parts_), described, options.is_adam != 0);
  const Parts parts{model.get(), optimizer.get()};
  const std::size_t number = engine().AddSteppedModel(std::move(model), std::move(optimizer), to);
  parts_.push_back(parts);
  return static_cast<std::int64_t>(number);
}

void Session::AddState(const std::string& name) {
  states_.push_back(std::make_unique<PythonState>(name));
  trial().AddState(*states_.back());
}

const Session::Parts& Session::At(std::int64_t model) const {
  if (model < 0 || model >= std::ssize(parts_)) BadUse(absl::StrCat("there is no model ", model));
  return parts_[static_cast<std::size_t>(model)];
}

void Session::SetRates(std::int64_t model, std::vector<double> rates) {
  const std::size_t groups = At(model).optimizer->groups();
  if (rates.size() != groups) {
    BadUse(absl::StrCat("the optimizer has ", rates.size(), " parameter groups and had ", groups,
                        " when it was wrapped: add groups before"));
  }
  At(model).optimizer->SetRates(std::move(rates));
}

void Session::SetSecondMoments(std::int64_t model, SecondMoments moments) {
  At(model).optimizer->SetSecondMoments(std::move(moments));
}

void Session::Fill(EspalierPosition& position) const {
  const TrainingPosition& p = engine_->position();
  position.epoch = engine_->epoch() - 1;
  position.step = p.step;
  position.cursor = p.cursor;
  position.batch_size = p.batch_size;
  position.next_batch_size = p.next_batch_size > 0 ? p.next_batch_size : p.batch_size;
  position.skipped_steps = p.skipped_steps;
  position.generation = engine_->generation();
  position.progress = p.progress;
  if (!parts_.empty()) position.factor = parts_.front().optimizer->last_factor();
  position.gain = engine_->CurrentGain();
  position.microbatches = engine_->Microbatches();
  if (!engine_->group().joined()) return;
  position.rank = engine_->group().rank();
  position.replicas = engine_->group().size();
  position.nodes = engine_->group().nodes();
}

void Session::Noise(std::int64_t model, const NoiseArrays& arrays) const {
  const auto& noise = engine_->position().models.at(static_cast<std::size_t>(model)).noise;
  const double base = engine_->BaseBatchSize(static_cast<std::size_t>(model));
  for (std::int64_t g = 0; g < arrays.groups; ++g) {
    const NoiseAverages& averages = noise.at(static_cast<std::size_t>(g));
    arrays.sqr[g] = averages.Sqr();
    arrays.var[g] = averages.Var(base);
  }
}

}  // namespace espalier::python
