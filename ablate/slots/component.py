"""What every component is: a frozen, typed value with a kind, found through the registry when it is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, ClassVar, Protocol, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializationInfo,
    ValidationInfo,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ablate.slots.traits import Traits
from ablate.slots.written import take_what_is_written


class Options(BaseModel):
    """A frozen, strict group of options: unknown names are errors, and 1, 1.0 and true are three values.

    An option may be a number, text, true or false, a list, a mapping, a tuple or a set (in YAML a list), an `Enum` or
    a `Literal` (in YAML a member's value), further options, a component of a slot, or any of these or None.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        validate_default=True,  # a default of 4 for a float is 4.0, as it would be from YAML
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        take_what_is_written(handler.resolve_ref_schema(schema), handler.resolve_ref_schema)
        return schema

    # Lists and mappings have no hash, and Python says that 1 is True: options are told apart by type, and hold any.
    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Options) and _fixed(self) == _fixed(other))

    def __hash__(self) -> int:
        return hash(_fixed(self))


class Component(Options):
    """What goes into a slot: one class with typed options."""

    slot: ClassVar[str]
    """The slot's name in YAML."""
    neutral: ClassVar[str | None] = None
    """The kind that means "not there", which is what a switch's ``off`` puts in."""
    default: ClassVar[str | None] = None
    """The kind that stands where an experiment names none; set by a slot that has one."""
    usual: ClassVar[str | None] = None
    """The kind that help names as an example; set by a slot that has no default."""
    version: ClassVar[int] = 1
    """Raised by the author when the component's meaning changes; trials of the old version are then run anew."""

    def effective(self) -> Self:
        """The same component with options that have no effect here at their defaults; by default itself.

        What others of its options make dead is no part of a trial's identity, so arms that differ in it alone are one.
        """
        return self

    def traits(self) -> Traits:
        """What is declared of this component, with these options."""
        return Traits()

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
            return super().__get_pydantic_core_schema__(source, handler)
        dumped = core_schema.plain_serializer_function_ser_schema(_dumped, info_arg=True)
        return core_schema.with_info_plain_validator_function(cls._resolve, serialization=dumped)

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
                    "`{kind}` is {found}, not {slot}",
                    {"kind": getattr(value, "kind", "?"), "found": a(value.slot), "slot": a(cls.slot)},
                )
            return value
        options = {"kind": value} if isinstance(value, str) else value
        if not isinstance(options, Mapping) or not isinstance(options.get("kind"), str):
            raise PydanticCustomError(
                "component_type", "{slot} is a name or a mapping with `kind`", {"slot": a(cls.slot)}
            )
        registry: Components | None = (info.context or {}).get("registry")
        if registry is None:
            raise LookupError(f"no registry to look {options['kind']!r} up in: pass {a(cls.slot)} itself, or a context")
        return registry.get(cls.slot, options["kind"]).model_validate(options, context=info.context)


def a(slot: str) -> str:
    """A slot's name in a sentence: ``a norm``, ``an executor``."""
    return f"an {slot}" if slot[0] in "aeiou" else f"a {slot}"


def is_neutral(component: Component) -> bool:
    """Whether this is its slot's component that means "not there"."""
    return component.neutral is not None and getattr(component, "kind", None) == component.neutral


def named(component: Component) -> str:
    """How a sentence names a component, as ``position `rotary```."""
    return f"{component.slot} `{getattr(component, 'kind', type(component).__name__)}`"


def parts_of(value: Any) -> Iterator[Component]:
    """Every component in a value, itself among them, also in lists and mappings of options."""
    if isinstance(value, Component):
        yield value
    if isinstance(value, Options):
        value = [getattr(value, name) for name in type(value).model_fields]
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            yield from parts_of(item)


def _dumped(value: Component, info: SerializationInfo) -> dict[str, Any]:
    return value.model_dump(mode=info.mode)


def _fixed(value: Any) -> Any:
    """What has a hash and is equal exactly where type and content are."""
    if isinstance(value, Options):
        return type(value), *(_fixed(getattr(value, name)) for name in type(value).model_fields)
    if isinstance(value, Mapping):
        return dict, frozenset((_fixed(key), _fixed(item)) for key, item in value.items())
    if isinstance(value, Set):
        return frozenset(map(_fixed, value))
    if isinstance(value, list | tuple):
        return type(value), *map(_fixed, value)
    return type(value), value


class Components(Protocol):
    """What a slot needs of the registry."""

    def get(self, slot: str, kind: str) -> type[Component]:
        """The component called ``kind`` in ``slot``.

        Raises:
            PydanticCustomError: there is none; the message names the closest and what exists.
        """
        ...
