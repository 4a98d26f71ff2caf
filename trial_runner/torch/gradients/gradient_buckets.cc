#include "trial_runner/torch/gradients/gradient_buckets.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "trial_runner/kernels/norm_kernels.h"

namespace espalier {
namespace {

// A node of autograd that stays while this is held. It counts its owners by std::shared_ptr up to
// torch 2.12, by c10::intrusive_ptr from 2.13 on.
template <typename Owner>
std::shared_ptr<torch::autograd::Node> Kept(Owner owner) {
  if constexpr (std::is_same_v<Owner, std::shared_ptr<torch::autograd::Node>>) {
    return owner;
  } else {
    torch::autograd::Node* const node = owner.get();
    if (node == nullptr) return nullptr;
    return {node, [kept = std::move(owner)](torch::autograd::Node*) {}};
  }
}

// The ranks whose compute times fit into the tail before it has to grow.
constexpr int kUsualReplicas = 64;

// Autograd hands it to whoever runs backward, whichever thread it has come up in.
[[noreturn]] void RefuseSparse(const GradientBuckets::Parameter& parameter) {
  throw std::invalid_argument(absl::StrCat(
      "espalier: the gradient of parameter \"", parameter.name, "\" of shape ",
      c10::str(parameter.tensor.sizes()),
      " is sparse, and replicas bring together dense ones: want sparse=False where it is used"));
}

// Its graph would end where replicas are summed.
[[noreturn]] void RefuseGraph(const GradientBuckets::Parameter& parameter) {
  throw std::invalid_argument(absl::StrCat(
      "espalier: backward(create_graph=True) gave parameter \"", parameter.name,
      "\" a gradient with a graph of its own, which ends where the gradients of replicas are "
      "summed: want torch.autograd.grad(..., create_graph=True) for what is differentiated twice, "
      "and backward() without it for the loss that it becomes a part of"));
}

}  // namespace

// Called by autograd when a parameter's gradient is complete.
struct GradientBuckets::Hook : torch::autograd::FunctionPostHook {
  Hook(GradientBuckets& buckets, std::size_t parameter) : owner(buckets), index(parameter) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    owner.OnReady(index);
    return outputs;
  }
  GradientBuckets& owner;
  const std::size_t index;
};

// Called before a parameter's gradient is added to what is there. A node parts with its pre-hooks
// only when it goes, so this one may outlive the buckets.
struct GradientBuckets::PreHook : torch::autograd::FunctionPreHook {
  explicit PreHook(std::weak_ptr<GradientBuckets*> buckets) : owner(std::move(buckets)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& in) override {
    if (const auto buckets = owner.lock()) (*buckets)->BeforeGradient();
    return in;
  }
  const std::weak_ptr<GradientBuckets*> owner;
};

GradientBuckets::GradientBuckets(std::vector<Parameter> parameters, std::size_t groups,
                                 std::int64_t bucket_bytes, Arithmetic arithmetic,
                                 GradientKernel kernel)
    : parameters_(std::move(parameters)),
      groups_(groups),
      offsets_(parameters_.size()),
      device_(parameters_.front().tensor.device()),
      arithmetic_(arithmetic),
      kernel_(kernel),
      local_sqr_(groups),
      came_(parameters_.size()),
      used_(parameters_.size()),
      brought_(parameters_.size()),
      waiting_(parameters_.size()) {
  SetBucketBytes(bucket_bytes, bucket_bytes);
  Attach();
}

void GradientBuckets::SetBucketBytes(std::int64_t first, std::int64_t each) {
  constexpr std::int64_t kElementBytes = 4;
  buckets_.clear();
  ranges_.clear();
  size_ = 0;
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const std::int64_t count = parameters_[i].tensor.numel();
    const std::int64_t most =
        std::max<std::int64_t>((buckets_.size() < 2 ? first : each) / kElementBytes, 1);
    if (buckets_.empty() ||
        (size_ > buckets_.back().begin && size_ + count - buckets_.back().begin > most)) {
      buckets_.push_back({.begin = size_, .end = size_, .parameters = {}, .ranges = {}});
    }
    offsets_[i] = size_;
    size_ += count;
    Bucket& bucket = buckets_.back();
    bucket.end = size_;
    bucket.parameters.push_back(i);
    const std::size_t group = parameters_[i].group;
    for (std::vector<Range>* ranges : {&bucket.ranges, &ranges_}) {
      if (ranges->empty() || ranges->back().group != group) {
        ranges->push_back({offsets_[i], size_, group});
      }
      ranges->back().end = size_;
    }
  }
}

GradientBuckets::~GradientBuckets() { Detach(); }

