"""The gallery: a report for each experiment that ships, with nothing private in it."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXPERIMENTS = sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))
FILES = sorted(
    path for path in (ROOT / "reports").rglob("*") if path.suffix in (".html", ".csv", ".tex", ".md", ".json")
)


def test_every_experiment_that_ships_has_its_report() -> None:
    assert EXPERIMENTS
    assert sorted(path.parent.name for path in (ROOT / "reports").glob("*/report.html")) == EXPERIMENTS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_report_is_complete_and_of_the_experiment_as_it_ships(name: str) -> None:
    text = (ROOT / "reports" / name / "report.html").read_text()
    assert "INTERIM" not in text
    settings = re.sub(r"(?m)^#.*\n", "", (ROOT / "experiments" / f"{name}.yaml").read_text())
    shown = text.replace("&#39;", "'").replace("&#34;", '"').replace("&gt;", ">").replace("&amp;", "&")
    for line in filter(None, settings.splitlines()):
        assert line.strip() in shown, line


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_private_is_in_a_report(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(r"(?<![\w.:/<])/(?:home|root|tmp|work|Users|usr|var|mnt)/[\w./-]*", text)
    assert "file://" not in text
    for name in (socket.gethostname(), getpass.getuser()):
        if len(name) > 4:  # a short one is a word like any other
            assert name not in text
