"""Plugins that break one rule of the contract each: slot and rule, and the text of the file."""

from __future__ import annotations

HEAD = """
import copy, math, random
from collections.abc import Mapping
from typing import ClassVar, Literal
import torch
from pydantic import Field, field_serializer
from torch import nn
from torch.nn import functional as F
from ablate.slots import *

class Plain(nn.Module):
    def forward(self, x, *rest):
        return x

class Gain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x, *rest):
        return x * self.gain
"""

CLASS = '''
class Mine({base}):
    """What it is.

    Source: Doe 2020, On It.
    """

    kind: Literal["mine"] = "mine"
{body}
'''

NORM = """
    def build(self, at):
        return Gain(at.width)
"""


def norm(body: str, before: str = "", build: str = NORM) -> str:
    return HEAD + before + CLASS.format(base="Norm", body=body + build)


def module(base: str, forward: str, *, init: str = "", options: str = "", build: str = "") -> str:
    """A component whose module computes ``forward`` of x; ``init`` may use ``at``."""
    inner = f"""
class Inner(nn.Module):
    def __init__(self, at):
        super().__init__()
        self.causal = at.causal
{_indented(init or "pass", 8)}

    def forward(self, x, *rest):
{_indented(forward, 8)}
"""
    made = (
        build
        or f"""
    def build(self, at{", embedding" if base == "Output" else ""}):
        return Inner(at)
"""
    )
    return HEAD + inner + CLASS.format(base=base, body=_indented(options, 4) + "\n" + made)


def plain(base: str, body: str, before: str = "") -> str:
    return HEAD + before + CLASS.format(base=base, body=_indented(body, 4))


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else line for line in text.strip("\n").split("\n"))


SOME_CAUSAL = "seen = x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)[:, None]"

FACTOR = """
    def build(self, at):
        made = Inner(at)
        made.factor = {}
        return made
"""

MODEL = """
width = 8
self.embed = nn.Embedding(at.vocabulary, width)
self.head = nn.Linear(width, at.vocabulary)
"""

OPTIMIZER = """
lr: float = 0.05
'''Peak rate.'''

def build(self, parameters):
    values = [value for _, value in parameters]
    {}
"""

COUNTING = """
class Counting(torch.optim.Optimizer):
    def __init__(self, values, lr):
        super().__init__(values, {"lr": lr})
        self.count = 0

    def step(self, closure=None):
        self.count += 1
        for group in self.param_groups:
            for value in group["params"]:
                value.data.sub_(group["lr"] / self.count * value.grad)
"""

LOSS = """
def measure(self, logits, targets):
    kept = targets != IGNORED
    {}
"""

WRITE = """
def write(self, network, cache, prompt, *, most, end, generator):
    tokens, written, scores = prompt, [], torch.zeros(len(prompt))
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(most):
        probs = network.decode(tokens, cache)[:, -1].log_softmax(-1)
        chosen = probs.argmax(-1)
        {each}
        scores = scores + probs.gather(1, chosen[:, None])[:, 0].masked_fill(ended, 0)
        if end is not None:
            {stop}
            ended = ended | (chosen == end)
        written.append(chosen)
        tokens = chosen[:, None]
    return Decoded(torch.stack(written, 1), scores{score})
"""


def decoding(each: str = "pass", stop: str = "chosen = chosen.masked_fill(ended, end)", score: str = "") -> str:
    return plain("Decoding", WRITE.format(each=each, stop=stop, score=score))


TASK = """
class Numbers:
    interface = Interface(context=4, vocabulary=5)
    facts = {{}}
    loaded = 0

    def __init__(self):
        Numbers.loaded += 1
        self.digest = {digest}

    def batch(self, size, generator):
        tokens = torch.randint({most}, (size, 5), generator={generator})
        return Batch((tokens[:, :-1],), tokens[:, 1:])

    def evaluation(self, size):
        seed = {seed}
        tokens = torch.randint(5, (20, 5), generator=torch.Generator().manual_seed(seed))
        return [Batch((rows[:, :-1],), rows[:, 1:]) for rows in tokens.split(size)]
"""

TASK_BODY = """
units = {{"val/loss": "nats"}}

def load(self, folder):
    return Numbers()

def tally(self, network, batch):
    right = (network(*batch.inputs).argmax(-1) == batch.targets)
    return {{"right": right.{how}}}

def metrics(self, totals):
    return {{"val/{metric}": totals["right"]}}
"""


def task(
    digest: str = "'abc'",
    most: str = "5",
    generator: str = "generator",
    seed: str = "0",
    how: str = "sum()",
    metric: str = "loss",
) -> str:
    before = TASK.format(digest=digest, most=most, generator=generator, seed=seed)
    return plain("Task", TASK_BODY.format(how=how, metric=metric), before)


PROBE = """
units = {{"norm": ""}}

def measure(self, seen):
    COUNT.append(0)
    return {{Reading("{name}"): seen.stream[0].norm() {more}}}
"""

