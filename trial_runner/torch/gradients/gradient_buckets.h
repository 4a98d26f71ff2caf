#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/kernels/gradient_kernel.h"
#include "trial_runner/torch/gradients/preconditioner.h"

namespace torch::autograd {
struct Node;
}

namespace espalier {

// The gradients of one model on their way through an optimizer step: taken from autograd as each is
// ready, measured, summed over the step's microbatches, and reduced over the group in buckets while
// backward still computes the ones before. Buckets hold the parameters in reverse order, as
// backward comes to them, and are begun in that order whatever order gradients come in, because
// members must begin the same collectives alike. A tail of further numbers travels behind the last
// bucket's gradients, so that a step of a small model is one all-reduce.
//
// On the host, a step of a single microbatch on a single replica is left where autograd put it:
// nothing is copied, and the gradients are kept until the next step to be compared with it. On
// devices all steps go through the buckets' memory, by a kernel of our own or a few operations a
// bucket, because starting one for each parameter costs more than its arithmetic; the step's
// numbers come back in one copy, for which the host waits once a step, or later where the replica
// is alone. There the memory of the step before is kept for the comparison and, without the kernel,
// Adam's scale of each element beside it: once or twice the parameters' size.
//
// What is measured is the gradient as the group's replicas have it, before the program or its
// optimizer change it in place (by clipping it, say, or by dividing a loss scale out). What is kept
// for the next step's comparison is the same: where somebody is found to have changed it meanwhile,
// that comparison is left out, and copies are kept from there on.
//
// A parameter's gradient may come several times in one backward pass: they add up. What comes when
// its bucket is under way already is reduced after the others, by all replicas.
//
// Memory to which an abandoned collective may still write is replaced, never reused. Use it from
// one thread; backward's own threads call in while Begin..End is under way.
class GradientBuckets {
 public:
  // Numbers that are summed over the replicas together with the gradients; after these come the
  // squared norms by parameter group, and how long each rank computed.
  enum Tail : std::int64_t {
    kPending,       // replicas that know of a newer generation
    kInverseSize,   // 1 / samples of each microbatch
    kMicrobatches,  // how many there were
    kNextBatch,  // what rank 0 asks for in the following steps, or 0: global and atomic batch size
    kNextAtomic,
    kNonFiniteLoss,  // microbatches whose loss was not finite
    kLeftOut,        // replicas whose program leaves this step out
    kLeftOutPart,    // ... takes it, and has left out one of its earlier microbatches
    kLeftOutLate,    // ... has left out the one before when its gradients had been summed
    kInParts,        // replicas whose gradient came in parts: see in_parts()
    kLate,           // replicas with gradients that came when their bucket was under way
    // Of two numbers that all members should have alike, the digits and their squares: see
    // ReplicaCheck.
    kReplicaCheck,
    kMachineCheck = kReplicaCheck + 22,
    kFixedTail = kMachineCheck + 10,
  };

  static constexpr int kCheckDigits = (kMachineCheck - kReplicaCheck) / 2;
  static constexpr int kMachineDigits = (kFixedTail - kMachineCheck) / 2;

  // `group` is the index of the parameter's optimizer group. Parameters are dense, of float,
  // bfloat16 or half; the memory, in which gradients are summed, is of float.
  struct Parameter {
    at::Tensor tensor;
    std::size_t group = 0;
    std::string name = {};  // for errors
  };
  // By what the arithmetic is done: our own loops over host memory, or operations on whole buckets,
  // on whatever device. The latter are our kernel where one is given, and LibTorch's where none is.
  enum class Arithmetic { kHostLoops, kBucketOperations };
  static Arithmetic UsualFor(at::Device device) {
    return device.is_cpu() ? Arithmetic::kHostLoops : Arithmetic::kBucketOperations;
  }

  GradientBuckets(std::vector<Parameter> parameters, std::size_t groups, std::int64_t bucket_bytes)
      : GradientBuckets(parameters, groups, bucket_bytes,
                        UsualFor(parameters.front().tensor.device())) {}
  GradientBuckets(std::vector<Parameter> parameters, std::size_t groups, std::int64_t bucket_bytes,
                  Arithmetic arithmetic, GradientKernel kernel = nullptr);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  Arithmetic arithmetic() const { return arithmetic_; }
  std::size_t groups() const { return groups_; }

