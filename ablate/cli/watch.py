"""``ablate status --watch``: follow a study that another process runs."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from ablate.cli.progress import Progress
from ablate.records.finding import find_study
from ablate.records.layout import StudyFolder
from ablate.records.locks import Driver
from ablate.sweep.watching import Bulletin, bulletin_of, running

LOOK = 0.5
"""Seconds between two looks."""
ENDS = {
    "through": "the sweep is through",
    "exhausted": "the sweep has stopped: a limit of its budget is reached",
    "interrupted": "the sweep was interrupted",
    "stopped": "the sweep was broken off",
    None: "the process that ran it has ended without a word",
}


def follow(what: Path, runs: Path) -> None:
    """Show on stderr what happens until the sweep ends; Ctrl-C ends this view alone, with exit code 130."""
    study = find_study(what, runs)
    try:
        with Progress() as progress:
            driver = _known(study)
            if driver is None:
                progress.note("no process runs this study; this is how it stands")
                return
            end = _follow(study, driver, progress)
            progress.note(ENDS[end.end if end else None])
    except KeyboardInterrupt:
        typer.echo("no longer watched; the sweep goes on", err=True)
        raise typer.Exit(130) from None


def _follow(study: StudyFolder, driver: Driver, progress: Progress) -> Bulletin | None:
    """Show each bulletin of this driver until it runs the study no more; gives its last one."""
    last: Bulletin | None = None
    heard = 0
    while True:
        over = running(study) != driver  # asked first, so that the last bulletin is not missed
        bulletin = bulletin_of(study, driver)
        if bulletin and last is None:
            progress.begin(bulletin.standing, str(driver))
            heard = bulletin.news[-1].number if bulletin.news else 0
        if bulletin:
            progress.show(bulletin.standing, [each for each in bulletin.news if each.number > heard])
            heard = bulletin.news[-1].number if bulletin.news else heard
            last = bulletin
        if over:
            return last
        time.sleep(LOOK)


def _known(study: StudyFolder) -> Driver | None:
    """Who runs the study; whoever has just taken the lock has a moment to say who it is."""
    for _ in range(5):
        if driver := running(study):
            return driver
        time.sleep(0.05)
    return None
