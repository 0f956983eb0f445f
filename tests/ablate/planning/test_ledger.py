"""What a training step costs, against closed forms and against what the CPU really keeps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from ablate.experiment.settings import Setup
from ablate.model.parameters import build, root_site
from ablate.planning.ledger import ledger, parameter_count
from ablate.slots import Interface
from ablate_plugins.initializer import LecunNormal
from tests.ablate.planning.setups import installed, plugin, setup

CONTEXT, VOCABULARY = 16, 103
INTERFACE = Interface(CONTEXT, VOCABULARY)


@pytest.mark.parametrize(
    ("width", "depth", "heads", "ratio", "context", "vocabulary", "batch", "dropout"),
    [
        (16, 2, 2, 4.0, 16, 103, 4, 0.0),
        (64, 4, 4, 4.0, 64, 103, 16, 0.0),
        (16, 1, 1, 1.0, 256, 5, 2, 0.0),
        (16, 1, 1, 1.0, 256, 5, 2, 0.1),
        (128, 3, 8, 2.5, 32, 500, 1, 0.0),
    ],
)
def test_flops_are_those_of_the_matrix_products(
    width: int, depth: int, heads: int, ratio: float, context: int, vocabulary: int, batch: int, dropout: float
) -> None:
    """The closed form of the decoder, from the shapes of its matrix products.

    A product (n, k) x (k, m) is 2nkm operations. Of one token, with D the width, F = ratio·D and T tokens in the
    context: q, k, v and o are four products with (D, D), so 8D². The feed-forward is (D, F) and (F, D), so 4DF. In
    attention, each of H heads takes T inner products of width D/H for the logits, and a sum of T values of that width,
    so 4TD (a causal mask is not deducted). The output is one product with (D, V), so 2DV. Forward, a token costs
    L(8D² + 4DF + 4TD) + 2DV in L blocks. Backward, each product gives two of the same size, one for the gradient of
    each of its factors; both are needed everywhere, since the embedding is trained. So a step costs three times that.
    """
    made = setup(
        batch=batch,
        width=width,
        depth=depth,
        mixer={"kind": "attention", "heads": heads, "dropout": dropout},
        feed_forward={"kind": "mlp", "ratio": ratio},
    )
    inner = round(ratio * width)
    blocks = depth * (8 * width**2 + 4 * width * inner + 4 * context * width)
    closed = 3 * batch * context * (blocks + 2 * width * vocabulary)
    counted = ledger(made, Interface(context, vocabulary))
    assert counted.flops == pytest.approx(closed, rel=0.01)
    assert counted.tokens == batch * context


def test_attention_is_counted_and_grows_with_the_context() -> None:
    short, long = (ledger(setup(), Interface(context, VOCABULARY)) for context in (16, 64))
    more = long.flops / long.tokens - short.flops / short.tokens
    assert more == pytest.approx(3 * 2 * 4 * (64 - 16) * 16)


def really_kept(made: Setup) -> int:
    """Bytes that a step on the CPU keeps, by the addresses of what autograd saves."""
    network = build(made.model, root_site(INTERFACE), stream=(0,), initializer=LecunNormal())
    there = {tensor.untyped_storage().data_ptr() for tensor in (*network.parameters(), *network.buffers())}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    tokens, targets = torch.randint(VOCABULARY, (2, made.training.batch, CONTEXT)).unbind()
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = made.training.loss.measure(network(tokens.clone()).flatten(0, 1), targets.clone().flatten())
    sizes = {address: tensor.untyped_storage().nbytes() for address, tensor in kept.items() if address not in there}
    loss.backward()
    return sum(sizes.values())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "rms", "placement": "sandwich", "position": "rotary", "output": "tied"},
        {"dropout": 0.1, "mixer": {"kind": "attention", "heads": 4, "dropout": 0.1}},
        {"residual": "none", "feed_forward": {"kind": "mlp", "activation": "relu", "ratio": 1}},
    ],
    ids=str,
)
def test_activations_are_what_the_cpu_keeps(options: dict[str, Any]) -> None:
    made = setup(**options)
    assert ledger(made, INTERFACE).activations == really_kept(made)


LINE = """
class Line(Model):
    '''An embedding, a matrix and the logits.'''
    kind: Literal["line"] = "line"

    def build(self, at: Site) -> nn.Module:
        return nn.Sequential(
            nn.Embedding(at.vocabulary, 8), nn.Linear(8, 8), nn.ReLU(), nn.ReLU(), nn.Linear(8, at.vocabulary)
        )