bool GradientBuckets::HasNewHooks() {
  known_hooks_.resize(parameters_.size());
  bool any = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(parameters_[i].tensor);
    const std::size_t now = meta == nullptr ? 0 : meta->hooks_.size();
    any = any || now > known_hooks_[i];
    known_hooks_[i] = now;
  }
  return any;
}

// Of parameters of fewer bits a gradient is not the memory's own.
void GradientBuckets::TakeWhatHooksMake() {
  PointGradientsInto(memory_);
  std::vector<Versioned> before;
  for (const Parameter& p : parameters_) before.push_back(Versioned::Of(p.tensor.grad()));
  at_sum_();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    if (!gradient.defined() || gradient.is_alias_of(memory_)) continue;
    if (gradient.is_same(before[i].tensor) && !before[i].changed()) continue;
    SliceOf(memory_, i).copy_(gradient);
  }
}

void GradientBuckets::Attach() {
  Detach();
  if (!self_) self_ = std::make_shared<GradientBuckets*>(this);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Null where the program lets the parameter require no gradient for a while.
    accumulators_.push_back(Kept(torch::autograd::impl::grad_accumulator(parameters_[i].tensor)));
    if (!accumulators_.back()) {
      hooks_.push_back(0);
      continue;
    }
    torch::autograd::Node& node = *accumulators_.back();
    hooks_.push_back(node.add_post_hook(std::make_unique<Hook>(*this, i)));
    const bool has_one =
        std::any_of(node.pre_hooks().begin(), node.pre_hooks().end(), [this](const auto& hook) {
          const auto* own = dynamic_cast<const PreHook*>(hook.get());
          return own != nullptr && own->owner.lock() == self_;
        });
    if (at_further_backward_ && !has_one) node.add_pre_hook(std::make_unique<PreHook>(self_));
  }
}

void GradientBuckets::AttachIfMoved() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& p = parameters_[i].tensor;
    const bool moved =
        torch::autograd::impl::try_get_grad_accumulator(p).get() != accumulators_[i].get();
    if (moved || (p.requires_grad() && !accumulators_[i])) {
      Attach();
      return;
    }
  }
}

void GradientBuckets::Detach() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    if (accumulators_[i]) accumulators_[i]->del_post_hook(hooks_[i]);
  }
  accumulators_.clear();
  hooks_.clear();
}

std::int64_t GradientBuckets::TailSize() const {
  return kFixedTail + static_cast<std::int64_t>(groups_ + parameters_.size()) +
         std::max(replicas_, kUsualReplicas);
}

void GradientBuckets::MakeMemory() {
  const auto options = at::TensorOptions(at::kFloat).device(device_);
  memory_ = at::zeros({size_ + TailSize()}, options);
  tail_ = HostTensor(TailSize());
  tail_numbers_ = tail_.mutable_data_ptr<float>();
  if (!on_host()) group_sqr_ = at::zeros({static_cast<std::int64_t>(groups_)}, options);
}

at::Tensor GradientBuckets::HostTensor(std::int64_t size) const {
  return at::empty({size}, at::TensorOptions(at::kFloat).pinned_memory(device_.is_cuda())).zero_();
}

void GradientBuckets::Renew() {
  open_ = false;  // what backward still brings has no place any more
  earlier_ = before_ = late_ = at::Tensor();
  memory_ = scales_ = at::Tensor();
  gradients_ = {};
  scales_known_ = false;
  waiting_.assign(parameters_.size(), {});
  DropPrevious();
}

void GradientBuckets::Prepare() {
  if (!device_.is_cpu()) return;
  MakeMemory();
  std::vector<at::Tensor> gradients;  // the allocator keeps their memory for those of backward
  for (const Parameter& p : parameters_) gradients.push_back(at::zeros_like(p.tensor));
}

// With the parameter's own order of elements, which channels_last weights differ in: optimizers are
// slow where the gradient has another.
at::Tensor GradientBuckets::SliceOf(const at::Tensor& memory, std::size_t index) const {
  const at::Tensor& p = parameters_[index].tensor;
  const at::Tensor slice = memory.narrow(0, offsets_[index], p.numel());
  if (p.is_contiguous() || !p.is_non_overlapping_and_dense()) return slice.view(p.sizes());
  return slice.as_strided(p.sizes(), p.strides());
}

