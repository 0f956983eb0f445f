"""The wiring of a sublayer: one line, for which every norm placement is data."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from ablate.model.dropout import dropout
from ablate.slots import FeedForward, Given, Mixer, Norm, Residual, Site, Wiring, place


class Sublayer(nn.Module):
    """One branch or several side by side, the norms around them, and the residual that joins them with the stream.

    pre = {before}; post = {stream}; post-norm inside the residual = {after}; sandwich = {before, after}.
    Dropout is on the branch, outside ``after``.
    """

    def __init__(
        self,
        branches: Mapping[Site, Mixer | FeedForward],
        at: Site,
        *,
        norm: Norm,
        wiring: Wiring,
        residual: Residual,
        p: float,
    ) -> None:
        super().__init__()

        def norm_or_nothing(wanted: bool, name: str) -> nn.Module:
            return place(norm, at.child(name, "norm")) if wanted else nn.Identity()

        self.before = norm_or_nothing(wiring.before, "before")
        self.mixers = nn.ModuleList(place(each, site) for site, each in branches.items() if isinstance(each, Mixer))
        self.others = nn.ModuleList(place(each, site) for site, each in branches.items() if not isinstance(each, Mixer))
        self.after = norm_or_nothing(wiring.after, "after")
        self.dropout = dropout(p, at.child("dropout"))
        self.residual = place(residual, at.child("residual"))
        self.stream = norm_or_nothing(wiring.stream, "stream")

    def forward(self, x: Tensor, given: Given) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        out: Tensor = self.stream(self.residual(x, self.dropout(self.after(self._branches(self.before(x), given)))))
        return out

    def _branches(self, x: Tensor, given: Given) -> Tensor:
        outs = [mixer(x, given) for mixer in self.mixers] + [other(x) for other in self.others]
        found: Tensor = sum(outs[1:], start=outs[0])
        return found
