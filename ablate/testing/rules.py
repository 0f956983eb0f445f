"""One rule of the contract, and the check that one component keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ablate.slots import Component
from ablate.testing.case import Case
from ablate.testing.findings import ContractError, Finding, place, title, told


def always(case: Case) -> bool:
    """For rules that hold wherever their slot does."""
    return True


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for a while: what is this small is slower with more, and sums in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class Rule:
    """What is expected of every component of a slot."""

    name: str
    """Short name, as ``causal``."""
    expected: str
    """What is expected, as it ends the sentence "expected ..."."""
    run: Callable[[Any], str | None]
    """What was got in place of it, or None; takes the component's case, or its class where no instance is needed."""
    applies: Callable[[Case], bool] = always
    declared: Callable[[Case], bool] = always
    """Whether the component declares that it holds; where it declares that it does not, it must really not."""
    otherwise: str = ""
    """What is expected where it is declared not to hold."""


@dataclass(frozen=True)
class Check:
    """A rule and a component; calling it raises ContractError where the component breaks it. Its text is its name."""

    rule: Rule
    component: type[Component]
    subject: Case | type[Component]

    @property
    def name(self) -> str:
        """The check's short name."""
        return self.rule.name

    def find(self) -> Finding:
        """Run the check; an exception of the component's is what was got."""
        kept = not isinstance(self.subject, Case) or self.rule.declared(self.subject)
        expected = self.rule.expected if kept else self.rule.otherwise
        error: BaseException | None = None
        try:
            with _one_thread():
                got = self.rule.run(self.subject)
        except (Exception, SystemExit) as raised:
            got, error = told(raised), raised
        file, line = place(self.component, error)
        return Finding(self.name, title(self.component), got is None, expected, got or expected, file, line)

    def __call__(self) -> None:
        """Run the check.

        Raises:
            ContractError: the component breaks the rule.
        """
        finding = self.find()
        if not finding.ok:
            raise ContractError(finding)

    def __str__(self) -> str:
        return self.name
