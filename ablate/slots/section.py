"""The slot of the report's sections, and the page that they are rendered for."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ablate.slots.component import Component

if TYPE_CHECKING:
    from markupsafe import Markup


class Page(Protocol):
    """What a section of the report is made from, and with."""

    results: Any
    """The study's :class:`~ablate.analysis.results.Results`: plan, trials, effects, verdicts, curves, probes."""

    @property
    def study(self) -> Any:
        """The results as the report's own figures and tables take them: :class:`~ablate.reporting.study.Study`."""
        ...

    def figure(self, figure: Any, name: str, alt: str, caption: str = "") -> Markup:
        """A matplotlib figure as inline SVG with its caption.

        It is laid out so that nothing overlaps or is cut off, and black and white become the page's own colours.

        Args:
            figure: a :class:`matplotlib.figure.Figure`.
            name: unique in the page, of small letters, digits and hyphens, a letter first: ``[a-z][a-z0-9-]*``.
            alt: what is seen, for those who cannot see it.
            caption: what stands below it.

        Raises:
            ValueError: the name is another one's already, or has other letters.
        """
        ...

    def table(self, table: Any, name: str, caption: str, tall: bool = False) -> Markup:
        """A :class:`~ablate.reporting.tables.Table` that sorts; ``name`` is its id, unique in the page."""
        ...

    def template(self, name: str, /, **values: Any) -> Markup:
        """One of the report's own templates, filled in; every value is escaped and cut to what is public."""
        ...


class Section(Component):
    """A part of the report."""

    slot: ClassVar[str] = "section"
    order: ClassVar[float]
    """Where it stands: the report's own sections are at 1 to 10, as ``4.5`` after gradient flow."""
    title: ClassVar[str]
    """Its heading, and its entry in the navigation."""

    @abstractmethod
    def render(self, page: Page) -> str:
        """Its HTML as :class:`markupsafe.Markup`; a plain string is shown as text, and an empty one leaves it out."""