// The elements in the order in which they lie in the memory.
at::Tensor GradientBuckets::Flat(const at::Tensor& like_parameter, std::size_t index) const {
  const at::Tensor& p = parameters_[index].tensor;
  if (p.is_contiguous() || !p.is_non_overlapping_and_dense()) {
    return like_parameter.reshape(-1).to(at::kFloat);
  }
  at::Tensor ordered = like_parameter;
  if (ordered.strides() != p.strides()) {
    ordered = at::empty_strided(p.sizes(), p.strides(), like_parameter.options());
    ordered.copy_(like_parameter);
  }
  return ordered.as_strided({p.numel()}, {1}).to(at::kFloat);
}

// The same, without any operation where they lie so already.
at::Tensor GradientBuckets::InMemorysOrder(const at::Tensor& like_parameter,
                                           std::size_t index) const {
  const at::Tensor& p = parameters_[index].tensor;
  const bool as_it_is = like_parameter.scalar_type() == at::kFloat &&
                        p.is_non_overlapping_and_dense() && like_parameter.strides() == p.strides();
  return as_it_is ? like_parameter : Flat(like_parameter, index);
}

void GradientBuckets::PointGradientsInto(const at::Tensor& memory) {
  gradients_ = Versioned::Of(memory);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i].tensor;
    if (used_[i]) parameter.mutable_grad() = SliceOf(memory, i).to(parameter.scalar_type());
  }
}

// ---- one pass ---------------------------------------------------------------------------------

void GradientBuckets::Begin(const Pass& pass, Collectives& collectives, int replicas) {
  AttachIfMoved();
  pass_ = pass;
  open_ = true;
  end_awaited_ = reduced_ = false;
  collectives_ = &collectives;
  replicas_ = replicas;
  for (Parameter& p : parameters_) p.tensor.mutable_grad().reset();
  waiting_.assign(parameters_.size(), {});  // of a pass that ended in an exception
  came_.assign(parameters_.size(), false);
  late_ = at::Tensor();
  kept_.clear();
  kept_memory_ = {};
  kept_sums_ = at::Tensor();
  first_pass_ = pass.first;
  before_ = at::Tensor();
  if (!pass.first && zeroes_) {
    before_ = memory_.narrow(0, 0, size_).clone();
    before_used_ = used_;
  }
  if (pass.first) {
    kept_norms_ = {};
    for (auto* sums : {&kept_norms_.sqr, &kept_norms_.previous_sqr, &kept_norms_.product}) {
      sums->assign(groups_, 0);
    }
    compared_ = has_previous();
    std::fill(local_sqr_.begin(), local_sqr_.end(), 0);
    std::fill(used_.begin(), used_.end(), false);
    std::fill(brought_.begin(), brought_.end(), false);
    in_parts_ = false;
    earlier_ = at::Tensor();
    const bool fits = memory_.defined() && memory_.numel() >= size_ + TailSize() &&
                      memory_.numel() == size_ + tail_.numel();
    if (!fits && !(pass.keep && on_host())) MakeMemory();
    if (tail_.defined()) tail_.zero_();
    if (group_sqr_.defined() && !pass.keep) group_sqr_.zero_();
    if (!on_host() && kernel_ == nullptr) RefreshScales();
  }
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
  next_bucket_ = 0;
}

void GradientBuckets::OnReady(std::size_t index) {
  if (!open_) return;  // another model's backward came through this one
  at::Tensor& gradient = parameters_[index].tensor.mutable_grad();
  if (!gradient.defined()) return;
  if (gradient.layout() != at::kStrided) RefuseSparse(parameters_[index]);
  if (gradient.requires_grad()) RefuseGraph(parameters_[index]);
  if (at_backwards_end_ && !std::exchange(end_awaited_, true)) {
    torch::autograd::Engine::get_default_engine().queue_callback([this] {
      end_awaited_ = false;
      const bool within_another = torch::autograd::get_current_node() != nullptr;
      if (!within_another) at_backwards_end_();
    });
  }
  const bool again = came_[index];
  came_[index] = used_[index] = brought_[index] = true;
  if (again) in_parts_ = comes_again_ = true;
  if (pass_.keep && on_host()) {
    if (in_parts_) return;
    // At once: the gradient is in the cache, and the one before is needed no more.
    CompareWithPrevious(index);
    return;
  }
  Bucket& bucket = *std::find_if(buckets_.begin(), buckets_.end(),
                                 [&](const Bucket& b) { return offsets_[index] < b.end; });
  const at::Tensor brought = std::exchange(gradient, {});
  if (again && bucket.missing == 0) {
    AddLate(index, brought);
  } else if (on_host()) {
    Fold(index, brought, again || !pass_.first);
  } else {
    waiting_[index] = again ? waiting_[index] + brought : brought;
  }
  if (again || --bucket.missing > 0) return;
  if (!on_host()) FoldBucket(bucket);
  if (pass_.last && !pass_.keep && !comes_again_) BeginFullBuckets();
}

