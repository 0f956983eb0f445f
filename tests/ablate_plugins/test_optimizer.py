"""Optimizers: first steps in closed form, what decays, and going on bit for bit."""

from __future__ import annotations

import io
import math
import warnings

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.slots import Optimizer, Parameter
from ablate_plugins.optimizer import Adafactor, Adam, AdamW, Lion, Muon, Sgd

EVERY = [
    AdamW(lr=0.01),
    Adam(lr=0.01),
    Sgd(lr=0.01, weight_decay=0.1),
    Sgd(lr=0.01, nesterov=True),
    Sgd(lr=0.01, momentum=0),
    Muon(lr=0.01),
    Muon(lr=0.02, size="original", adamw_scale=0.1, nesterov=False),
    Lion(lr=0.01),
    Adafactor(lr=0.01, weight_decay=0.1),
]
DECAYING = [
    AdamW(lr=0.1, weight_decay=0.5),
    Sgd(lr=0.1, momentum=0, weight_decay=0.5),
    Muon(lr=0.1, weight_decay=0.5),
    Lion(lr=0.1, weight_decay=0.5),
    Adafactor(lr=0.1, weight_decay=0.5),
]
Named = list[tuple[Parameter, nn.Parameter]]
SHAPES = {
    "embed": ("embed", None, (7, 4)),
    "block.0.mixer.q": ("q", 0, (4, 4)),
    "block.0.mixer.conv": ("conv", 0, (4, 1, 3)),
    "block.0.feed_forward.w1": ("w1", 0, (8, 4)),
    "block.0.norm": ("norm", 0, (4,)),
    "block.0.gate": ("gate", 0, ()),
    "block.0.table": ("position", 0, (3, 4)),
    "output": ("head", None, (7, 4)),
}


def model(seed: int = 0) -> Named:
    generator = torch.Generator().manual_seed(seed)
    return [
        (Parameter(name, role, layer, shape), nn.Parameter(torch.randn(shape, generator=generator)))
        for name, (role, layer, shape) in SHAPES.items()
    ]


def advance(optimizer: torch.optim.Optimizer, named: Named, steps: range, lr: float) -> None:
    """Steps as a trial makes them: the rate is set in every one, and a closure gives the gradients."""
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] = lr / (step + 1) * group.get("lr_scale", 1.0)

        def closure(step: int = step) -> float:
            optimizer.zero_grad()
            # Large slopes one way, then small ones the other way: what is remembered of the first decides the others.
            weight, target = (1000.0, -step) if step < 3 else (1.0, step)
            loss = weight * torch.stack([(value - target).square().sum() for _, value in named]).sum()
            loss.backward()
            return float(loss.detach())

        assert math.isfinite(optimizer.step(closure))


def one(value: Tensor, slope: Tensor, optimizer: Optimizer, layer: int | None = 0, role: str = "q") -> Tensor:
    """A matrix or vector after one step with this gradient."""
    parameter = nn.Parameter(value.clone())
    built = optimizer.build([(Parameter("x", role, layer, tuple(value.shape)), parameter)])
    parameter.grad = slope.clone()
    built.step()
    return parameter.detach()


def named(optimizer: Optimizer) -> str:
    return str(optimizer.model_dump(exclude_defaults=True, exclude={"lr"}) | {"kind": type(optimizer).__name__})


SLOPE = torch.linspace(-3, 5, 16).view(4, 4)


@pytest.mark.parametrize("optimizer", [AdamW(lr=0.01, weight_decay=0.5), Adam(lr=0.01)], ids=named)
def test_adams_first_step_is_the_learning_rate_in_size(optimizer: Optimizer) -> None:
    stepped = one(torch.zeros(4, 4), SLOPE, optimizer)
    torch.testing.assert_close(stepped, -0.01 * SLOPE.sign(), atol=1e-6, rtol=0)


def test_adam_decays_nothing() -> None:
    assert torch.equal(one(torch.ones(2, 2), torch.zeros(2, 2), Adam()), torch.ones(2, 2))


