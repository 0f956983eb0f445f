"""The long forms of W: what runs all the same, and should be known before it does."""

from __future__ import annotations

from collections.abc import Mapping

WARNINGS: Mapping[str, str] = {
    "W001": """There are few seeds.

The exact test flips the signs of the differences between two arms, one for each seed. With n seeds no p is smaller than
2 / 2^n, so with fewer than six no difference reaches 0.05, however large it is. One seed gives no interval at all.

Wrong:

    seeds: 3

Right:

    seeds: 6
""",
    "W002": """Two combinations of levels are one arm.

What tells them apart has no say in them, so they resolve to the same setup. It is trained once, under the first name.
Often one factor takes out what the other varies.

Wrong:

    factors:
      norm: {switch: model.norm}
      placement: {path: model.placement, levels: [pre, post]}
    design: full        # without a norm, its placement is nothing

Right:

    factors:
      norm: {switch: model.norm}
      placement: {path: model.placement, levels: [pre, post]}
    design: one_at_a_time
""",
    "W003": """An arm is excluded.

One of its components says that it cannot work in this arm, for the reason in the message. The arm is counted and named
in the report, and none of its trials is run.

Wrong:

    model: {kind: decoder, width: 64, mixer: {kind: attention, heads: 4}}
    factors:
      heads: {path: model.mixer.heads, levels: [4, 6]}

Right:

    model: {kind: decoder, width: 64, mixer: {kind: attention, heads: 4}}
    factors:
      heads: {path: model.mixer.heads, levels: [4, 8]}
""",
    "W004": """A rule excludes nothing.

No arm of the design has all the levels that the rule names, so it is a slip, or is left from another design: where each
level stands alone, no arm has two.

Wrong:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
      residual: {switch: model.residual}
    design: one_at_a_time
    exclude:
      - {placement: post, residual: off, why: known from the last study}

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
      residual: {switch: model.residual}
    design: full
    exclude:
      - {placement: post, residual: off, why: known from the last study}
""",
    "W005": """An excluded arm has diverged.

That it diverged is a result, and it is on record. To leave the arm out afterwards hides it, and what is left looks more
stable than it is. Let the arm stand: its trials are there already, and cost nothing more.

Wrong:

    factors:
      residual: {switch: model.residual}
      placement: {path: model.placement, levels: [pre, post]}
    exclude:
      - {residual: off, why: it diverges}

Right:

    factors:
      residual: {switch: model.residual}
      placement: {path: model.placement, levels: [pre, post]}
""",
    "W006": """Arms are tuned unequally.

An arm lacks an option that the others have tuned, or a level sets one, or the learning rate, by hand. Its difference
from the baseline is then that of its architecture and of its tuning, and cannot be told apart.

Wrong:

    factors:
      placement:
        levels:
          pre: {model.placement: pre}
          post: {model.placement: post, training.optimizer.lr: 3e-4}

Right:

    factors:
      placement: {path: model.placement, levels: [pre, post]}
    tune:
      method: grid
      params: {training.optimizer.lr: {log: [1e-3, 1e-1], n: 5}}
      seeds: [100, 101]
""",
    "W007": """Two arms compute the same.

Neither is the baseline, and their outputs and gradients are equal, so that one effect is reported twice and the
intervals of all arms are wider than they need be. Drop one of them, or make them differ.

Wrong:

    model: {kind: decoder, width: 64, feed_forward: {kind: mlp, ratio: 4}}
    factors:
      inner:
        levels:
          wide: {model.feed_forward.ratio: 4}
          half: {model.feed_forward.ratio: 2}
          narrow: {model.feed_forward.width: 128}        # which is half of 4 x 64

Right:

    model: {kind: decoder, width: 64, feed_forward: {kind: mlp, ratio: 4}}
    factors:
      inner:
        levels:
          wide: {model.feed_forward.ratio: 4}
          half: {model.feed_forward.ratio: 2}
          narrow: {model.feed_forward.width: 64}
""",
    "W008": """An arm could not be guarded against having no effect.

Before training, each arm's outputs and gradients are compared with the baseline's on the CPU. This arm is too large for
that, or cannot run there, so an option that nothing uses would be found only when its curves equal the baseline's. Plan
it once with a small model.

Wrong:

    model: {kind: decoder, width: 8192, depth: 64}

Right:

    model: {kind: decoder, width: 64, depth: 4}
""",
    "W009": """The price is over the budget.

What the plan is expected to take is more than `gpu_hours`, `disk` or `trial_timeout` allow. Trials would be cut short,
or never be started. Train for fewer steps, drop arms, or allow more.

Wrong:

    budget: {steps: 100000, gpu_hours: 1}

Right:

    budget: {steps: 2000, gpu_hours: 1}
""",
    "W010": """A number with a leading zero is read as decimal.

By YAML 1.2 010 is ten. Readers of YAML 1.1 take it for eight, so other tools may read the same file differently.

Wrong:

    seed: 010

Right:

    seed: 10
""",
    "W011": """Arms are judged on different evaluation sets.

A factor varies the task, so the metric of one arm is measured on other data than that of the next. Part of the
difference between them is how hard those data are, and not what the arm has learned.

Wrong:

    task: {kind: text, source: python-docs, context: 32}
    factors:
      context: {path: task.context, levels: [32, 64]}

Right:

    task: {kind: text, source: python-docs, context: 32}
    factors:
      depth: {path: model.depth, levels: [2, 4]}
""",
    "W012": """No arm varies a factor.

Its condition, or a component that it needs, is there in no arm where its level could differ from the baseline's. By
`one_at_a_time` a factor is varied beside the baseline's levels of all others, so its condition must hold there.

Wrong:

    model: {kind: decoder, norm: layer}
    factors:
      norm: {path: model.norm, levels: [layer, rms]}
      eps: {path: model.norm.eps, levels: [1e-6, 1e-2], when: {model.norm: rms}}
    design: one_at_a_time

Right:

    model: {kind: decoder, norm: layer}
    factors:
      norm: {path: model.norm, levels: [layer, rms]}
      eps: {path: model.norm.eps, levels: [1e-6, 1e-2], when: {model.norm: rms}}
    design: full
""",
    "W013": """A rule leaves out an arm that runs under another name.

Where a part of the model is neutral, what depends on it is dead, and several cells of the grid are one arm. A rule of
`exclude` that names one of them leaves out a name, not the arm: name the level that they share.

Wrong:

    factors:
      norm: {path: model.norm, levels: [layer, none]}
      placement: {path: model.placement, levels: [pre, post]}
    design: full
    exclude: [{norm: none, placement: post, why: diverges}]

Right:

    factors:
      norm: {path: model.norm, levels: [layer, rms]}
      placement: {path: model.placement, levels: [pre, post]}
    design: full
    exclude: [{norm: rms, placement: post, why: diverges}]
""",
    "W014": """No arm has what the file says.

`baseline` names a level that replaces a value of `model`, and no level of that factor is that value: it was written,
and it is used nowhere.

Wrong:

    model: {kind: decoder, norm: {kind: layer, eps: 1e-3}}
    factors: {norm: {path: model.norm, levels: [layer, rms]}}
    baseline: {norm: layer}

Right:

    model: {kind: decoder, norm: {kind: layer, eps: 1e-3}}
    factors: {norm: {path: model.norm, levels: [{kind: layer, eps: 1e-3}, rms]}}
""",
    "W015": """A component declares what makes its results doubtful.

Batch norm lets a token see later ones and other sequences while it is trained, and attention that is told not to be
causal sees later ones always. The arm is run as it is meant, and the report says the same beside its verdict; a good
loss of it may be a leak.

Wrong:

    factors: {norm: {path: model.norm, levels: [layer, batch]}}

Right:

    factors: {norm: {path: model.norm, levels: [layer, rms]}}
""",
    "W016": """Many of the tokens that a model is judged on are unknown to it.

Training knows the tokens of its own rows; any other one is `<unk>` in the evaluation. Where that is most of them, as
with one word a row that no other row has, all arms learn to answer `<unk>`, and none is better than another.

Wrong:

    task: {kind: pairs, path: words.tsv, source: word, target: reversed}

Right:

    task: {kind: pairs, path: words.tsv, source: word, target: reversed, tokens: characters}
""",
}