BROKEN: dict[tuple[str, str], str] = {
    ("norm", "imports"): norm("", "random.seed(0)\n"),
    ("norm", "sound"): norm("    eps: float = math.inf\n    '''Added.'''\n"),
    ("norm", "docstring"): norm("").replace("What it is.\n\n    Source", "Source"),
    ("norm", "fields"): norm("    eps: float = 1e-5\n"),
    ("norm", "source"): norm("").replace("Source: Doe 2020, On It.", "By me."),
    ("norm", "instance"): norm("    eps: float\n    '''Added.'''\n"),
    ("norm", "round_trip"): norm(
        "    eps: float = 1e-5\n    '''Added.'''\n\n"
        "    @field_serializer('eps')\n    def _rounded(self, eps: float) -> float:\n        return round(eps, 3)\n"
    ),
    ("norm", "yaml"): norm("    most: int = Field(examples=[10 ** 400])\n    '''Too many.'''\n"),
    ("norm", "value"): norm("\n    def __hash__(self):\n        return id(self)\n"),
    ("schedule", "pickles"): plain(
        "Schedule",
        "def factor(self, step, steps):\n    return 1.0\n\n"
        "def __reduce_ex__(self, protocol):\n    raise TypeError('not me')",
    ),
    ("norm", "identity"): norm(
        "    eps: float = 1e-5\n    '''Added.'''\n\n"
        "    def effective(self):\n        return self.model_copy(update={'eps': self.eps * 2})\n"
    ),
    ("norm", "traits"): norm("\n    def traits(self):\n        return None\n"),
    ("norm", "builds"): norm(
        "", build="\n    def build(self, at):\n        raise ImpossibleError('no width is right')\n"
    ),
    ("scale", "shape"): HEAD
    + "class Inner(nn.Module):\n    def forward(self, q, k, start, valid):\n"
    + "        return (q[0] if len(q) == 1 else q), k\n"
    + CLASS.format(base="Scale", body="    def build(self, at):\n        return Inner()\n"),
    ("feed_forward", "autocast"): module(
        "FeedForward",
        "y = self.linear(x)\nif y.dtype != x.dtype:\n    raise TypeError('types are mixed')\nreturn y",
        init="self.linear = nn.Linear(at.width, at.width)",
    ),
    ("feed_forward", "float64"): module("FeedForward", "return x.float()"),
    ("norm", "causal"): module(
        "Norm", "return x - x.mean(1, keepdim=True)", options="def traits(self):\n    return Traits()"
    ),
    ("norm", "causal, declared otherwise"): module(
        "Norm", "return x", options="def traits(self):\n    return Traits(position_wise=True, causal=False)"
    ),
    ("feed_forward", "position_wise"): module("FeedForward", "return x + F.pad(x, (0, 0, 1, 0))[:, :-1]"),
    ("feed_forward", "position_wise, declared otherwise"): module(
        "FeedForward", "return x", options="def traits(self):\n    return Traits()"
    ),
    ("norm", "batch"): module("Norm", "return x - x.mean(0) if self.training else x"),
    ("norm", "batch, declared otherwise"): module(
        "Norm", "return x", options="def traits(self):\n    return Traits(position_wise=True, batch_dependent=True)"
    ),
    ("mixer", "padding"): module(
        "Mixer", SOME_CAUSAL + "\nreturn x + (seen if self.causal else x.mean(1, keepdim=True))"
    ),
    ("norm", "gradient"): module("Norm", "return x", init="self.spare = nn.Parameter(torch.ones(3))"),
    ("output", "deterministic"): module(
        "Output",
        "if not self.training:\n    self.calls += 1\n    if self.calls == 3:\n        x = x * 2\nreturn self.linear(x)",
        init="self.calls = 0\nself.linear = nn.Linear(at.width, at.vocabulary)",
    ),
    ("norm", "global"): module("Norm", "return x * self.gain", init="self.gain = nn.Parameter(torch.randn(at.width))"),
    ("norm", "state_dict"): module(
        "Norm",
        "if self.training:\n    self.seen += 1\n    return x\nreturn x + self.seen",
        init="self.register_buffer('seen', torch.zeros(()), persistent=False)",
    ),
    ("norm", "meta"): module(
        "Norm", "return x * self.gain", init="self.gain = nn.Parameter(torch.ones(at.width, device='cpu'))"
    ),
    ("norm", "module_pickles"): module("Norm", "return self.act(x)", init="self.act = lambda x: x"),
    ("norm", "compile"): module("Norm", "torch._dynamo.graph_break()\nreturn x"),
    ("norm", "compile, declared otherwise"): module(
        "Norm", "return x", options="def traits(self):\n    return Traits(position_wise=True, compiles=False)"
    ),
    ("norm", "vmap"): module(
        "Norm",
        "return x * self.alias[0]",
        init="self.gain = nn.Parameter(torch.ones(at.width))\nself.alias = [self.gain]",
    ),
    ("norm", "vmap, declared otherwise"): module(
        "Norm",
        "return x * self.gain",
        init="self.gain = nn.Parameter(torch.ones(at.width))",
        options="def traits(self):\n    return Traits(position_wise=True, vmap=False)",
    ),
    ("model", "learns"): module(
        "Model", "logits = self.head(self.embed(x))\nreturn 2 * logits.detach() - logits", init=MODEL
    ),
    ("norm", "dead"): module(
        "Norm",
        "return x * self.factor",
        options="factor: float = 2.0\n'''Times.'''\n\ndef effective(self):\n    return type(self)()",
        build=FACTOR.format("self.factor"),
    ),
    ("scale", "start"): HEAD
    + "class Inner(nn.Module):\n    def forward(self, q, k, start, valid):\n"
    + "        return q * torch.arange(1, q.shape[2] + 1, dtype=q.dtype, device=q.device)[:, None], k\n"
    + CLASS.format(base="Scale", body="    def build(self, at):\n        return Inner()\n"),
    ("mixer", "cached"): module(
        "Mixer",
        SOME_CAUSAL + "\nreturn seen if self.causal else x",
        options="def traits(self):\n    return Traits(cached=True)",
    ),
    ("mixer", "cached, declared otherwise"): module("Mixer", "return x"),
    ("mixer", "crosses"): module(
        "Mixer", "return x", options="def traits(self):\n    return Traits(cached=True, crosses=True)"
    ),
    ("mixer", "crosses, declared otherwise"): module(
        "Mixer",
        "memory = rest[0].memory\nreturn x if memory is None else x + memory.mean(1, keepdim=True)",
        options="def traits(self):\n    return Traits(cached=True)",
    ),
    ("feed_forward", "flops"): module(
        "FeedForward", "return x", options="def flops(self, at, batch, tokens):\n    return 1.5"
    ),
    ("model", "decode"): module("Model", "return self.head(self.embed(x))", init=MODEL).replace(
        "class Mine",
        "Inner.begin = lambda self: Cache()\nInner.decode = lambda self, tokens, cache: self(tokens) + 1\n\nclass Mine",
    ),
    ("model", "source_read"): module(
        "Model",
        "return self.head(self.embed(rest[-1]))",
        init=MODEL,
        options='forms: ClassVar = frozenset({"sequence_to_sequence"})',
    ),
    ("placement", "wiring"): plain("Placement", "def wiring(self, at):\n    return (True, False, False)"),
    ("optimizer", "learns"): plain(
        "Optimizer", OPTIMIZER.format("return torch.optim.SGD(values, lr=self.lr, maximize=True)")
    ),
    ("optimizer", "parameters"): plain(
        "Optimizer",
        OPTIMIZER.format(
            "first = [value for value in values if value.dim() < 2][0]\n    return torch.optim.SGD(values, lr=self.lr)"
        ),
    ),
    ("optimizer", "rate"): plain(
        "Optimizer",
        OPTIMIZER.format(
            "some = [value for value in values if value.dim() > 1] or values\n"
            "    return torch.optim.SGD(some, lr=self.lr)"
        ),
    ),
    ("optimizer", "resumes"): plain("Optimizer", OPTIMIZER.format("return Counting(values, self.lr)"), COUNTING),
    ("initializer", "fills"): plain(
        "Initializer",
        "def fill(self, tensor, parameter, generator):\n"
        "    tensor.nan_to_num_().add_(torch.randn(tensor.shape, generator=generator))",
    ),
    ("initializer", "draws"): plain(
        "Initializer",
        "def fill(self, tensor, parameter, generator):\n"
        "    tensor.copy_(torch.linspace(0, 1, tensor.numel()).view_as(tensor))",
    ),
    ("schedule", "factor"): plain("Schedule", "def factor(self, step, steps):\n    return 2.0"),
    ("loss", "measure"): plain(
        "Loss",
        LOSS.format(
            "probs = logits[kept].softmax(-1).gather(1, targets[kept][:, None])\n"
            "    return -probs.log().sum() / kept.sum().clamp_min(1)"
        ),
    ),
    ("loss", "ignored"): plain("Loss", LOSS.format("return F.cross_entropy(logits, targets, ignore_index=IGNORED)")),
    ("decoding", "writes"): decoding(score=" + 1"),
    ("decoding", "stops"): decoding(stop="pass"),
    ("decoding", "repeats"): decoding(each="torch.rand(())"),
    ("task", "loads"): task(digest="str(Numbers.loaded)"),
    ("task", "batches"): task(most="9"),
    ("task", "draws"): task(generator="torch.Generator().manual_seed(0)"),
    ("task", "evaluation"): task(seed="size"),
    ("task", "metrics"): task(metric="accuracy"),
    ("probe", "measures"): plain("Probe", PROBE.format(name="size", more=""), "COUNT = []\n"),
    ("probe", "repeats"): plain("Probe", PROBE.format(name="norm", more="+ len(COUNT)"), "COUNT = []\n"),
}
