"""Which arms are judged by their gradients, and which are not."""

from __future__ import annotations

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
