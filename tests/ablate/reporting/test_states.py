"""Every state that a study can be in, as a reader meets it in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.ablate.reporting.conftest import Report

Open = Callable[..., Page]

TWO: dict[str, Any] = {"steps": 20, "seeds": 3, "factors": {"placement": ["pre", "post"]}}
MADE: dict[str, dict[str, Any]] = {
    "all diverged": TWO | {"outcomes": lambda *_: float("nan")},
    "baseline diverged": TWO | {"diverged": {("baseline", 0), ("baseline", 1)}},
    "one seed": TWO | {"seeds": 1},
    "24 arms": {"steps": 10, "seeds": 2, "factors": {"a": list(range(24))}},
}
STATES = ("quickstart", "interim", "hostile", *MADE)
"""The first three are fixtures: complete; not over, with all that can go wrong; and with hostile and long texts."""
FOCUSABLE = """Array.from(document.querySelectorAll(
  "a[href], button, input, summary, [tabindex='0']"
)).filter((one) => one.getClientRects().length && !one.closest("details:not([open]) > :not(summary)"))"""
FOCUS = f"""() => {{
  const at = document.activeElement;
  if (at === document.body || !at) return null;
  const style = getComputedStyle(at);
  const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [{FOCUSABLE}.indexOf(at), drawn, at.outerHTML.slice(0, 80)];
}}"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LEFT_OUT = """() => Array.from(document.querySelectorAll("main details:not(.export) > :not(summary)"))
  .filter((one) => !one.checkVisibility() || one.getBoundingClientRect().height === 0)
  .map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def made(report: Report) -> dict[str, Path]:
    """The reports of the states that no other test looks at."""
    return {state: report(**study) for state, study in MADE.items()}


@pytest.fixture
def path(state: str, request: pytest.FixtureRequest) -> Path:
    """The report of a state."""
    found: Path = request.getfixturevalue("made")[state] if state in MADE else request.getfixturevalue(state)
    return found


@pytest.mark.parametrize("state", STATES)
def test_the_answer_comes_first_and_nothing_scrolls_sideways(open_page: Open, path: Path, state: str) -> None:
    page = open_page(path)
    sentence = page.locator("#verdict .sentences > li:visible").last.bounding_box()
    baseline = page.locator("#verdict svg text", has_text="baseline").bounding_box()
    for box in (sentence, baseline):
        assert box is not None
        assert box["y"] + box["height"] <= 800 or state == "hostile"  # its names alone fill a screen
    for width, media in ((1280, "screen"), (400, "screen"), (1032, "print")):  # A4 across, within its margins
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(media=media)  # type: ignore[arg-type]
        assert page.evaluate(OVERFLOW) <= 0, (width, media)


@pytest.mark.parametrize("state", STATES)
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(open_page: Open, path: Path) -> None:
    page = open_page(path)
    wanted = page.evaluate(f"{FOCUSABLE}.length")
    reached: set[int] = set()
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUS)
        if at is None:
            break
        index, drawn, what = at
        assert drawn, what
        reached.add(index)
    assert reached >= set(range(wanted))


@pytest.mark.parametrize("state", STATES)
def test_the_page_reads_and_prints_whole_without_javascript(open_page: Open, path: Path) -> None:
    page = open_page(path, java_script_enabled=False)
    assert page.locator("button:visible, input:visible").count() == 0
    assert page.locator("main > section").count() >= 9
    for section in page.locator("main > section").all():
        assert len(section.inner_text().splitlines()) > 1
    assert page.locator("#verdict .sentences > li").first.is_visible()
    assert page.evaluate(LEFT_OUT)
    page.emulate_media(media="print")
    assert page.evaluate(LEFT_OUT) == []


@pytest.mark.parametrize("state", ["all diverged"])
def test_a_study_whose_every_run_diverged_draws_no_empty_panels(open_page: Open, path: Path) -> None:
    page = open_page(path)
    assert page.locator("#seeds svg").count() == 0
    assert "No seed has completed both an arm and the baseline." in page.locator("#seeds").inner_text()
