"""The long forms of G up to 210: factors, levels, and the arms that come of them."""

from __future__ import annotations

from collections.abc import Mapping

GRID: Mapping[str, str] = {
    "G201": """Nothing reads this path.

Arms that differ in an option that nothing reads would all be the baseline. A path starts with model, task or training,
and goes on through the options of the components that the baseline has. Of the budget there is `budget.steps` alone:
it lets arms train for their own number of steps.

Wrong:

    factors:
      depth: {path: depth, levels: [2, 4]}

Right:

    factors:
      depth: {path: model.depth, levels: [2, 4]}
""",
    "G202": """Two levels of a factor are the same.

They are spelled in two ways and make one setup, which would be trained once and reported under two names. An option
that is written out at its default changes nothing.

Wrong:

    factors:
      norm: {path: model.norm, levels: [layer, {kind: layer, eps: 1e-5}]}

Right:

    factors:
      norm: {path: model.norm, levels: [layer, {kind: layer, eps: 1e-3}]}
""",
    "G203": """A factor has no such level.

A level is called as it is written under `levels`, a bundle by its name, and those of a switch are on and off. 4 and 4.0
are two levels.

Wrong:

    factors:
      scale: {switch: model.mixer.scale}
    baseline: {scale: yes}

Right:

    factors:
      scale: {switch: model.mixer.scale}
    baseline: {scale: on}
""",
    "G204": """No level of a factor is the baseline's.

Every effect is a difference from the baseline, which needs a level of each factor. It is the one that equals what
`model`, `task` and `training` say, unless `baseline` names another.

Wrong:

    model: {kind: decoder, placement: pre}
    factors:
      placement: {path: model.placement, levels: [post, sandwich]}

Right:

    model: {kind: decoder, placement: pre}
    factors:
      placement: {path: model.placement, levels: [pre, post, sandwich]}
""",
    "G205": """No factor has this name.

Factors are called by their keys under `factors`, not by the path that they vary.

Wrong:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
    baseline: {model.placement: post}

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
    baseline: {placement: post}
""",
    "G206": """This cannot be switched off.

A switch takes a component out, which its slot must know how to do without, or turns an option from true to false. What
has no such "off" is varied by a path with levels.

Wrong:

    factors:
      output: {switch: model.output}

Right:

    factors:
      output: {path: model.output, levels: [untied, tied]}
""",
    "G207": """A switch is off in the baseline already.

What `on` means is what the baseline has there, and here it has nothing. Put the component into `model`; where the
baseline is to go without it, say so in `baseline`.

Wrong:

    model: {kind: decoder, norm: none}
    factors:
      norm: {switch: model.norm}

Right:

    model: {kind: decoder, norm: layer}
    factors:
      norm: {switch: model.norm}
    baseline: {norm: off}
""",
    "G208": """Two factors set the same option.

Which of them an arm would obey could only be guessed. Take the option out of one of them, or make them one factor with
a level for each combination that is wanted.

Wrong:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
      recipe:
        levels:
          plain: {training.clip: 1.0}
          careful: {training.clip: 0.5, model.placement: post}

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
      recipe:
        levels:
          plain: {training.clip: 1.0}
          careful: {training.clip: 0.5}
""",
    "G209": """The baseline cannot be built.

A component says that it cannot work with what is around it. An arm of this kind is excluded with that reason, but
without the baseline there is nothing to compare with.

Wrong:

    model: {kind: decoder, width: 64, mixer: {kind: attention, heads: 5}}

Right:

    model: {kind: decoder, width: 64, mixer: {kind: attention, heads: 4}}
""",
    "G210": """A component's code fails when an arm is built.

It raised an exception, gave no module, or gave a module whose output has the wrong shape: a mistake in the component,
and not a combination that cannot work, for which it raises ImpossibleError. The help names the line.

Wrong:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def build(self, at: Site) -> nn.Module:
            return nn.LayerNorm(at.size)

Right:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def build(self, at: Site) -> nn.Module:
            return nn.LayerNorm(at.width)
""",
}
