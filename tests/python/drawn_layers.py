"""Layers of drawn programs: each takes and gives rows of WIDTH numbers."""
import torch
import torch.ao.quantization as quantization
import torch.nn.functional as F
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from drawn_programs import kind_of
from reversible import Reversed

INPUTS, WIDTH = 6, 8


def linear():
    return torch.nn.Linear(WIDTH, WIDTH)


class Layer(torch.nn.Module):
    def __init__(self, word):
        super().__init__()
        self.variant = word.partition(":")[2]
        self.inner = linear()
        self.hooks = []  # of parameters: (parameter, hook)

    def forward(self, x):
        return x + self.inner(x).tanh()


class Shared(Layer):
    def __init__(self, word):
        super().__init__(word)
        self.other = linear()
        if self.variant == "tied":
            self.other.weight = self.inner.weight

    def forward(self, x):
        return x + (self.inner if self.variant == "twice" else self.other)(self.inner(x).tanh()).tanh()


class Checkpointed(Layer):
    def again(self, x, reentrant=True):
        return checkpoint(lambda x: x + self.inner(x).tanh(), x, use_reentrant=reentrant)

    def forward(self, x):
        if self.variant == "nested":
            return checkpoint(lambda x: self.again(self.again(x)), x, use_reentrant=True)
        if self.variant == "again":
            return self.inner(self.again(x)).tanh()
        return self.again(x, self.variant == "reentrant")


class Frozen(Layer):
    def __init__(self, word):
        super().__init__(word)
        self.inner.requires_grad_(self.variant == "not_optimized")


class Lazy(Layer):
    def __init__(self, word):
        super().__init__(word)
        self.inner = torch.nn.LazyLinear(WIDTH)


class Conditional(Layer):
    """By the epoch, or by the sample: a batch may have none of those that it is for."""

    epoch = 0

    def forward(self, x):
        if self.variant == "never":
            return x
        if self.variant == "epoch":
            return super().forward(x) if self.epoch % 2 == 0 else x
        chosen = (x[:, 0] > (1.0 if self.variant == "rare" else 0.0)).nonzero().flatten()
        return x if len(chosen) == 0 else x.index_add(0, chosen, self.inner(x[chosen]).tanh().to(x.dtype))


NORMS = {"batch": lambda: torch.nn.BatchNorm1d(2), "layer": lambda: torch.nn.LayerNorm(4),
         "group": lambda: torch.nn.GroupNorm(2, 2), "sync": lambda: torch.nn.SyncBatchNorm(2),
         "instance": lambda: torch.nn.InstanceNorm1d(2, affine=True, track_running_stats=True)}


class Normalised(Layer):
    """Norms are over rows of two channels, so that there are statistics of a single sample, too."""

    def __init__(self, word):
        super().__init__(word)
        if self.variant in NORMS:
            self.norm = NORMS[self.variant]()
        else:
            parametrize = getattr(parametrizations, f"{self.variant}_norm")
            self.inner = parametrize(self.inner)

    def forward(self, x):
        x = x + self.inner(x).tanh()
        return self.norm(x.reshape(-1, 2, 4)).reshape(-1, WIDTH) if self.variant in NORMS else x


class Reversible(Layer):
    def forward(self, x):
        for _ in range(2 if self.variant == "twice" else 1):
            x = Reversed.apply(lambda x: self.inner(x).tanh(), x)
        return x


class Quantized(Layer):
    """Trained for eight bits, whose range is observed while it trains, or was before."""

    def __init__(self, word):
        super().__init__(word)
        observer = quantization.MovingAverageMinMaxObserver.with_args(averaging_constant=0.1)
        self.of_weight = quantization.FakeQuantize(observer, dtype=torch.qint8, quant_min=-128, quant_max=127,
                                                   qscheme=torch.per_tensor_symmetric)
        self.of_output = quantization.FakeQuantize(observer)
        if self.variant == "settled":
            self(torch.randn(20, WIDTH))
            self.apply(quantization.disable_observer)

    def forward(self, x):
        if not self.training:
            return x + _quantized(F.linear(x, _quantized(self.inner.weight, self.of_weight), self.inner.bias).tanh(),
                                  self.of_output)
        return x + self.of_output(F.linear(x, self.of_weight(self.inner.weight), self.inner.bias).tanh())


