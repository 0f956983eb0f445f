"""What cannot work is excluded when it is planned, with the reason that its own components give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.analysis.results import Results
from ablate.errors import InputError
from ablate.planning import Plan
from ablate.registry import Registry
from ablate.slots import Mixer, is_neutral
from tests.ablate.planning.setups import plugin
from tests.study_maker import make_study

ATTENTION: dict[str, Any] = {"kind": "attention", "heads": 2}
DECODER: dict[str, Any] = {"kind": "decoder", "width": 8, "depth": 2, "position": "none", "mixer": ATTENTION}
TRANSLATOR: dict[str, Any] = {"kind": "encoder_decoder", "width": 8, "depth": 1, "mixer": ATTENTION, "cross": ATTENTION}
TEXT = {"kind": "text", "path": "words.txt", "context": 8}
COPY = {"kind": "copy", "length": 4, "samples": 8}

ACTS_IN_ATTENTION = ("rotary", "alibi", "relative_bias")
AHEAD = "norm `batch`: a token sees later ones of its sequence"
OTHERS = "norm `batch`: in training a sequence sees the others of its batch"

SLANTED = """
from dataclasses import replace
from ablate.slots import Position, Traits

class _Slope(nn.Module):
    def forward(self, start, queries, keys):
        return torch.arange(keys, dtype=torch.float32).expand(1, queries, keys)

class Slanted(Position):
    "Prefer what is late."
    kind: Literal["slanted"] = "slanted"

    def build(self, at: Site) -> nn.Module:
        return _Still()

    def bias(self, at: Site) -> nn.Module:
        return _Slope()

    def traits(self) -> Traits:
        return Traits(needs_attention=True)

class _Still(nn.Module):
    def forward(self, x, start=0):
        return x

class _Look(nn.Module):
    def __init__(self, at):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(at.width, at.width) for _ in range(3))
        self.bias = at.position.bias(replace(at, heads=1))

    def forward(self, x, given):
        logits = self.q(x) @ self.k(x).mT
        tokens = x.shape[1]
        if self.bias is not None:
            logits = logits + self.bias(0, tokens, tokens)[0]
        return logits.masked_fill(torch.ones(tokens, tokens).triu(1) > 0, -1e9).softmax(-1) @ self.v(x)

class Look(Mixer):
    "Attend with one head."
    kind: Literal["look"] = "look"

    def build(self, at: Site) -> nn.Module:
        return _Look(at)

    def traits(self) -> Traits:
        return Traits(attends=True)

class Shift(Mixer):
    "Attend to nothing."
    kind: Literal["shift"] = "shift"

    def build(self, at: Site) -> nn.Module:
        return _Shift()

class _Shift(nn.Module):
    def forward(self, x, given):
        return nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
"""


def experiment(folder: Path, model: dict[str, Any], task: dict[str, Any] = TEXT, **more: Any) -> ablate.Experiment:
    """A small experiment on a text of its own, or on another task."""
    (folder / "words.txt").write_text("some words and some more of them. " * 60)
    values = {
        "name": "legality",
        "question": "Can it work?",
        "task": task,
        "model": model,
        "training": {"optimizer": {"kind": "adamw", "lr": 0.01}, "batch": 2},
        "seeds": 2,
        "objective": {"metric": "val/loss", "smallest_effect": 0.02},
        "budget": {"steps": 2},
    }
    return ablate.Experiment.of(values | more, folder=folder)


def excluded(plan: Plan) -> dict[str, str]:
    """Why each of the arms is excluded; none of them by a rule of the experiment's own."""
    assert {each["rule"] for each in plan.data["excluded"]} <= {None}
    return {each["name"]: each["why"] for each in plan.data["excluded"]}


def why(position: str, mixer: str) -> str:
    """The reason that the two cannot stand together."""
    return f"position `{position}` acts on queries and keys, and mixer `{mixer}` has none for it"


def factor(path: str, *levels: Any) -> dict[str, Any]:
    return {"path": path, "levels": list(levels)}


def test_a_position_that_acts_in_attention_is_excluded_beside_mixers_that_have_none(tmp_path: Path) -> None:
    factors = {
        "position": factor("model.position", "none", *ACTS_IN_ATTENTION),
        "mixer": factor("model.mixer", ATTENTION, "convolution", "gru", "none"),
    }
    plan = ablate.plan(experiment(tmp_path, DECODER | {"depth": 1}, factors=factors, design="full"))
    assert excluded(plan) == {
        f"position={position}, mixer={mixer}": why(position, mixer)
        for position in ACTS_IN_ATTENTION
        for mixer in ("convolution", "gru")
    }
    arms = {arm["name"]: arm for arm in plan.arms}
    assert set(arms) == {
        "baseline", *(f"position=none, mixer={mixer}" for mixer in ("convolution", "gru", "none")),
        *(f"position={position}, mixer=attention(heads=2)" for position in ACTS_IN_ATTENTION),
    }  # fmt: skip
    # Where nothing could have it, there is no one to refuse it: it is dead, and the arms are one.
    assert arms["position=none, mixer=none"]["aliases"] == [
        f"position={each}, mixer=none" for each in ACTS_IN_ATTENTION
    ]
    assert {trial["arm"] for trial in plan.trials} == {arm["id"] for arm in plan.arms}


