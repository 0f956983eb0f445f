"""Which arms are judged by their gradients, and which are not."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.reporting import flow
from ablate.reporting.figures import inside
from ablate.reporting.page import Page
from ablate.reporting.study import Study
from ablate.slots import Section
from ablate_plugins.section.training import GradientFlow, Stability
from tests import study_maker
from tests.study_maker import make_study

PAIR = {"placement": ["pre", "post"], "scale": ["on", "off"]}


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with an arm whose feed-forward network has no w2 and no readings of its activation."""
    written = study_maker._probes

    def probes(rng: Any, arm: Mapping[str, Any], steps: int, done: int) -> Iterator[tuple[object, ...]]:
        for row in written(rng, arm, steps, done):
            if arm["name"] == "ffn=swiglu2" and (row[3] == "w2" or row[1] in ("zero_fraction", "dead_units")):
                continue
            yield (*row[:5], 0.002) if row[1] == "dead_units" else row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_maker, "_probes", probes)
        return make_study(tmp_path_factory.mktemp("gated") / "study", factors={"ffn": ["mlp", "swiglu2"]}, seeds=2)


def test_an_arm_without_w2_is_named_and_not_called_sound(gated: Path) -> None:
    assert flow.unjudged(Study(Results(gated))) == ["ffn=swiglu2 has no parameter of role w2"]
    page = GradientFlow().render(Page(Results(gated)))
    assert "Not judged: ffn=swiglu2 has no parameter of role w2." in page
    assert "No judged arm&#39;s gradient" in page or "No judged arm's gradient" in page
    assert 'class="flag fine"' not in page


def test_names_with_commas_stay_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = Study(Results(make_study(tmp_path / "study", design="full", factors=PAIR, seeds=1, steps=20)))
    monkeypatch.setattr(flow, "ratios", lambda study: [flow.Ratio(study.arms[0], 1.0, 1.0)])
    (reason,) = flow.unjudged(made)
    assert reason == (
        "scale=off; placement=post; and placement=post, scale=off have only one block with a parameter of role w2"
    )


@pytest.mark.parametrize(
    ("steps", "said"),
    [(40, "Runs are too short to judge: the rule looks from step 63."), (80, "No run's training loss spiked.")],
)
def test_runs_that_the_rule_cannot_judge_are_not_called_calm(tmp_path: Path, steps: int, said: str) -> None:
    page = Page(Results(make_study(tmp_path / "study", factors={"ratio": [4, 1]}, seeds=2, steps=steps)))
    text = html.unescape(Stability().render(page))
    assert f"<p>{said}</p>" in text
    assert ("too short to judge" in text) == (steps < 63)
    spiked = [page.study.tables["stability-arms"].records[0][key] for key in ("spiked", "spike_score")]
    assert spiked == (["", ""] if steps < 63 else ["0", "0"])


def test_of_some_runs_it_is_said_that_they_are_too_short(tmp_path: Path) -> None:
    lost = {("ratio=1", 0): "nonfinite"}
    made = make_study(tmp_path / "study", factors={"ratio": [4, 1]}, seeds=2, steps=80, diverged=lost)
    assert "Of 4 runs, 1 is too short to judge: the rule looks from step 63." in Stability().render(Page(Results(made)))


def test_where_all_are_judged_nothing_is_said(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors={"ratio": [4, 1]}, seeds=2, steps=40)
    page = GradientFlow().render(Page(Results(study)))
    assert "Not judged" not in page
    assert 'class="flag fine"' in page


def test_the_caption_names_what_was_not_measured_and_what_is_left_out(gated: Path) -> None:
    caption = inside.caption(Study(Results(gated)))
    assert "Left out, since no arm has a value of 0.01 or more: dead units." in caption
    assert "Not measured in ffn=swiglu2: zeros after the activation, dead units." in caption
    page = Stability().render(Page(Results(gated)))
    assert ">Dead units<" not in page
    assert ">Zeros after the activation<" in page


def test_every_section_takes_such_a_study(gated: Path, sections: list[Section]) -> None:
    page = Page(Results(gated))
    for section in sections:
        section.render(page)
