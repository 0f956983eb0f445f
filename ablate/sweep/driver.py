"""The driver: hands the trials of a plan to an executor until each has its end, whatever dies meanwhile."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ablate.records.layout import StudyFolder
from ablate.slots import TRAINER, Executor, Job, Pool
from ablate.sweep.agenda import Agenda
from ablate.sweep.backlog import Backlog
from ablate.sweep.bookkeeping.books import Books
from ablate.sweep.bookkeeping.embedded import Embedded
from ablate.sweep.bookkeeping.shared import Shared
from ablate.sweep.bookkeeping.storage import Storage
from ablate.sweep.budget import Budget
from ablate.sweep.changes import check_changes, tuned_anew
from ablate.sweep.choosing import Only, Seeds, choose, retried
from ablate.sweep.disk import telling
from ablate.sweep.events import Event, Growing, Outcome
from ablate.sweep.filesystem import check_file_system
from ablate.sweep.lock import driving
from ablate.sweep.loop import Loop
from ablate.sweep.preparing import note_storage, write_plan
from ablate.sweep.signals import stopping
from ablate.sweep.survey import survey
from ablate.sweep.watching import Publisher


def sweep(
    study: StudyFolder,
    plan: Mapping[str, Any],
    executor: Executor | Pool,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
    retry: str | Iterable[str] = (),
    limit: int | None = None,
    only: Only = (),
    seeds: Seeds | None = None,
    extend: bool = False,
    plugins: Sequence[Path] = (),
    source: str | None = None,
    extended: str | None = None,
    trainer: str = TRAINER,
    began: float | None = None,
    storage: str | None = None,
    repeat_storage: bool = False,
) -> Outcome:
    """Run what is missing of a plan: every trial that has no sealed result and has not failed or timed out.

    Where a limit of the plan's budget is reached, it stops as a signal would stop it, and the outcome says which.

    Args:
        study: where the study lies; ``plan.json`` is written there.
        plan: the plan, as ``plan.json`` has it.
        executor: what runs trials; a pool that is open already stays open.
        on_event: told everything that happens, in this thread.
        retry: ends to run again: ``failed``, ``oom`` (those failures that ran out of memory), ``timeout``.
        limit: how many trials to start at most.
        only: the levels of the arms whose trials to start, as :data:`~ablate.sweep.choosing.Only`; by default any.
        seeds: the seeds whose trials to start, as :data:`~ablate.sweep.choosing.Seeds`; by default any.
        extend: take a plan that leaves results of the study's last plan out; they stay on disk.
        plugins: plugin files that workers bring in, beside those that the plan names.
        source: the experiment's file as the user wrote it, to be kept beside the plan.
        extended: the file that it extends, to be kept beside it; None where it extends none.
        trainer: what trains a trial, as ``module:function``.
        began: when the call began that ``budget.wall`` limits, by :func:`time.monotonic`; by default now.
        storage: the URL of the database that has the Optuna study; by default it is a file in the study's folder.
        repeat_storage: whether what goes on must name it again, since the experiment does not; it is kept for
            ``ablate status`` then, without its password.

    Raises:
        InputError: ``retry``, ``only`` or ``seeds`` name what is not there (S115); ``storage`` cannot be used (S406).
        RefusedError: another process runs this study, the plan has changed and leaves results out, the folder's disk
            has no locks or links, or the database's study of this name is another folder's.
        AblateError: the disk takes nothing more.
        Interrupted: a signal came; the same call goes on.
    """
    began = time.monotonic() if began is None else began
    retry, chosen = retried(retry), choose(plan, only, seeds)
    with contextlib.ExitStack() as stack:
        stack.enter_context(telling(study, plan))
        check_file_system(study)
        driver = stack.enter_context(driving(study))
        found = survey(study)
        agenda = Agenda.after(plan, found)
        if not extend:
            check_changes(study, agenda.plan)
        anew = tuple(tuned_anew(study, agenda.plan))
        kept = open_storage(study, plan, storage)
        write_plan(study, agenda.plan, source, extended)
        note_storage(study, storage if repeat_storage else None)
        stop = stack.enter_context(stopping())
        emit = stack.enter_context(Publisher(study, driver, on_event))
        for text in anew:
            emit(Growing(text))
        if isinstance(executor, Executor):
            executor = stack.enter_context(contextlib.closing(executor.open(trainer)))
        job = Job(
            trial="",
            folder="",
            attempt=0,
            device=plan["device"],
            threads=plan["threads"],
            plugins=(*plan.get("plugins", ()), *(str(path.resolve()) for path in plugins)),
            trainer=trainer,
        )
        budget = Budget(study, plan, began)
        books = Books(kept, plan["name"], plan["objective"], emit)
        backlog = Backlog(study, agenda, found, books, emit, retry=retry, limit=limit, chosen=chosen)
        return Loop(study, backlog, books, executor, job=job, emit=emit, stop=stop, budget=budget)()


def open_storage(study: StudyFolder, plan: Mapping[str, Any], url: str | None) -> Storage:
    """Where the study's index is kept; a database is tried first, since a URL is easily wrong."""
    if url is None:
        return Embedded(study.storage)
    shared = Shared(study, url)
    shared.check(plan["name"], "minimize" if plan["objective"]["goal"] == "min" else "maximize")
    return shared
