"""The contract of every slot: what a component takes, what it gives, in which shapes.

A slot is a direct subclass of :class:`Component`; a component is a direct subclass of a slot. Adding a component is
writing one such class: its options are its fields, its first docstring line is its description everywhere.

Shapes: ``B`` batch, ``T`` tokens, ``D`` width of the stream, ``H`` heads, ``K`` width of a head, ``V`` vocabulary.

This module imports neither torch nor a component, so that a report can be made where neither is installed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

if TYPE_CHECKING:
    import torch
    from markupsafe import Markup
    from torch import Tensor, nn

    M = TypeVar("M", bound=nn.Module)


class Options(BaseModel):
    """A frozen, strict group of options: unknown names are errors, and 1, 1.0 and true are three values."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Component(Options):
    """What goes into a slot: one class with typed options."""

    slot: ClassVar[str]
    """The slot's name in YAML."""
    neutral: ClassVar[str | None] = None
    """The kind that means "not there", which is what a switch's ``off`` puts in."""
    default: ClassVar[str | None] = None
    """The kind that stands where an experiment names none; set by a slot that has one."""
    version: ClassVar[int] = 1
    """Raised by the author when the component's meaning changes; trials of the old version are then run anew."""

    @classmethod
    def is_slot(cls) -> bool:
        """Whether this class is a slot, and so no component."""
        return "slot" in cls.__dict__

    @classmethod
    def describe(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.is_slot():
            return handler(source)
        return core_schema.with_info_plain_validator_function(
            cls._resolve, serialization=core_schema.plain_serializer_function_ser_schema(BaseModel.model_dump)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"x-slot": cls.slot} if cls.is_slot() else handler(schema)

    @classmethod
    def _resolve(cls, value: Any, info: ValidationInfo) -> Component:
        """Turn ``rms`` or ``{kind: rms, eps: 1e-5}`` into a component; the registry comes by the validation context."""
        if isinstance(value, Component):
            if value.slot != cls.slot:
                raise PydanticCustomError(
                    "wrong_slot",
                    "`{kind}` is a {found}, not a {slot}",
                    {"kind": getattr(value, "kind", "?"), "found": value.slot, "slot": cls.slot},
                )
            return value
        options = {"kind": value} if isinstance(value, str) else value
        if not isinstance(options, Mapping) or not isinstance(options.get("kind"), str):
            raise PydanticCustomError(
                "component_type", "a {slot} is a name or a mapping with `kind`", {"slot": cls.slot}
            )
        registry: Components | None = (info.context or {}).get("registry")
        if registry is None:
            raise LookupError(f"no registry to look {options['kind']!r} up in: pass a {cls.slot} itself, or a context")
        return registry.get(cls.slot, options["kind"]).model_validate(options, context=info.context)


class Components(Protocol):
    """What a slot needs of the registry."""

    def get(self, slot: str, kind: str) -> type[Component]:
        """The component called ``kind`` in ``slot``.

        Raises:
            PydanticCustomError: there is none; the message names the closest and what exists.
        """
        ...


# --- the model ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """Where a component stands: its logical path, which keys its randomness, and the sizes around it."""

    path: str
    """Logical path, as ``block.2.mixer``; initial values are keyed by it, so it outlives any refactoring."""
    slot: str
    """Name of the slot; the role of a parameter that has no name of its own in its component."""
    width: int
    """Size of the last axis of what comes in: the stream's width, or a head's for what acts on q and k."""
    depth: int
    """Number of blocks in the stack."""
    context: int
    """Largest number of tokens."""
    layer: int | None = None
    """Index of the block, from 0; None outside of the blocks."""
    vocabulary: int = 0
    """Number of tokens that the task knows."""
    position: Position | None = None
    """The model's position component, for mixers that rotate q and k."""

    def child(self, name: str, slot: str | None = None, **changes: Any) -> Site:
        """The site of a part, one step further down the path."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name, slot=slot or name, **changes)


class Parameter(NamedTuple):
    """What an initialiser or optimizer may know of a parameter."""

    name: str
    """Logical name, as ``block.2.mixer.q.weight``."""
    role: str
    """Its place in its component (q, k, v, o, w1, w2), or else its slot (norm, embed, head)."""
    layer: int | None
    shape: tuple[int, ...]


class ImpossibleError(Exception):
    """Raised by a component's ``build`` where it cannot work; the arm is then excluded, with this reason."""


def mark(module: M, at: Site) -> M:
    """Note on a module where it stands.

    The site keys the initial values of its parameters, and lets probes find what they measure: they look at the sites
    of slot ``block`` (its input is the stream), ``attend`` (its inputs are q, k and v, scaled and rotated; its
    attribute ``causal`` says which keys are valid) and ``hidden`` (its output is the feed-forward's activation).
    """
    module.site = at  # type: ignore[assignment]  # a plain attribute; nn.Module's stub knows only tensors and modules
    return module


def place(component: Buildable, at: Site, *inputs: Any) -> nn.Module:
    """Build a component's module and mark it.

    A component that holds other components builds them with this too, at ``at.child(...)``.
    """
    return mark(component.build(at, *inputs), at)


class Buildable(Protocol):
    """A component whose slot builds a module."""

    def build(self, at: Site, *inputs: Any) -> nn.Module:
        """The module that stands at this site."""
        ...


class Norm(Component):
    """Normalises the last axis: (..., D) -> (..., D)."""

    slot: ClassVar[str] = "norm"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (..., D) -> (..., D)."""


class Wiring(NamedTuple):
    """Which places of a sublayer hold a norm: ``stream(residual(x, after(branch(before(x)))))``."""

    before: bool = False
    after: bool = False
    stream: bool = False


class Placement(Component):
    """Says where in a sublayer the norm sits."""

    slot: ClassVar[str] = "placement"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def wiring(self, at: Site) -> Wiring:
        """The places that hold a norm in the sublayer at this site."""


class Residual(Component):
    """Joins the stream with a sublayer's update: (x, update), both (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "residual"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (x, update) -> (B, T, D)."""


class Scale(Component):
    """Scales queries and keys before their product: (q, k), both (B, H, T, K) -> the same shapes."""

    slot: ClassVar[str] = "scale"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (q, k) -> (q, k); ``at.width`` is a head's width."""


class Position(Component):
    """Tells the model where a token stands, in the embeddings or in queries and keys."""

    slot: ClassVar[str] = "position"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (B, T, D) -> (B, T, D) that acts on the embeddings."""

    @abstractmethod
    def rotation(self, at: Site) -> nn.Module:
        """A module (q, k) -> (q, k) that acts on each head's queries and keys; ``at.width`` is a head's width."""


class Mixer(Component):
    """Moves information between tokens: (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "mixer"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (B, T, D) -> (B, T, D)."""


class FeedForward(Component):
    """Transforms each token alone: (B, T, D) -> (B, T, D)."""

    slot: ClassVar[str] = "feed_forward"
    neutral: ClassVar[str | None] = "none"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module (B, T, D) -> (B, T, D)."""


class Output(Component):
    """Turns the stream into logits: (B, T, D) -> (B, T, V)."""

    slot: ClassVar[str] = "output"

    @abstractmethod
    def build(self, at: Site, embedding: nn.Embedding) -> nn.Module:
        """A module (B, T, D) -> (B, T, V); ``embedding`` is the input's (V, D) table."""


class Model(Component):
    """A whole network: what the task's inputs become logits by."""

    slot: ClassVar[str] = "model"

    @abstractmethod
    def build(self, at: Site) -> nn.Module:
        """A module from the task's inputs, (B, T) token ids, to logits (B, T, V); ``at`` has context and vocabulary."""


# --- training -------------------------------------------------------------------------------------------------------


class Initializer(Component):
    """Draws the initial values of every parameter of two or more axes; a bias starts at zero, a gain as it was built."""

    slot: ClassVar[str] = "initializer"
    default: ClassVar[str | None] = "lecun_normal"

    @abstractmethod
    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill a CPU tensor in place, drawing from ``generator`` alone, which is keyed by seed and name."""


class Optimizer(Component):
    """Turns gradients into updates."""

    slot: ClassVar[str] = "optimizer"
    lr: float
    """Peak learning rate."""

    @abstractmethod
    def build(self, parameters: Sequence[tuple[Parameter, nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer over these parameters, at the peak learning rate."""


class Schedule(Component):
    """The learning rate's course, as a pure function of the step."""

    slot: ClassVar[str] = "schedule"
    default: ClassVar[str | None] = "constant"

    @abstractmethod
    def factor(self, step: int, steps: int) -> float:
        """What the peak rate is multiplied by at ``step`` (from 0) of ``steps``."""


# --- beside the model -----------------------------------------------------------------------------------------------

Batch = tuple["Tensor", "Tensor"]


class Data(Protocol):
    """A task's data, read and checked, ready to give batches."""

    vocabulary: int
    context: int
    digest: str
    """Hash of the content and of how it is cut; part of a trial's identity."""
    facts: Mapping[str, float]
    """What the report states of the data, as ``unigram_entropy`` in nats."""

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Training inputs and targets, (size, T) each, drawn from ``generator`` alone."""
        ...

    def evaluation(self, size: int) -> Sequence[Batch]:
        """The fixed evaluation set, in batches of at most ``size``; the same at every call."""
        ...


class Task(Component):
    """What a model is trained and judged on."""

    slot: ClassVar[str] = "task"
    units: ClassVar[Mapping[str, str]]
    """The metrics that the task reports, as ``val/loss``, each with its unit."""

    @abstractmethod
    def load(self, folder: str) -> Data:
        """Read the data; relative paths are relative to ``folder``.

        Raises:
            InputError: the data cannot be used; says why and what to do.
        """

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss that is minimised: a scalar, in nats where it is a log-likelihood."""

    @abstractmethod
    def metrics(self, loss: float) -> Mapping[str, float]:
        """What is reported of the evaluation set, from its mean loss."""


class Reading(NamedTuple):
    """What a probe measured, and where."""

    metric: str
    layer: int | None = None
    role: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Seen:
    """What the tap saw in one training step; every tensor is detached.

    Gradients are unscaled and not yet clipped.
    """

    parameters: Sequence[Parameter]
    before: Mapping[str, Tensor]
    """Each parameter before the update, by logical name."""
    after: Mapping[str, Tensor]
    """Each parameter after the update."""
    gradients: Mapping[str, Tensor]
    stream: Sequence[Tensor]
    """The input of each block and, last, what left the last one: (B, T, D)."""
    stream_gradients: Sequence[Tensor]
    """The loss's gradient with respect to each of ``stream``."""
    queries: Mapping[int, Tensor] = field(default_factory=dict)
    """Scaled and rotated queries by layer, (B, H, T, K), where the mixer is attention."""
    keys: Mapping[int, Tensor] = field(default_factory=dict)
    causal: Mapping[int, bool] = field(default_factory=dict)
    """By layer, whether a query sees only the keys up to its own position."""
    hidden: Mapping[int, Tensor] = field(default_factory=dict)
    """What left the feed-forward's activation, by layer: (B, T, F)."""


class Probe(Component):
    """A measurement taken during training; a pure function of tensors that never waits for the device."""

    slot: ClassVar[str] = "probe"
    always: ClassVar[bool] = True
    """Whether it measures unless an experiment says otherwise."""
    units: ClassVar[Mapping[str, str]]
    """The metrics that it reads, each with its unit ("" for a ratio)."""

    @abstractmethod
    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        """Scalars (0-d tensors), each under what it is a reading of."""


TRAINER = "ablate.training.trial:train"
"""What trains a trial, as ``module:function``; a module may have a ``preload()`` that does the imports of later."""


@dataclass(frozen=True)
class Job:
    """One attempt at one trial, in plain values that go to another process or machine."""

    trial: str
    folder: str
    """The trial's folder, which holds ``config.json`` and the folder of this attempt."""
    attempt: int
    device: str = "cpu"
    threads: int = 1
    plugins: tuple[str, ...] = ()
    """Plugin files to bring in beside what is installed."""
    trainer: str = TRAINER


@dataclass(frozen=True)
class Advanced:
    """How far a running trial has come; said a few times a second at most."""

    trial: str
    step: int
    steps: int
    loss: float
    tokens_per_second: float


@dataclass(frozen=True)
class Ended:
    """An attempt is over, and what ran it is free again."""

    trial: str
    end: str
    """``complete``, ``diverged``, ``failed``, ``interrupted`` (by a checkpoint), or ``lost`` with its worker."""
    error: str | None = None
    """One line: the exception of a failure, or what the worker died of."""


class Pool(Protocol):
    """An executor at work. One thread uses it; no call but ``reports`` waits."""

    def slots(self, device: str, threads: int) -> int:
        """How many trials that need this device and these threads run at once."""
        ...

    def submit(self, job: Job) -> None:
        """Start an attempt; the caller keeps no more than :meth:`slots` of them running."""
        ...

    def reports(self, timeout: float) -> Sequence[Advanced | Ended]:
        """What has happened since; waits at most ``timeout`` seconds for something to happen.

        Every submitted job gets exactly one ``Ended``, whatever it dies of.

        Raises:
            AblateError: nothing can run here at all; says why.
        """
        ...

    def stop(self) -> None:
        """Ask whatever runs to write a checkpoint and end; each then reports ``interrupted``."""
        ...

    def close(self) -> None:
        """End everything at once; nothing runs any more when this returns."""
        ...


class Executor(Component):
    """Runs trials somewhere."""

    slot: ClassVar[str] = "executor"
    default: ClassVar[str | None] = "local"

    @abstractmethod
    def open(self, trainer: str = TRAINER) -> Pool:
        """Begin to get ready and return at once, so that slow imports overlap with planning.

        The pool belongs to the caller, who closes it.
        """


class Page(Protocol):
    """What a section of the report is made from, and with."""

    results: Any
    """The study's :class:`~ablate.analysis.results.Results`: plan, trials, effects, verdicts, curves, probes."""

    @property
    def study(self) -> Any:
        """The results as the report's own figures and tables take them: :class:`~ablate.reporting.study.Study`."""
        ...

    def figure(self, figure: Any, name: str, alt: str, caption: str = "") -> Markup:
        """A matplotlib figure as inline SVG with its caption.

        ``name`` is unique in the page; ``alt`` says what is seen, for those who cannot see it.
        """
        ...

    def table(self, table: Any, name: str, caption: str, tall: bool = False) -> Markup:
        """A :class:`~ablate.reporting.tables.Table` that sorts; ``name`` is its id in the page."""
        ...

    def template(self, name: str, /, **values: Any) -> Markup:
        """One of the report's own templates, filled in; every value is escaped and cut to what is public."""
        ...


class Section(Component):
    """A part of the report."""

    slot: ClassVar[str] = "section"
    order: ClassVar[float]
    """Where it stands: the report's own sections are at 1 to 10, as ``4.5`` after gradient flow."""
    title: ClassVar[str]
    """Its heading, and its entry in the navigation."""

    @abstractmethod
    def render(self, page: Page) -> str:
        """Its HTML as :class:`markupsafe.Markup`; a plain string is shown as text, and an empty one leaves it out."""


SLOTS: Mapping[str, type[Component]] = {cls.slot: cls for cls in Component.__subclasses__()}
"""Every slot by its name in YAML."""
