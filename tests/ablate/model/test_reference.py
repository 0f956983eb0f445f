"""Blocks and whole networks against torch's own Transformer, with our weights copied over."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.model.stack import Block, BlockParts
from ablate.slots import Given, Site, place
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.mixer import Attention
from ablate_plugins.norm import LayerNorm
from ablate_plugins.placement import PostNorm, PreNorm
from ablate_plugins.residual import AddResidual
from tests.ablate.model.drawn import LABELS, LENGTHS, PAIRS, drawn, model, network, same, stream, tokens, valid

WIDTH, HEADS, INNER = 8, 2, 24
AT = Site(path="block.0", slot="block", width=WIDTH, depth=1, context=16, layer=0)
TGT = valid((7, 2, 5), 7)
"""Which tokens of the target there are; the source's are of lengths 8, 5 and 1."""
FUTURE = torch.ones(7, 7, dtype=torch.bool).triu(1)
both_ways = pytest.mark.parametrize("norm_first", [False, True])


def copy_attention(ours: Any, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
    theirs.out_proj.load_state_dict(ours.o.state_dict())


def copy_block(ours: Any, theirs: Any) -> None:
    """A block's weights into torch's layer of an encoder or a decoder."""
    attentions = {"mixer": "self_attn", "cross": "multihead_attn"}
    for index, (name, sublayer) in enumerate(ours.named_children(), start=1):
        if name in attentions:
            copy_attention(sublayer.mixers[0], getattr(theirs, attentions[name]))
        else:
            theirs.linear1.load_state_dict(sublayer.others[0].w1.state_dict())
            theirs.linear2.load_state_dict(sublayer.others[0].w2.state_dict())
        norm = sublayer.before if theirs.norm_first else sublayer.stream
        getattr(theirs, f"norm{index}").load_state_dict(norm.state_dict())


def torchs(layer: type[nn.Module], norm_first: bool) -> Any:
    return layer(WIDTH, HEADS, INNER, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64)


@both_ways
@pytest.mark.parametrize("padded", [False, True])
def test_a_block_with_cross_attention_is_torchs_decoder_layer(norm_first: bool, padded: bool) -> None:
    parts = BlockParts(
        norm=LayerNorm(),
        placement=PreNorm() if norm_first else PostNorm(),
        residual=AddResidual(),
        mixer=Attention(heads=HEADS),
        feed_forward=Mlp(width=INNER, activation="relu"),
        dropout=0.0,
        cross=Attention(heads=HEADS),
    )
    ours = drawn(Block(parts, AT))
    theirs = torchs(nn.TransformerDecoderLayer, norm_first)
    copy_block(ours, theirs)
    x, memory = stream(tokens=7), stream(tokens=8, seed=5)
    masks = {"tgt_key_padding_mask": ~TGT, "memory_key_padding_mask": ~valid()} if padded else {}
    given = (TGT, valid()) if padded else (None, None)
    for dtype, atol in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        ours, theirs, x, memory = ours.to(dtype), theirs.to(dtype), x.to(dtype), memory.to(dtype)
        same(
            ours(x, Given(valid=given[0], memory=memory, memory_valid=given[1])),
            theirs(x, memory, tgt_mask=FUTURE, **masks),
            atol,
        )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, (8, 5, 1)])
@pytest.mark.parametrize("heads", [1, 2, 8])
def test_attention_is_torchs_multihead_attention(causal: bool, lengths: tuple[int, ...] | None, heads: int) -> None:
    ours = drawn(place(Attention(heads=heads, causal=causal), AT))
    theirs: Any = nn.MultiheadAttention(WIDTH, heads, batch_first=True, dtype=torch.float64)
    copy_attention(ours, theirs)
    x, seen = stream(), None if lengths is None else valid(lengths)
    future = torch.ones(8, 8, dtype=torch.bool).triu(1) if causal else None
    for dtype, atol in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        ours, theirs, x = ours.to(dtype), theirs.to(dtype), x.to(dtype)
        padding = None if seen is None else ~seen
        expected, _ = theirs(x, x, x, key_padding_mask=padding, attn_mask=future, need_weights=False)
        same(ours(x, Given(valid=seen)), expected, atol)


