"""Analysis of variance of a full or fractional design: main effects and two-way interactions, with the seed as block.

Least squares with sum-to-zero contrasts and Type III sums of squares, by statsmodels. No text of the user's reaches a
formula: factors and levels are numbered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.comparability import incomparable
from ablate.analysis.contrasts import DESIGNS
from ablate.analysis.lattice import Lattice
from ablate.analysis.pairing import Floats, scaled
from ablate.analysis.prose import joined, number
from ablate.records.frames import spelled

COLUMNS = ("kind", "term", "factor", "other", "df", "sum_sq", "F", "p", "partial_eta2", "left_out")
"""The columns of :func:`anova`."""
EXACT = 1e-12
"""A residual below this share of all variation is rounding: the model fits exactly, and there is no F."""
UNSEEN = "no trial completed"
"""Why a level is no part of the model that nothing else is to be said of."""

Term = tuple[int, ...]
"""The factors of a term, by their places in the plan: one of a main effect, two of an interaction."""


def anova(plan: Mapping[str, Any], trials: pd.DataFrame) -> pd.DataFrame:
    """The table of the analysis of variance; no rows unless the design is factorial and there is something to fit.

    The residual has what the terms leave: interactions of three factors or more, and those with the seed. So its F
    differs from the tests of :meth:`~ablate.analysis.factorial.Factorial.main_effects`, which hold each effect against
    its own variation over seeds. In a fraction of a design there are main effects alone.

    Columns:
        kind (text): ``block``, ``main effect``, ``interaction`` or ``residual``. term (text): as ``residual:scale``;
            ``(seed)`` for the block, ``(residual)`` for the residual. factor, other (text): the term's; "" where it has
            none.
        df (int): degrees of freedom. sum_sq (float): sum of squares, Type III, in the objective's unit squared.
        F, p (float): against the residual; NaN where that has no degrees of freedom, or nothing is left for it. They
            decide nothing. partial_eta2 (float): sum_sq / (sum_sq + the residual's).
        left_out (text): why a term cannot be estimated from the trials that completed, and is no part of the model;
            its numbers are missing then, and df is 0.
    """
    return _Layout(plan, trials).frame()


def how(plan: Mapping[str, Any], trials: pd.DataFrame) -> str:
    """How the analysis was made: of which trials, balanced or not, and what it does without; "" where there is none."""
    return _Layout(plan, trials).how()


@dataclass(frozen=True)
class _Layout:
    """The trials that completed, with their factors' levels as numbers."""

    plan: Mapping[str, Any]
    trials: pd.DataFrame

    @cached_property
    def lattice(self) -> Lattice:
        return Lattice(self.plan)

    @cached_property
    def arms(self) -> list[str]:
        """The arms inside the grid that every factor is part of, each once even if it stands for other cells too."""
        grid = [{spelled(level) for level in factor["levels"]} for factor in self.plan["factors"]]
        return [
            arm
            for arm, place in self.lattice.places.items()
            if all(level in levels for level, levels in zip(place, grid, strict=True))
        ]

    @cached_property
    def data(self) -> pd.DataFrame:
        """Columns y, seed, and f0, f1, ... for the factors; seeds and levels are numbered from 0."""
        done = self.trials[(self.trials["end"] == "complete") & self.trials["arm"].isin(self.arms)]
        done = done[np.isfinite(done[self.plan["objective"]["metric"]])]
        columns: dict[str, Any] = {
            "y": done[self.plan["objective"]["metric"]].to_numpy(dtype=float),
            "seed": pd.factorize(done["seed"])[0],
        }
        for place in range(len(self.names)):
            levels = [self.lattice.places[arm][place] for arm in done["arm"]]
            columns[f"f{place}"] = pd.factorize(np.array(levels, dtype=object))[0]
        return pd.DataFrame(columns)

    @property
    def names(self) -> tuple[str, ...]:
        return self.lattice.factors

    @cached_property
    def completed(self) -> set[str]:
        """The arms of which a trial completed."""
        return set(self.trials.loc[self.trials["end"] == "complete", "arm"])

    @cached_property
    def possible(self) -> bool:
        """Whether there is anything to fit."""
        if self.plan["design"] not in DESIGNS or not self.names or len(self.data) < 2:
            return False
        return not incomparable(self.plan, self.arms, self.plan["objective"]["metric"])

    @cached_property
    def balanced(self) -> bool:
        """Whether every combination of the levels and seeds that are fitted has as many trials as every other.

        A fraction has none of most combinations: there it is those of every two.
        """
        columns = ["seed", *(f"f{place}" for place in range(len(self.names)))]
        alike = itertools.combinations(columns, 2) if self.plan["design"] == "fractional" else [tuple(columns)]
        return all(self._even(list(names)) for names in alike)

    def _even(self, names: list[str]) -> bool:
        counts = self.data.value_counts(names)
        return counts.nunique() == 1 and len(counts) == math.prod(self.data[names].nunique())

    @cached_property
    def terms(self) -> dict[Term, str]:
        """Every term in order, with why it cannot be estimated; "" where it can.

        Interactions are looked at first, since a main effect that cannot be told from one is not lost with it; an
        interaction has both of its main effects in the model.
        """
        singles: list[Term] = [(place,) for place in range(len(self.names))]
        pairs = list(itertools.combinations(range(len(self.names)), 2)) if self.plan["design"] == "full" else []
        why = dict.fromkeys((*singles, *pairs), "")
        for group in (pairs, singles):
            kept = [term for term in why if not why[term]]
            found = self._told_apart(kept)
            why |= {term: self._lacks(term, found[term]) for term in kept if term in group}
        for one, other in pairs:
            lost = [self.names[place] for place in (one, other) if why[place,]]
            if lost and not why[one, other]:
                why[one, other] = f"{joined(lost)} cannot be estimated"
        return why

    def _df(self, term: Term) -> int:
        """The degrees of freedom of a term whose levels have all been seen together."""
        return math.prod(int(self.data[f"f{place}"].max()) for place in term)

    def _lacks(self, term: Term, told_apart: int) -> str:
        """Why a term cannot be estimated; "" where all of its degrees of freedom can be told apart from the rest."""
        single = [self.names[place] for place in term if self.data[f"f{place}"].max() == 0]
        if single:
            return f"{joined(single)} {'has' if len(single) == 1 else 'have'} one level in the trials that are fitted"
        df = self._df(term)
        lost = "it" if told_apart == 0 else f"{df - told_apart} of its {df} degrees of freedom"
        return "" if told_apart == df else f"{lost} cannot be told apart from other terms in the trials that completed"

    def _told_apart(self, terms: Sequence[Term]) -> dict[Term, int]:
        """How many degrees of freedom of each term can be told apart from the seeds and all other terms."""
        blocks = [np.ones((len(self.data), 1)), _sum_coded(self.data["seed"]), *map(self._columns, terms)]
        whole = np.hstack(blocks)
        gram = whole.T @ whole
        ends = np.cumsum([block.shape[1] for block in blocks])[1:]
        rank, found = _rank(gram), {}
        for term, start, stop in zip(terms, ends[:-1], ends[1:], strict=True):
            rest = np.r_[0:start, stop : len(gram)]
            found[term] = rank - _rank(gram[np.ix_(rest, rest)])
        return found

    def _columns(self, term: Term) -> Floats:
        """A term's columns of the model: the products of its factors' contrasts."""
        found = np.ones((len(self.data), 1))
        for place in term:
            coded = _sum_coded(self.data[f"f{place}"])
            found = (found[:, :, None] * coded[:, None, :]).reshape(len(found), -1)
        return found

    def frame(self) -> pd.DataFrame:
        """The table."""
        rows = self._rows() if self.possible else []
        text = ("kind", "term", "factor", "other", "left_out")
        data: dict[str, pd.Series[Any]] = {}
        for key in COLUMNS:
            kind = "str" if key in text else "int64" if key == "df" else "float64"
            data[key] = pd.Series([row.get(key, "" if key in text else math.nan) for row in rows], dtype=kind)
        return pd.DataFrame(data)

    def _rows(self) -> list[dict[str, Any]]:
        fitted = self._fitted()
        rows = [{"kind": "block", "term": "(seed)"} | fitted["C(seed, Sum)"]] if "C(seed, Sum)" in fitted else []
        for term, why in self.terms.items():
            names = [self.names[place] for place in term]
            row = {"kind": "main effect" if len(term) == 1 else "interaction", "term": ":".join(names)}
            row |= {"factor": names[0], "other": names[1] if len(term) > 1 else "", "left_out": why}
            rows.append(row | ({"df": 0} if why else fitted[_coded(term)]))
        return [*rows, {"kind": "residual", "term": "(residual)"} | fitted["Residual"]]

    def _fitted(self) -> dict[str, dict[str, Any]]:
        """What statsmodels finds for each term of the model and the residual, by its names for them."""
        from statsmodels.formula.api import ols  # noqa: PLC0415  # slow to import, and no other analysis needs it
        from statsmodels.stats.anova import anova_lm  # noqa: PLC0415

        block = ["C(seed, Sum)"] if self.data["seed"].nunique() > 1 else []
        terms = [_coded(term) for term, why in self.terms.items() if not why]
        values, power = scaled(self.data["y"].to_numpy())
        fit = ols(f"y ~ {' + '.join(['1', *block, *terms])}", self.data.assign(y=values)).fit()
        left = int(fit.df_resid)
        if left == 0 or fit.ssr <= EXACT * fit.centered_tss:
            sizes = {_coded(term): self._df(term) for term, why in self.terms.items() if not why}
            sizes |= {"C(seed, Sum)": int(self.data["seed"].max())} if block else {}
            return {name: {"df": size} for name, size in sizes.items()} | {"Residual": {"df": left, "sum_sq": 0.0}}
        table = anova_lm(fit, typ=3).rename(columns={"PR(>F)": "p"})
        table["partial_eta2"] = table["sum_sq"] / (table["sum_sq"] + fit.ssr)
        table.loc["Residual", "partial_eta2"] = math.nan
        with np.errstate(over="ignore"):
            sums = np.ldexp(table["sum_sq"].to_numpy(), 2 * power)
        table["sum_sq"] = np.where(np.isfinite(sums), sums, math.nan)
        return {
            str(name): {str(key): value for key, value in row.items()} | {"df": int(row["df"])}
            for name, row in table.to_dict("index").items()
        }

    def how(self) -> str:
        """The analysis in a sentence or two."""
        if not self.possible:
            return ""
        ended = self.trials["end"].value_counts()
        planned = len(self.trials)
        what = "balanced, so that the sums do not depend on what else is in the model"
        if not self.balanced:
            what = "unbalanced: Type III sums, each term beyond all others"
        lost = [f"{count} {str(end).replace('_', ' ')}" for end, count in ended.items() if end != "complete"]
        gaps = [name for name in self.names if self.lattice.without(name)]
        parts = [f"{len(self.data):,} of {number(planned, 'trial')}; {what}"]
        parts += [f"nothing was filled in for {joined(lost)}"] if lost else []
        parts += self._absent()
        parts += [f"arms without {joined(gaps)} are no part of it"] if gaps else []
        return "; ".join(parts) + "."

    def _absent(self) -> list[str]:
        """Which levels are no part of the model, and why, in words."""
        why = {
            f"{factor['name']}={spelled(level)}": self._why_absent(place, spelled(level))
            for place, factor in enumerate(self.plan["factors"])
            for level in factor["levels"]
        }
        unseen = [name for name, text in why.items() if text == UNSEEN]
        others = [f"{name} {text}" for name, text in why.items() if text not in (None, UNSEEN)]
        return [*([f"no trial of {joined(unseen)} completed"] if unseen else []), *others]

    def _why_absent(self, place: int, level: str) -> str | None:
        """Why a level is no part of the model; None where it is one."""
        name = self.names[place]
        own = set(self.lattice.at(name, level))
        done = own & self.completed
        if done & set(self.arms):
            return None
        if gaps := [gap for gap in self.names if not all(self.lattice.has(arm, gap) for arm in done)]:
            return f"{'has only arms' if done == own else 'completed only in arms'} without {joined(gaps)}"
        also = {arm for at, arm in self.lattice.arms.items() if at[place] == level} & self.completed - own
        if shared := dict.fromkeys(at[place] for arm, at in self.lattice.places.items() if arm in also):
            others = joined([f"{name}={each}" for each in shared if each is not None])
            return f"{'completed only where it ' if own else ''}falls together with {others}"
        return UNSEEN


def _coded(term: Term) -> str:
    """A term in the words of a formula: its factors by number, with contrasts that sum to zero."""
    return ":".join(f"C(f{place}, Sum)" for place in term)


def _sum_coded(codes: pd.Series[int]) -> Floats:
    """The contrasts of a factor that sum to zero: a column for each level but the last."""
    levels = int(codes.max()) + 1
    return np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1))])[codes.to_numpy()]


def _rank(gram: Floats) -> int:
    return int(np.linalg.matrix_rank(gram, tol=1e-9 * float(np.abs(gram).max(initial=1)), hermitian=True))
