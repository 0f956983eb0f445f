"""The plan: arms counted, trials identified, data checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.errors import InputError, RefusedError
from ablate.experiment import load
from ablate.experiment.settings import Setup
from ablate.planning import Plan, make_plan
from tests.ablate.experiment.maker import write


def plan(path: Path) -> Plan:
    return make_plan(load(path))


def ids(path: Path) -> dict[tuple[str, int], str]:
    made = plan(path)
    names = {arm["id"]: arm["name"] for arm in made.arms}
    return {(names[trial["arm"]], trial["seed"]): trial["id"] for trial in made.trials}


def test_a_plan_is_every_arm_under_every_seed_and_plain_json(tmp_path: Path) -> None:
    made = ablate.plan(write(tmp_path))
    assert [arm["name"] for arm in made.arms] == ["baseline", "placement=post", "residual=off"]
    assert len({trial["id"] for trial in made.trials}) == len(made.trials) == 18
    assert [trial["seed"] for trial in made.trials[:4]] == [0, 0, 0, 1]
    assert made.data["baseline"] == made.arms[0]["id"]
    assert json.loads(json.dumps(made.data, allow_nan=False)) == made.data


def test_parameters_are_exact_and_flops_are_those_of_the_closed_form(tmp_path: Path) -> None:
    base, post, _ = plan(write(tmp_path)).arms
    width, vocabulary, context, depth, batch = 16, 103, 16, 2, 4
    block = 4 * (width * width + width) + 2 * width * 4 * width + 5 * width + 4 * width
    tables = 2 * vocabulary * width + context * width
    assert base["parameters"] == {
        "total": depth * block + 2 * width + tables,
        "non_embedding": depth * block + 2 * width,
        "parts": {
            "embed": vocabulary * width,
            "position": context * width,
            "norm": depth * 4 * width + 2 * width,
            "mixer": depth * 4 * (width * width + width),
            "feed_forward": depth * (2 * width * 4 * width + 5 * width),
            "head": vocabulary * width,
        },
    }
    assert post["parameters"]["total"] == base["parameters"]["total"] - 2 * width
    matrices = depth * (4 * width * width + 2 * width * 4 * width) + vocabulary * width
    attention = depth * 2 * context * width
    tokens = batch * context
    # The gradient of the first block's input is needed (the embedding is trained), so backward is twice forward.
    assert base["flops"] == pytest.approx(6 * tokens * (matrices + attention), rel=0.01)
    assert base["tokens"] == tokens


@pytest.mark.parametrize(
    "change",
    [
        ("question: Does it matter?", "question: Another."),
        ("name: small", "name: renamed"),
        ("batch: 4", "batch: 4, precision: 32-true, clip: 1.0"),
        ("heads: 2", "heads: 2, scale: inverse_sqrt"),
        ("lr: 1e-2", "lr: 0.01"),
        ("seeds: 6", "seeds: [5, 4, 3, 2, 1, 0]\nprobes: {every: 7}"),
        ("budget: {steps: 20}", "budget: {steps: 20, retries: 5}\nexecutor: {kind: local, parallel: 2}"),
        ("smallest_effect: 0.02", "smallest_effect: 0.5"),
        ("schema: 1\n", "schema: 1  # a comment\n\n"),
    ],
)
def test_what_does_not_change_a_result_does_not_change_an_identity(tmp_path: Path, change: tuple[str, str]) -> None:
    before = ids(write(tmp_path))
    assert ids(write(tmp_path, change)) == before


@pytest.mark.parametrize(
    "change",
    [
        ("width: 16", "width: 32"),
        ("batch: 4", "batch: 8"),
        ("batch: 4", "batch: 4, stream: other"),
        ("batch: 4", "batch: 4, threads: 2"),
        ("steps: 20", "steps: 21"),
        ("context: 16", "context: 32"),
        ("seeds: 6", "diverged: {patience: 3}"),
    ],
)
def test_what_changes_a_result_changes_every_identity(tmp_path: Path, change: tuple[str, str]) -> None:
    before = ids(write(tmp_path))
    after = ids(write(tmp_path, change))
    assert not set(before.values()) & set(after.values())


def test_growing_a_grid_keeps_the_identities_of_what_was_there(tmp_path: Path) -> None:
    before = ids(write(tmp_path))
    grown = ids(write(tmp_path, ("[pre, post]", "[pre, post, sandwich]"), ("seeds: 6", "seeds: 8")))
    assert before.items() <= grown.items()
    factor = ("[pre, post]}", "[pre, post]}\n  ratio: {path: model.feed_forward.ratio, levels: [2, 4]}")
    assert set(before.values()) <= set(ids(write(tmp_path, factor)).values())
    assert set(before.values()) <= set(ids(write(tmp_path, factor, ("seeds: 6", "design: full"))).values())


def test_a_users_data_are_part_of_the_identity(tmp_path: Path) -> None:
    text = ("source: python-docs", "path: mine.txt")
    (tmp_path / "mine.txt").write_text("some words. " * 100)
    before = ids(write(tmp_path, text))
    (tmp_path / "mine.txt").write_text("some words! " * 100)
    assert not set(before.values()) & set(ids(write(tmp_path, text)).values())


def test_an_arm_that_cannot_be_built_is_excluded_with_its_components_reason(tmp_path: Path) -> None:
    made = plan(
        write(tmp_path, ("path: model.placement, levels: [pre, post]", "path: model.mixer.heads, levels: [2, 3, 4]"))
    )
    assert [arm["name"] for arm in made.arms] == ["baseline", "placement=4", "residual=off"]
    (excluded,) = made.data["excluded"]
    assert (excluded["name"], excluded["why"]) == ("placement=3", "3 heads do not divide a width of 16")
    assert any(warning.code == "W003" for warning in made.warnings)


def test_a_baseline_that_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the baseline cannot be built: 3 heads do not divide a width of 16"):
        plan(write(tmp_path, ("heads: 2", "heads: 3")))


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "`mine.txt` is empty"), ("short", "`mine.txt` has 5 characters"), (None, "cannot read")],
)
def test_data_that_cannot_be_used_are_an_error_at_the_task(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "mine.txt").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        plan(write(tmp_path, ("source: python-docs", "path: mine.txt")))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span
    assert diagnostic.span.line == 4
    assert diagnostic.help


def test_few_seeds_are_warned_of_with_the_best_p(tmp_path: Path) -> None:
    (warning,) = plan(write(tmp_path, ("seeds: 6", "seeds: 3"))).warnings
    assert str(warning).startswith("warning[W001]: 3 seeds: the exact sign-flip test cannot go below p = 0.25")
    assert not plan(write(tmp_path)).warnings


def test_components_are_named_with_their_origin_and_source(tmp_path: Path) -> None:
    components: list[dict[str, Any]] = plan(write(tmp_path)).data["components"]
    by_name = {(each["slot"], each["kind"]): each for each in components}
    assert {("placement", "pre"), ("placement", "post"), ("residual", "none"), ("task", "text")} <= by_name.keys()
    assert by_name["norm", "layer"]["origin"].startswith("ablate-arch ")
    assert len(by_name["norm", "layer"]["source"]) == 12


def test_identities_never_change(tmp_path: Path) -> None:
    """Golden: a trial that was sealed by an older version must be found again."""
    (tmp_path / "mine.txt").write_text("some words. " * 100)
    found = ids(write(tmp_path, ("source: python-docs", "path: mine.txt")))
    assert found["baseline", 0] == "5f2e859b38b931e7"
    assert found["residual=off", 5] == "cfc4b8cf480d6055"


PLUGIN = """
from typing import Literal
import torch
from torch import nn
from ablate.slots import FeedForward, Site

