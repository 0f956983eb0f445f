"""Reports that several tests look at, each made once, and a browser to look with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright

from ablate.analysis.results import Results
from ablate.reporting import write
from ablate.reporting.sections import sections_of
from ablate.slots import Section
from tests.study_maker import HOSTILE, make_study

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

Report = Callable[..., Path]


@pytest.fixture(scope="session")
def sections() -> list[Section]:
    """Every section that ships."""
    return sections_of({"plugins": []})[0]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory, sections: list[Section]) -> Report:
    """Makes a study as :func:`make_study` does and writes its report; gives the report's path."""

    def make(**study: Any) -> Path:
        folder = tmp_path_factory.mktemp("study") / "runs"
        return write(Results(make_study(folder, **study)), sections)

    return make


@pytest.fixture(scope="session")
def quickstart(report: Report) -> Path:
    """The report of one factor at a time, complete."""
    return report(steps=200, spiking={("placement=post", 2)})


@pytest.fixture(scope="session")
def full(report: Report) -> Path:
    """The report of a factorial design, complete."""
    return report(name="factorial", design="full", seeds=4)


@pytest.fixture(scope="session")
def path(report: Report) -> Path:
    """The report of an ablation path, of few steps."""
    return report(name="path", design="leave_one_out", seeds=3, steps=40)


@pytest.fixture(scope="session")
def interim(report: Report) -> Path:
    """The report of a study that is not over, with trials that diverged and one that failed."""
    return report(
        waiting={("ratio=1", 5), ("ratio=2", 4)},
        failed={("scale=off", 3): "RuntimeError: out of memory at /home/somebody/thesis/model.py"},
        diverged={("placement=post", 1): "loss_above_initial", ("placement=post", 3): "nonfinite"},
    )


@pytest.fixture(scope="session")
def hostile(report: Report) -> Path:
    """The report of a study whose every text is hostile."""
    levels = ["ok", HOSTILE, "y" * 300, "a/b", None, "$x_1$ \\textbf", "=1+1", "/home/somebody/private/data.txt"]
    return report(
        name=HOSTILE,
        question=HOSTILE,
        seeds=2,
        factors={"x<b>'\"": levels},
        failed={("x<b>'\"=a/b", 1): f"{HOSTILE} in /home/somebody/private/model.py"},
        experiment=f"name: {HOSTILE}\npath: /home/somebody/private/data.txt\n",
        excluded=[{"levels": {"x<b>'\"": HOSTILE}, "why": HOSTILE}],
    )


@pytest.fixture(scope="session")
def bracketed(report: Report) -> Path:
    """The report of a study whose names begin as options of LaTeX do, make a link, or are hardly any."""
    arms = {"[x](javascript:alert(1))": {"[z]": 2}, "*y": {"[z]": 3}, "d": {"[z]": 4}, "": {"other": "a\nb"}}
    factors = {"[z]": [1, 2, 3, 4], "other": ["a", "a\nb"]}
    return report(design="list", listed=arms, factors=factors, seeds=4, steps=20, diverged={("d", 1)})


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the path, and these tests look at the page in a real browser")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a report as a reader would; at the end nothing may have been requested, logged or thrown."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def refuse(dialog: Dialog) -> None:
        troubles.append(dialog.message)
        dialog.dismiss()

    def open_it(path: Path, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: troubles.append(request.url) if request.url != path.as_uri() else None)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", refuse)
        page.goto(path.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert [trouble for trouble in troubles if not trouble.startswith("data:")] == []
