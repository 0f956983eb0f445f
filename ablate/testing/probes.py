"""Checks of probes, on one step of a small Transformer of which all is seen."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ablate.model.attention import Attend
from ablate.model.example import FixedValues
from ablate.model.keys import generator
from ablate.model.parameters import initialise, named_parameters
from ablate.probing import Tap
from ablate.slots import Probe, Reading, Site, mark
from ablate.testing.case import Case
from ablate.testing.modules import global_generators_kept

_WIDTH, _VOCABULARY, _TOKENS, _DEPTH = 8, 11, 6, 2


class _Block(nn.Module):
    """Attention and a feed-forward network, each after a norm, as sites that the tap looks at."""

    def __init__(self, at: Site) -> None:
        super().__init__()
        mixer, network = at.child("mixer"), at.child("feed_forward")
        self.norm = mark(nn.LayerNorm(_WIDTH), mixer.child("before", "norm"))
        self.mixer = mark(nn.ModuleDict({name: nn.Linear(_WIDTH, _WIDTH) for name in "qkvo"}), mixer)
        attend = mixer.child("attend", width=_WIDTH // 2, heads=2)
        self.attend = mark(Attend(attend, causal=True, p=0.0), attend)
        inner = nn.ModuleDict({"w1": nn.Linear(_WIDTH, 16), "w2": nn.Linear(16, _WIDTH)})
        self.feed_forward = mark(inner, network)
        self.hidden = mark(nn.ReLU(), network.child("hidden", width=16))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        q, k, v = (self.mixer[name](y).unflatten(-1, (2, -1)).transpose(1, 2) for name in "qkv")
        x = x + self.mixer["o"](self.attend(q / 2, k, v).transpose(1, 2).flatten(2))
        out: Tensor = x + self.feed_forward["w2"](self.hidden(self.feed_forward["w1"](x)))
        return out


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        root = Site(path="", slot="model", width=_WIDTH, depth=_DEPTH, context=_TOKENS, vocabulary=_VOCABULARY)
        self.embed = mark(nn.Embedding(_VOCABULARY, _WIDTH), root.child("embed"))
        sites = [root.child(f"block.{layer}", "block", layer=layer) for layer in range(_DEPTH)]
        self.blocks = nn.Sequential(*(mark(_Block(site), site) for site in sites))
        self.head = mark(nn.Linear(_WIDTH, _VOCABULARY), root.child("head"))

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.embed(tokens)))
        return logits


def measures(case: Case) -> str | None:
    """On a real step it reads only what its `units` name, at least one of them, as finite numbers; nothing is drawn."""
    assert isinstance(case.component, Probe)
    moved: list[str] = []
    with global_generators_kept(moved):
        readings = _readings(case.component)
    if moved:
        return f"a draw from the global generator of {' and '.join(moved)}"
    if not readings:
        return "no reading"
    if unnamed := sorted({reading.metric for reading, _ in readings} - set(case.component.units)):
        return f"readings of {', '.join(f'`{name}`' for name in unnamed)}, which `units` does not name"
    bad = [reading for reading, value in readings if not math.isfinite(value)]
    return f"no finite number for {bad[0]}" if bad else None


def repeats(case: Case) -> str | None:
    """The same step gives the same readings."""
    assert isinstance(case.component, Probe)
    return None if _readings(case.component) == _readings(case.component) else "other readings of the same step"


def _readings(probe: Probe) -> list[tuple[Reading, float]]:
    with torch.random.fork_rng(devices=[]):
        network = _Transformer()
    initialise(network, FixedValues(), ("testing",))
    tokens = torch.randint(_VOCABULARY, (4, _TOKENS + 1), generator=generator("testing", "tokens"))
    parameters = list(named_parameters(network))
    optimizer = torch.optim.SGD([value for _, value in parameters], lr=0.1)
    tap = Tap(network, parameters, [probe])
    tap.open()
    logits = network(tokens[:, :-1])
    nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    tap.gradients()
    optimizer.step()
    return tap.close()
