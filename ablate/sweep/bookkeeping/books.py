"""The index is kept by a thread of its own: a storage that is locked or away stops neither trials nor signals."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ablate.sweep.bookkeeping.index import Index
from ablate.sweep.bookkeeping.storage import Storage, outside, said
from ablate.sweep.bookkeeping.tables import Left
from ablate.sweep.disk import trouble
from ablate.sweep.events import Event, IndexBehind, Reconciled

Entry = Callable[[Index], None]
GRACE = 5.0
"""Seconds of trouble that the user is not told of."""
PATIENCE = 60.0
"""Seconds without an entry after which the end of a sweep waits for the index no longer."""
SHORT_PATIENCE = 1.0
"""The same where a signal came."""
PAUSE = 0.5
"""Seconds between two attempts to make an entry."""


class Books:
    """The entries that are still to be made, and the thread that makes them: in order, each once, until it succeeds."""

    def __init__(
        self, storage: Storage, name: str, objective: Mapping[str, Any], emit: Callable[[Event], None]
    ) -> None:
        """Nothing is opened yet; ``emit`` is called by :meth:`look` and :meth:`close`, and so in their thread."""
        self._storage = storage
        self._name = name
        self._objective = objective
        self._emit = emit
        self._entries: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._index: Index | None = None
        self._trouble: tuple[float, str] | None = None
        """Since when the storage has not taken an entry, and what it says."""
        self._made = 0
        self._told = False
        self._shown = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._keep, name="index", daemon=True)

    def start(self) -> None:
        """Open the index, and begin to make entries."""
        self._thread.start()

    def enter(self, entry: Entry) -> None:
        """Have an entry made after those before it."""
        with self._changed:
            self._entries.append(entry)
            self._changed.notify()

    def look(self) -> None:
        """Tell what happened since the last look.

        Raises:
            Exception: what ended the thread, as a disk that takes nothing more.
        """
        differences = self._index.differences if self._index else []
        while self._shown < len(differences):
            self._emit(Reconciled(*differences[self._shown]))
            self._shown += 1
        if self._error:
            raise self._error
        if self._trouble and not self._told and time.monotonic() - self._trouble[0] >= GRACE:
            self._tell(self._trouble[1])
        elif self._told and not self._trouble:
            self._tell(None)

    def close(self, stopped: Callable[[], bool]) -> None:
        """Wait for the entries to be made; where that takes too long, tell that the next start makes them.

        Args:
            stopped: whether a signal has come, upon which there is little time.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        made, since = -1, time.monotonic()
        while self._thread.is_alive():
            self._thread.join(0.05)
            self.look()
            now_made = self._made + (self._index.written if self._index else 0)
            if now_made != made:
                made, since = now_made, time.monotonic()
            if time.monotonic() - since > (SHORT_PATIENCE if stopped() else PATIENCE):
                reason = self._trouble[1] if self._trouble else "it takes long"
                self._emit(IndexBehind(reason, len(self._entries), given_up=True))
                break
        self.leave()
        self.look()

    def leave(self) -> None:
        """Have no further entry made, and wait no longer."""
        with self._changed:
            self._closing = True
            self._entries.clear()
            self._changed.notify()
        if self._index:
            self._index.leave()
        if self._thread.is_alive():
            self._thread.join(PAUSE)

    def _tell(self, reason: str | None) -> None:
        self._told = reason is not None
        self._emit(IndexBehind(reason, len(self._entries)))

    # --- in the thread ---

    def _keep(self) -> None:
        try:
            while (entry := self._next()) is not None:
                try:
                    self._make(entry)
                except Left:
                    break
                except Exception as error:
                    if trouble(error) or not outside(error):
                        raise
                    self._note(error)
                    if self._index and isinstance(error, KeyError):  # the study was deleted; it is made anew
                        self._index.close()
                        self._index = None
                    time.sleep(PAUSE)
                else:
                    self._made += 1
                    self._trouble = None
        except BaseException as error:
            self._error = error
        finally:
            if self._index:
                self._index.close()

    def _note(self, error: BaseException) -> None:
        since = self._trouble[0] if self._trouble else time.monotonic()
        self._trouble = since, self._storage.redacted(said(error))

    def _next(self) -> Entry | None:
        """The entry to make, which stays the first until it is made; None if none will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._entries or self._closing)
            return self._entries[0] if self._entries else None

    def _make(self, entry: Entry) -> None:
        if self._index is None:
            self._index = Index(self._storage, self._name, self._objective, self._note)
        entry(self._index)
        if len(self._entries) == 1:
            self._index.settle()
        with self._changed:
            if self._entries and self._entries[0] is entry:  # nobody has left meanwhile
                self._entries.popleft()