"""


def test_activations_of_a_line_by_hand(tmp_path: Path) -> None:
    """Token ids and targets of 8 bytes; the inputs of both matrices, of which the second is a ReLU's output too; one
    more ReLU's output; the log-probabilities; and two numbers, the sum of the targets' weights of 4 bytes, and how many
    targets count of 8. No parameter.
    """
    made = setup(plugin(tmp_path, LINE), model="line", batch=3)
    tokens = 3 * CONTEXT
    by_hand = 2 * 8 * tokens + 3 * 4 * 8 * tokens + 4 * VOCABULARY * tokens + 4 + 8
    assert ledger(made, INTERFACE).activations == by_hand


WINDOWED = """
class Windowed(nn.Module):
    def __init__(self, width, biased):
        super().__init__()
        self.w = nn.Linear(width, width)
        self.biased = biased

    def forward(self, x, given):
        q = self.w(x).unflatten(-1, (2, -1)).transpose(1, 2)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril().triu(-3)
        if self.biased:
            mask = mask.to(x.dtype)
        out = nn.functional.scaled_dot_product_attention(q, q.sin(), q.cos(), attn_mask=mask)
        return out.transpose(1, 2).flatten(2)

class Window(Mixer):
    'Attention to the last few tokens.'
    kind: Literal["window"] = "window"
    biased: bool = False

    def build(self, at: Site) -> nn.Module:
        return Windowed(at.width, self.biased)
"""


@pytest.mark.parametrize("biased", [False, True])
def test_masked_attention_keeps_what_the_cpu_keeps(tmp_path: Path, biased: bool) -> None:
    made = setup(plugin(tmp_path, WINDOWED), mixer={"kind": "window", "biased": biased}, position="none")
    counted = ledger(made, INTERFACE)
    assert counted.activations == really_kept(made)
    products = 2 * (2 * 16 * 16 + 4 * CONTEXT * 16 + 2 * 2 * 16 * 64) + 2 * 16 * VOCABULARY
    assert counted.flops == 3 * 4 * CONTEXT * products


RECURRENT = """
class Recurrent(nn.Module):
    def __init__(self, width, peeks):
        super().__init__()
        self.peeks = peeks
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x, given):
        if self.peeks:
            x.sum().item()
        return self.lstm(x)[0]

class Peeper(Mixer):
    'A recurrent layer.'
    kind: Literal["peeper"] = "peeper"
    peeks: bool = False
    declares: bool = True

    def build(self, at: Site) -> nn.Module:
        return Recurrent(at.width, self.peeks)

    def flops(self, at: Site, batch: int, tokens: int) -> int | None:
        return 2 * batch * tokens * 8 * at.width**2 if self.declares else None