void GradientBuckets::BeforeGradient() {
  if (!open_ && at_further_backward_) at_further_backward_();
}

bool GradientBuckets::any_came() const {
  return open_ && std::any_of(came_.begin(), came_.end(), [](bool came) { return came; });
}

bool GradientBuckets::any_used() const {
  return std::any_of(used_.begin(), used_.end(), [](bool used) { return used; });
}

void GradientBuckets::Fold(std::size_t index, const at::Tensor& gradient, bool add) {
  const at::Tensor whole = Flat(gradient, index);
  local_sqr_[parameters_[index].group] +=
      pass_.norm_factor * FoldGradient(whole.const_data_ptr<float>(),
                                       static_cast<std::size_t>(whole.numel()), ScaleOf(index),
                                       static_cast<float>(pass_.weight), add,
                                       memory_.mutable_data_ptr<float>() + offsets_[index]);
}

void GradientBuckets::FoldBucket(const Bucket& bucket) {
  const at::NoGradGuard no_grad;
  if (kernel_ != nullptr) {
    FoldBucketByKernel(bucket);
    return;
  }
  std::vector<at::Tensor> parts;
  bool any = false;
  for (const std::size_t i : bucket.parameters) {
    const at::Tensor gradient = std::exchange(waiting_[i], {});
    any = any || gradient.defined();
    parts.push_back(gradient.defined()
                        ? Flat(gradient, i)
                        : at::zeros({parameters_[i].tensor.numel()}, memory_.options()));
  }
  if (!any) return;
  at::Tensor into = memory_.narrow(0, bucket.begin, bucket.end - bucket.begin);
  const at::Tensor gradients = pass_.first ? at::cat_out(into, parts) : at::cat(parts);
  if (!pass_.keep) {
    for (const Range& range : bucket.ranges) {
      const at::Tensor scaled =
          Scaled(gradients.narrow(0, range.begin - bucket.begin, range.end - range.begin), range);
      group_sqr_.select(0, static_cast<std::int64_t>(range.group))
          .add_(at::dot(scaled, scaled), pass_.norm_factor);
    }
  }
  if (!pass_.first) {
    into.add_(gradients, pass_.weight);
  } else if (pass_.weight != 1) {
    into.mul_(pass_.weight);
  }
}

void GradientBuckets::BeginFullBuckets() {
  // The last one waits for its tail.
  while (next_bucket_ + 1 < buckets_.size() && buckets_[next_bucket_].missing == 0) {
    BeginBucket(buckets_[next_bucket_++]);
  }
}

void GradientBuckets::BeginBucket(const Bucket& bucket) {
  const bool last = &bucket == &buckets_.back();
  const std::int64_t count = (last ? size_ + TailSize() : bucket.end) - bucket.begin;
  collectives_->StartAllReduceSum(
      {.type = CollectiveBuffer::Type::kFloat,
       .start = memory_.mutable_data_ptr<float>() + bucket.begin,
       .count = count,
       .device = device_.is_cpu() ? CollectiveBuffer::kHost : device_.index(),
       .owner = std::make_shared<at::Tensor>(memory_)});
}

// Of parameters that the program lets require gradients since Begin, which found no node to hook,
// and what the program has set itself, as from torch.autograd.grad: hooks leave their gradients
// where they are in a pass that is kept on the host alone.
void GradientBuckets::TakeUnhooked() {
  const bool awaited = std::exchange(end_awaited_, true);  // it is the end
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool hooks_own = accumulators_[i] && used_[i] && pass_.keep && on_host();
    at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    if (hooks_own || !gradient.defined()) continue;
    if (gradient.requires_grad()) gradient = gradient.detach();  // nobody asks for its graph
    OnReady(i);
  }
  end_awaited_ = awaited;
}

const GradientBuckets::Parameter* GradientBuckets::SetSinceEnd() const {
  if (!reduced_ && !pass_.keep) return nullptr;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    if (!brought_[i] && gradient.defined() && gradient.any().item<bool>()) return &parameters_[i];
  }
  return nullptr;
}

void GradientBuckets::End() {
  TakeUnhooked();
  open_ = false;
  if (pass_.keep && on_host()) {
    HoldGradients();
    return;
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.missing > 0 && !on_host()) FoldBucket(bucket);
  }
  if (pass_.first) {
    // What this pass did not touch must hold nothing of the last step.
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!used_[i]) SliceOf(memory_, i).zero_();
    }
  }
  FoldLate();
  if (!pass_.keep) return;
  AddEarlier();
  PointGradientsInto(memory_);
}

