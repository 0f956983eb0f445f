"""Curves and probe readings as Arrow streams: readable up to the last batch, whatever happens."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from ablate.records.sealing import replacing

CURVES = pa.schema(
    [
        ("step", pa.int32()),
        ("metric", pa.string()),
        ("value", pa.float64()),
    ]
)
PROBES = pa.schema(
    [
        ("step", pa.int32()),
        ("metric", pa.string()),
        ("layer", pa.int32()),
        ("role", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),
    ]
)


def write_series(path: Path, schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> None:
    """Write rows in the order of the schema's columns; NaN and infinity stay what they are."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    with replacing(path) as temporary, pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.record_batch(arrays, schema=schema))


def values_at(path: Path, metric: str) -> dict[int, float]:
    """One metric of a file of curves, by step; nothing where the file is gone or damaged."""
    try:
        table = read_series(path).select(["step", "metric", "value"])
    except (OSError, KeyError, pa.ArrowInvalid):
        return {}
    return {step: value for step, name, value in zip(*table.to_pydict().values(), strict=True) if name == metric}


def read_series(path: Path) -> pa.Table:
    """All rows of one file."""
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_stream(source).read_all()
