"""A placement of my own: where in a sublayer the norm sits."""

from __future__ import annotations

from typing import Literal

from ablate.slots import Placement, Site, Wiring
from pydantic import Field


class MyComponent(Placement):
    """Norms on the branch's input, and in every so many blocks on its output too.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    every: int = Field(2, ge=1)
    """One block in so many, beginning with the first, has both norms."""

    def wiring(self, at: Site) -> Wiring:
        """Which places hold a norm: stream(residual(x, after(branch(before(x)))))."""
        return Wiring(before=True, after=(at.layer or 0) % self.every == 0)
