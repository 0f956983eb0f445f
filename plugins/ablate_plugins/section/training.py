"""What happened while the arms were trained: gradient flow, stability, curves."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting import flow, stability
from ablate.reporting.figures import curves, gradients, inside
from ablate.reporting.study import Study
from ablate.slots import Page, Section


class GradientFlow(Section):
    """How large gradients and updates are, by layer and step, and whether they vanish or explode."""

    kind: Literal["gradient_flow"] = "gradient_flow"
    order: ClassVar[float] = 4
    title: ClassVar[str] = "Gradient flow"

    def render(self, page: Page) -> str:
        """Heat maps, profiles by depth, update ratios, and the flags with their rule."""
        study: Study = page.study
        if study.block_gradients.empty:
            return page.template("nothing.html", text="No gradients were recorded.")
        arms, cut = study.chosen(study.probe("grad_norm"))
        judged = flow.ratios(study)
        flagged = [ratio for ratio in judged if ratio.flag]
        return page.template(
            "gradient_flow.html",
            flagged=flagged,
            table=page.table(flow.table(flagged), "flagged", "Flagged arms") if len(flagged) > 4 else "",
            judged=len(judged),
            unjudged=flow.unjudged(study),
            rule=flow.RULE,
            cut=cut,
            maps=page.figure(
                gradients.heat_maps(study, arms),
                name="gradient-maps",
                alt=f"For each of {len(arms)} arms, the gradient norm by layer and step as colour",
                caption=gradients.MAPS,
            ),
            profiles=page.figure(
                gradients.profiles(study, arms),
                name="gradient-profiles",
                alt="Gradient norms by depth at the first and at the last probed step, of weights and of the stream",
                caption=gradients.PROFILES,
            ),
            updates=page.figure(
                gradients.updates(study, arms),
                name="updates",
                alt="Update-to-weight ratio by step, and the first block's gradient norm over the last block's",
                caption=gradients.UPDATES,
            ),
        )


class Stability(Section):
    """What the runs were like inside, which losses spiked, and which runs diverged."""

    kind: Literal["stability"] = "stability"
    order: ClassVar[float] = 5
    title: ClassVar[str] = "Stability"

    def render(self, page: Page) -> str:
        """A table by arm, the insides, the spikes, and the diverged runs."""
        study: Study = page.study
        arms, cut = study.chosen(study.curves)
        spiked, diverged = stability.spikes(study), stability.diverged(study)
        return page.template(
            "stability.html",
            table=page.table(stability.by_arm(study), "stability-arms", "How the runs of each arm went"),
            cut=cut,
            rule=stability.spike_rule(study),
            unspiked=stability.unspiked(study, len(spiked)),
            ended=len(study.results.courses()),
            diverged=page.table(diverged, "diverged-runs", "Every run that diverged") if diverged.records else "",
            insides=page.figure(
                inside.insides(study, arms),
                name="insides",
                alt="Gradient norm, stream RMS, attention logits and entropy, zeros and dead units of every arm",
                caption=inside.caption(study),
            ),
            spikes=page.figure(
                inside.spikes(study, study.measured(spiked), spiked),
                name="spikes",
                alt=f"The steps at which training losses spiked: {len(spiked)} in all",
                caption="A mark for each step that spiked, each seed at its own height. Arms without are left out.",
            )
            if len(spiked)
            else "",
        )


class Curves(Section):
    """The objective along the run."""

    kind: Literal["curves"] = "curves"
    order: ClassVar[float] = 6
    title: ClassVar[str] = "Curves"

    def render(self, page: Page) -> str:
        """Means with their bands, against tokens."""
        study: Study = page.study
        arms, cut = study.chosen(study.curve(study.metric))
        if not arms:
            return page.template("nothing.html", text="No run was evaluated.")
        return page.figure(
            curves.objective(study, arms),
            name="curves",
            alt=f"{study.metric} of {len(arms)} arms against training tokens",
            caption=f"{curves.caption(study, arms)} {cut}",
        )
