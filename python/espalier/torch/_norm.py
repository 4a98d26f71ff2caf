"""Batch normalisation over the samples of all replicas: what torch.nn.SyncBatchNorm is while its model is wrapped."""
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from espalier._runtime import runtime
from espalier.errors import UsageError


def adapt(model):
    """Has the model's SyncBatchNorms, of which there may be none, sum over the group that there is in each batch.
    What else torch asks for to use them, such as a process group or a GPU, they do without."""
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.SyncBatchNorm)]
    for name, module in found:
        if module.process_group is not None:
            raise UsageError(f"AdaptiveDataParallel: {name or 'the model'} is a SyncBatchNorm with a process group of "
                             "its own, and replicas come and go: want one without")
        if type(module) not in (torch.nn.SyncBatchNorm, SyncBatchNorm):
            raise UsageError(f"AdaptiveDataParallel: {name or 'the model'} is a {type(module).__name__}: of "
                             "SyncBatchNorm want torch's own class")
        module.__class__ = SyncBatchNorm
    if found:
        runtime().ops.align_microbatches()


class SyncBatchNorm(torch.nn.SyncBatchNorm):
    """In a batch of the training loader the statistics are over all replicas that have a part of it, else over the
    samples at hand; in evaluation mode the running ones are taken."""

    @torch.compiler.disable  # what replicas do together is no part of a graph
    def forward(self, input):
        if not self.training or not torch.ops.espalier.sums_over_step():
            return _BatchNorm.forward(self, input)
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        output, mean, var, count = _Normalised.apply(input, self.weight, self.bias, self.eps)
        if self.track_running_stats and self.running_mean is not None:
            with torch.no_grad():
                self._follow(mean, var * (count / (count - 1).clamp_min(1)))
        return output

    def _follow(self, mean, var):
        self.num_batches_tracked.add_(1)
        factor = self.momentum if self.momentum is not None else 1.0 / self.num_batches_tracked
        for running, now in ((self.running_mean, mean), (self.running_var, var)):
            running.add_((now.to(running.dtype) - running) * factor)


def _along_channels(values, like):
    return values.to(like.dtype).reshape(1, -1, *[1] * (like.dim() - 2))


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        dims = [d for d in range(x.dim()) if d != 1]
        var, mean = torch.var_mean(wide, dims, correction=0)
        var, mean = var.double(), mean.double()
        own = x.numel() // x.size(1)
        sums = torch.cat([mean.new_full((1,), own), own * mean, own * (var + mean * mean)])
        sums = torch.ops.espalier.sum_over_step(sums, False)
        count = sums[0]
        mean, square = (sums[1:] / count).chunk(2)
        var = (square - mean * mean).clamp_min(0)
        scale = (var + eps).rsqrt()
        normal = (wide - _along_channels(mean, wide)) * _along_channels(scale, wide)
        ctx.save_for_backward(x, weight, mean, scale, count)
        ctx.mark_non_differentiable(mean, var, count)
        if weight is not None:
            normal = normal * _along_channels(weight, wide)
        if bias is not None:
            normal = normal + _along_channels(bias, wide)
        return normal.to(x.dtype), mean, var, count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient, *_):
        x, weight, mean, scale, count = ctx.saved_tensors
        wide = gradient if gradient.dtype == torch.float64 else gradient.float()
        normal = (x.to(wide.dtype) - _along_channels(mean, wide)) * _along_channels(scale, wide)
        dims = [d for d in range(x.dim()) if d != 1]
        of_bias, of_weight = wide.sum(dims), (wide * normal).sum(dims)
        into_x = None
        if ctx.needs_input_grad[0]:
            # A replica's loss counts by its share of the step's samples: so do its gradients here.
            sums = torch.ops.espalier.sum_over_step(torch.cat([of_bias, of_weight]).double(), True)
            shift, slope = (sums / count).chunk(2)
            into_x = wide - _along_channels(shift, wide) - normal * _along_channels(slope, wide)
            factor = scale if weight is None else scale * weight.double()
            into_x = (into_x * _along_channels(factor, wide)).to(x.dtype)
        return (into_x, of_weight.to(weight.dtype) if ctx.needs_input_grad[1] else None,
                of_bias.to(gradient.dtype) if ctx.needs_input_grad[2] else None, None)
