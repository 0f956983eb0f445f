"""Predictions on the page, and the command that makes the study again."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from ablate.analysis.results import Results
from ablate.reporting.provenance import command, rest_of_plan
from ablate.reporting.study import Study
from tests.study_maker import HOSTILE, make_study

Report = Callable[..., Path]
Open = Callable[..., Page]


def predict(arm: str, effect: str, source: str = "") -> dict[str, Any]:
    return {"name": arm, "arm": arm, "factor": None, "level": None, "effect": effect, "source": source}


EXPECT = [
    predict("placement=post", "worse", "Xiong et al. 2020, Fig. 2"), predict("scale=off", "no_difference"),
    predict("ratio=2", "no_difference", HOSTILE),
    predict("residual=none", "diverged", "/home/somebody/thesis/notes.txt"),
]  # fmt: skip


@pytest.fixture(scope="module")
def predicted(report: Report) -> Path:
    """The report of a study with predictions."""
    return report(steps=20, expect=EXPECT)


def test_predictions_stand_under_the_sentences(predicted: Path, open_page: Open) -> None:
    page = open_page(predicted)
    rows = page.locator("#verdict .predictions li")
    assert [rows.nth(index).locator("span").all_inner_texts() for index in (0, 1)] == [
        ["confirmed", "placement=post worse (Xiong et al. 2020, Fig. 2)"], ["contradicted", "scale=off no difference"]
    ]  # fmt: skip
    assert [text.split("\n")[0] for text in rows.all_inner_texts()] == [
        "confirmed", "contradicted", "open", "contradicted"
    ]  # fmt: skip
    assert page.locator("#verdict .predictions h3").inner_text() == "Predicted before the run"
    assert rows.nth(3).locator("span").nth(1).inner_text() == "residual=none diverged (…/notes.txt)"


def test_predictions_are_escaped(predicted: Path) -> None:
    text = predicted.read_text(encoding="utf-8")
    assert "<script>alert(" not in text
    shown = (
        html.escape(HOSTILE.replace("\u202e", "\ufffd"), quote=True)
        .replace("&quot;", "&#34;")
        .replace("&#x27;", "&#39;")
    )
    assert f"<span>ratio=2 no difference ({shown})</span>" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_predictions_can_be_read_on_a_narrow_page(predicted: Path, open_page: Open, scheme: str) -> None:
    page = open_page(predicted, color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_of_many_predictions_the_rest_waits_behind_a_line(report: Report, open_page: Open) -> None:
    factors = {"width": list(range(16))}
    expect = [predict(f"width={width}", "no_difference") for width in range(1, 14)]
    page = open_page(report(seeds=2, steps=20, factors=factors, expect=expect))
    part = page.locator("#verdict .predictions")
    assert part.locator("li").count() == 13
    assert part.locator("> ul > li").count() == 6
    assert part.locator("summary").inner_text() == "The other 7 predictions"


def test_nothing_is_said_without_predictions(report: Report) -> None:
    assert 'class="predictions"' not in report(seeds=2, steps=20).read_text(encoding="utf-8")


def test_a_badge_says_what_is_matched_all_the_same(report: Report) -> None:
    text = report(
        seeds=2, steps=20, factors={"placement": ["pre", "post"]}, own={"placement=post": {"steps": 15}},
        match={"params": {"to": "baseline", "adjust": "model.width", "within": 0.01}, "train_flops": None},
    ).read_text(encoding="utf-8")  # fmt: skip
    assert 'title="matched in parameters alone">-25% training FLOPs, -25% training tokens</span>' in text
    assert 'title="not matched to the baseline"' not in text


@pytest.mark.parametrize(("typed", "shown"), [
    ("ablate run first/experiment.yaml --set=seeds=2", "ablate run experiment.yaml --set=seeds=2"),
    ("ablate run quickstart.yaml", "ablate run quickstart.yaml"),
    ("ablate run '../my thesis/no 1.yaml' '--set=name=it is'", "ablate run 'no 1.yaml' '--set=name=it is'"),
    ("ablate run /home/somebody/x.yaml --set=task.path=/home/somebody/private/data.txt",
     "ablate run x.yaml '--set=task.path=…/data.txt'"),
    ("ablate run 'unfinished", "ablate run 'unfinished"),
    ("make study", "make study"),
])  # fmt: skip
def test_the_command_is_the_one_for_the_folder_of_the_experiment(tmp_path: Path, typed: str, shown: str) -> None:
    study = Study(Results(make_study(tmp_path / "study", seeds=1, steps=20, command=typed)))
    assert command(study) == shown


def test_the_page_shows_that_command_alone(report: Report) -> None:
    page = report(seeds=2, steps=20, command="ablate run first/experiment.yaml --set=seeds=2")
    text = page.read_text(encoding="utf-8")
    assert '<p>The command, in the folder of the experiment:</p>\n<pre tabindex="0">ablate run experiment.yaml ' in text
    assert "first/" not in text
    assert '"command": "ablate run experiment.yaml --set=seeds=2"' in rest_of_plan(Study(Results(page.parent)))


def test_a_prediction_of_a_level_is_judged_by_its_main_effect(report: Report) -> None:
    level = {"name": "scale=off", "arm": None, "factor": "scale", "level": "off", "effect": "worse", "source": ""}
    text = report(design="full", seeds=4, steps=20, expect=[level]).read_text(encoding="utf-8")
    rows = re.findall(r'<span class="badge (v-\w+)">(\w+)</span><span>(.*?)</span>', text)
    assert rows == [("v-better", "confirmed", "scale=off worse")]