class Wide(nn.Module):
    def forward(self, x):
        return torch.cat([x, x[..., :1]], -1)

class Mine(FeedForward):
    '''A feed-forward with a mistake.'''
    kind: Literal["mine"] = "mine"

    def build(self, at: Site) -> nn.Module:
        return BODY
"""


@pytest.mark.parametrize(
    ("body", "message", "help"),
    [
        ("Wide()", "TypeError: the feed_forward at `block.0.feed_forward` gave (4, 16, 17) for (4, 16, 16)", None),
        ("None", "TypeError: `build` of Mine gave NoneType, and no module", None),
        (
            "nn.Linear(at.widht, 1)",
            "AttributeError: 'Site' object has no attribute 'widht'",
            "it was raised at mine.py, line 16, in `build`",
        ),
    ],
)
def test_a_components_mistake_is_told_with_its_arm_and_line(
    tmp_path: Path, body: str, message: str, help: str | None
) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace("BODY", body))
    levels = ("path: model.placement, levels: [pre, post]", "path: model.feed_forward, levels: [mlp, mine]")
    with pytest.raises(InputError) as caught:
        plan(write(tmp_path, levels, ("seeds: 6", "plugins: [./mine.py]")))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "G210"
    assert diagnostic.message == f"`placement=mine` cannot be built: {message}"
    assert help is None or diagnostic.help == help


@pytest.mark.parametrize(
    "change",
    [
        ("path: model.placement, levels: [pre, post]", "path: model.feed_forward.width, levels: [null, 8]"),
        ("path: model.placement, levels: [pre, post]", "path: training.clip, levels: [1.0, null]"),
        (
            "path: model.placement, levels: [pre, post]",
            "path: model.position, levels: [learned, {kind: rotary, base: 500}]",
        ),
        ("depth: 2", "depth: 2\n  feed_forward: {kind: mlp, width: 8}"),
    ],
)
def test_what_a_plan_writes_is_what_a_worker_reads(tmp_path: Path, change: tuple[str, str]) -> None:
    experiment = load(write(tmp_path, change))
    made = make_plan(experiment)
    for arm in made.arms:
        read = Setup.model_validate(json.loads(json.dumps(arm["config"])), context={"registry": experiment.registry})
        assert read.model_dump(mode="json") == arm["config"]


def test_trials_of_other_steps_share_a_lineage_and_trials_of_anything_else_do_not(tmp_path: Path) -> None:
    def lineages(*changes: tuple[str, str]) -> list[str]:
        return [trial["lineage"] for trial in plan(write(tmp_path, *changes)).trials]

    first = lineages()
    assert len(set(first)) == len(first)
    assert lineages(("steps: 20", "steps: 40, evaluations: 4"), ("name: small", "name: large")) == first
    for change in (
        ("lr: 1e-2", "lr: 1e-3"),
        ("context: 16", "context: 15"),
        ("budget:", "diverged: {patience: 5}\nbudget:"),
    ):
        assert not set(lineages(change)) & set(first)


def test_the_baseline_runs_once_more_where_the_noise_floor_is_asked_for(tmp_path: Path) -> None:
    for name in ("plain", "again"):
        (tmp_path / name).mkdir()
    plain = plan(write(tmp_path / "plain"))
    asked = plan(write(tmp_path / "again", ("seeds: 6", "seeds: [4, 2]\nnoise_floor: true")))
    (repeat,) = asked.data["repeats"]
    assert (repeat["arm"], repeat["seed"], repeat["repeat"]) == (asked.data["baseline"], 4, 1)
    assert repeat["id"] not in {trial["id"] for trial in asked.trials}
    assert "repeats" not in plain.data
    twos = {trial["id"] for each in (plain, asked) for trial in each.trials if trial["seed"] == 2}
    assert len(twos) == len(plain.arms)
    refused = ("steps: 20", "steps: 20, max_trials: 18")
    with pytest.raises(RefusedError, match=r"19 trials, and `budget\.max_trials` is 18"):
        load(write(tmp_path, ("seeds: 6", "seeds: 6\nnoise_floor: true"), refused))