def test_one_block_with_attention_is_enough_for_a_position_that_acts_there(tmp_path: Path) -> None:
    def blocks(*mixers: Any) -> list[dict[str, Any]]:
        return [{"range": [layer, layer + 1], "mixer": mixer} for layer, mixer in enumerate(mixers)]

    model = DECODER | {"position": "rotary", "layers": blocks("gru")}
    hybrids = {
        "gru below attention": blocks("gru"),
        "attention below convolution": blocks(ATTENTION, "convolution"),
        "gru below convolution": blocks("gru", "convolution"),
        "convolution below none": blocks("convolution", "none"),
    }
    levels = {name: {"model.layers": layers} for name, layers in hybrids.items()}
    plan = ablate.plan(experiment(tmp_path, model, factors={"hybrid": {"levels": levels}}))
    assert [arm["name"] for arm in plan.arms] == ["baseline", "hybrid=attention below convolution"]
    assert excluded(plan) == {
        "hybrid=gru below convolution": why("rotary", "gru"),
        "hybrid=convolution below none": why("rotary", "convolution"),
    }


def test_a_stack_with_attention_is_enough_in_a_model_of_two(tmp_path: Path) -> None:
    def encoded(mixer: str) -> dict[str, Any]:
        return {"model.encoder_layers": [{"range": [0, 1], "mixer": mixer}]}

    levels = {
        "attention in both": {},
        "gru in the encoder": encoded("gru"),
        "gru in both": {"model.mixer": "gru"},
    }
    plan = ablate.plan(
        experiment(tmp_path, TRANSLATOR | {"position": "rotary"}, COPY, factors={"stacks": {"levels": levels}})
    )
    assert [arm["name"] for arm in plan.arms] == ["baseline", "stacks=gru in the encoder"]
    assert excluded(plan) == {"stacks=gru in both": why("rotary", "gru")}


def test_what_a_component_refuses_to_build_is_excluded_with_its_words(tmp_path: Path) -> None:
    levels: dict[str, dict[str, Any]] = {
        "plain": {"model.mixer": ATTENTION},
        "heads": {"model.mixer": {"kind": "attention", "heads": 3}},
        "linear": {"model.mixer": {"kind": "linear_attention", "heads": 3}},
        "gru": {"model.mixer": {"kind": "gru", "bidirectional": True}},
        "lstm": {"model.mixer": {"kind": "lstm", "bidirectional": True}},
        "odd head": {"model.width": 6, "model.position": "rotary"},
        "odd stream": {"model.width": 5, "model.mixer": "gru", "model.position": "sinusoidal"},
        "encoder": {"model": {"kind": "encoder"}},
        "rnn": {"model": {"kind": "rnn_seq2seq"}},
        "translator": {"model": {"kind": "encoder_decoder"}},
    }
    plan = ablate.plan(experiment(tmp_path, DECODER, factors={"case": {"levels": levels}}))
    assert [arm["name"] for arm in plan.arms] == ["baseline"]
    assert excluded(plan) == {
        "case=heads": "3 heads do not divide a width of 8",
        "case=linear": "3 heads do not divide a width of 8",
        "case=gru": "a bidirectional `gru` reads later tokens, which a causal site forbids",
        "case=lstm": "a bidirectional `lstm` reads later tokens, which a causal site forbids",
        "case=odd head": "a width of 3 is odd, and sines and cosines come in pairs",
        "case=odd stream": "a width of 5 is odd, and sines and cosines come in pairs",
        "case=encoder": "model `encoder` is for classification, and task `text` is language modelling",
        "case=rnn": "model `rnn_seq2seq` is for sequence to sequence, and task `text` is language modelling",
        "case=translator": "model `encoder_decoder` is for sequence to sequence, and task `text` is language modelling",
    }
    warned = {warning.message for warning in plan.warnings if warning.code == "W003"}
    assert warned == {f"`{name}` is excluded: {why}" for name, why in excluded(plan).items()}


