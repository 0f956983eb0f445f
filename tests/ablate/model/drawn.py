"""Small networks in float64 whose every parameter matters, and inputs for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ablate.model.parameters import root_site
from ablate.registry import Registry
from ablate.slots import Interface, Model

REGISTRY = Registry.installed()
LANGUAGE = Interface(context=12, vocabulary=11)
LABELS = Interface(context=12, vocabulary=11, form="classification", classes=5)
PAIRS = Interface(context=9, vocabulary=11, form="sequence_to_sequence", source_context=8, source_vocabulary=7)
LENGTHS = (8, 5, 1)
"""Lengths of the sequences that are padded to 8."""


def model(**options: Any) -> Any:
    """A model from its options as YAML has them."""
    raw = {"width": 8, "depth": 2, **options}
    kind = {each.model_fields["kind"].default: each for each in REGISTRY.all("model")}[options["kind"]]
    return kind.model_validate(raw, context={"registry": REGISTRY})


def network(model: Model, task: Interface, *, std: float = 0.4) -> Any:
    """The model's network, with every parameter drawn, biases and gates too."""
    return drawn(model.build(root_site(task)), std=std)


def drawn(module: nn.Module, *, std: float = 0.4) -> Any:
    """The module in float64, with every parameter drawn from a normal distribution."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(std * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def stream(batch: int = 3, tokens: int = 8, width: int = 8, seed: int = 1) -> Tensor:
    """Values (B, T, D)."""
    return torch.randn(batch, tokens, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tokens(vocabulary: int = 11, batch: int = 3, length: int = 8, seed: int = 2) -> Tensor:
    """Token ids (B, T)."""
    return torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))


def valid(lengths: tuple[int, ...] = LENGTHS, longest: int = 8) -> Tensor:
    """Which of the places of padded sequences are tokens: (B, T)."""
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


def same(found: Tensor, expected: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=0)
