// What docs/elastic_training_loop.md says beyond the first loop: two models, a scaling rule of
// one's own, accumulation, a schedule. Points are drawn like those of two spirals.

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "examples/spirals/spirals.h"
#include "trial_runner/torch/accumulator.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/state.h"
#include "trial_runner/torch/trial.h"

namespace {

// Linear, but never more than four times the base rate.
class CappedLinear final : public espalier::ScalingRule {
 public:
  double Factor(const espalier::ScalingContext& context) const override {
    return std::min(context.scale, 4.0);
  }
};

// When the artist was best: the program's own part of the state.
struct Best final : espalier::State {
  std::string name() const override { return "best"; }
  void Save(std::ostream& to) const override { to << percent << ' ' << epoch; }
  void Load(std::istream& from) override { from >> percent >> epoch; }

  std::int64_t percent = 0;
  std::int64_t epoch = 0;
};

// How far the critic is from finding all of them real (1) or all of them drawn (0).
at::Tensor Loss(const at::Tensor& verdicts, double truth) {
  return at::binary_cross_entropy_with_logits(verdicts, at::full_like(verdicts, truth));
}

}  // namespace

int main(int argc, char** argv) {
  espalier::Trial trial(argc, argv);
  const Spirals real = MakeSpirals(512, 1).To(trial.device());
  Net artist_net(16), critic_net(16);
  artist_net.to(trial.device());
  critic_net.to(trial.device());
  torch::optim::Adam artist_optimizer(artist_net.parameters(), torch::optim::AdamOptions(1e-3));
  torch::optim::Adam critic_optimizer(critic_net.parameters(), torch::optim::AdamOptions(1e-3));

  espalier::AdaptiveDataParallel critic(
      trial, critic_net, critic_optimizer,
      {.base_batch_size = 32, .name = "critic", .rule = std::make_shared<CappedLinear>()});
  espalier::AdaptiveDataParallel artist(trial, artist_net, artist_optimizer, {.name = "artist"});
  espalier::AdaptiveDataLoader loader(artist, real.size(),
                                      {.batch_size = 64, .max_atomic_batch_size = 16});
  espalier::Accumulator losses(artist, "losses", {"critic", "microbatches"});
  Best best;
  trial.AddState(best);

  critic.Rehearse([&] {
    const at::Tensor drawn = artist_net.forward(at::randn({16, 2}, trial.device()));
    critic.Step(Loss(critic_net.forward(drawn.detach()), 0));
    artist.Step(Loss(critic_net.forward(drawn), 1));
  });
  while (loader.NextEpoch(2)) {
    const double rate = 1e-3 * std::pow(0.9, loader.epoch() - 1);
    for (auto& group : critic_optimizer.param_groups()) group.options().set_lr(rate);

    while (const auto batch = loader.NextBatch()) {
      const at::Tensor indices = batch->to(trial.device(), /*non_blocking=*/true);
      const at::Tensor noise = at::randn({indices.size(0), 2}, trial.device());
      const at::Tensor drawn = artist_net.forward(noise);
      const at::Tensor real_verdicts = critic_net.forward(real.points.index_select(0, indices));
      const at::Tensor loss = Loss(real_verdicts, 1) + Loss(critic_net.forward(drawn.detach()), 0);
      losses.Add("critic", loss.item<double>());
      losses.Add("microbatches", 1);
      critic.Step(loss);
      artist.Step(Loss(critic_net.forward(drawn), 1));
    }
    auto means = losses.Synchronize();

    const auto sums = critic.EvaluateSums(real.size(), 128, 2, [&](const at::Tensor& part) {
      const at::Tensor indices = part.to(trial.device());
      const at::Tensor verdicts = critic_net.forward(real.points.index_select(0, indices));
      const auto share = static_cast<double>(indices.size(0));
      return std::vector{Loss(verdicts, 1).item<double>() * share,
                         verdicts.gt(0).to(at::kDouble).mean().item<double>() * share};
    });
    const auto size = static_cast<double>(real.size());
    trial.Report(loader.epoch(), sums[0] / size,
                 {{"taken_for_real", sums[1] / size},
                  {"critic_loss", means["critic"] / means["microbatches"]}});

    if (const auto percent = static_cast<std::int64_t>(100 * sums[1] / size);
        percent > best.percent) {
      best.percent = percent;
      best.epoch = loader.epoch();
    }
    if (loader.epoch() >= best.epoch + 5) break;
  }
  trial.Finish();
}
