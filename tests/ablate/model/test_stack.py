"""Blocks and stacks against formulas written by hand: what is wired, what is derived, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ablate.model.stack import Block, BlockParts
from ablate.slots import Given, ImpossibleError, Site
from ablate_plugins.feed_forward import Mlp, NoFeedForward
from ablate_plugins.mixer import Attention
from ablate_plugins.mixer.convolution import Convolution
from ablate_plugins.mixer.pooling import NoMixer
from ablate_plugins.norm import LayerNorm, RMSNorm
from ablate_plugins.placement import PostNorm, PreNorm, SandwichNorm
from ablate_plugins.residual import AddResidual
from tests.ablate.model.drawn import LABELS, LANGUAGE, PAIRS, drawn, model, network, same, stream, tokens, valid

AT = Site(path="block.0", slot="block", width=8, depth=1, context=16, layer=0)
PARTS: dict[str, Any] = {
    "norm": LayerNorm(),
    "placement": PreNorm(),
    "residual": AddResidual(),
    "mixer": Attention(heads=2),
    "feed_forward": Mlp(width=16),
    "dropout": 0.0,
}


def block(**changes: Any) -> Any:
    return drawn(Block(BlockParts(**{**PARTS, **changes}), AT))


def test_branches_side_by_side_are_one_sublayer_with_one_norm() -> None:
    made, x = block(parallel=True), stream()
    (sublayer,) = made.children()
    normed = sublayer.before(x)
    by_hand = x + sublayer.mixers[0](normed, Given()) + sublayer.others[0](normed)
    same(made(x, Given()), by_hand, 1e-13)
    post = block(parallel=True, placement=PostNorm())
    (sublayer,) = post.children()
    same(post(x, Given()), sublayer.stream(x + sublayer.mixers[0](x, Given()) + sublayer.others[0](x)), 1e-13)


def test_all_three_branches_stand_side_by_side() -> None:
    made, x, memory = block(parallel=True, cross=Attention(heads=4)), stream(), stream(seed=7)
    (sublayer,) = made.children()
    given, normed = Given(memory=memory), sublayer.before(x)
    mixed = [mixer(normed, given) for mixer in sublayer.mixers]
    same(made(x, given), x + mixed[0] + mixed[1] + sublayer.others[0](normed), 1e-13)


def test_sublayers_come_in_the_papers_order() -> None:
    names = [name for name, _ in block(cross=Attention(heads=2)).named_children()]
    assert names == ["mixer", "cross", "feed_forward"]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"mixer": NoMixer()}, ["feed_forward"]),
        ({"feed_forward": NoFeedForward()}, ["mixer"]),
        ({"mixer": NoMixer(), "parallel": True}, ["feed_forward"]),
        ({"cross": NoMixer()}, ["mixer", "feed_forward"]),
        ({"mixer": NoMixer(), "feed_forward": NoFeedForward()}, []),
    ],
)
def test_what_does_nothing_is_left_out_with_its_whole_sublayer(changes: Any, left: list[str]) -> None:
    made = block(**changes)
    assert [name for name, _ in made.named_children()] == left
    if not left:
        assert torch.equal(made(stream(), Given()), stream())


def test_what_cannot_read_another_sequence_is_refused_across() -> None:
    with pytest.raises(ImpossibleError, match=r"^mixer `convolution` cannot read another sequence$"):
        block(cross=Convolution())


def test_a_stack_is_embedding_position_blocks_and_final_norm() -> None:
    made = network(model(kind="decoder", depth=3, scale_embedding=True), LANGUAGE)
    ids = tokens()
    x = made.stack.embed(ids) * 8**0.5 + made.stack.position.table[:8]
    for each in made.stack.blocks:
        x = each(x, Given())
    same(made(ids), made.head(made.stack.final_norm(x)), 1e-13)


def test_scaling_multiplies_the_embeddings_variance_by_the_width_and_leaves_positions_alone() -> None:
    def embedded(scale: bool) -> Tensor:
        made = network(model(kind="decoder", width=64, position="none", scale_embedding=scale), LANGUAGE)
        seen: list[Tensor] = []
        made.stack.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        made(tokens())
        return seen[0]

    same(embedded(True), 8 * embedded(False), 1e-13)
    assert float((embedded(True).var() / embedded(False).var()).detach()) == pytest.approx(64)


HYBRID = [
    {"range": [0, 1], "mixer": {"kind": "convolution", "kernel": 2}, "placement": "post"},
    {"range": [1, 2], "mixer": "gru", "norm": "rms"},
    {"range": [3, 4], "parallel": True, "placement": "sandwich"},
]


def test_blocks_of_a_hybrid_are_those_of_its_overrides_in_both_stacks() -> None:
    made = network(
        model(kind="encoder_decoder", depth=4, encoder_depth=5, layers=HYBRID, encoder_layers=HYBRID[:2]), PAIRS
    )

    def mixers(stack: Any) -> list[str]:
        return [next(each.children()).mixers[0].made_by.kind for each in stack.blocks]

    assert mixers(made.encoder) == ["convolution", "gru", "attention", "attention", "attention"]
    assert mixers(made.decoder) == ["convolution", "gru", "attention", "attention"]
    assert [[name for name, _ in each.named_children()] for each in made.decoder.blocks] == [
        ["mixer", "cross", "feed_forward"], ["mixer", "cross", "feed_forward"], ["mixer", "cross", "feed_forward"],
        ["parallel"],
    ]  # fmt: skip
    source, text = tokens(7), tokens(length=9)
    memory = made.encoder.position(made.encoder.embed(source), 0)
    for each in made.encoder.blocks:
        memory = each(memory, Given(valid=valid()))
    memory = made.encoder.final_norm(memory)
    x = made.decoder.position(made.decoder.embed(text), 0)
    given = Given(memory=memory, memory_valid=valid())
    post, rms, pre, parallel = made.decoder.blocks
    for sublayer in post.children():
        x = sublayer.stream(x + sublayer._branches(x, given))
    for sublayer in (*rms.children(), *pre.children()):
        x = x + sublayer._branches(sublayer.before(x), given)
    (sublayer,) = parallel.children()
    x = made.decoder.final_norm(x + sublayer.after(sublayer._branches(sublayer.before(x), given)))
    same(made(source, valid(), text), made.head(x), 1e-12)


def test_the_norm_is_that_of_the_block() -> None:
    made = block(norm=RMSNorm(), placement=SandwichNorm())
    norms = [part.made_by for each in made.children() for part in (each.before, each.after)]
    assert norms == [RMSNorm()] * 4


@pytest.mark.parametrize("position", ["rotary", "alibi", "relative_bias"])
def test_a_position_that_acts_in_attention_needs_some(position: str) -> None:
    for kind, task in (("decoder", LANGUAGE), ("encoder", LABELS)):
        with pytest.raises(
            ImpossibleError, match=f"^position `{position}` acts on queries and keys, and mixer `gru` has none for it$"
        ):
            network(model(kind=kind, mixer="gru", position=position), task)
        one = [{"range": [0, 1], "mixer": "attention"}]
        network(model(kind=kind, mixer="gru", position=position, layers=one), task)
        network(model(kind=kind, mixer="none", position=position), task)


def test_sites_say_which_stack_they_are_of_and_count_the_models_blocks() -> None:
    made = network(model(kind="encoder_decoder", depth=2, encoder_depth=3), PAIRS)
    found = [site for part in made.modules() if (site := getattr(part, "site", None)) and site.slot == "block"]
    assert [(site.path, site.stack, site.depth, site.other_depth, site.block, site.causal) for site in found] == [
        *[(f"encoder.block.{layer}", "encoder", 3, 2, layer, False) for layer in range(3)],
        *[(f"block.{layer}", "decoder", 2, 3, 3 + layer, True) for layer in range(2)],
    ]
    crosses = {site.path for part in made.modules() if (site := getattr(part, "site", None)) and site.cross}
    assert {path for path in crosses if path.count(".") == 2} == {"block.0.cross", "block.1.cross"}