// ---- the step -----------------------------------------------------------------------------------

void GradientBuckets::SetComputeTime(int rank, double time_s) {
  SetTailAt(kFixedTail + static_cast<std::int64_t>(groups_ + parameters_.size()) + rank, time_s);
}
double GradientBuckets::compute_time_s(int rank) const {
  return TailAt(kFixedTail + static_cast<std::int64_t>(groups_ + parameters_.size()) + rank);
}

void GradientBuckets::SendTail() {
  at::Tensor there = memory_.narrow(0, size_, tail_.numel());
  there.copy_(tail_, /*non_blocking=*/true);
  if (group_sqr_.defined()) {
    there.narrow(0, kFixedTail, static_cast<std::int64_t>(groups_)).copy_(group_sqr_);
  }
}

// On a device with the step's sums, so that there is one copy to wait for. It need not have the
// reduced gradients yet: only its stream comes to them.
GradientBuckets::HostCopy GradientBuckets::BeginReceivingTail() {
  if (on_host()) return {};
  const at::NoGradGuard no_grad;
  return BeginCopyToHost(at::cat({memory_.narrow(0, size_, tail_.numel()), StepSums()}));
}

void GradientBuckets::ReceiveTail(const HostCopy& copy) {
  if (on_host()) {
    tail_.copy_(memory_.narrow(0, size_, tail_.numel()));
    return;
  }
  const float* numbers = Await(copy);
  std::copy_n(numbers, tail_.numel(), tail_numbers_);
  TakeSums(numbers + tail_.numel());
}

absl::Status GradientBuckets::Reduce() {
  ESPALIER_CHECK(pass_.last && !pass_.keep, "only a step that was folded can be reduced");
  for (std::size_t g = 0; g < groups_; ++g) {
    SetTailAt(kFixedTail + static_cast<std::int64_t>(g), local_sqr_[g]);
  }
  const std::int64_t used = kFixedTail + static_cast<std::int64_t>(groups_);
  for (std::size_t i = 0; i < used_.size(); ++i) {
    SetTailAt(used + static_cast<std::int64_t>(i), used_[i] ? 1 : 0);
  }
  SetTail(kInParts, in_parts_ ? 1 : 0);
  SetTail(kLate, late_.defined() ? 1 : 0);
  SendTail();
  while (next_bucket_ < buckets_.size()) BeginBucket(buckets_[next_bucket_++]);
  // With nothing to compare with, a bucket is measured while the next ones are under way.
  std::size_t measured = 0;
  // Several replicas need no step before to tell their noise by, and not all of them may have one;
  // it is not to decide in which order numbers are summed. Hooks have changed its gradients.
  if (replicas_ > 1 || at_sum_) DropPrevious();
  const bool in_turn = on_host() && !in_parts_ && !has_previous();
  const auto measure_next = [&] { MeasureReduced(buckets_[measured++]); };
  const auto measure_done = [&](const void* start) {
    if (!in_turn || measured == buckets_.size()) return;
    // Sums of another model may have been begun between these.
    if (start == memory_.const_data_ptr<float>() + buckets_[measured].begin) measure_next();
  };
  HostCopy received;
  const absl::Status summed =
      on_host() ? collectives_->WaitAllInTurn(measure_done)
                : collectives_->WaitAllAnd([&] { received = BeginReceivingTail(); });
  if (!summed.ok()) return summed;
  ReceiveTail(received);
  in_parts_ = tail(kInParts) > 0;
  ESPALIER_RETURN_IF_ERROR(ReduceLate());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    used_[i] = TailAt(used + static_cast<std::int64_t>(i)) > 0;
    brought_[i] = brought_[i] || used_[i];
  }
  reduced_ = true;
  if (at_sum_) {
    while (in_turn && measured < buckets_.size()) measure_next();
    TakeWhatHooksMake();
  }
  AddEarlier();
  PointGradientsInto(memory_);
  if (!on_host() || in_parts_) return absl::OkStatus();
  while (in_turn && measured < buckets_.size()) measure_next();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Those of fewer bits as the optimizer sees them.
    if (!in_turn || parameters_[i].tensor.scalar_type() != at::kFloat) CompareWithPrevious(i);
  }
  return absl::OkStatus();
}

std::vector<double> GradientBuckets::LocalSqr() const {
  std::vector<double> sums;
  for (std::size_t g = 0; g < groups_; ++g) {
    sums.push_back(TailAt(kFixedTail + static_cast<std::int64_t>(g)));
  }
  return sums;
}

}  // namespace espalier
