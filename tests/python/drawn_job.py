"""What a drawn program trains, and what it does with a batch: the same for a trial and for the plain loops beside it."""
import contextlib
import copy

import torch
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel

from drawn_layers import INPUTS, Net, Normalised
from drawn_programs import BACKWARD_WITHIN

MARKED = (3, -1)  # samples whose loss is not to be trained on
HELD_OUT = 24
OVERFLOWS = (1, 5)    # batches of an epoch whose loss is infinite
TYPES = {"float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}

RATES = {"sgd": (torch.optim.SGD, 0.05, {"momentum": 0.9, "weight_decay": 0.01}), "adam": (torch.optim.Adam, 0.01, {}),
         "adamw": (torch.optim.AdamW, 0.01, {}), "adagrad": (torch.optim.Adagrad, 0.02, {}),
         "rmsprop": (torch.optim.RMSprop, 0.002, {"momentum": 0.5, "centered": True}),
         "adadelta": (torch.optim.Adadelta, 0.5, {"rho": 0.8}), "nadam": (torch.optim.NAdam, 0.01, {}),
         "asgd": (torch.optim.ASGD, 0.05, {"t0": 3})}


class Job:
    """`plain`: of a loop of its own, in which nobody else sums what hooks and norms see."""

    def __init__(self, program, plain=False, shares=False):
        self.program, self.plain = program, plain
        torch.manual_seed(program.seed)
        self.kind = TYPES.get(program.precision, torch.float32)
        self.net = Net(program.layers)
        with torch.no_grad():
            if program.has("lazy:seen"):
                self.net(torch.zeros(2, INPUTS)) if not program.has("normalised:sync") else self._see_one_by_one()
        self.net.to(self.kind)
        self._draw_data()
        self._make_average()
        if plain:
            for layer in self.net.layers:
                if isinstance(layer, Normalised) and layer.variant == "sync":
                    layer.norm.__class__ = torch.nn.BatchNorm1d
        self._make_optimizer()
        self.model = self.net
        self.hooks = [each for layer in self.net.layers for each in layer.hooks]
        # A gradient that comes several times within backward is one to a trial's hooks.
        self.hooks_at_end = plain and (shares or any(program.has(word) for word in BACKWARD_WITHIN))
        self._passes = []  # where they are called by this class: what each backward pass of the batch has brought
        if not self.hooks_at_end:
            for parameter, hook in self.hooks:
                parameter.register_hook(hook)

    def _see_one_by_one(self):
        """As plain PyTorch has no SyncBatchNorm on a processor."""
        for layer in self.net.layers:
            if isinstance(layer.inner, torch.nn.LazyLinear):
                layer.inner(torch.zeros(2, 8))

    def _draw_data(self):
        count = self.program.samples + HELD_OUT
        x = torch.randn(count, INPUTS)
        y = (x.pow(2).sum(1, keepdim=True) / 4 + 0.1 * torch.randn(count, 1)).tanh()
        self.x, self.y = x[:-HELD_OUT].to(self.kind), y[:-HELD_OUT].to(self.kind)
        if self.program.has("skips"):
            self.y[list(MARKED)] = float("nan") if self.program.has("skips:not_finite") else 1e4
        self.held_out = x[-HELD_OUT:].to(self.kind), y[-HELD_OUT:].to(self.kind)

    def _make_average(self):
        net, self.averaged = self.net, None
        if self.program.has("averages:model"):
            self.averaged = AveragedModel(net.last).requires_grad_(False)
            net.averaged = self.averaged
        elif self.program.has("averages"):
            for i, p in enumerate(net.last.parameters()):
                net.register_buffer(f"averaged_{i}", p.detach().clone())

    def _make_optimizer(self):
        program, net = self.program, self.net
        make, rate, options = RATES[program.optimizer]
        left_out = net.is_in_no_optimizer()
        if self.averaged is not None:
            left_out |= {id(p) for p in self.averaged.parameters()}
        if program.has("finetunes:unfreezes"):
            net.first.requires_grad_(False)
        last = list(net.last.parameters())
        others = [p for p in net.parameters() if id(p) not in left_out | {id(p) for p in last}]
        groups = [{"params": others}, {"params": last}]
        if program.has("finetunes:rates"):
            groups = [{"params": others, "lr": rate / 10}, {"params": last, "weight_decay": 0.0}]
        if program.precision in ("float16", "scaled") and program.optimizer not in ("sgd", "asgd"):
            options = {**options, "eps": 1e-4}  # torch's own is nothing in half precision
        self.optimizer = make(groups, lr=rate, **options)
        self.schedule = self.scaler = None
        if program.has("schedules"):
            self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.97)
        if program.has("scales") or program.precision == "scaled":
            self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=5)

    # ---- the loop

    def begin_training(self):
        """After a trial has wrapped its model."""
        if self.program.has("finetunes:thaws"):
            self._freeze(True)

    def _freeze(self, freeze):
        for module in (self.net.first, self.net.layers[0].inner):
            module.requires_grad_(not freeze)

    def begin_epoch(self, epoch):
        """`epoch`: from 0."""
        self.net.set_epoch(epoch)
        if self.program.has("finetunes:thaws") and not self.program.has("frozen"):
            self._freeze(epoch < 1)
        if self.program.has("finetunes:unfreezes"):
            self.net.first.requires_grad_(epoch >= 1)

    def autocast(self):
        kind = {"autocast": torch.bfloat16, "scaled": torch.float16}.get(self.program.precision)
        return contextlib.nullcontext() if kind is None else torch.autocast("cpu", kind)

    def before_pass(self, number):
        """Before each forward pass of a batch, from 0: what keeps, or sets, the random generator."""

    def losses(self, x, y, number):
        """Of the backward passes of a batch, which is this one of its epoch."""
        program = self.program
        self.before_pass(0)
        x = x.detach().requires_grad_(program.has("penalises:inputs"))
        with self.autocast():
            output = self.model(x)
        loss = F.mse_loss(output.float() if self.kind != torch.float64 else output, y.to(torch.promote_types(self.kind, torch.float32)))
        loss = loss + self._penalty(output, x)
        if program.has("scales:overflows") and number in OVERFLOWS:
            loss = loss * float("inf")
        yield loss
        if program.has("accumulates:passes") or program.has("accumulates:held"):
            self.before_pass(1)
            with self.autocast():
                yield 0.3 * self.model(x.detach()).float().abs().mean()

    def _penalty(self, output, x):
        trained = [p for p in self.net.parameters() if p.requires_grad]
        if self.program.has("penalises:square"):
            return 0.01 * sum(p.float().pow(2).sum() for p in trained)
        if self.program.has("penalises:absolute"):
            return 0.01 * sum(p.float().abs().sum() for p in trained)
        if self.program.has("penalises:inputs"):
            gradient, = torch.autograd.grad(output.sum(), x, create_graph=True)
            return 0.05 * gradient.pow(2).sum(1).mean()
        if self.program.has("penalises:sharpness"):
            gradients = torch.autograd.grad(output.mean(), trained, create_graph=True, allow_unused=True)
            return 0.05 * sum(g.pow(2).sum() for g in gradients if g is not None)
        return 0.0

    def backward(self, x, y, number, weight=1.0):
        """Whether the step is to be taken. `weight`: of this part of the batch."""
        take = True
        held = self.program.has("accumulates:held")
        for i, loss in enumerate(self.losses(x, y, number)):
            if i == 0 and self.program.has("skips:not_finite") and not loss.isfinite():
                return False
            scaled = loss * weight if weight != 1.0 else loss
            if self.scaler is not None:
                scaled = self.scaler.scale(scaled)
            with self.model.no_sync() if held and i == 0 and not self.plain else contextlib.nullcontext():
                scaled.backward(create_graph=self.program.has("penalises:graph"))
            if self.hooks_at_end:
                self._set_aside(i)
            take = take and not (self.program.has("skips:late") and i == 0 and loss > 1000)
        return take

    def _set_aside(self, number):
        """What backward pass `number` of a part of a batch has brought."""
        if number == len(self._passes):
            self._passes.append({})
        for p in self.net.parameters():
            if p.grad is not None:
                sums = self._passes[number]
                sums[p] = sums[p] + p.grad if p in sums else p.grad
                p.grad = None

    @torch.no_grad()
    def _call_hooks(self):
        for sums in self._passes:
            for parameter, hook in self.hooks:
                if parameter in sums:
                    sums[parameter] = hook(sums[parameter])
            for p, gradient in sums.items():
                p.grad = gradient if p.grad is None else p.grad + gradient

    def begin_batch(self):
        """Of a plain loop."""
        self._passes.clear()
        self.optimizer.zero_grad()

    def step(self, accumulating=lambda: False):
        """`accumulating`: whether nothing has come of it, asked after it."""
        if self.hooks_at_end:
            self._call_hooks()
        if self.program.has("clips"):
            if self.scaler is not None and not self.program.has("clips:option"):
                self.scaler.unscale_(self.optimizer)
            if self.program.has("clips:norm") or self.plain and self.program.has("clips:option"):
                self._clip_norm()
            if self.program.has("clips:value"):
                torch.nn.utils.clip_grad_value_(self.net.parameters(), 0.1)
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if self.program.has("schedules:step"):
            self.schedule.step()
        if self.program.has("averages") and not accumulating():
            self._average()

    def _clip_norm(self):
        if self.scaler is not None and self.program.has("clips:option"):
            self.scaler.unscale_(self.optimizer)
        of_step = [p for group in self.optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(of_step, 0.5)

    @torch.no_grad()
    def _average(self):
        if self.averaged is not None:
            self.averaged.update_parameters(self.net.last)
            return
        for i, p in enumerate(self.net.last.parameters()):
            average = getattr(self.net, f"averaged_{i}")
            average.lerp_(p.detach(), 0.2)
            if self.program.has("averages:slow"):
                p.copy_(average)

    def end_epoch(self):
        if self.program.has("schedules:epoch"):
            self.schedule.step()

    def evaluate(self, indices):
        """The sum of losses of these samples that are held out."""
        with self.autocast():
            output = self.net(self.held_out[0][indices])
        return float((output.double() - self.held_out[1][indices].double()).pow(2).sum())

    # ---- what it comes to

    def buffers(self):
        return copy.deepcopy(dict(self.net.named_buffers()))

    def result(self):
        return {"parameters": copy.deepcopy({name: p.detach() for name, p in self.net.named_parameters()}),
                "buffers": self.buffers(), "rates": [group["lr"] for group in self.optimizer.param_groups],
                "scale": 0.0 if self.scaler is None else self.scaler.get_scale()}
