"""The decoder with blocks that are otherwise than the rest, and what two spellings of one model have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.errors import InputError
from ablate.experiment import load
from ablate.experiment.identity import digest
from ablate.model.parameters import build, named_parameters, root_site
from ablate.planning import Plan, make_plan
from ablate.registry import Registry
from ablate.slots import Component, Given, Interface, Position
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.mixer import Attention
from ablate_plugins.mixer.pooling import NoMixer
from ablate_plugins.model import Decoder
from ablate_plugins.model.layers import LayerOverride
from ablate_plugins.position import NoPosition, RotaryPosition, SinusoidalPosition
from tests.ablate.experiment.maker import write

ROOT = root_site(Interface(16, 40))
REGISTRY = Registry.installed()


def decoder(**options: Any) -> Decoder:
    raw = {"kind": "decoder", "width": 16, "depth": 3, **options}
    return Decoder.model_validate(raw, context={"registry": REGISTRY})


def network(model: Decoder) -> Any:
    return build(model, ROOT, stream=(3,), initializer=LecunNormal())


def values(model: Decoder) -> dict[str, Tensor]:
    return {parameter.name: value.detach() for parameter, value in named_parameters(network(model))}


def override(first: int, end: int, **options: Any) -> dict[str, Any]:
    return {"range": [first, end], **options}


def test_a_hybrid_is_the_blocks_that_one_would_wire_by_hand() -> None:
    model = network(
        decoder(layers=[override(0, 1, placement="post"), override(1, 3, norm="rms"), override(2, 3, residual="none")])
    )
    tokens = torch.randint(40, (2, 16), generator=torch.Generator().manual_seed(0))
    stack = model.stack
    x = stack.position(stack.embed(tokens), 0)
    for sublayer in stack.blocks[0].children():  # post, with layer norms
        assert isinstance(sublayer.stream, nn.LayerNorm)
        x = sublayer.stream(x + branch(sublayer, x))
    for sublayer in stack.blocks[1].children():  # pre, with rms norms
        assert isinstance(sublayer.before, nn.RMSNorm)
        x = x + branch(sublayer, sublayer.before(x))
    for sublayer in stack.blocks[2].children():  # the same without a residual
        x = branch(sublayer, sublayer.before(x))
    assert isinstance(stack.final_norm, nn.RMSNorm)
    assert torch.equal(model(tokens), model.head(stack.final_norm(x)))


def branch(sublayer: Any, x: Tensor) -> Tensor:
    """What the sublayer's one branch makes of its input."""
    outs: list[Tensor] = [mixer(x, Given()) for mixer in sublayer.mixers] + [other(x) for other in sublayer.others]
    assert len(outs) == 1
    return outs[0]


def test_parameters_keep_their_names_and_initial_values_in_every_block() -> None:
    plain = values(decoder())
    hybrid = values(decoder(layers=[override(1, 2, placement="post", feed_forward={"kind": "mlp", "width": 8})]))
    assert plain.keys() - hybrid.keys() == {
        f"block.1.{part}.before.{name}" for part in ("mixer", "feed_forward") for name in ("weight", "bias")
    }
    assert hybrid.keys() - plain.keys() == {
        f"block.1.{part}.stream.{name}" for part in ("mixer", "feed_forward") for name in ("weight", "bias")
    }
    assert hybrid["block.1.feed_forward.w1.weight"].shape == (8, 16)
    for name in plain.keys() & hybrid.keys():
        if not name.startswith("block.1.feed_forward.w"):
            assert torch.equal(plain[name], hybrid[name]), name


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"layers": [override(0, 2, placement="post")]}, {"final_norm.weight", "final_norm.bias"}),
        ({"layers": [override(2, 3, placement="post")]}, set()),
        ({"placement": "post", "layers": [override(2, 3, placement="pre", norm="rms")]}, {"final_norm.weight"}),
        ({"layers": [override(2, 3, norm="none")]}, set()),
        ({"norm": "none", "layers": [override(2, 3, norm="rms")]}, {"final_norm.weight"}),
    ],
)
def test_the_final_norm_is_derived_from_the_last_block(options: dict[str, Any], expected: set[str]) -> None:
    assert {name for name in values(decoder(**options)) if name.startswith("final_norm")} == expected


def test_dropout_of_a_block_leaves_the_embeddings_alone() -> None:
    model = network(decoder(layers=[override(1, 2, dropout=0.5)]))
    assert isinstance(model.stack.dropout, nn.Identity)
    found = [type(block.mixer.dropout).__name__ for block in model.stack.blocks]
    assert found == ["Identity", "KeyedDropout", "Identity"]


