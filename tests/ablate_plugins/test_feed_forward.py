"""The position-wise feed-forward network."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from ablate.model.parameters import initialise
from ablate.slots import Site, place
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.initializer import LecunNormal

AT = Site(path="block.0.feed_forward", slot="feed_forward", width=512, depth=1, context=16, layer=0)


@pytest.mark.parametrize("options", [{"ratio": 4.0}, {"width": 2048}, {}])
def test_size_at_512_is_vaswanis(options: dict[str, float]) -> None:
    module = Mlp.model_validate(options).build(AT)
    assert sum(value.numel() for value in module.parameters()) == 2_099_712


@pytest.mark.parametrize(("ratio", "width"), [(1.0, 512), (2.667, 1366), (0.0001, 1)])
def test_a_ratio_is_rounded_to_whole_units(ratio: float, width: int) -> None:
    assert Mlp(ratio=ratio).build(AT).get_parameter("w1.weight").shape == (width, 512)


def test_each_token_is_treated_alone() -> None:
    module = Mlp(activation="relu").build(AT)
    x = torch.randn(2, 16, 512, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(module(x)[:, 7:8], module(x[:, 7:8]), atol=1e-6, rtol=0)


def test_half_of_the_relu_units_are_zero_at_the_start() -> None:
    module = place(Mlp(activation="relu"), AT)
    initialise(module, LecunNormal(), (0,))
    seen: list[Tensor] = []
    (hidden,) = (part for part in module.modules() if getattr(part, "site", AT).slot == "hidden")
    hidden.register_forward_hook(lambda _, inputs, output: seen.append(output))
    module(torch.randn(4, 16, 512, generator=torch.Generator().manual_seed(0)))
    assert float((seen[0] == 0).float().mean()) == pytest.approx(0.5, abs=0.03)


def test_ratio_and_width_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="give `ratio` or `width`, not both"):
        Mlp(ratio=2, width=64)