  // Gradients are reduced in buckets of so many bytes from here on, less in the first, which
  // backward comes to first. Between two steps; alike on all members.
  void SetBucketBytes(std::int64_t first, std::int64_t each);

  // Norms count each element scaled by these, one per parameter; empty: unscaled.
  void SetPreconditioners(std::vector<Preconditioner> preconditioners) {
    preconditioners_ = std::move(preconditioners);
    scales_known_ = false;
  }

  // One microbatch's backward pass.
  struct Pass {
    double weight = 1;  // of its gradient in the step's, less the loss scale
    bool first = true;  // of the step
    bool last = true;
    bool keep = false;       // the step's only one, of weight 1 on a single replica: copies nothing
    double norm_factor = 1;  // 1 / loss scale^2
  };
  // Gradients that come in from here to End() belong to this pass. In the last pass of a step,
  // buckets are handed to `collectives` as they fill.
  void Begin(const Pass& pass, Collectives& collectives, int replicas);
  void End();
  // After Reduce() or a kept pass: a parameter to which the program has given a gradient of which
  // the step had none, so that it is this replica's alone; null: there is none.
  const Parameter* SetSinceEnd() const;

  // For programs that run backward themselves: called at the end of each backward that has brought
  // gradients to an open pass, on the thread that ran it. Not at the end of one that is run within
  // another, as by a checkpointed layer: if the outer one brings no further gradients, its end is
  // for the caller to know.
  void AtBackwardsEnd(std::function<void()> call) { at_backwards_end_ = std::move(call); }
  // The program has set hooks on gradients since this was asked last, or before it was.
  bool HasNewHooks();
  // Called when the gradients of a pass have been summed over the replicas and are the parameters':
  // what it makes of them counts, and what is measured is what they were before.
  void AtSum(std::function<void()> call) { at_sum_ = std::move(call); }
  // What backward brings from here on is not the last of the step's, whatever Begin said.
  void HoldBack() {
    if (!pass_.keep) pass_.last = false;
  }
  // A further backward in the pass that End has closed: its gradients are added. `last`: they are
  // reduced after it. What Reduce has already summed is set aside meanwhile, except for gradients
  // that the program has set to none since. To be called before that backward brings its first
  // gradient; throws where what is to stay of such a gradient is not known.
  void Reopen(bool last);
  // The program zeroes the gradients of these parameters: what the pass has brought of them is
  // dropped, and what the step's earlier passes have brought stays. False where the two cannot be
  // told apart: a program does this for the first time, and not in a step's first pass.
  bool Zero(const std::vector<std::size_t>& parameters);
  // Such a backward is told of by this, before its first gradient is added to what is there.
  void AtFurtherBackward(std::function<void()> call) { at_further_backward_ = std::move(call); }
  // The step's gradient came in several backward passes or several times within one, here or (after
  // Reduce) on some replica, or was changed since: the norms by which noise is measured are not
  // known.
  bool in_parts() const { return in_parts_; }
  // Whether the pass under way has brought gradients.
  bool any_came() const;
  // Whether the step has had gradients of any parameter.
  bool any_used() const;

  // After the last pass: hands over what backward did not fill, tail included, and waits for all.
  // Then the parameters' gradients are the sums; those that no replica had stay undefined.
  void SetTail(Tail index, double value) { SetTailAt(index, value); }
  void SetComputeTime(int rank, double time_s);
  absl::Status Reduce();

  double tail(Tail index) const { return TailAt(index); }
  double compute_time_s(int rank) const;
  // Sum over the step's microbatches, by group: |gradient|^2 of each, without weight.
  std::vector<double> LocalSqr() const;

  // Of the step's gradient, by group, after Reduce() or a kept pass. With `previous`, also those of
  // the step before, if that was kept too; else those two are empty. To be called once per step:
  // what was kept is dropped.
  struct Norms {
    std::vector<double> sqr;
    std::vector<double> previous_sqr;
    std::vector<double> product;
    bool finite() const;
    // Divides the factors out by which the losses of this step and of the one before were scaled.
    void Unscale(double loss_scale, double previous_loss_scale);
    void Uncompared();  // drops those of and with the step before
  };
  Norms MeasureStep(bool previous);
  // To be called after a kept pass whose gradients the program sees before MeasureStep.
  void MeasureKept();
  // |gradient|, over all groups and without preconditioner, as it is now. After MeasureStep.
  double Norm() const;
  void Scale(double factor);

