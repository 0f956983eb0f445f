"""What one training step of a network costs: floating-point operations, and bytes kept for the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from ablate.model.dropout import KeyedDropout
from ablate.model.keys import seed_of
from ablate.model.objective import TrainingLoss
from ablate.slots import Batch, Loss

KEEPS_SHAPE = frozenset({"norm", "residual", "mixer", "feed_forward", "position"})
"""Slots whose components' modules give what has the shape of their first input."""


class Cost(NamedTuple):
    """What a training step costs."""

    flops: int
    """Floating-point operations, forward and backward."""
    activations: int
    """Bytes that autograd keeps from the forward pass for the backward pass."""


def cost_of(network: nn.Module, loss: Loss, batch: Batch, *, times: int = 1) -> Cost:
    """Run one training step on a batch, on the device of the network, and count.

    ``times`` is how often the batch fits into the batch that is meant: what depends on it is scaled up.

    Raises:
        TypeError: a component's module does not keep the shape that its slot says it keeps.
    """
    for module in network.modules():
        if getattr(getattr(module, "made_by", None), "slot", None) in KEEPS_SHAPE:
            module.register_forward_hook(_keeps_shape)
    if batch.targets.is_meta:
        _draw_nothing(network)
    minimised = TrainingLoss(network, loss)

    def counted() -> tuple[int, int]:
        with (
            torch.enable_grad(),
            torch.random.fork_rng(devices=[]),
            FlopCounterMode(display=False, custom_mapping=_FUSED) as counter,
            _FusedAttention(),
        ):
            torch.manual_seed(seed_of("planning", "global"))
            kept = _Kept(network)
            with saved_tensors_hooks(kept.keep, lambda tensor: tensor):
                _, value = minimised(batch)
            value.backward()
        return counter.get_total_flops(), kept.size()

    flops, activations = counted()
    declared = _Declared(times)
    if declared.replace_in(network):
        flops, _ = counted()
    return Cost(flops * times + 3 * declared.forward, activations * times)


def _keeps_shape(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    """Hold a component to its slot's contract where it is first run, so that the error names it and no other."""
    wanted, given = tuple(inputs[0].shape), tuple(getattr(output, "shape", ()))
    if given != wanted:
        site: Any = module.site
        found = given if isinstance(output, Tensor) else type(output).__name__
        raise TypeError(f"the {site.slot} at `{site.path}` gave {found} for {wanted}")


def _draw_nothing(network: nn.Module) -> None:
    """Let dropout, whose masks are drawn on the CPU, take masks without memory."""
    for module in network.modules():
        if isinstance(module, KeyedDropout):
            module.__dict__["forward"] = lambda x: x * torch.empty_like(x) / 2


class _Kept:
    """The storages that autograd keeps, each once; parameters and buffers are there anyway."""

    def __init__(self, network: nn.Module) -> None:
        own = (*network.parameters(), *network.buffers())
        self._own = {tensor.untyped_storage()._cdata for tensor in own}
        self._storages: dict[int, torch.UntypedStorage] = {}  # held, so that no address is used twice

    def keep(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._own:
            self._storages[storage._cdata] = storage
        return tensor

    def size(self) -> int:
        return sum(storage.nbytes() for storage in self._storages.values())


class _Declared:
    """Components that declare their FLOPs, and what they declare in a step."""

    def __init__(self, times: int) -> None:
        self.forward = 0
        self._times = times

    def replace_in(self, network: nn.Module) -> bool:
        """Let the modules of such components do nothing but note what they cost; whether there are any.

        A module that stands in another such module is not called, and so counts once.
        """
        found = False
        for module in network.modules():
            formula: Callable[..., int | None] | None = getattr(getattr(module, "made_by", None), "flops", None)
            site: Any = getattr(module, "site", None)
            if formula is not None and formula(site, 1, site.context) is not None:
                module.__dict__["forward"] = self._stand_in(formula, site)
                found = True
        return found

    def _stand_in(self, formula: Callable[..., int | None], site: Any) -> Callable[..., Tensor]:
        def forward(x: Tensor, *beside: Any) -> Tensor:
            self.forward += formula(site, x.shape[0] * self._times, x.shape[1]) or 0
            return x.clone()

        return forward


class _FusedAttention(TorchFunctionMode):
    """On the meta device, take the fused attention kernel wherever the CPU would; torch itself would not.

    The unfused path keeps the weights (B, H, T, T) for the backward pass, which no trial does.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is scaled_dot_product_attention and args and args[0].is_meta:
            return _attend(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention on the meta device by the kernel that the CPU would take."""
    fits = query.dim() == 4 and query.shape[:2] == key.shape[:2] and query.shape[-1] == key.shape[-1] == value.shape[-1]
    trained = attn_mask is not None and attn_mask.requires_grad
    if not fits or trained or dropout_p or enable_gqa:
        return scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if attn_mask is not None:
        attn_mask = attn_mask.to(query.dtype)[(None,) * (4 - attn_mask.dim())]
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out: Tensor = fused(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]
    return out


def _fused_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """q·kᵀ and the product of the weights with v, a causal mask not deducted."""
    batch, heads, tokens, width = query
    return int(2 * batch * heads * tokens * key[-2] * (width + value[-1]))


def _fused_backward_flops(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> int:
    """Two products for each of the forward pass; that the kernel computes the logits again is its own affair."""
    return 2 * _fused_flops(query, key, value)


_FUSED = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _fused_flops,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _fused_backward_flops,
}
