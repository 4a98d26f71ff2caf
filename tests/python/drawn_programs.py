"""Small training programs that are drawn at random: what each is made of. Layers, loop and events are lists of words "kind" or
"kind:variant"; drawn_layers.py, drawn_job.py and drawn_events.py say what they mean."""
import collections
import dataclasses
import json
import random

LAYERS = {
    "shared": ("twice", "tied"),
    "checkpointed": ("reentrant", "not_reentrant", "nested", "again"),
    "frozen": ("before", "left_out", "not_optimized"),
    "lazy": ("seen",),
    "conditional": ("epoch", "gated", "rare", "never"),
    "normalised": ("batch", "layer", "group", "instance", "weight", "spectral", "sync"),
    "reversible": ("once", "twice"),
    "quantized": ("observing", "settled"),
    "hooked": ("clamped", "masked", "scaled", "activation", "module", "forward"),
    "dropout": ("",),
    "counting": ("",),
    "usual": ("linear", "gru", "attention", "convolution", "embedding"),
}
HALF = ("bfloat16", "float16", "autocast", "scaled")
OPTIMIZERS = ("sgd", "adam", "adamw", "adagrad", "rmsprop", "adadelta", "nadam", "asgd")
LOOPS = {
    "accumulates": ("pieces", "passes", "held"),
    "skips": ("not_finite", "late"),
    "clips": ("norm", "value", "option"),
    "scales": ("finite", "overflows"),
    "penalises": ("square", "absolute", "inputs", "sharpness"),
    "finetunes": ("thaws", "rates"),
    "averages": ("moving", "model", "slow"),
    "schedules": ("step", "epoch"),
}
SEED, PROGRAMS = 1, 300  # of the thorough suite
EVENTS = ("resizes", "loses", "restarts")
PHASES = ("forward", "backward", "stepped")  # before which, or after which, a replica is lost
# What is refused, and what is said then: docs/elastic_programs.md.
REFUSED = {
    "lazy:unseen": "uninitialized",
    "hooked:post_accumulate": r"has a hook by register_post_accumulate_grad_hook",
    "penalises:graph": r"backward\(create_graph=True\) gave parameter",
    "finetunes:unfreezes": "required no gradient when the model was wrapped, and does now",
    "float64": "a parameter is CPUDoubleType: want dense float, bfloat16 or half",
}
# Kinds that are not among the layers and loops, but that the draw has as many of.
KINDS = (*(kind for kind in LAYERS if kind not in ("usual", "dropout", "counting")), "half", *OPTIMIZERS,
         *(kind for kind in LOOPS if kind != "schedules"), *EVENTS)
# Their result depends on how a batch is cut.
BY_SHARES = ("normalised:batch", "normalised:instance", "normalised:spectral", "quantized:observing", "dropout", "counting",
             "penalises:sharpness")
# Their backward passes cannot be differentiated, or run backward themselves.
BACKWARD_WITHIN = ("checkpointed:reentrant", "checkpointed:nested", "checkpointed:again", "reversible:once", "reversible:twice")


def kind_of(word):
    return word.partition(":")[0]


@dataclasses.dataclass(frozen=True)
class Program:
    layers: tuple = ("usual:linear",)
    optimizer: str = "sgd"
    loop: tuple = ()
    precision: str = "float32"
    batch: int = 10
    samples: int = 45
    most: int = 0        # samples of one forward pass; 0: a replica's whole share
    events: tuple = ()   # ("resizes:4", "loses:1:backward", "restarts::stepped"), in this order
    seed: int = 0

    def has(self, word):
        """`word`: a kind, or a kind and variant."""
        return word == self.precision or any(word in (each, kind_of(each)) for each in (*self.layers, *self.loop, *self.events))

    @property
    def kinds(self):
        words = {kind_of(word) for word in (*self.layers, *self.loop, *self.events)}
        return words | {self.optimizer} | ({"half"} if self.precision in HALF else set())

    @property
    def by_shares(self):
        return any(self.has(word) for word in BY_SHARES)

    @property
    def refused(self):
        """What is said where it is refused; None: it is not."""
        return next((said for word, said in REFUSED.items() if self.has(word)), None)

    def json(self):
        return json.dumps(dataclasses.asdict(self))

    def is_legal(self):
        """Whether plain PyTorch can train it, and its plain loop is defined."""
        within = any(self.has(word) for word in BACKWARD_WITHIN)
        twice = self.has("penalises:inputs") or self.has("penalises:sharpness") or self.has("penalises:graph")
        return not (
            # Of torch's own: no second derivative, or no such operation in half precision.
            twice and (within or self.has("usual:attention") or self.has("usual:gru") or self.has("quantized"))
            or twice and (self.precision in HALF or self.has("scales"))
            or self.precision in ("bfloat16", "float16") and (self.has("quantized") or self.has("normalised:spectral"))
            or self.precision == "float16" and self.has("scales")
            # A batch in pieces is summed over the group piece by piece: statistics of it are those of no plain batch.
            or self.has("normalised:sync") and (self.has("accumulates:pieces") or self.by_shares)
            or len([word for word in self.layers if kind_of(word) == "normalised"]) > 1
            or self.has("finetunes") and self.has("frozen")
            or not self._events_come())

    def _events_come(self):
        """A replica is lost of several, and the last one restarts."""
        replicas = "1"
        for event in self.events:
            kind, what, *_ = event.split(":")
            if kind == "resizes":
                replicas = what
            elif (kind == "loses") == (replicas == "1"):
                return False
        return True


