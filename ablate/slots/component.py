"""What every component is: a frozen, typed value with a kind, found through the registry when it is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


class Options(BaseModel):
    """A frozen, strict group of options: unknown names are errors, and 1, 1.0 and true are three values."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


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