def _quantized(x, of):
    """Without observing x."""
    return torch.fake_quantize_per_tensor_affine(x, of.scale, of.zero_point, of.quant_min, of.quant_max)


class Hooked(Layer):
    def __init__(self, word):
        super().__init__(word)
        mask = torch.arange(WIDTH * WIDTH).reshape(WIDTH, WIDTH) % 3 != 0
        made = {"clamped": lambda g: g.clamp(-0.05, 0.05), "masked": lambda g: g.mul_(mask), "scaled": lambda g: g * 0.25}
        if self.variant in made:
            self.hooks += [(p, made[self.variant]) for p in ([self.inner.weight] if self.variant == "masked" else
                                                             self.inner.parameters())]
        if self.variant == "module":
            self.inner.register_full_backward_hook(lambda module, of_input, of_output: (of_input[0] * 0.5,))
        if self.variant == "forward":
            self.inner.register_forward_hook(lambda module, given, output: output * 0.5)
        if self.variant == "post_accumulate":
            self.inner.weight.register_post_accumulate_grad_hook(lambda p: None)

    def forward(self, x):
        y = self.inner(x).tanh()
        if self.variant == "activation" and y.requires_grad:
            y.register_hook(lambda g: g * 0.5)
        return x + y


class Dropout(Layer):
    def forward(self, x):
        return x + F.dropout(self.inner(x).tanh(), 0.3, self.training)


class Counting(Layer):
    """Has a buffer that is assigned anew, and one that comes late."""

    def __init__(self, word):
        super().__init__(word)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        if self.training:
            self.count = self.count + 1
            if not hasattr(self, "late"):
                self.register_buffer("late", torch.zeros(1, dtype=torch.int64))
            self.late = self.late + len(x)
        return super().forward(x)


class Usual(Layer):
    def __init__(self, word):
        super().__init__(word)
        self.of = {"gru": lambda: torch.nn.GRU(4, 4, batch_first=True),
                   "attention": lambda: torch.nn.MultiheadAttention(4, 2, batch_first=True),
                   "convolution": lambda: torch.nn.Conv1d(2, 2, 3, padding=1),
                   "embedding": lambda: torch.nn.Embedding(5, WIDTH)}.get(self.variant, linear)()

    def forward(self, x):
        x = super().forward(x)
        rows = x.reshape(-1, 2, 4)
        if self.variant == "gru":
            return x + self.of(rows)[0].reshape(-1, WIDTH)
        if self.variant == "attention":
            return x + self.of(rows, rows, rows)[0].reshape(-1, WIDTH)
        if self.variant == "convolution":
            return x + self.of(rows).reshape(-1, WIDTH)
        if self.variant == "embedding":
            return x + self.of((x[:, 0].detach() * 2).long().clamp(-2, 2) + 2)
        return self.of(x).tanh()


BY_KIND = {"shared": Shared, "checkpointed": Checkpointed, "frozen": Frozen, "lazy": Lazy, "conditional": Conditional,
           "normalised": Normalised, "reversible": Reversible, "quantized": Quantized, "hooked": Hooked, "dropout": Dropout,
           "counting": Counting, "usual": Usual}


class Net(torch.nn.Module):
    def __init__(self, words):
        super().__init__()
        self.first = torch.nn.Linear(INPUTS, WIDTH)
        self.layers = torch.nn.ModuleList([BY_KIND[kind_of(word)](word) for word in words])
        self.last = torch.nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.first(x).tanh()
        for layer in self.layers:
            x = layer(x)
        return self.last(x)

    def set_epoch(self, epoch):
        for layer in self.layers:
            layer.epoch = epoch

    def is_in_no_optimizer(self):
        """The ids of such parameters."""
        return {id(p) for layer in self.layers if isinstance(layer, Frozen) and layer.variant != "before"
                for p in layer.parameters()}