POST = [override(0, 3, placement="post")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"layers": []}),
        ({}, {"layers": [override(0, 2, placement="pre")]}),
        ({"placement": "post"}, {"layers": POST}),
        ({"layers": POST, "placement": "sandwich"}, {"placement": "post"}),
        (
            {"layers": [override(0, 1, norm="rms"), override(1, 2, norm="rms")]},
            {"layers": [override(0, 2, norm="rms")]},
        ),
        (
            {"layers": [override(1, 2, norm="rms"), override(0, 2, placement="post")]},
            {"layers": [override(0, 2, placement="post"), override(1, 2, norm="rms")]},
        ),
        ({"norm": "none"}, {"norm": "none", "placement": "post"}),
        ({"layers": [override(0, 2, norm="none", placement="post")]}, {"layers": [override(0, 2, norm="none")]}),
        ({"norm": "none", "layers": [override(0, 2, placement="sandwich")]}, {"norm": "none"}),
    ],
)
def test_what_computes_the_same_is_the_same_however_it_is_spelled(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = decoder(**one), decoder(**other)
    assert digest(first) == digest(second)
    mine, theirs = values(first), values(second)
    assert mine.keys() == theirs.keys()
    tokens = torch.randint(40, (2, 16), generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(first)(tokens), network(second)(tokens))


def test_what_differs_in_a_block_differs_in_identity() -> None:
    models: list[dict[str, Any]] = [
        {},
        {"placement": "post"},
        {"norm": "none"},
        {"norm": "none", "layers": [override(0, 1, norm="layer")]},
        {"norm": "none", "layers": [override(0, 1, norm="layer", placement="post")]},
        {"layers": [override(0, 1, placement="post")]},
        {"layers": [override(1, 2, placement="post")]},
        {"layers": [override(2, 3, placement="post")]},
        {"layers": [override(0, 2, placement="post")]},
        {"layers": [override(0, 1, dropout=0.1)]},
        {"layers": [override(0, 3, dropout=0.1)]},
        {"dropout": 0.1},
        {"position": "none"},
        {"position": "rotary"},
        {"scale_embedding": True},
        {"parallel": True},
        {"layers": [override(0, 1, parallel=True)]},
    ]
    assert len({digest(decoder(**options)) for options in models}) == len(models)


def test_effective_options_are_stable_and_leave_the_model_as_it_was_written() -> None:
    model = decoder(norm="none", placement="post", layers=[override(0, 2, dropout=0.1), override(1, 2, norm="rms")])
    effective = model.effective()
    assert (kind(model.placement), kind(effective.placement)) == ("post", "pre")
    assert effective.effective() == effective
    assert decoder(**model.model_dump()) == model
    assert len({model, decoder(**model.model_dump()), effective}) == 2


def kind(component: Component) -> str:
    return str(getattr(component, "kind", ""))


def plan(path: Path) -> Plan:
    return make_plan(load(path))


LEVELS = ("path: model.placement, levels: [pre, post]", "path: model.layers, levels: [[], LEVEL]")


def level(text: str) -> tuple[str, str]:
    return LEVELS[0], LEVELS[1].replace("LEVEL", text)


def test_a_level_sets_layers_and_the_plan_has_them_as_written(tmp_path: Path) -> None:
    made = plan(write(tmp_path, level("[{range: [0, 1], placement: post, norm: rms}]")))
    hybrid = next(arm for arm in made.arms if arm["name"] not in ("baseline", "residual=off"))
    assert hybrid["levels"]["placement"] == "[{range=[0, 1], placement=post, norm=rms}]"
    (written,) = hybrid["config"]["model"]["layers"]
    assert (written["range"], written["placement"]["kind"], written["mixer"]) == ([0, 1], "post", None)
    used = {(each["slot"], each["kind"]) for each in hybrid["components"]}
    assert {("norm", "layer"), ("norm", "rms"), ("placement", "pre"), ("placement", "post")} <= used


def test_a_dead_placement_falls_together_with_its_baseline_and_keeps_what_was_written(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ("seeds: 6", "seeds: 6\ndesign: full"),
        ("switch: model.residual", "path: model.norm, levels: [layer, none]"),
    )
    made = plan(path)
    assert len(made.arms) == 3
    (dead,) = [arm for arm in made.arms if arm["aliases"]]
    assert dead["config"]["model"]["norm"]["kind"] == "none"
    assert [warning.code for warning in made.warnings if warning.code == "W002"] == ["W002"]


def test_levels_that_are_one_beside_the_baseline_may_still_be_levels(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ("depth: 2", "depth: 2\n  norm: none"),
        ("seeds: 6", "seeds: 6\ndesign: full"),
        ("switch: model.residual", "path: model.norm, levels: [none, layer]"),
    )
    made = plan(path)
    assert len(made.arms) == 3
    assert {arm["config"]["model"]["placement"]["kind"] for arm in made.arms} == {"pre", "post"}


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("[{range: [0, 3], placement: post}]", [
            "S103 9:20 `range: [0, 3]` ends at 3, and the model has 2 blocks | None"
        ]),
        ("[{range: [1, 1], placement: post}]", [
            "S103 9:20 `range: [1, 1]` has no block: its second number is the block after the last | None"
        ]),
        ("[{range: [1, 0], placement: post}]", [
            "S103 9:20 `range: [1, 0]` has no block: its second number is the block after the last | None"
        ]),
        ("[{range: [-1, 1], placement: post}]", [
            "S103 9:20 `range` must begin at block 0 or later, not at -1 | None"
        ]),
        ("[{range: [1], placement: post}]", [
            "S103 9:20 `range` must be two numbers: the first block, and the one after the last | None"
        ]),
        ("[{range: [0, 1]}]", [
            "S103 9:12 an override of layers must set at least one of norm, placement, residual, mixer, feed_forward, "
            "dropout, parallel | None"
        ]),
        ("[{placement: post}]", [
            "S104 9:12 `range` is missing in `model.layers.0` | First block, counted from 0, and the one after the "
            "last."
        ]),
        ("[{range: [0, 2], placement: post}, {range: [1, 2], norm: rms, placement: pre}]", [
            "S103 9:84 `placement` of block 1 is already set by `layers[0]` | None"
        ]),
        ("[{range: [0, 9], norm: rms}, {range: [0, 1], norm: layer}]", [
            "S103 9:20 `range: [0, 9]` ends at 9, and the model has 2 blocks | None",
            "S103 9:62 `norm` of block 0 is already set by `layers[0]` | None",
        ]),
        ("[{range: [0, 1], placment: post}]", [
            "S101 9:28 unknown key `placment` in `model.layers.0` | did you mean `placement`?"
        ]),
        ("[{range: [0, 1], placement: psot}]", [
            "S102 9:39 no placement is called `psot` | did you mean `post`?"
        ]),
        ("[{range: [0, 1], mixer: {kind: attention, heds: 2}}]", [
            "S101 9:53 unknown key `heds` in `model.layers.0.mixer` | did you mean `heads`?"
        ]),
        ("{range: [0, 1], placement: post}", ["S103 9:11 `layers` must be a list, not a mapping | None"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_layers_is_said_at_its_place(tmp_path: Path, layers: str, expected: list[str]) -> None:
    path = write(tmp_path, ("  mixer:", f"  layers: {layers}\n  mixer:"))
    with pytest.raises(InputError) as caught:
        load(path)
    found = [
        f"{each.code} {each.span.line}:{each.span.column} {each.message} | {each.help}"
        for each in caught.value.diagnostics
        if each.span
    ]
    assert found == expected


def test_an_override_in_a_level_is_blamed_where_the_level_stands(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, level("[{range: [0, 3], placement: post}]")))
    (problem,) = caught.value.diagnostics
    assert problem.message == "`range: [0, 3]` ends at 3, and the model has 2 blocks"
    assert problem.span
    assert (problem.span.line, problem.source and problem.source[problem.span.column - 1 :][:6]) == (12, "[0, 3]")


def test_a_rotation_without_any_mixer_is_none() -> None:
    def without_mixer(position: Position) -> Decoder:
        return Decoder(width=16, depth=2, mixer=NoMixer(), position=position)

    assert digest(without_mixer(RotaryPosition(base=500.0))) == digest(without_mixer(NoPosition()))
    assert digest(without_mixer(SinusoidalPosition())) != digest(without_mixer(NoPosition()))
    one = LayerOverride(range=[0, 1], mixer=Attention())
    mixed = [Decoder(depth=2, mixer=NoMixer(), layers=[one], position=p) for p in (RotaryPosition(), NoPosition())]
    assert digest(mixed[0]) != digest(mixed[1])
