"""The wiring of a sublayer: one line, for which every norm placement is data."""

from __future__ import annotations

from torch import Tensor, nn

from ablate.model.dropout import dropout
from ablate.slots import FeedForward, Mixer, Norm, Residual, Site, Wiring, place


class Sublayer(nn.Module):
    """A branch (mixer or feed-forward), the norms around it, and the residual that joins it with the stream.

    pre = {before}; post = {stream}; post-norm inside the residual = {after}; sandwich = {before, after}.
    Dropout is on the branch, outside ``after``.
    """

    def __init__(
        self, branch: Mixer | FeedForward, at: Site, *, norm: Norm, wiring: Wiring, residual: Residual, p: float
    ) -> None:
        super().__init__()

        def norm_or_nothing(wanted: bool, name: str) -> nn.Module:
            return place(norm, at.child(name, "norm")) if wanted else nn.Identity()

        self.before = norm_or_nothing(wiring.before, "before")
        self.branch = place(branch, at)
        self.after = norm_or_nothing(wiring.after, "after")
        self.dropout = dropout(p, at.child("dropout"))
        self.residual = place(residual, at.child("residual"))
        self.stream = norm_or_nothing(wiring.stream, "stream")

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        out: Tensor = self.stream(self.residual(x, self.dropout(self.after(self.branch(self.before(x))))))
        return out
