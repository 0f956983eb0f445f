"""Every figure of a study: nothing overlaps, nothing is cut off."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ablate.analysis.results import Results
from ablate.reporting import stability, wholes
from ablate.reporting.answers import forest_rows
from ablate.reporting.figures import curves, factorial, forest, gradients, inside, seeds, waterfall
from ablate.reporting.study import Study
from ablate.reporting.svg import STYLE, drawn
from tests.study_maker import make_study

STUDIES: dict[str, dict[str, Any]] = {
    "quickstart": {"steps": 200, "spiking": {("scale=off", 1)}},
    "factorial": {"design": "full", "seeds": 3, "steps": 120},
    "interim": {
        "seeds": 3,
        "steps": 120,
        "diverged": {("placement=post", 1), ("ratio=1", 0)},
        "failed": {("scale=off", 2)},
        "waiting": {("ratio=2", 0), ("ratio=2", 1), ("ratio=2", 2)},
    },
    "one_seed": {"seeds": 1},
    "nothing_finished": {"seeds": 2, "outcomes": lambda *_: float("nan")},
    "long_names": {"seeds": 2, "factors": {"f" * 40: ["a", "b" * 300, "$x_1$ 世界"]}},
    "path": {"design": "leave_one_out", "seeds": 3},
    "path_in_pieces": {"design": "add_one", "seeds": 2, "diverged": {("scale=off", 0)}, "holes": {"ratio=1": "no"}},
    "corners": {"design": "full", "seeds": 2, "factors": {"norm": ["layer", "rms", None], "depth": [1, 2, 3]}},
    "numbers": {"design": "full", "seeds": 2, "factors": {"depth": [4, 1, 2, 8], "norm": ["l" * 22, "r" * 22]}},
    "long_full": {"design": "full", "seeds": 2, "factors": {"f" * 40: ["a", "b" * 300], "g": ["x", "y y " * 40]}},
}


def figures(study: Study) -> Iterator[tuple[str, Figure]]:
    arms, _ = study.chosen()
    measured = study.measured(study.curves)
    yield "forest", forest.forest(study, forest_rows(study))
    yield "maps", gradients.heat_maps(study, measured)
    yield "profiles", gradients.profiles(study, measured)
    yield "updates", gradients.updates(study, measured)
    yield "insides", inside.insides(study, measured)
    yield "curves", curves.objective(study, study.measured(study.curve(study.metric)))
    spiked = stability.spikes(study)
    if len(spiked):
        yield "spikes", inside.spikes(study, study.measured(spiked), spiked)
    if len(path := study.results.ablation()):
        yield "path", waterfall.waterfall(study, [wholes.path_fall(study, path)], wholes.path_label(study))
    if falls := wholes.share_falls(study, study.results.shapley()):
        yield "shares", waterfall.waterfall(study, falls, f"Δ {study.metric_and_unit}")
    if study.factorial:
        yield "main", factorial.main_effects(study)
        yield "interactions", factorial.interactions(study, study.results.interactions())
    else:
        yield "seeds", seeds.seed_lines(study, [arm for arm in arms if not arm.baseline])


def boxes(figure: Figure) -> list[tuple[str, Any]]:
    """Every text that is drawn, with the box that it fills; matplotlib's own font is wider than the page's."""
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    drawn_texts: list[Text] = []
    draw = Text.draw

    def remember(text: Text, *args: Any, **kwargs: Any) -> None:
        drawn_texts.append(text)
        draw(text, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", remember)
        figure.draw(renderer)
    shown = [text for text in drawn_texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown]


@drawn
def _troubles(study: Study) -> Figure:
    troubles = []
    for name, figure in figures(study):
        width, height = figure.get_size_inches() * 72
        texts = boxes(figure)
        for text, box in texts:
            if box.x0 < -2 or box.y0 < -2 or box.x1 > width + 2 or box.y1 > height + 2:
                troubles.append(f"{name}: {text!r} is cut off")
        for (one, a), (other, b) in itertools.combinations(texts, 2):
            across, up = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            if across > 1.5 and up > 3:
                troubles.append(f"{name}: {one!r} and {other!r} overlap")
    assert troubles == []
    return Figure()


@pytest.mark.parametrize("which", STUDIES)
def test_texts_neither_overlap_nor_are_cut_off(tmp_path: Path, which: str) -> None:
    _troubles(Study(Results(make_study(tmp_path / "study", **STUDIES[which]))))


def test_figures_are_drawn_at_the_pages_scale() -> None:
    assert STYLE["figure.dpi"] == 72
    assert min(STYLE["xtick.labelsize"], STYLE["ytick.labelsize"], STYLE["font.size"]) >= 11
