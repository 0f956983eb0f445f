"""Disks on which locks or links do not hold are refused before anything relies on them."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ablate.errors import AblateError, RefusedError
from ablate.records.layout import StudyFolder
from tests.ablate.sweep.stub_study import Run, make_plan


def fails(number: int) -> Callable[..., Any]:
    def call(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


def nothing(*arguments: object) -> None:
    """Claims to have done it."""


def run(study: StudyFolder) -> str:
    with pytest.raises(RefusedError) as refused:
        Run(study, make_plan([{}]))
    assert refused.value.exit_code == 3
    assert list(study.path.iterdir()) == []
    return str(refused.value)


@pytest.mark.parametrize("call", [nothing, fails(errno.ENOLCK), fails(errno.ENOSYS), fails(errno.EOPNOTSUPP)])
def test_locks_that_do_not_hold(study: StudyFolder, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]) -> None:
    monkeypatch.setattr(fcntl, "flock", call)
    assert run(study) == (
        f"the file system of {study.path} has no locks that hold, so that two runs could work on it at once\n"
        "  = help: put the studies on another disk: `--runs DIR`"
    )


def replacing(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


@pytest.mark.parametrize("call", [replacing, fails(errno.EPERM), fails(errno.EOPNOTSUPP)])
def test_links_that_do_not_hold(study: StudyFolder, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]) -> None:
    monkeypatch.setattr(os, "link", call)
    assert run(study) == (
        f"the file system of {study.path} has no hard links that hold, so that a result could not be sealed once and "
        "for all\n  = help: put the studies on another disk: `--runs DIR`"
    )


def test_a_disk_that_is_full_is_told_as_one(study: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", fails(errno.ENOSPC))
    with pytest.raises(AblateError, match="the disk is full"):
        Run(study, make_plan([{}]))
