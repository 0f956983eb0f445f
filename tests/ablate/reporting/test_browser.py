"""What a reader meets in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.study_maker import HOSTILE

Open = Callable[..., Page]
Report = Callable[..., Path]

CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((v) => linear(v / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  const texts = "h1, h2, h3, p, li, td, th, dt, dd, pre, a, button, summary, label, svg text";
  for (const node of document.querySelectorAll(texts)) {
    if (!node.textContent.trim() || !node.getClientRects().length || node.closest(".mark")) continue;
    const style = getComputedStyle(node);
    const ink = parse(node.closest("svg") ? style.fill : style.color);
    const glyph = node.closest("svg") && /^[●■▲◆▼✚✖◀✕ 0-9]+$/u.test(node.textContent.trim());
    const [a, b] = [luminance(ink), luminance(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const what = `${node.tagName} ${node.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`;
    if (ratio < (glyph ? 2.95 : 4.5)) found.push(what);
  }
  return found;
}"""
"""Texts that are too faint for their ground; marks in an arm's colour need 3:1, all other texts 4.5:1."""


def columns(page: Page, table: str) -> dict[str, int]:
    """The index of each column by its head."""
    heads = page.locator(f"#{table} thead th").all_inner_texts()
    return {head.split("\n")[0]: index for index, head in enumerate(heads)}


def cells(page: Page, table: str, column: int, body: str = "tbody:not(.pinned)") -> list[str]:
    """The shown texts of one column."""
    rows = page.locator(f"#{table} {body} tr:not([hidden])")
    return [rows.nth(index).locator("th, td").nth(column).inner_text() for index in range(rows.count())]


def test_the_answer_is_on_the_first_screen(open_page: Open, quickstart: Path, full: Path) -> None:
    page = open_page(quickstart)
    box = page.locator("#verdict").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800
    page = open_page(full)
    for part in (page.locator("#verdict .sentences > li").last, page.locator("#verdict svg")):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["quickstart", "full", "path", "interim"])
def test_every_text_can_be_read(open_page: Open, which: str, scheme: str, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(which), color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) > 600) == (scheme == "light")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate(CONTRAST) == []


def test_print_is_light(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()


def test_sorts_by_click(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart)
    effect = columns(page, "effects-arms")["Δ"]
    head = page.locator("#effects-arms thead th").nth(effect)
    assert head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = [float(text) for text in cells(page, "effects-arms", effect)]
    assert values == sorted(values)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in cells(page, "effects-arms", effect)] == sorted(values, reverse=True)
    assert cells(page, "effects-arms", 0, "tbody.pinned") == ["●\nbaseline"]
    assert page.locator("#effects-arms tbody tr").first.inner_text().startswith("●")


def test_sorts_by_keyboard(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart)
    verdict = columns(page, "effects-arms")["verdict"]
    button = page.locator("#effects-arms thead th").nth(verdict).locator("button")
    button.focus()
    page.keyboard.press("Enter")
    words = cells(page, "effects-arms", verdict)
    assert words == sorted(words)
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#effects-arms thead th[aria-sort=ascending]").count() == 1
    assert page.locator("#effects-arms thead th").nth(verdict).get_attribute("aria-sort") == "none"


def test_what_is_missing_sorts_last_both_ways(open_page: Open, interim: Path) -> None:
    page = open_page(interim)
    loss = columns(page, "trials-table")["val/loss"]
    button = page.locator("#trials-table thead th").nth(loss).locator("button")
    for _ in range(2):
        button.click()
        texts = cells(page, "trials-table", loss)
        assert "–" not in texts[: len(texts) - 5]
        assert texts[-5:] == ["–"] * 5


def test_filters_the_trials(open_page: Open, interim: Path) -> None:
    page = open_page(interim)
    end = columns(page, "trials-table")["end"]
    page.get_by_label("Filter").fill("post DIVERGED")
    assert cells(page, "trials-table", end) == ["diverged", "diverged"]
    assert page.locator("#trials output").inner_text() == "2 of 36 trials"
    page.get_by_label("Filter").fill("")
    assert len(cells(page, "trials-table", end)) == 36


def test_narrows_the_trials_to_what_differs(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart)
    page.get_by_label("only columns that differ").check()
    heads = page.locator("#trials-table thead th:not([hidden])").all_inner_texts()
    assert "seed" in heads
    assert not any(head.startswith("loss at the start") for head in heads)
    assert page.locator("#trials-table tbody tr").first.locator("td:visible, th:visible").count() == len(heads)