def from_json(text):
    read = json.loads(text)
    return Program(**{name: tuple(value) if isinstance(value, list) else value for name, value in read.items()})


def _layer(draw, kind):
    return ":".join(word for word in (kind, draw.choice(LAYERS[kind])) if word)


def _events(draw, kind):
    events = []
    for each in ([kind] if kind else []) + draw.choices(EVENTS, (5, 3, 1), k=draw.randrange(1, 3)):
        if each == "resizes":
            sizes = [n for n in (1, 2, 4) if not events or events[-1] != f"resizes:{n}"]
            events.append(f"resizes:{draw.choice(sizes)}")
        elif each == "loses":
            if next((e for e in reversed(events) if kind_of(e) == "resizes"), "resizes:1") == "resizes:1":
                events.append(f"resizes:{draw.choice((2, 4))}")
            events.append(f"loses:{draw.randrange(4)}:{draw.choice(PHASES)}")
        else:
            events += ["resizes:1", f"restarts:0:{draw.choice(PHASES)}"]
    return tuple(events)


def draw(seed, index):
    """Program `index` of those of this seed. Each has one kind in turn, and others by chance."""
    generator = random.Random(f"{seed}-{index}")
    while not (program := _draw(generator, KINDS[index % len(KINDS)], index)).is_legal():
        pass
    return program


def _draw(draw, kind, index):
    layers = [kind] if kind in LAYERS else []
    layers += draw.choices(list(LAYERS), k=draw.randrange(1, 4))
    loop = [kind] if kind in LOOPS else []
    loop += [each for each in LOOPS if each != kind and draw.random() < 0.2]
    draw.shuffle(layers)
    loop = [f"{each}:{draw.choice(LOOPS[each])}" for each in loop]
    layers = [_layer(draw, each) for each in layers]
    refused = list(REFUSED)[index // 25 % len(REFUSED)] if index % 25 == 24 else ""
    if ":" in refused:
        of = layers if kind_of(refused) in LAYERS else loop
        of[:] = [word for word in of if kind_of(word) != kind_of(refused)] + [refused]
    half = kind == "half" or draw.random() < 0.2
    return Program(tuple(layers), kind if kind in OPTIMIZERS else draw.choice(OPTIMIZERS), tuple(loop),
                   "float64" if refused == "float64" else draw.choice(HALF) if half else "float32",
                   batch=(batch := draw.choice((6, 10, 12))), samples=batch * 4 + draw.choice((0, 1, 3, batch // 2)),
                   most=draw.choice((1, 2, 3, 4)) if "accumulates:pieces" in loop else 0,
                   events=_events(draw, kind if kind in EVENTS else None), seed=draw.randrange(10**6))


def count(programs):
    return collections.Counter(kind for program in programs for kind in program.kinds)


def simpler(program):
    """Programs that have one thing less, the largest first."""
    def without(words, i):
        return words[:i] + words[i + 1:]

    made = [dataclasses.replace(program, events=without(program.events, i)) for i in range(len(program.events))]
    for i, word in enumerate(program.loop):
        most = 0 if word == "accumulates:pieces" else program.most
        made.append(dataclasses.replace(program, loop=without(program.loop, i), most=most))
    if len(program.layers) > 1:
        made += [dataclasses.replace(program, layers=without(program.layers, i)) for i in range(len(program.layers))]
    elif program.layers != ("usual:linear",):
        made.append(dataclasses.replace(program, layers=("usual:linear",)))
    made += [dataclasses.replace(program, **{name: value}) for name, value in (("precision", "float32"), ("optimizer", "sgd"))
             if getattr(program, name) != value]
    made += [dataclasses.replace(program, samples=4 * program.batch)] if program.samples != 4 * program.batch else []
    return [less for less in made if less.is_legal()]
