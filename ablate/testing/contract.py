"""The contract: which rules apply to which slot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ablate.registry import Registry
from ablate.slots import SLOTS, Component
from ablate.testing import (
    classes,
    continuing,
    decoding,
    learning,
    modules,
    options,
    probes,
    tasks,
    tensors,
    training_parts,
)
from ablate.testing.case import Case
from ablate.testing.findings import ContractError, Finding
from ablate.testing.making import default, installed, without_example
from ablate.testing.rules import Check, Rule


def check(component: Component | type[Component], registry: Registry | None = None) -> list[Finding]:
    """Run every check that applies to a component, or to a class by its default options.

    Args:
        component: a component, or its class: see :func:`instance_of`.
        registry: where components that stand in its options are looked up; by default what is installed.
    """
    return [each.find() for each in checks(component, registry)]


def checks(component: Component | type[Component], registry: Registry | None = None) -> list[Check]:
    """The checks that apply to a component, for ``pytest.mark.parametrize("check", checks(MyNorm), ids=str)``.

    Where a component has no instance, no traits or builds nothing, the check that says so is the last one.
    """
    registry = registry or installed()
    cls = component if isinstance(component, type) else type(component)
    found = [Check(rule, cls, cls) for rule in _rules_of_class(cls)]
    if classes.sound(cls) is not None:
        return found
    if isinstance(component, type):
        instance = Check(_INSTANCE, cls, cls)
        found.append(instance)
        if not instance.find().ok:
            return found
        component = default(component, registry)
    case = Case(component, registry)
    found += [Check(rule, cls, case) for rule in _VALUE]
    if not found[-1].find().ok:
        return found
    if cls.slot in _MODULE_SLOTS:
        builds = Check(_BUILDS, cls, case)
        found.append(builds)
        if not builds.find().ok:
            return found
        found += [Check(rule, cls, case) for rule in _MODULE if rule.applies(case)]
    return found + [Check(rule, cls, case) for rule in _OF_SLOT.get(cls.slot, ()) if rule.applies(case)]


def instance_of(component: type[Component], registry: Registry | None = None) -> Component:
    """A component with its default options; one that is required takes the first of its field's ``examples``.

    Raises:
        ContractError: an option is required and has no example, or the options do not fit together.
    """
    finding = Check(_INSTANCE, component, component).find()
    if not finding.ok:
        raise ContractError(finding)
    return default(component, registry)


def _made(component: type[Component]) -> str | None:
    if (bare := without_example(component)) is None:
        default(component)
    return bare


_INSTANCE = Rule(
    "instance", "an instance by default options, and by `Field(examples=[...])` where one is required", _made
)

_CLASS = (
    Rule(
        "imports",
        "a module that a fresh interpreter imports alone, and that changes nothing for others",
        classes.imports,
    ),
    Rule("sound", "a class with all that its slot asks for, and options that a file can hold", classes.sound),
    Rule("docstring", "a docstring whose first line says what it is", classes.described),
    Rule("fields", "a docstring under each option", classes.options_described),
)
_SOURCE = Rule("source", "the paper, as `Source: Author year, Title` in the docstring", classes.sourced)
_WITHOUT_SOURCE = frozenset({"logger", "executor", "section"})


def _rules_of_class(component: type[Component]) -> Iterator[Rule]:
    yield from _CLASS
    if getattr(component, "slot", None) not in _WITHOUT_SOURCE:
        yield _SOURCE


_VALUE = (
    Rule("round_trip", "the same component after JSON", options.round_trip),
    Rule("yaml", "the same component after YAML", options.yaml_round_trip),
    Rule("value", "equal components to be one key", options.is_value),
    Rule("pickles", "the same component after pickling", options.pickled),
    Rule("identity", "an identity that is stable and that every option is part of", options.identified),
    Rule("traits", "`traits` to be a pure function that gives Traits", classes.declares),
)

_BUILDS = Rule("builds", "a module at some place of its slot", modules.builds)

_MODULE = (
    Rule("shape", "float32 of the slot's shapes, finite, for a batch and for one token", tensors.shaped),
    Rule("autocast", "the same shapes, finite, under bfloat16 autocast", tensors.autocast),
    Rule("float64", "float64 of the same shapes, finite, from float64", tensors.double),
    Rule(
        "causal",
        "no output to depend on a later token in training",
        tensors.causal,
        applies=lambda case: any(subject.causal for subject in case.subjects),
        declared=lambda case: case.traits.causal,
        otherwise="some output to depend on a later token in training, as is declared",
    ),
    Rule(
        "position_wise",
        "no output to depend on another token",
        tensors.position_wise,
        applies=lambda case: (
            case.traits.position_wise or SLOTS[case.component.slot].traits(case.component).position_wise
        ),
        declared=lambda case: case.traits.position_wise,
        otherwise="some output to depend on another token in training, as is declared",
    ),
    Rule(
        "batch",
        "no output to depend on another sequence of the batch in training",
        tensors.batch_independent,
        declared=lambda case: not case.traits.batch_dependent,
        otherwise="some output to depend on another sequence of the batch in training, as is declared",
    ),
    Rule(
        "padding",
        "padding to move no output",
        tensors.padding,
        applies=lambda case: any(subject.padding for subject in case.subjects),
    ),
    Rule("gradient", "a finite gradient to every parameter, not zero throughout", learning.gradients),
    Rule("deterministic", "the same outputs at every call and of every build, in evaluation", modules.deterministic),
    Rule("global", "nothing to be drawn from a global generator", modules.draws_nothing),
    Rule("state_dict", "the same outputs after a round trip of the state_dict", modules.state_dict),
    Rule("meta", "the same parameters on the meta device", modules.meta),
    Rule("module_pickles", "the same outputs after pickling the module", modules.module_pickles),
    Rule(
        "compile",
        "one graph under torch.compile",
        learning.compiles,
        declared=lambda case: case.traits.compiles,
        otherwise="no single graph under torch.compile, as is declared",
    ),
    Rule(
        "vmap",
        "the same outputs under torch.func.vmap as one by one",
        learning.runs_under_vmap,
        declared=lambda case: case.traits.vmap,
        otherwise="a failure under torch.func.vmap, as is declared",
    ),
    Rule("learns", "a lower loss after twenty steps of Adam", learning.learns),
    Rule("dead", "options that `effective` calls dead to change nothing", modules.dead_options),
)
_MODULE_SLOTS = frozenset({"norm", "residual", "scale", "position", "mixer", "feed_forward", "output", "model"})

_START = Rule("start", "later tokens by themselves to give what they give in their sequence", continuing.starts)
_FLOPS = Rule("flops", "a whole number of operations, or None", modules.flops)
_CACHED = Rule(
    "cached",
    "the same outputs in pieces with a cache as at once",
    continuing.cached,
    applies=lambda case: any(subject.where == "at a causal site" for subject in case.subjects),
    declared=lambda case: case.traits.cached,
    otherwise="other outputs in pieces than at once, or none, as is declared",
)
_CROSSES = Rule(
    "crosses",
    "an output that moves with the memory at a cross site",
    continuing.crosses,
    declared=lambda case: case.traits.crosses,
    otherwise="no output that moves with a memory, as is declared",
)

_OF_SLOT: Mapping[str, tuple[Rule, ...]] = {
    "scale": (_START,),
    "position": (_START,),
    "mixer": (_CACHED, _CROSSES, _FLOPS),
    "feed_forward": (_FLOPS,),
    "model": (
        Rule("decode", "the same logits token by token as at once", continuing.decodes),
        Rule(
            "source_read",
            "logits that move with the source",
            continuing.reads,
            applies=lambda case: any(subject.memory is not None for subject in case.subjects),
        ),
    ),
    "placement": (Rule("wiring", "a Wiring that the place alone decides", training_parts.wires),),
    "optimizer": (
        Rule("learns", "a lower loss after twenty steps", training_parts.lowers),
        Rule("parameters", "matrices alone and vectors alone to be optimised too", training_parts.takes_any_parameters),
        Rule("rate", "each parameter in one group, and no step at a rate of 0", training_parts.follows_rate),
        Rule("resumes", "the same parameters when it goes on from its state_dict", training_parts.resumes),
    ),
    "initializer": (
        Rule("fills", "finite values in the whole tensor, whatever was in it", training_parts.fills),
        Rule("draws", "values that the generator alone decides", training_parts.draws_from_its_generator),
    ),
    "schedule": (
        Rule("factor", "a factor from 0 to 1 at each step, that the step alone decides", training_parts.scheduled),
    ),
    "loss": (
        Rule("measure", "a finite scalar with a finite gradient", training_parts.measures),
        Rule("ignored", "ignored targets to take no part, and 0 where all are", training_parts.ignores),
    ),
    "decoding": (
        Rule("writes", "tokens (B, L) and the sums of their log-probabilities (B,)", decoding.writes),
        Rule("stops", "the end's token alone after a text's end, and else the most tokens", decoding.stops),
        Rule("repeats", "the same texts from the same generator, and no other draw", decoding.repeats),
    ),
    "task": (
        Rule("loads", "data with a digest that is the same at every load", tasks.loads),
        Rule("batches", "batches of the interface's shapes, types and ranges", tasks.batches),
        Rule("draws", "a batch that the generator alone decides", tasks.draws_by_generator),
        Rule("evaluation", "the same evaluation set at every call and in batches of any size", tasks.evaluates),
        Rule("metrics", "sums that add up over batches, and exactly the metrics of `units`", tasks.tallies),
    ),
    "probe": (
        Rule("measures", "finite readings of what `units` names", probes.measures),
        Rule("repeats", "the same readings of the same step", probes.repeats),
    ),
}


def rules() -> Iterator[Rule]:
    """Every rule of the contract."""
    yield from (*_CLASS, _SOURCE, _INSTANCE, *_VALUE, _BUILDS, *_MODULE)
    for of_slot in _OF_SLOT.values():
        yield from of_slot
