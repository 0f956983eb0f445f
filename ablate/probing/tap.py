"""The tap: on a probed step it collects what probes look at; on every other step it costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ablate.slots import Attended, Parameter, Probe, Reading, Seen, Site

EARLY = (0, 1, 2, 5, 10, 20, 50)


def probed_steps(every: int, steps: int) -> frozenset[int]:
    """The steps that probes measure: a few early ones, then every ``every``, and the last."""
    return frozenset(step for step in (*EARLY, *range(0, steps, every), steps - 1) if 0 <= step < steps)


class Tap:
    """Collects tensors by hooks on the sites of a model during one step, and runs the probes on them.

    Used as ``open`` before the forward pass, ``gradients`` after the backward pass and before clipping, ``close``
    after the update. Nothing is sent from the device before ``close``, which sends all readings at once.

    Where a batch goes through in several forward passes, probes see the rows of all of them as one batch, but for
    attention: its queries and keys are those of the first pass, since what probes make of them grows with their square.
    """

    def __init__(
        self, model: nn.Module, parameters: Sequence[tuple[Parameter, nn.Parameter]], probes: Sequence[Probe]
    ) -> None:
        self._model = model
        self._parameters = self._trained = parameters
        self._probes = probes
        sites = {module: site for module in model.modules() if (site := getattr(module, "site", None)) is not None}
        self._blocks = [module for module, site in sites.items() if site.slot == "block"]
        self._attends = [module for module, site in sites.items() if site.slot == "attend" and site.block is not None]
        self._hidden = _by_layer(sites, "hidden")
        self._handles: list[RemovableHandle] = []
        self._passes: list[list[Tensor]] = []
        """The stream at every block, for each forward pass of the step."""
        self._attended: list[Attended] = []
        self._hidden_seen: dict[int, list[Tensor]] = {}
        self._seen: dict[str, dict[Any, Any]] = {}

    def open(self) -> None:
        """Start to look: the next forward passes are seen."""
        self.drop()
        self._seen = {name: {} for name in ("before", "gradients")}
        self._trained = [(parameter, value) for parameter, value in self._parameters if value.requires_grad]
        self._seen["before"] = {parameter.name: value.detach().clone() for parameter, value in self._trained}
        self._handles.append(self._model.register_forward_pre_hook(self._began))
        for block in self._blocks:
            self._handles.append(block.register_forward_pre_hook(self._saw_stream))
        if self._blocks:
            self._handles.append(self._blocks[-1].register_forward_hook(self._saw_last))
        for attend in self._attends:
            self._handles.append(attend.register_forward_pre_hook(self._saw_attention))
        for layer, hidden in self._hidden.items():
            self._handles.append(hidden.register_forward_hook(self._hidden_hook(layer)))

    def gradients(self) -> None:
        """Note the gradients as they are now; a parameter without one has gradients of zero."""
        self._seen["gradients"] = {
            parameter.name: torch.zeros_like(value) if value.grad is None else value.grad.detach().clone()
            for parameter, value in self._trained
        }
        self._blind()

    def drop(self) -> None:
        """Look no more, and forget what was seen: the step is not made, or made again."""
        self._blind()
        self._passes, self._attended, self._hidden_seen, self._seen = [], [], {}, {}

    def _blind(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @torch.no_grad()
    def close(self) -> list[tuple[Reading, float]]:
        """Run the probes, and give what they read."""
        seen = Seen(
            parameters=[parameter for parameter, _ in self._trained],
            after={parameter.name: value.detach() for parameter, value in self._trained},
            stream=[_joined([x.detach() for x in places]) for places in self._places()],
            stream_gradients=[
                _joined([torch.zeros_like(x) if x.grad is None else x.grad for x in places])
                for places in self._places()
            ],
            attention=self._attended,
            hidden={layer: _joined(parts) for layer, parts in self._hidden_seen.items()},
            **self._seen,
        )
        readings = {reading: value for probe in self._probes for reading, value in _measured(probe, seen)}
        self.drop()
        if not readings:
            return []
        values = torch.stack([value.float() for value in readings.values()]).tolist()
        return list(zip(readings, values, strict=True))

    def _places(self) -> Iterable[tuple[Tensor, ...]]:
        """The stream at each place, of all passes."""
        return zip(*self._passes, strict=True)

    def _began(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._passes.append([])

    def _saw_stream(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._keep(inputs[0])

    def _saw_last(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        self._keep(output)

    def _keep(self, x: Tensor) -> None:
        if x.requires_grad:
            x.retain_grad()
        self._passes[-1].append(x)

    def _saw_attention(self, module: Any, inputs: tuple[Tensor, ...]) -> None:
        if len(self._passes) > 1:
            return
        q, k = (x.detach() for x in inputs[:2])
        _, _, _, visible, bias = (*inputs, None, None)[:5]
        site: Site = module.site
        fixed = None if bias is None else bias.detach()
        self._attended.append(
            Attended(
                layer=site.block or 0,
                cross=site.cross,
                q=q,
                k=k,
                seen=module.seen(q, k, visible),
                logits=lambda q, k: module.logits(q, k, fixed),
            )
        )

    def _hidden_hook(self, layer: int) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            self._hidden_seen.setdefault(layer, []).append(output.detach())

        return hook


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """The rows of all parts; of one alone, itself."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _measured(probe: Probe, seen: Seen) -> Iterator[tuple[Reading, Tensor]]:
    """What a probe reads, held to its contract here, where the error can name it: a record is written much later.

    Raises:
        TypeError: something is no reading, or its value is no scalar tensor of a real type.
    """
    told = f"the probe `{getattr(probe, 'kind', type(probe).__name__)}`"
    readings: Any = probe.measure(seen)
    if not isinstance(readings, Mapping):
        raise TypeError(f"{told} gave {type(readings).__name__}, and no mapping of readings to scalars")
    for reading, value in readings.items():
        if not isinstance(reading, Reading):
            raise TypeError(f"{told} has the key {reading!r:.80}, which is no Reading")
        metric, layer, *texts = reading
        if not (isinstance(metric, str) and type(layer) in (int, type(None)) and _all_text(texts)):
            raise TypeError(f"{told} gave {reading!r}: a layer is a whole number or None, all else is text")
        if not isinstance(value, Tensor):
            raise TypeError(f"{told} gave {type(value).__name__} for {_called(reading)}, and no tensor")
        if value.dim() != 0 or value.is_complex():
            found = f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
            raise TypeError(f"{told} gave {found} for {_called(reading)}, and no real scalar")
        yield reading, value


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str | None) for value in values)


def _called(reading: Reading) -> str:
    """A reading as an error names it: ``max_logit`` of layer 2."""
    place = [f"layer {reading.layer}"] if reading.layer is not None else []
    place += [reading.name] if reading.name is not None else []
    return f"`{reading.metric}`" + (f" of {', '.join(place)}" if place else "")


def _by_layer(sites: dict[nn.Module, Site], slot: str) -> dict[int, nn.Module]:
    return {site.block: module for module, site in sites.items() if site.slot == slot and site.block is not None}