"""


@pytest.mark.parametrize("peeks", [False, True])
def test_what_a_component_declares_takes_the_place_of_what_is_counted(tmp_path: Path, peeks: bool) -> None:
    """An LSTM multiplies its input and its state by (D, 4D) each: 16D² a token; on the CPU the counter sees nothing."""
    file = plugin(tmp_path, RECURRENT)
    declared, counted = (
        ledger(setup(file, mixer={"kind": "peeper", "peeks": peeks, "declares": declares}), INTERFACE)
        for declares in (True, False)
    )
    rest = 3 * 4 * CONTEXT * (2 * 4 * 16 * 64 + 2 * 16 * VOCABULARY)
    lstm = 3 * 4 * CONTEXT * 2 * 16 * 16**2
    assert declared.flops == rest + lstm
    assert counted.flops == rest if peeks else counted.flops == pytest.approx(rest + lstm, rel=0.02)
    assert declared.activations == counted.activations > 0
    assert declared.parameters == counted.parameters


PEEKING = """
class Peeking(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Linear(width, width)

    def forward(self, x):
        PEEK
        return self.w(x)

class Mine(FeedForward):
    'A matrix.'
    kind: Literal["mine"] = "mine"

    def build(self, at: Site) -> nn.Module:
        BUILD
        return Peeking(at.width)
"""


def peeking(folder: Path, peek: str = "pass", build: str = "pass") -> Setup:
    folder.mkdir(exist_ok=True)
    file = plugin(folder, PEEKING.replace("PEEK", peek).replace("BUILD", build))
    return setup(file, feed_forward="mine")


@pytest.mark.parametrize(
    ("peek", "build"),
    [
        ("x.mean().item()", "pass"),
        ("x.nonzero()", "pass"),
        ("x[x > 0].sum()", "pass"),
        ("x.detach().numpy()", "pass"),
        ("x.tolist()", "pass"),
        ("bool(x.any())", "pass"),
        ("pass", "[rate.item() for rate in torch.linspace(0, 0.1, at.depth)]"),
    ],
)
def test_a_model_that_must_see_values_costs_what_it_would(tmp_path: Path, peek: str, build: str) -> None:
    seeing, blind = peeking(tmp_path / "a", peek, build), peeking(tmp_path / "b")
    one, other = ledger(seeing, INTERFACE), ledger(blind, INTERFACE)
    assert (one.parameters, one.non_embedding, one.flops) == (other.parameters, other.non_embedding, other.flops)
    assert one.activations == pytest.approx(other.activations, rel=0.02)
    assert parameter_count(seeing, INTERFACE) == one.parameters


@pytest.mark.parametrize(
    ("peek", "error", "message"),
    [
        ("x = x[..., :3]", RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
        ("raise RuntimeError('of my own')", RuntimeError, "^of my own$"),
        ("raise NotImplementedError('later')", NotImplementedError, "^later$"),
        ("x.sum().item(); raise KeyError('gate')", KeyError, "'gate'"),
        ("len(x, x)", TypeError, "takes exactly one argument"),
        ("x.sum().item(); return x[..., :3]", TypeError, r"gave \(1, 16, 3\) for \(1, 16, 16\)"),
    ],
)
def test_a_mistake_of_a_component_is_raised_as_it_is(
    tmp_path: Path, peek: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ledger(peeking(tmp_path, peek), INTERFACE)


LISTING = """
BUILT = []

class Listing(FeedForward):
    'A component whose options are collections.'
    kind: Literal["listing"] = "listing"
    widths: list[int] = [4, 8]
    names: dict[str, list[float]] = {}

    def build(self, at: Site) -> nn.Module:
        BUILT.append(at.path)
        return nn.Sequential(nn.Linear(at.width, self.widths[0]), nn.Linear(self.widths[0], at.width))
"""


def test_each_distinct_shape_is_built_and_counted_once_also_with_lists_and_mappings(tmp_path: Path) -> None:
    registry = installed(plugin(tmp_path, LISTING))
    built: list[str] = vars(sys.modules[registry.get("feed_forward", "listing").__module__])["BUILT"]

    def made(batch: int = 4, **options: Any) -> Setup:
        return setup(registry=registry, batch=batch, depth=1, feed_forward={"kind": "listing", **options})

    first = made(widths=[4], names={"a": [0.5]})
    size = parameter_count(first, INTERFACE)
    assert len(built) == 1
    assert ledger(first, INTERFACE).parameters == size
    assert len(built) == 2
    again = made(widths=[4], names={"a": [0.5]})
    other = again.model_copy(
        update={"training": again.training.model_copy(update={"stream": "another", "threads": 2, "clip": None})}
    )
    assert ledger(again, INTERFACE) == ledger(other, INTERFACE)
    assert parameter_count(other, INTERFACE) == size
    assert len(built) == 2
    assert ledger(made(batch=8, widths=[4], names={"a": [0.5]}), INTERFACE).tokens == 8 * CONTEXT
    assert len(built) == 3
    assert parameter_count(made(widths=[5]), INTERFACE) == size + 2 * 16 + 1
    assert parameter_count(made(widths=[4], names={"a": [1]}), INTERFACE) == size
    assert len(built) == 5


def test_two_files_may_each_bring_a_component_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = setup(plugin(tmp_path, LISTING), feed_forward="listing")
    wider = LISTING.replace("[4, 8]", "[32]")
    other = setup(plugin(tmp_path / "other", wider), feed_forward="listing")
    assert parameter_count(one, INTERFACE) < parameter_count(other, INTERFACE)


def test_what_is_counted_takes_no_memory() -> None:
    made = setup(batch=10**9, dropout=0.1, mixer={"kind": "attention", "heads": 2, "dropout": 0.1})
    small = made.model_copy(update={"training": made.training.model_copy(update={"batch": 1})})
    assert ledger(made, INTERFACE).flops == 10**9 * ledger(small, INTERFACE).flops


def test_a_model_that_is_too_large_for_the_cpu_is_not_run_there(tmp_path: Path) -> None:
    made = setup(plugin(tmp_path, RECURRENT), width=8192, depth=1, mixer={"kind": "peeper", "peeks": True})
    with pytest.raises(RuntimeError, match="meta"):
        ledger(made, INTERFACE)


def test_counting_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    ledger(setup(width=24), INTERFACE)
    assert torch.equal(torch.random.get_rng_state(), before)