def test_adam_by_hand() -> None:
    value, mean, square = torch.zeros(3, dtype=torch.float64), torch.zeros(3), torch.zeros(3)
    parameter = nn.Parameter(value.clone())
    built = Adam(lr=0.1, beta1=0.5, beta2=0.75, eps=0.25).build([(Parameter("x", "q", 0, (3,)), parameter)])
    for step, slope in enumerate([torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 4.0, -1.0])], start=1):
        mean, square = 0.5 * mean + 0.5 * slope, 0.75 * square + 0.25 * slope**2
        value -= 0.1 * (mean / (1 - 0.5**step)) / ((square / (1 - 0.75**step)).sqrt() + 0.25)
        parameter.grad = slope.double()
        built.step()
    torch.testing.assert_close(parameter.detach(), value, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize(("nesterov", "second"), [(False, 1.9), (True, 2.71)])
def test_sgd_by_hand(nesterov: bool, second: float) -> None:
    parameter = nn.Parameter(torch.zeros(2))
    built = Sgd(lr=0.5, momentum=0.9, nesterov=nesterov).build([(Parameter("x", "q", 0, (2,)), parameter)])
    first = 1.9 if nesterov else 1.0
    for total in (first, first + second):
        parameter.grad = torch.tensor([1.0, -2.0])
        built.step()
        torch.testing.assert_close(parameter.detach(), -0.5 * total * torch.tensor([1.0, -2.0]))


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(ValidationError, match="`nesterov` needs a `momentum` above 0"):
        Sgd(momentum=0.0, nesterov=True)


def test_lions_first_step_is_exactly_the_learning_rate() -> None:
    assert torch.equal(one(torch.zeros(4, 4), SLOPE, Lion(lr=0.25)), -0.25 * SLOPE.sign())


def test_lion_by_hand() -> None:
    parameter = nn.Parameter(torch.full((1, 2), 2.0))
    built = Lion(lr=0.5, beta1=0.5, beta2=0.75, weight_decay=0.25).build([(Parameter("x", "q", 0, (1, 2)), parameter)])
    # Means 1 and -1; then their mixtures with -0.5 and 3 are 0.25 and 1, so the second turns round.
    for slope, expected in [([[4.0, -4.0]], [[1.25, 2.25]]), ([[-0.5, 3.0]], [[0.59375, 1.46875]])]:
        parameter.grad = torch.tensor(slope)
        built.step()
        assert parameter.tolist() == expected


def test_adafactor_moves_by_a_share_of_the_parameters_size() -> None:
    value = torch.full((4, 4), 3.0)
    # Row and column factors give back a gradient of rank one exactly, so that every update is 1 in size.
    slope = torch.outer(torch.tensor([1.0, -2.0, 3.0, 4.0]), torch.tensor([1.0, 5.0, -2.0, 0.5]))
    for lr in (0.01, 0.002):
        torch.testing.assert_close(one(value, slope, Adafactor(lr=lr)), value - lr * 3.0 * slope.sign())


def test_adafactor_takes_a_small_parameter_for_larger_than_it_is() -> None:
    slope = torch.tensor([1.0, -2.0])
    stepped = one(torch.zeros(2), slope, Adafactor(lr=0.1, smallest=0.5))
    torch.testing.assert_close(stepped, -0.1 * 0.5 * slope.sign())


def test_muons_update_is_orthogonal_and_of_adamws_size() -> None:
    slope = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    update = -one(torch.zeros(64, 16), slope, Muon(lr=0.1, weight_decay=0)) / 0.1
    # All singular values are near 1 before they are scaled; five of Muon's iterations stay within about 0.3.
    values = torch.linalg.svdvals(update) / (0.2 * 64**0.5)
    assert float(values.min()) > 0.6 and float(values.max()) < 1.3
    assert 0.15 < float(update.square().mean().sqrt()) < 0.25
    u, _, v = torch.linalg.svd(slope, full_matrices=False)
    assert float((update * (u @ v)).sum() / (update.norm() * 4)) > 0.95
    original = -one(torch.zeros(64, 16), slope, Muon(lr=0.1, weight_decay=0, size="original")) / 0.1
    torch.testing.assert_close(original * 0.2 * 64**0.5, update * (64 / 16) ** 0.5)


@pytest.mark.parametrize(
    ("role", "layer", "shape"),
    [("embed", None, (4, 4)), ("head", None, (4, 4)), ("position", 0, (4, 4)), ("q", 0, (16,)), ("conv", 0, (4, 2, 2))],
)
def test_what_muon_is_not_for_goes_by_adamw(role: str, layer: int | None, shape: tuple[int, ...]) -> None:
    slope = SLOPE.view(shape)
    stepped = one(torch.zeros(shape), slope, Muon(lr=0.01), layer, role)
    assert torch.equal(stepped, one(torch.zeros(shape), slope, AdamW(lr=0.01), layer, role))
    assert not torch.equal(stepped, one(torch.zeros(4, 4), SLOPE, Muon(lr=0.01)).view(shape))


def test_muons_groups_carry_what_the_rate_is_multiplied_by() -> None:
    parameters = model()
    optimizer = Muon(lr=0.02, adamw_scale=0.25).build(parameters)
    held = [value for group in optimizer.param_groups for value in group["params"]]
    assert {id(value) for value in held} == {id(value) for _, value in parameters} and len(held) == len(parameters)
    rates = {
        value: (group["lr"], group.get("lr_scale", 1.0))
        for group in optimizer.param_groups
        for value in group["params"]
    }
    for parameter, value in parameters:
        expected = (0.02, 1.0) if parameter.name.endswith((".q", ".w1")) else (0.005, 0.25)
        assert rates[value] == expected, parameter.name


def test_muons_rate_reaches_both_of_its_parts() -> None:
    parameters = model()
    before = [value.detach().clone() for _, value in parameters]
    optimizer = Muon().build(parameters)
    for _, value in parameters:
        value.grad = torch.ones_like(value)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    assert all(torch.equal(value, was) for (_, value), was in zip(parameters, before, strict=True))
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    optimizer.step()
    assert not any(torch.equal(value, was) for (_, value), was in zip(parameters, before, strict=True))


@pytest.mark.parametrize("optimizer", DECAYING, ids=named)
def test_matrices_decay_and_gains_and_biases_do_not(optimizer: Optimizer) -> None:
    for shape in [(2, 2), (2, 2, 2)]:
        for layer, role in [(0, "q"), (None, "embed")]:
            decayed = one(torch.ones(shape), torch.zeros(shape), optimizer, layer, role)
            torch.testing.assert_close(decayed, torch.full(shape, 0.95))
    for shape in [(2,), ()]:
        assert torch.equal(one(torch.ones(shape), torch.zeros(shape), optimizer), torch.ones(shape))


@pytest.mark.parametrize("optimizer", EVERY, ids=named)
def test_what_is_resumed_goes_on_bit_for_bit(optimizer: Optimizer) -> None:
    whole, first, second = model(), model(), model(seed=1)
    advance(optimizer.build(whole), whole, range(7), optimizer.lr)
    interrupted = optimizer.build(first)
    advance(interrupted, first, range(3), optimizer.lr)
    file = io.BytesIO()
    torch.save({"optimizer": interrupted.state_dict(), "values": [value.detach() for _, value in first]}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    resumed = optimizer.build(second)
    with torch.no_grad():
        for (_, value), kept in zip(second, saved["values"], strict=True):
            value.copy_(kept)
    resumed.load_state_dict(saved["optimizer"])
    advance(resumed, second, range(3, 7), optimizer.lr)
    for (parameter, value), (_, expected) in zip(second, whole, strict=True):
        assert torch.equal(value, expected), parameter.name


@pytest.mark.parametrize("optimizer", [each for each in EVERY if each != Sgd(lr=0.01, momentum=0)], ids=named)
def test_state_is_needed_to_go_on(optimizer: Optimizer) -> None:
    """The test of resuming would see a state that is lost: without it the values differ."""
    whole, cut = model(), model()
    advance(optimizer.build(whole), whole, range(7), optimizer.lr)
    advance(optimizer.build(cut), cut, range(3), optimizer.lr)
    advance(optimizer.build(cut), cut, range(3, 7), optimizer.lr)
    same = [torch.equal(value, expected) for (_, value), (_, expected) in zip(cut, whole, strict=True)]
    assert not any(same)


def test_lightning_trains_with_muons_two_optimizers_as_one() -> None:
    import pytorch_lightning as pl
    from torch.utils.data import DataLoader

    class Trained(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.parameters_named = model()
            self.values = nn.ParameterList([value for _, value in self.parameters_named])

        def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
            return torch.stack([(value - batch.sum()).square().sum() for value in self.values]).sum()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return Muon(lr=0.01).build(self.parameters_named)

    trained, by_hand = Trained(), model()
    loader: DataLoader[Tensor] = DataLoader([torch.tensor(1.0), torch.tensor(-2.0)], batch_size=None)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice
        trainer = pl.Trainer(
            accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, gradient_clip_val=1.0,
        )  # fmt: skip
        trainer.fit(trained, loader)
    optimizer = Muon(lr=0.01).build(by_hand)
    for batch in (1.0, -2.0):
        optimizer.zero_grad()
        torch.stack([(value - batch).square().sum() for _, value in by_hand]).sum().backward()
        nn.utils.clip_grad_norm_([value for _, value in by_hand], 1.0)
        optimizer.step()
    for value, (parameter, expected) in zip(trained.values, by_hand, strict=True):
        assert torch.equal(value, expected), parameter.name


@pytest.mark.parametrize("optimizer", EVERY, ids=named)
def test_it_starts_at_the_peak_and_clears_gradients(optimizer: Optimizer) -> None:
    parameters = model()
    built = optimizer.build(parameters)
    assert [group["lr"] / group.get("lr_scale", 1.0) for group in built.param_groups] == pytest.approx(
        [optimizer.lr] * len(built.param_groups)
    )
    for _, value in parameters:
        value.grad = torch.ones_like(value)
    built.zero_grad()
    assert all(value.grad is None for _, value in parameters)
    built.step()
    assert not built.state_dict()["state"]


@pytest.mark.parametrize("optimizer", EVERY, ids=named)
def test_twenty_steps_come_nearer_to_the_least(optimizer: Optimizer) -> None:
    parameters = model()
    built = optimizer.build(parameters)

    def distance() -> float:
        return sum(float(value.detach().square().sum()) for _, value in parameters)

    before = distance()
    for _ in range(20):
        for _, value in parameters:
            value.grad = 2 * value.detach()
        built.step()
    assert distance() < 0.999 * before