  // MeasureStep without a wait, of a kept pass by bucket operations. The device can go on with what
  // it finds before the host knows of it.
  struct HostCopy {
    at::Tensor numbers;  // to be read once they are `copied`
    std::optional<c10::Event> copied;
  };
  struct Measurement {
    at::Tensor sums;  // on the device
    HostCopy on_host;
    bool compared = false;
  };
  Measurement BeginMeasuring(bool previous);
  // Waits until the device is through with it, which it is if a later step has been measured.
  Norms Await(const Measurement& measurement) const;
  // On the device: 1 where Norms::finite() is false, else 0.
  at::Tensor FoundNotFinite(const Measurement& measurement) const;
  // Scales the gradient down to `norm` where it is longer than that, on the device.
  void Clip(const Measurement& measurement, double norm);

  // Hooks into the parameters' gradients anew: reading a parameter from an archive gives it another
  // accumulator, and backward would bypass the hooks of the old one. A pass begins with it where a
  // parameter has got another one, or requires a gradient again.
  void Attach();

  // Keeps the gradient of a step for the next one's comparison. Before Scale.
  void KeepAsPrevious();
  // From the next pass on copies are kept: for programs that change gradients in ways which tensors
  // do not count, as torch.amp.GradScaler does. Returns whether this step's are copies already.
  bool KeepCopies() { return std::exchange(copies_, true); }
  void DropPrevious() {
    previous_.clear();
    previous_memory_ = {};
  }
  bool has_previous() const { return !previous_.empty() || previous_memory_.tensor.defined(); }

  // Gives the memory up to whatever may still write to it, and goes on in fresh memory with the
  // next pass.
  void Renew();
  // Makes that memory ahead, where it is the host's, and has the system give out what backward will
  // need beside it: the first write to a page costs several times what the later ones do.
  void Prepare();

 private:
  // Elements of the memory.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::size_t group = 0;  // of all of them
  };
  struct Bucket {
    std::int64_t begin = 0;  // elements of the memory
    std::int64_t end = 0;
    std::vector<std::size_t> parameters;
    std::vector<Range> ranges;  // of one group each
    std::size_t missing = 0;    // gradients of this pass
  };
  // A tensor, and the count of changes in place that it and its views had seen.
  struct Versioned {
    at::Tensor tensor;
    std::uint32_t version = 0;
    static Versioned Of(at::Tensor tensor);
    bool changed() const;
  };
  struct Hook;
  struct PreHook;

  void AttachIfMoved();
  void BeforeGradient();
  void TakeUnhooked();
  void OnReady(std::size_t index);
  void Fold(std::size_t index, const at::Tensor& gradient, bool add);
  void AddLate(std::size_t index, const at::Tensor& gradient);
  void FoldLate();
  void TakeWhatHooksMake();
  absl::Status ReduceLate();
  void AddEarlier();
  bool DropReduced(std::size_t index);
  bool DropUnreduced(std::size_t index);
  void CompareWithPrevious(std::size_t index);
  void FoundChanged();
  void MeasureReduced(const Bucket& bucket);
  Versioned ForComparison(const at::Tensor& gradient) const;
  void HoldGradients();
  bool on_host() const { return arithmetic_ == Arithmetic::kHostLoops; }
  void FoldBucket(const Bucket& bucket);
  void FoldBucketByKernel(const Bucket& bucket);
  ElementScale ScaleOf(std::size_t index) const;
  void RefreshScales();
  at::Tensor Scaled(const at::Tensor& gradients, const Range& range) const;
  at::Tensor StepSums();
  at::Tensor StepSumsByKernel() const;
  GradientPiece PieceOf(std::size_t index, std::vector<at::Tensor>& held) const;
  void Run(GradientSums& sums) const;
  Norms NormsOf(const float* sums) const;
  void TakeSums(const float* sums);
  void BeginFullBuckets();
  void BeginBucket(const Bucket& bucket);
  void MakeMemory();
  at::Tensor SliceOf(const at::Tensor& memory, std::size_t index) const;
  at::Tensor Flat(const at::Tensor& like_parameter, std::size_t index) const;
  at::Tensor InMemorysOrder(const at::Tensor& like_parameter, std::size_t index) const;
  void PointGradientsInto(const at::Tensor& memory);
  double SqrOf(std::size_t index, const at::Tensor& gradient) const;
  void Detach();
  std::int64_t TailSize() const;
  void SetTailAt(std::int64_t index, double value) {
    tail_numbers_[index] = static_cast<float>(value);
  }
  double TailAt(std::int64_t index) const { return static_cast<double>(tail_numbers_[index]); }
  at::Tensor HostTensor(std::int64_t size) const;
  HostCopy BeginCopyToHost(const at::Tensor& numbers) const;
  static const float* Await(const HostCopy& copy);
  void SendTail();
  HostCopy BeginReceivingTail();
  void ReceiveTail(const HostCopy& copy);

