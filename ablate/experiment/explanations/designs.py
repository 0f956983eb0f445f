"""The long forms of G from 211 on: designs, rules, matching, tuning, predictions, and what has no effect."""

from __future__ import annotations

from collections.abc import Mapping

DESIGNS: Mapping[str, str] = {
    "G211": """The design does not fit the factors.

The designs leave_one_out, add_one and fractional take things out or put them in, so each of their factors has two
levels. The design list takes the arms that `arms` spells out, and `arms` goes with no other design.

The baseline is one arm of every design. In add_one it has the level of each factor that `model`, `task` and `training`
do not have: they are the complete model, and the baseline is the bare one. In all other designs it is what they say.
`baseline` may name another level. Beside the baseline there are: in one_at_a_time each other level alone; in full every
combination; in pairs each other level alone and every two of them; in leave_one_out and add_one each change alone and
all at once; in fractional a balanced fraction of full; in list what `arms` names.

Wrong:

    factors:
      placement: {path: model.placement, levels: [pre, post, sandwich]}
    design: leave_one_out

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post, sandwich]}
    design: one_at_a_time
""",
    "G212": """A rule excludes too much.

It matches the baseline, which every arm is compared with, or every arm but the baseline, so that nothing is left to
compare. A rule matches the arms that have all the levels that it names: name more of them.

The baseline has the levels that equal what `model`, `task` and `training` say, but where `baseline` names another; in
the design add_one it has the other level of each factor. `ablate plan` prints its levels and those of every arm. In
one_at_a_time an arm differs from the baseline in one factor, so a rule about two levels that the baseline does not have
matches nothing there.

Wrong:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
      residual: {switch: model.residual}
    design: full
    exclude:
      - {placement: pre, why: known from the last study}

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
      residual: {switch: model.residual}
    design: full
    exclude:
      - {placement: pre, residual: off, why: known from the last study}
""",
    "G213": """An arm is spelled twice, or is not in the design.

Of two equal arms under `arms`, or two predictions for one arm under `expect`, one is a slip: usually a level that was
copied and not changed. A prediction for an arm that is not run could never be held against a result.

A factor that is not named has the baseline's level; in full and fractional a prediction that names one level alone is
about its main effect. In one_at_a_time each arm has one change, in pairs one or two, in leave_one_out and add_one one
or all; full has every combination, fractional some of them, list what `arms` names. `ablate plan` lists the arms.

Wrong:

    factors:
      placement: {path: model.placement, levels: [pre, post, sandwich]}
    design: list
    arms:
      - {placement: post}
      - {placement: post}

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post, sandwich]}
    design: list
    arms:
      - {placement: post}
      - {placement: sandwich}
""",
    "G214": """The match cannot be made by this option.

What `match` adjusts is a number that no factor varies and that changes what is matched. Were a factor to vary it, each
level would be adjusted away again.

A level that spells the option among others sets it too: of `levels: [{kind: mlp, ratio: 4}, {kind: mlp, ratio: 4,
activation: relu}]` leave `ratio` out. The baseline keeps the value that it has in `model`, and for every other arm
`match` chooses one; an arm that is within the margin already is left as it is. What may be adjusted is a number, as a
width or a ratio, and for training FLOPs also `budget.steps`.

Wrong:

    factors:
      ratio: {path: model.feed_forward.ratio, levels: [4, 2]}
    match:
      params: {to: baseline, adjust: model.feed_forward.ratio, within: 1%}

Right:

    factors:
      norm: {path: model.norm, levels: [layer, rms]}
    match:
      params: {to: baseline, adjust: model.feed_forward.ratio, within: 1%}
""",
    "G215": """An arm cannot be matched.

No value of the adjusted option brings the arm close enough to what it is matched to. Widths are whole numbers, so
counts move in steps. The message names the nearest value: allow a wider margin, or adjust another option.

Wrong:

    factors:
      norm: {path: model.norm, levels: [layer, rms]}
    match:
      params: {to: baseline, adjust: model.feed_forward.ratio, within: 0.001%}

Right:

    factors:
      norm: {path: model.norm, levels: [layer, rms]}
    match:
      params: {to: baseline, adjust: model.feed_forward.ratio, within: 1%}
""",
    "G216": """An arm computes what the baseline computes.

Outputs and gradients of both were compared before any training, and they are equal: the option that tells the arms
apart has no effect. A verdict on it would be one on nothing. Where that is the purpose, as in an A/A comparison,
`allow_noop: true` lets it run.

Wrong:

    model: {kind: decoder, width: 64, feed_forward: {kind: mlp, ratio: 4}}
    factors:
      inner: {path: model.feed_forward.width, levels: [null, 256]}        # 256 is 4 x 64

Right:

    model: {kind: decoder, width: 64, feed_forward: {kind: mlp, ratio: 4}}
    factors:
      inner: {path: model.feed_forward.width, levels: [null, 128]}
""",
    "G217": """The tuning cannot be done as it is described.

A tuned path is one that something reads and that no factor varies, and never `budget.steps`, since what trains longer
would win by that alone. Its seeds are others than those that are reported: an arm that was chosen on a seed looks
better on it than it is. The method grid needs `n`, random and tpe need `trials`.
Every arm must be able to take every value. Only the range of a grid can be widened, and with halving the first rung
is a step of training.

Wrong:

    seeds: 6
    tune:
      method: grid
      params: {training.optimizer.lr: {log: [1e-3, 1e-1], n: 5}}
      seeds: [0, 1]

Right:

    seeds: 6
    tune:
      method: grid
      params: {training.optimizer.lr: {log: [1e-3, 1e-1], n: 5}}
      seeds: [100, 101]
""",
    "G218": """The command line sets what a factor varies.

`--set` changes every arm, so all levels of that factor would become one. To run some arms alone there is `--only`.

Wrong:

    ablate run quickstart.yaml --set model.norm=rms        (where the factor norm varies model.norm)

Right:

    ablate run quickstart.yaml --only norm=rms
""",
    "G219": """Conditions depend on each other.

Whether a factor is part of an arm is known once the factors are set that its `when` looks at. Two that look at each
other have no order, so an arm could have a factor whose condition fails.

Wrong:

    factors:
      norm: {path: model.norm, levels: [layer, rms], when: {model.placement: pre}}
      placement: {path: model.placement, levels: [pre, post], when: {model.norm: layer}}
    design: full

Right:

    factors:
      norm: {path: model.norm, levels: [layer, rms], when: {model.placement: pre}}
      placement: {path: model.placement, levels: [pre, post]}
    design: full
""",
    "G220": """An arm sees later tokens.

Before anything is trained, the last token of a text is replaced by another, and what the model says at the places
before it must stay as it was. Where it moves, the model is told the answer that it is trained to give: its loss is low,
and it cannot write. Mend the component; `ablate plugins check FILE` tells which one it is, and where. One that is meant
so declares it, and then runs, with a note in the plan and in the report.

Wrong:

    class Centre(nn.Module):
        def forward(self, x):
            return x - x.mean(dim=1, keepdim=True)

    class Centred(Norm):
        "Take the mean of the sequence away."
        kind: Literal["centred"] = "centred"

        def build(self, at: Site) -> nn.Module:
            return Centre()

Right:

    class Centre(nn.Module):
        def forward(self, x):
            return x - x.mean(dim=-1, keepdim=True)

    class Centred(Norm):
        "Take the mean of the token away."
        kind: Literal["centred"] = "centred"

        def build(self, at: Site) -> nn.Module:
            return Centre()
""",
}
