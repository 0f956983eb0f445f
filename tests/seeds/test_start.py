"""A model at its start: its loss, the variance at its input, and what its positions and norms let through."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.model.parameters import build, root_site
from ablate.slots import Given, Interface
from ablate_plugins.initializer import LecunNormal
from tests.seeds.training import model

LANGUAGE = Interface(context=16, vocabulary=2000)
LABELS = Interface(context=16, vocabulary=2000, form="classification", classes=3)
TOKENS = torch.randint(2000, (16, 16), generator=torch.Generator().manual_seed(0))
WHOLE = torch.ones(16, 16, dtype=torch.bool)


def made(kind: str, **options: Any) -> Any:
    """In float64."""
    task = LANGUAGE if kind == "decoder" else LABELS
    each = model(**{"kind": kind, "width": 64, "depth": 2, **options})
    return build(each, root_site(task), stream=(0,), initializer=LecunNormal()).double()


@pytest.mark.parametrize("output", ["tied", "untied"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_first_loss_is_ln_v_and_half_the_variance_of_the_logits(output: str, placement: str) -> None:
    network = made("decoder", output=output, placement=placement, width=128)
    targets = torch.randint(2000, (16, 16), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = network(TOKENS)
    variance = float(logits.var())
    assert variance == pytest.approx(1, abs=0.15)
    loss = float(nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    error = 4 * (variance / 256) ** 0.5  # of the mean of 256 targets' own logits
    assert loss == pytest.approx(math.log(2000) + variance / 2, abs=error)
    # Without that error, and without the token that was read, which a tied output gives a logit of another size.
    others = logits.scatter(-1, TOKENS[..., None], -torch.inf)
    assert float(others.logsumexp(-1).mean()) == pytest.approx(math.log(2000) + variance / 2, abs=0.05)


@pytest.mark.parametrize("width", [16, 64, 256])
def test_scaled_embeddings_have_d_times_the_variance_at_the_input(width: int) -> None:
    def variance(scale: bool) -> float:
        seen: list[Tensor] = []
        network = made("decoder", width=width, position="none", scale_embedding=scale)
        network.stack.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
        network(TOKENS)
        return float(seen[0].var())

    assert variance(False) == pytest.approx(1, abs=0.1)
    assert variance(True) == pytest.approx(width * variance(False), rel=1e-12)


ORDER = torch.randperm(16, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("norm", ["layer", "rms", "none"])
def test_without_positions_an_encoder_gives_permuted_tokens_permuted_outputs(norm: str) -> None:
    network = made("encoder", position="none", norm=norm)
    out, permuted = (network.stack(tokens, Given()) for tokens in (TOKENS, TOKENS[:, ORDER]))
    torch.testing.assert_close(permuted, out[:, ORDER], atol=1e-10, rtol=0)
    torch.testing.assert_close(network(TOKENS[:, ORDER], WHOLE), network(TOKENS, WHOLE), atol=1e-10, rtol=0)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary", "alibi", "relative_bias"])
def test_with_positions_it_does_not(position: str) -> None:
    network = made("encoder", position=position)
    out, permuted = (network.stack(tokens, Given()) for tokens in (TOKENS, TOKENS[:, ORDER]))
    assert float((permuted - out[:, ORDER]).detach().abs().mean()) > 1e-2


def test_without_positions_a_causal_decoder_does_not_either() -> None:
    network = made("decoder", position="none")
    out, permuted = (network.stack(tokens, Given()) for tokens in (TOKENS, TOKENS[:, ORDER]))
    assert float((permuted - out[:, ORDER]).detach().abs().mean()) > 0.1
    # And its last token sees a set: in whatever order the others come, in one block, it gives the same.
    single = made("decoder", position="none", depth=1)
    others = torch.cat([torch.randperm(15, generator=torch.Generator().manual_seed(4)), torch.tensor([15])])
    torch.testing.assert_close(single(TOKENS)[:, -1], single(TOKENS[:, others])[:, -1], atol=1e-10, rtol=0)


def moved(norm: str, *, training: bool, later: bool) -> float:
    """How far the first eight tokens of the first sequence move, as a share of their logits' spread."""
    network = made("decoder", norm=norm).train(training)
    changed = TOKENS.clone()
    if later:
        changed[:1, 8:] = (changed[:1, 8:] + 1) % 2000
    else:
        changed[1:] = (changed[1:] + 1) % 2000
    with torch.no_grad():
        before, after = (network(tokens)[0, :8] for tokens in (TOKENS, changed))
    return float((after - before).std() / before.std())


@pytest.mark.parametrize("later", [True, False], ids=["its own future", "other sequences"])
def test_batch_norm_lets_a_model_see_its_future_and_other_sequences_in_training(later: bool) -> None:
    leak = moved("batch", training=True, later=later)
    assert leak > (0.005 if later else 0.1)
    assert moved("batch", training=False, later=later) == 0
    assert moved("layer", training=True, later=later) < 1e-12
