"""Every installed component keeps its contract, check by check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from ablate.registry import Registry
from ablate.slots import Component
from ablate.testing import Check, checks

REGISTRY = Registry.installed()

VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "mixer:attention": [
        {"heads": 4, "kv_heads": 2},
        {"heads": 2, "key_width": 6, "bias": False},
        {"soft_cap": 5.0},
        {"causal": False},
        {"dropout": 0.1},
        {"scale": "cosine"},
        {"scale": "log_length"},
    ],
    "feed_forward:mlp": [{"activation": "relu", "width": 5}],
    "feed_forward:mixture_of_experts": [{"top_k": 1}],
    "residual:weighted": [{"skip": 0.5, "branch": 2.0}],
    "schedule:cosine": [{"warmup": 7, "floor": 0.0}],
    "decoding:beam": [{"width": 3, "length_penalty": 0.0}],
    "decoding:sample": [{"top_k": 3, "temperature": 0.7}, {"top_p": 0.8}],
    "model:decoder": [
        {"width": 16, "depth": 2, "output": "tied", "position": "rotary"},
        {"width": 16, "depth": 2, "position": "relative_bias"},
        {"width": 16, "depth": 2, "position": "none", "mixer": "gru"},
        {"width": 16, "depth": 2, "norm": "batch", "placement": "post"},
        {"width": 16, "depth": 2, "position": "alibi", "parallel": True, "norm": "rms"},
    ],
}
"""Options beside the defaults that take other ways through a component's code."""


def components() -> Iterator[tuple[str, Component | type[Component]]]:
    for entry in REGISTRY.entries():
        name = f"{entry.component.slot}:{entry.kind}"
        yield name, entry.component
        for number, options in enumerate(VARIANTS.get(name, ()), 1):
            made = entry.component.model_validate({"kind": entry.kind, **options}, context={"registry": REGISTRY})
            yield f"{name}.{number}", made


PARAMETERS = [
    pytest.param(check, id=f"{name}:{check}") for name, each in components() for check in checks(each, REGISTRY)
]


@pytest.mark.parametrize("check", PARAMETERS)
def test_contract(check: Check) -> None:
    check()


def test_every_module_was_brought_in() -> None:
    assert REGISTRY.broken == []


def test_every_variant_is_of_a_component() -> None:
    assert VARIANTS.keys() <= {name for name, _ in components()}