def test_cross_attention_is_torchs_multihead_attention() -> None:
    ours = drawn(place(Attention(heads=HEADS), AT.child("cross", cross=True, causal=False)))
    theirs: Any = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
    copy_attention(ours, theirs)
    x, memory = stream(tokens=7), stream(tokens=8, seed=5)
    expected, _ = theirs(x, memory, memory, key_padding_mask=~valid(), need_weights=False)
    same(ours(x, Given(memory=memory, memory_valid=valid())), expected, 1e-12)


def options(norm_first: bool) -> dict[str, Any]:
    return {
        "placement": "pre" if norm_first else "post",
        "mixer": {"kind": "attention", "heads": HEADS},
        "feed_forward": {"kind": "mlp", "width": INNER, "activation": "relu"},
        "position": "none",
    }


def copied_stack(ours: Any, layer: type[nn.Module], norm_first: bool) -> tuple[list[Any], Any]:
    """Torch's layers with our blocks' weights, and its final norm where there is one of ours."""
    layers = []
    for block in ours.blocks:
        theirs = torchs(layer, norm_first)
        copy_block(block, theirs)
        layers.append(theirs)
    if not norm_first:
        assert not list(ours.final_norm.parameters())
        return layers, None
    norm = nn.LayerNorm(WIDTH, dtype=torch.float64)
    norm.load_state_dict(ours.final_norm.state_dict())
    return layers, norm


def torchs_encoder(ours: Any, norm_first: bool) -> Any:
    layers, norm = copied_stack(ours, nn.TransformerEncoderLayer, norm_first)
    encoder = nn.TransformerEncoder(layers[0], len(layers), norm, enable_nested_tensor=False)
    encoder.layers = nn.ModuleList(layers)
    return encoder


def torchs_decoder(ours: Any, norm_first: bool) -> Any:
    layers, norm = copied_stack(ours, nn.TransformerDecoderLayer, norm_first)
    decoder = nn.TransformerDecoder(layers[0], len(layers), norm)
    decoder.layers = nn.ModuleList(layers)
    return decoder


@both_ways
def test_a_whole_encoder_with_padding_is_torchs(norm_first: bool) -> None:
    ours = network(model(kind="encoder", depth=3, pooling="last", **options(norm_first)), LABELS)
    theirs, ids = torchs_encoder(ours.stack, norm_first), tokens()
    found = ours.stack(ids, Given(valid=valid()))
    x: Tensor = theirs(ours.stack.embed(ids), src_key_padding_mask=~valid())
    same(found, x, 1e-12)
    last = torch.stack([x[row, length - 1] for row, length in enumerate(LENGTHS)])
    same(ours(ids, valid()), ours.head(last), 1e-12)


@both_ways
def test_a_whole_encoder_with_a_decoder_of_another_depth_is_torchs(norm_first: bool) -> None:
    cross = {"kind": "attention", "heads": HEADS}
    made = model(kind="encoder_decoder", depth=3, encoder_depth=2, cross=cross, **options(norm_first))
    ours = network(made, PAIRS)
    encoder, decoder = torchs_encoder(ours.encoder, norm_first), torchs_decoder(ours.decoder, norm_first)
    source, text = tokens(7), tokens(length=7)
    for dtype, atol in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        ours, encoder, decoder = (each.to(dtype) for each in (ours, encoder, decoder))
        memory = encoder(ours.encoder.embed(source), src_key_padding_mask=~valid())
        x = decoder(ours.decoder.embed(text), memory, tgt_mask=FUTURE, memory_key_padding_mask=~valid())
        same(ours(source, valid(), text), ours.head(x), atol)
