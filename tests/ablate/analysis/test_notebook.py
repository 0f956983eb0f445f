"""How results show in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ablate.analysis.notebook import COLOURS, MOST_SHOWN
from ablate.analysis.results import Results
from ablate.analysis.verdict import WORDS
from ablate.reporting.palette import BASELINE
from ablate.reporting.palette import COLOURS as PALETTE
from tests.study_maker import HOSTILE, make_study


def shown(folder: Path, **study: object) -> str:
    return Results(make_study(folder / "study", **({"steps": 20} | study)))._repr_html_()  # type: ignore[arg-type]


def test_every_verdict_has_a_colour_of_the_reports() -> None:
    assert set(COLOURS) == set(WORDS)
    assert set(COLOURS.values()) <= {*PALETTE, BASELINE}


def test_the_words_are_framed_and_the_sentences_are_the_verdicts(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", steps=20, factors={"scale": ["on", "off"], "ratio": [4, 2]})
    html = Results(study)._repr_html_()
    framed = re.findall(r"border:1px solid (#\w+)[^>]*>([^<]+)</span> ([^<]+)</li>", html)
    verdicts = Results(study).verdicts()
    assert [(word, sentence) for _, word, sentence in framed] == [(v.word, v.sentence) for v in verdicts]
    assert framed[0][:2] == ("#d55e00", "worse")
    assert "<style" not in html
    assert "class=" not in html
    assert "interim" not in html


def test_what_has_not_ended_is_said(tmp_path: Path) -> None:
    assert "interim: 2 not ended" in shown(tmp_path, seeds=2, waiting=[("ratio=1", 0), ("ratio=2", 1)])


@pytest.mark.parametrize(("levels", "folded"), [(MOST_SHOWN + 1, 0), (MOST_SHOWN + 3, 2)])
def test_many_verdicts_are_folded(tmp_path: Path, levels: int, folded: int) -> None:
    html = shown(tmp_path, seeds=2, factors={"a": list(range(levels))})
    assert html.count("border:1px solid") == levels - 1
    assert (f"The other {folded} verdicts" in html) == bool(folded)


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    html = shown(tmp_path, factors={"placement": ["pre", HOSTILE]}, seeds=2, name="<b>", question=HOSTILE)
    assert not re.findall(r"<(?!/?(?:div|h3|p|ul|li|span|small|strong|details|summary)\b)", html)
    assert html.count("&lt;script&gt;") >= 2
    assert "&lt;b&gt;" in html
