"""The long forms of S1: an experiment's keys and values, its plugins, and the words of the command."""

from __future__ import annotations

from collections.abc import Mapping

SCHEMA: Mapping[str, str] = {
    "S101": """A key is unknown.

Every key is checked. One that was silently passed over would leave an option at its default, and the experiment would
answer another question than the one that was asked. The help names what may stand at this place.

Wrong:

    objective: {metric: val/loss, gaol: min, smallest_effect: 0.02}

Right:

    objective: {metric: val/loss, goal: min, smallest_effect: 0.02}
""",
    "S102": """No component has this name.

A slot takes the components that are installed, and those that the experiment's `plugins` bring. `ablate plugins list`
shows them all, and below them the plugins that could not be used and why.

Wrong:

    model: {kind: decoder, norm: rmsnorm}

Right:

    model: {kind: decoder, norm: rms}
""",
    "S103": """A value is not what its key takes.

It is of another type, or outside of its bounds. Nothing is converted: 400, 400.0, true and "400" are four values, since
a trial is known by its values, and two spellings of one trial would be trained twice.

Wrong:

    budget: {steps: 400.0}

Right:

    budget: {steps: 400}
""",
    "S104": """A key is missing.

It has no default, because it is the experiment's to decide: how long to train, or which difference is large enough to
matter. A study's commands need at least the experiment's `name`, which is the name of its folder.

Wrong:

    objective: {metric: val/loss}

Right:

    objective: {metric: val/loss, smallest_effect: 0.02}
""",
    "S106": """There is no such plugin file.

A path in `plugins` is relative to the experiment's file, and one after `--plugin` to the folder that the command is
given in. It names a Python file, which ends in .py.

Wrong:

    plugins: [my_norm]

Right:

    plugins: [my_norm.py]
""",
    "S107": """A plugin fails to import.

A plugin is Python code, which runs when an experiment names it. It raised the exception that the message quotes, before
anything was trained. Often a name is used that was not imported.

Wrong:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

Right:

    from typing import Literal
    from torch import nn
    from ablate.slots import Norm, Site

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)
""",
    "S108": """A plugin defines no component.

A component is a class that derives from a slot of ablate.slots and is written in the plugin's own file: what a plugin
merely imports is not its own to bring. A module of torch becomes one by a class that builds it.

Wrong:

    class MyNorm(nn.Module):
        def forward(self, x):
            return x

Right:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)
""",
    "S109": """A component has no kind.

Its `kind` is what it is called in YAML, in records and in the report. It is a field whose default is the name.

Wrong:

    class MyNorm(Norm):
        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)

Right:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)
""",
    "S110": """Two plugins bring a component of the same name.

Were the last one to win, what an arm computes would depend on the order in which plugins are imported. Rename one of
them, or uninstall the package that it comes with.

Wrong:

    class MyNorm(Norm):
        kind: Literal["rms"] = "rms"        # which comes with Ablate

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)

Right:

    class MyNorm(Norm):
        kind: Literal["my_rms"] = "my_rms"

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)
""",
    "S111": """The task does not report this metric.

Arms are compared by what the task measures, under the names that the task gives. It concerns `metric` and `secondary`
of the objective alike.

Wrong:

    objective: {metric: loss, smallest_effect: 0.02}

Right:

    objective: {metric: val/loss, smallest_effect: 0.02}
""",
    "S112": """A component lacks what its slot asks for.

The class has a kind and could be named, but the framework would not find the method to call, or the value to read. The
message names what is missing, and ablate.slots has the contract of every slot with its shapes.

Wrong:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def forward(self, x):
            return x

Right:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)
""",
    "S113": """A file or a folder cannot be used.

The system refuses to read or to write it, for the reason in the message: it belongs to another user, the disk is full,
or a file stands where a folder should be.

Wrong:

    ablate run quickstart.yaml --runs /runs        (which only the administrator may write)

Right:

    ablate run quickstart.yaml --runs ~/runs
""",
    "S114": """The base file cannot be used.

`extends` is the path of one file, relative to this one, which can be read and has no `extends` of its own: with one
level, all that an experiment says stands in two files.

Wrong:

    extends: shared

Right:

    extends: shared.yaml
""",
    "S115": """A choice on the command line cannot be read.

`--set` takes PATH=VALUE, where the value is written as in YAML. `--only` takes FACTOR=LEVEL and `--seeds` takes seeds
such as 0-2, and both choose among the arms and the seeds that the plan has. Several levels of one factor mean any of
them, levels of several factors an arm with all of them, and the name of an arm, as `baseline`, comes beside these.

Wrong:

    ablate run quickstart.yaml --set training.batch:32

Right:

    ablate run quickstart.yaml --set training.batch=32
""",
    "S116": """The experiment has no arm or trial of this name.

An arm is called as `ablate plan` shows it, and a trial by its identity of 16 letters and digits, as its folder is.

Wrong:

    ablate show quickstart.yaml rms

Right:

    ablate show quickstart.yaml norm=rms
""",
    "S117": """No diagnostic has this code.

A code is a letter and three digits, and stands in brackets at the beginning of a message. `ablate explain` alone lists
them all.

Wrong:

    ablate explain E101

Right:

    ablate explain S101
""",
    "S118": """A component's class cannot be used as it is written.

It is of no slot, it writes a setting of the class such as `version` as an option, or an option has a type or a default
that is not its own or that no file can hold. A trial is known by its options, so each can be written in YAML.

Wrong:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"
        eps: float = "1e-5"

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)

Right:

    class MyNorm(Norm):
        kind: Literal["my_norm"] = "my_norm"
        eps: float = 1e-5

        def build(self, at: Site) -> nn.Module:
            return nn.RMSNorm(at.width)
""",
    "S119": """A logger needs a package that is not installed.

Trials would run without the logger, and each would say so in its log alone, so the plan is refused. Install what the
message names, or leave the logger out; `csv` needs no package.

Wrong:

    loggers: [wandb]                           (where wandb is not installed)

Right:

    pip install 'ablate-arch[wandb]'
""",
    "S120": """A new component cannot have this name.

The name is what the component is called in YAML and what its file is called: small letters, digits and `_`, beginning
with a letter. It is refused where its slot has a component of that name, where YAML takes it for something else, and
where Python has a module of that name, which the new file would hide.

Wrong:

    ablate plugins new norm layer              (which comes with Ablate)

Right:

    ablate plugins new norm my_layer
""",
    "S121": """Several components have this name.

A kind is the name of a component in its slot, and other slots may have one of the same name: `none` is in most of them.
Say the slot too.

Wrong:

    ablate plugins show none

Right:

    ablate plugins show norm.none
""",
    "S122": """There is no such slot.

A slot is a named place that takes a component, as `norm` or `feed_forward`. The first column of `ablate plugins list`
has them all.

Wrong:

    ablate plugins new ffn my_network

Right:

    ablate plugins new feed_forward my_network
""",
}
