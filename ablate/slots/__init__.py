"""The contract of every slot: what a component takes, what it gives, in which shapes.

A slot is a direct subclass of :class:`Component`; a component is a direct subclass of a slot. Adding a component is
writing one such class: its options are its fields, its first docstring line is its description everywhere.

Shapes: ``B`` batch, ``T`` tokens, ``D`` width of the stream, ``H`` heads, ``K`` width of a head, ``V`` vocabulary.

Nothing here imports torch or a component, so that a report can be made where neither is installed.
"""

from collections.abc import Mapping

from ablate.slots.component import Component, Components, Options, is_neutral, named, parts_of
from ablate.slots.decoding import Decoded, Decodes, Decoding
from ablate.slots.executor import TRAINER, Advanced, Ended, Executor, Job, Need, Pool, Room
from ablate.slots.interface import IGNORED, Batch, Cache, Form, Given, Interface
from ablate.slots.logger import Logger
from ablate.slots.model import (
    FeedForward,
    Mixer,
    Model,
    Norm,
    Output,
    Placement,
    Position,
    Residual,
    Scale,
    Wiring,
)
from ablate.slots.probe import Attended, Probe, Reading, Seen
from ablate.slots.section import Page, Section
from ablate.slots.site import ImpossibleError, Parameter, Site, mark, place
from ablate.slots.task import MANY_UNKNOWN, Data, Task
from ablate.slots.training import Initializer, Loss, Optimizer, Schedule
from ablate.slots.traits import Traits

_OF_THE_MODEL = (Model, Norm, Placement, Residual, Mixer, Scale, FeedForward, Position, Output)
_OF_TRAINING = (Initializer, Optimizer, Schedule, Loss)
_BESIDE = (Task, Decoding, Probe, Logger, Executor, Section)

SLOTS: Mapping[str, type[Component]] = {slot.slot: slot for slot in (*_OF_THE_MODEL, *_OF_TRAINING, *_BESIDE)}
"""Every slot by its name in YAML."""

__all__ = [
    "IGNORED",
    "MANY_UNKNOWN",
    "SLOTS",
    "TRAINER",
    "Advanced",
    "Attended",
    "Batch",
    "Cache",
    "Component",
    "Components",
    "Data",
    "Decoded",
    "Decodes",
    "Decoding",
    "Ended",
    "Executor",
    "FeedForward",
    "Form",
    "Given",
    "ImpossibleError",
    "Initializer",
    "Interface",
    "Job",
    "Logger",
    "Loss",
    "Mixer",
    "Model",
    "Need",
    "Norm",
    "Optimizer",
    "Options",
    "Output",
    "Page",
    "Parameter",
    "Placement",
    "Pool",
    "Position",
    "Probe",
    "Reading",
    "Residual",
    "Room",
    "Scale",
    "Schedule",
    "Section",
    "Seen",
    "Site",
    "Task",
    "Traits",
    "Wiring",
    "is_neutral",
    "mark",
    "named",
    "parts_of",
    "place",
]