  std::vector<Parameter> parameters_;
  const std::size_t groups_;
  std::vector<std::int64_t> offsets_;  // of each parameter in the memory
  std::vector<Bucket> buckets_;        // in the order they are begun
  std::vector<Range> ranges_;          // of one group each, whatever the buckets
  std::int64_t size_ = 0;              // gradient elements
  at::Device device_;
  const Arithmetic arithmetic_;
  const GradientKernel kernel_;  // null: none
  std::vector<Preconditioner> preconditioners_;

  at::Tensor memory_;              // weighted sums, then the tail
  at::Tensor tail_;                // host copy; pinned where it goes to a GPU
  float* tail_numbers_ = nullptr;  // its memory, which a tensor would be asked for each time
  std::vector<double> local_sqr_;  // by group: host loops
  Norms kept_norms_;               // of the step, as far as they are measured
  bool compared_ = false;          // there was a step before to compare with
  int replicas_ = 1;
  bool copies_ = false;  // what is kept for comparison is a copy: somebody changes gradients
  // Host loops, by parameter, undefined ones included: the gradients of the kept pass, and those
  // of the step before.
  std::vector<Versioned> kept_;
  std::vector<Versioned> previous_;

  // Bucket operations.
  Versioned kept_memory_;      // of the kept pass
  Versioned previous_memory_;  // of the step before
  at::Tensor kept_sums_;  // StepSums of the kept pass, where the program sees it before the step
  Versioned gradients_;   // the memory that the parameters' gradients are slices of
  at::Tensor scales_;     // the preconditioners' factor of each element; without kernel
  bool scales_known_ = false;  // they are those of the present preconditioners
  at::Tensor group_sqr_;       // LocalSqr of this replica
  double norm_sqr_ = 0;        // of the reduced or measured step, without preconditioner

  // The pass under way.
  Pass pass_;
  bool open_ = false;
  bool end_awaited_ = false;  // of the backward that is running
  bool in_parts_ = false;
  bool reduced_ = false;  // this step's are reduced
  at::Tensor earlier_;    // what was reduced before the pass was opened again
  std::vector<bool> earlier_used_;
  bool first_pass_ = true;  // of the step: there are no sums of passes before
  bool zeroes_ = false;     // the program does so within passes: sums of passes before are copied
  at::Tensor before_;       // that copy, of this replica; undefined: there is none
  std::vector<bool> before_used_;
  std::function<void()> at_backwards_end_;
  std::function<void()> at_further_backward_;
  std::function<void()> at_sum_;
  Collectives* collectives_ = nullptr;
  std::vector<bool> came_;  // parameters whose gradient has come in this pass
  // Some parameter's has come twice in one backward pass, as where a layer is checkpointed twice
  // (torch.utils.checkpoint with use_reentrant=True runs a backward pass within the one that is
  // under way). From then on no bucket is begun before backward's end.
  bool comes_again_ = false;
  at::Tensor late_;                  // weighted sums of what came when its bucket was folded
  std::vector<bool> used_;           // parameters that have a gradient in this step
  std::vector<bool> brought_;        // parameters that have or had one
  std::vector<at::Tensor> waiting_;  // gradients that wait for their bucket, on devices
  std::size_t next_bucket_ = 0;

  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::shared_ptr<GradientBuckets*> self_;  // for hooks that may outlive it
  std::vector<std::uintptr_t> hooks_;
  std::vector<std::size_t> known_hooks_;  // of the program, by parameter
};

}  // namespace espalier