def test_only_a_mixer_that_can_read_another_sequence_may_cross(tmp_path: Path) -> None:
    mixers: list[type[Mixer]] = [each for each in Registry.installed().all("mixer") if issubclass(each, Mixer)]
    blind = [mixer().kind for mixer in mixers if not mixer().traits().crosses and not is_neutral(mixer())]  # type: ignore[attr-defined]
    assert "convolution" in blind
    plan = ablate.plan(
        experiment(tmp_path, TRANSLATOR, COPY, factors={"cross": factor("model.cross", ATTENTION, *blind)})
    )
    assert [arm["name"] for arm in plan.arms] == ["baseline"]
    assert excluded(plan) == {f"cross={kind}": f"mixer `{kind}` cannot read another sequence" for kind in blind}


@pytest.mark.parametrize(
    ("model", "task", "reason"),
    [
        ({"kind": "encoder"}, TEXT, "model `encoder` is for classification, and task `text` is language modelling"),
        (DECODER, COPY, "model `decoder` is for language modelling, and task `copy` is sequence to sequence"),
        (
            {"kind": "rnn_seq2seq"},
            TEXT,
            "model `rnn_seq2seq` is for sequence to sequence, and task `text` is language modelling",
        ),
        (
            DECODER | {"mixer": "convolution", "position": "rotary"},
            TEXT,
            "position `rotary` acts on queries and keys, and mixer `convolution` has none for it",
        ),
        (TRANSLATOR | {"cross": "gru"}, COPY, "mixer `gru` cannot read another sequence"),
    ],
    ids=["encoder-on-text", "decoder-on-copy", "rnn-on-text", "rotary-in-convolution", "gru-across"],
)
def test_a_baseline_that_cannot_work_is_an_error_at_the_model(
    tmp_path: Path, model: dict[str, Any], task: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError) as caught:
        ablate.plan(experiment(tmp_path, model, task, factors={"rate": factor("training.optimizer.lr", 0.01, 0.1)}))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("G209", f"the baseline cannot be built: {reason}")
    assert diagnostic.span is not None
    assert diagnostic.source is not None
    assert diagnostic.source[diagnostic.span.column - 1 : diagnostic.span.end - 1] == "model"


def test_a_users_component_is_held_to_what_it_declares_like_any_other(tmp_path: Path) -> None:
    plugin(tmp_path, SLANTED)
    factors = {
        "position": factor("model.position", "none", "slanted", "alibi"),
        "mixer": factor("model.mixer", ATTENTION, "look", "shift", "convolution"),
    }
    plan = ablate.plan(
        experiment(tmp_path, DECODER | {"depth": 1}, factors=factors, design="full", plugins=["mine.py"])
    )
    assert excluded(plan) == {
        f"position={position}, mixer={mixer}": why(position, mixer)
        for position in ("slanted", "alibi")
        for mixer in ("shift", "convolution")
    }
    names = {arm["name"] for arm in plan.arms}
    assert {"position=slanted, mixer=look", "position=alibi, mixer=look"} <= names
    assert "W007" not in {warning.code for warning in plan.warnings}


def test_what_a_component_declares_of_itself_is_in_the_plan_and_among_the_caveats(tmp_path: Path) -> None:
    factors = {"norm": factor("model.norm", "layer", "rms", "batch")}
    plan = ablate.plan(experiment(tmp_path, DECODER | {"depth": 1}, factors=factors))
    notes = {arm["name"]: arm["notes"] for arm in plan.data["arms"]}
    assert notes == {"baseline": [], "norm=rms": [], "norm=batch": [AHEAD, OTHERS]}
    own = {name: {"notes": told} for name, told in notes.items()}
    study = make_study(tmp_path / "study", factors={"norm": ["layer", "rms", "batch"]}, own=own)
    assert [said for said in Results(study).caveats() if "`batch`" in said] == [
        f"norm=batch has {AHEAD}.",
        f"norm=batch has {OTHERS}.",
    ]


def test_nothing_is_told_of_a_norm_for_which_there_is_no_place(tmp_path: Path) -> None:
    factors = {"norm": factor("model.norm", "layer", "batch"), "residual": factor("model.residual", "add", "rezero")}
    model = DECODER | {"depth": 1, "placement": "none"}
    arms = ablate.plan(experiment(tmp_path, model, factors=factors, design="full")).arms
    # A residual that asks for no final norm leaves no place at all, so there it is all the same which norm it is.
    assert [(arm["name"], arm["aliases"], arm["notes"]) for arm in arms] == [
        ("baseline", [], []),
        ("norm=layer, residual=rezero", ["norm=batch, residual=rezero"], []),
        ("norm=batch, residual=add", [], [AHEAD, OTHERS]),
    ]