def test_copies_tables_as_text(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as LaTeX").first.click()
    page.get_by_text("LaTeX copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("\\begin{tabular}")
    assert copied in quickstart.with_name("effects.tex").read_text(encoding="utf-8")


def test_copying_without_a_clipboard_selects(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('denied')); }")
    page.get_by_role("button", name="Copy as Markdown").first.click()
    page.get_by_text("Markdown selected").wait_for()
    assert page.evaluate("getSelection().toString()").startswith("| arm |")


@pytest.mark.parametrize("which", ["quickstart", "full"])
def test_reads_without_javascript(open_page: Open, which: str, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(which), java_script_enabled=False)
    assert page.locator("button:visible, input:visible").count() == 0
    text = page.locator("main").inner_text()
    assert "is worse than" in text
    assert "Every planned trial completed." in text
    assert page.locator("#trials-table tbody tr").first.is_visible()
    page.get_by_text("The same table as text").first.click()
    assert page.get_by_text("\\toprule").first.is_visible()


def test_hostile_texts_are_texts(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile)
    shown = HOSTILE.replace("\u202e", "\ufffd")
    assert page.locator("h1").inner_text() == shown
    assert page.locator("p.question").inner_text() == shown
    assert page.title() == f"{shown} · Ablate"
    assert page.locator("script").count() == 1
    assert page.locator("b").count() == 0
    names = cells(page, "effects-arms", 0)
    for level in (shown, "y" * 300, "a/b", "null", "$x_1$ \\textbf"):
        assert any(name.endswith(f"x<b>'\"={level}") for name in names), level
    assert "{{ 7*7 }}" in page.locator("#verdict").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_nothing_may_be_fetched_even_by_what_got_in(browser: Any, quickstart: Path) -> None:
    page = browser.new_page()
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text))
    page.goto(quickstart.as_uri())
    page.evaluate(
        """() => {
          const image = document.createElement('img');
          image.src = 'https://example.com/pixel.png';
          const script = document.createElement('script');
          script.textContent = 'window.got_in = true';
          document.body.append(image, script);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.got_in") is None
    assert len([text for text in blocked if "Content Security Policy" in text]) == 2
    page.close()


@pytest.mark.parametrize("which", ["quickstart", "full", "path", "hostile", "interim"])
def test_the_page_is_well_formed(open_page: Open, which: str, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(which))
    ids = page.evaluate("Array.from(document.querySelectorAll('[id]'), (node) => node.id)")
    assert len(ids) == len(set(ids))
    links = page.evaluate("Array.from(document.querySelectorAll('a[href]'), (node) => node.getAttribute('href'))")
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    used = page.evaluate(
        "Array.from(document.querySelectorAll('svg [href], svg [clip-path]'), (node) => "
        "(node.getAttribute('href') ?? node.getAttribute('clip-path')).replace(/^url\\(|\\)$/g, ''))"
    )
    assert {reference[1:] for reference in used if reference.startswith("#")} <= set(ids)
    levels = page.evaluate("Array.from(document.querySelectorAll('h1, h2, h3, h4'), (node) => +node.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.evaluate("Array.from(document.querySelectorAll('svg')).every((one) => one.getAttribute('aria-label'))")
    assert page.evaluate(
        "Array.from(document.querySelectorAll('section'))"
        ".every((one) => document.getElementById(one.getAttribute('aria-labelledby')))"
    )


def test_a_heading_is_not_hidden_by_what_stays_on_top(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart)
    nav = page.locator("nav.contents")
    for anchor in ("stability", "curves"):
        nav.locator(f"a[href='#{anchor}']").click()
        bar, head = nav.bounding_box(), page.locator(f"#{anchor} h2").bounding_box()
        assert bar is not None
        assert head is not None
        assert bar["y"] == 0
        assert bar["height"] < head["y"] < 200


def test_a_narrow_page_hides_nothing(open_page: Open, quickstart: Path) -> None:
    page = open_page(quickstart)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for link in page.locator("nav.contents a").all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 400
    for drawing in page.locator(".drawing").all():
        reach = "(one) => [one.scrollWidth, one.clientWidth, one.querySelector('svg').getBoundingClientRect().width]"
        inside, width, drawn = drawing.evaluate(reach)
        assert inside >= drawn - 1
        assert inside <= width or drawing.evaluate("(one) => getComputedStyle(one).overflowX") == "auto"


def test_a_wide_table_shows_that_there_is_more(open_page: Open, quickstart: Path) -> None:
    table = open_page(quickstart).locator("#trials .scroll")
    assert table.evaluate("(one) => one.scrollWidth > one.clientWidth")
    assert table.evaluate("(one) => getComputedStyle(one).backgroundImage").count("linear-gradient") == 4


def test_an_unfinished_study_says_so_at_once(open_page: Open, interim: Path, quickstart: Path) -> None:
    banner = open_page(interim).locator(".interim")
    box = banner.bounding_box()
    assert box is not None
    assert box["y"] == 0
    assert box["width"] == 1280
    assert "INTERIM" in banner.inner_text()
    assert "2 of 36 trials have not ended" in banner.inner_text()
    assert open_page(quickstart).locator(".interim").count() == 0


@pytest.fixture(scope="module")
def large(report: Report) -> Path:
    """The report of a study of 5,000 trials, most of which wait."""
    arms = ["baseline", *(f"a={level}" for level in range(1, 250))]
    waiting = {(arm, seed) for arm in arms for seed in range(20) if seed > 1 or arm not in ("baseline", "a=1")}
    return report(seeds=20, steps=4, factors={"a": list(range(250))}, waiting=waiting)


def test_a_large_table_is_sorted_filtered_and_paged_as_a_whole(open_page: Open, large: Path) -> None:
    page = open_page(large)
    table, note = page.locator("#trials-table"), page.locator("#trials-table-window p")
    assert table.get_attribute("aria-rowcount") == "5001"
    assert note.inner_text() == "Rows 1 to 200 of 5000; trials.csv, beside this page, has all of them."
    seed = columns(page, "trials-table")["seed"]
    head = table.locator("thead th").nth(seed)
    for _ in range(2):
        head.locator("button").focus()
        page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert set(cells(page, "trials-table", seed)) == {"19"}
    page.get_by_label("Filter").fill("a=249 waiting")
    assert page.locator("#trials output").inner_text() == "20 of 5000 trials"
    assert note.inner_text().startswith("Rows 1 to 20 of 20 that match, of 5000 in all;")
    assert cells(page, "trials-table", seed) == [str(number) for number in range(19, -1, -1)]
    page.get_by_label("Filter").fill("nothing of the kind")
    assert note.inner_text().startswith("None of 5000 rows matches")
    page.get_by_label("Filter").fill("")
    following, before = (page.get_by_role("button", name=f"{which} 200 rows").last for which in ("Next", "Previous"))
    assert before.get_attribute("aria-disabled") == "true"
    following.click()
    assert note.inner_text().startswith("Rows 201 to 400 of 5000")
    assert table.locator("tbody tr").first.get_attribute("aria-rowindex") == "202"
    assert table.locator("tbody tr").count() == 200


def test_links_lead_to_arms_and_trials_wherever_they_are(open_page: Open, large: Path, quickstart: Path) -> None:
    page = open_page(large)
    page.get_by_label("Filter").fill("a=1")
    plan = json.loads(large.with_name("plan.json").read_text(encoding="utf-8"))
    trial, arm = plan["trials"][4321], plan["arms"][240]
    page.evaluate("(id) => { location.hash = id; }", f"trial-{trial['id']}")
    row = page.locator(f"#trial-{trial['id']}")
    row.wait_for()
    assert row.evaluate("(one) => one === document.activeElement")
    assert page.get_by_label("Filter").input_value() == ""
    page.evaluate("(id) => { location.hash = id; }", f"arm-{arm['id']}")
    page.locator(f"#arm-{arm['id']}").wait_for(state="visible")
    page = open_page(quickstart)
    page.locator("#effects-arms tbody a", has_text="placement=post").click()
    assert page.locator("tr.found").inner_text().startswith("placement=post")
    assert page.locator("tr.found").is_visible()


def test_a_large_table_reads_without_javascript(open_page: Open, large: Path) -> None:
    page = open_page(large, java_script_enabled=False)
    assert page.locator("#trials-table tbody tr").count() == 200
    said = page.locator("#trials-table-window").inner_text()
    assert said.startswith(
        "These are the first 200 of 5000 rows; the page shows the others with JavaScript; trials.csv"
    )
    assert page.locator("button:visible, input:visible").count() == 0


@pytest.mark.parametrize("name", ["quickstart", "full", "interim"])
def test_axe_finds_no_barrier(open_page: Open, request: pytest.FixtureRequest, name: str) -> None:
    page = open_page(request.getfixturevalue(name), color_scheme="light")
    light = Axe().run(page).response
    assert len(light["passes"]) > 20
    page.emulate_media(color_scheme="dark")
    dark = Axe().run(page, options={"runOnly": ["color-contrast"]}).response
    for found in (light, dark):
        assert [(each["id"], node["html"]) for each in found["violations"] for node in each["nodes"]] == []
        # What axe leaves to a reader: texts over a heat map, and heads of a grid whose cells are coloured.
        assert {each["id"] for each in found["incomplete"]} <= {"color-contrast", "th-has-data-cells"}
