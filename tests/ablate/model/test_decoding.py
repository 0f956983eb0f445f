"""Decoding with a cache against the forward pass of the whole text, for all that a decoder can be made of."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ablate.model.generation import generate
from ablate.slots import Decoding, Given, Interface, Mixer, Site
from ablate_plugins.decoding import Beam, Greedy, Sample
from ablate_plugins.mixer import Attention
from ablate_plugins.model.decoder import Decoder
from ablate_plugins.model.encoder_decoder import EncoderDecoder
from ablate_plugins.model.layers import LayerOverride
from tests.ablate.model.drawn import LANGUAGE, PAIRS, REGISTRY, drawn, model, network, same, tokens, valid

SOURCE, TEXT = tokens(7), tokens(length=9)
CHUNKS = ([1] * 9, [9], [1, 8], [4, 2, 3])


class PreviousToken(Mixer):
    """A mixer that keeps nothing: each token is given the one before it."""

    kind: Literal["previous_token"] = "previous_token"

    def build(self, at: Site) -> nn.Module:
        return _Shift(at)


class _Shift(nn.Module):
    def __init__(self, at: Site) -> None:
        super().__init__()
        self.v = nn.Linear(at.width, at.width)
        self.read: list[int] = []

    def forward(self, x: Tensor, given: Given) -> Tensor:
        assert given.cache is None
        self.read.append(x.shape[1])
        return pad(self.v(x), (0, 0, 1, 0))[:, :-1]


def decoded(made: Any, inputs: tuple[Tensor, ...], sizes: list[int]) -> Tensor:
    cache, logits, read = made.begin(*inputs), [], 0
    for chunk in TEXT.split(sizes, 1):
        logits.append(made.decode(chunk, cache))
        read += chunk.shape[1]
        assert cache.length == read
    return torch.cat(logits, 1)


def chunks_give_the_whole(made: Any, *inputs: Tensor) -> None:
    made.eval()
    whole = made(*inputs, TEXT)
    for sizes in CHUNKS:
        same(decoded(made, inputs, sizes), whole)
    rows = torch.tensor([2, 2, 0, 1])
    cache = made.begin(*inputs)
    made.decode(TEXT[:, :4], cache)
    cache.select(rows)
    same(made.decode(TEXT[rows, 4:], cache), whole[rows, 4:])


def language(**options: Any) -> Any:
    return network(model(kind="decoder", **options), LANGUAGE)


def pairs(**options: Any) -> Any:
    return network(model(kind="encoder_decoder", encoder_depth=1, **options), PAIRS)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("mixer", REGISTRY.kinds("mixer"))
def test_every_mixer(mixer: str, parallel: bool) -> None:
    chunks_give_the_whole(language(mixer=mixer, parallel=parallel))
    chunks_give_the_whole(pairs(mixer=mixer, parallel=parallel), SOURCE, valid())


@pytest.mark.parametrize("position", REGISTRY.kinds("position"))
def test_every_position(position: str) -> None:
    chunks_give_the_whole(language(position=position))
    chunks_give_the_whole(pairs(position=position), SOURCE, valid())


@pytest.mark.parametrize("scale", REGISTRY.kinds("scale"))
def test_every_scale(scale: str) -> None:
    attention = {"kind": "attention", "heads": 2, "scale": scale}
    chunks_give_the_whole(language(mixer=attention))
    chunks_give_the_whole(pairs(mixer=attention, cross=attention), SOURCE, valid())


@pytest.mark.parametrize("norm", REGISTRY.kinds("norm"))
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_every_norm(norm: str, placement: str) -> None:
    chunks_give_the_whole(language(norm=norm, placement=placement))


@pytest.mark.parametrize("residual", REGISTRY.kinds("residual"))
def test_every_residual(residual: str) -> None:
    chunks_give_the_whole(language(residual=residual, placement="post"))


@pytest.mark.parametrize(
    "options",
    [
        {"mixer": {"kind": "attention", "heads": 4, "kv_heads": 2, "key_width": 3, "soft_cap": 1.0}},
        {"mixer": {"kind": "attention", "dropout": 0.5}, "dropout": 0.5},
        {"scale_embedding": True, "output": "tied"},
        {"layers": [{"range": [0, 1], "mixer": "gru"}, {"range": [1, 2], "mixer": "convolution"}], "depth": 3},
        {"feed_forward": "mixture_of_experts"},
    ],
    ids=str,
)
def test_options_and_hybrids(options: dict[str, Any]) -> None:
    chunks_give_the_whole(language(**options))
    chunks_give_the_whole(pairs(**options), SOURCE, valid())


def shift_of(made: Any) -> _Shift:
    """The network's shift, which has forgotten what it was tried on."""
    shift = next(part for part in made.modules() if isinstance(part, _Shift))
    shift.read.clear()
    return shift


ATTENDS = [LayerOverride(range=[1, 2], mixer=Attention(heads=2))]


@pytest.mark.parametrize("layers", [[], ATTENDS], ids=["all", "one"])
def test_a_mixer_that_keeps_nothing_has_the_whole_text_read_anew(layers: list[LayerOverride]) -> None:
    one = network(Decoder(width=8, depth=2, mixer=PreviousToken(), layers=layers), LANGUAGE)
    both = network(EncoderDecoder(width=8, depth=2, mixer=PreviousToken(), layers=layers), PAIRS)
    chunks_give_the_whole(one)
    chunks_give_the_whole(both, SOURCE, valid())
    shift = shift_of(one)
    decoded(one, (), [4, 2, 3])
    assert shift.read == [4, 6, 9]


def test_in_the_encoder_alone_it_reads_once_and_the_decoder_goes_on_from_its_cache() -> None:
    reads = [LayerOverride(range=[0, 1], mixer=PreviousToken())]
    made = network(EncoderDecoder(width=8, depth=2, encoder_layers=reads), PAIRS)
    chunks_give_the_whole(made, SOURCE, valid())
    shift = shift_of(made)
    decoded(made, (SOURCE, valid()), [1] * 9)
    assert shift.read == [8]


def test_attention_that_sees_the_future_writes_as_if_it_read_anew() -> None:
    made = network(Decoder(width=8, depth=2, mixer=Attention(causal=False)), LANGUAGE)
    cache = made.begin()
    for length in range(1, 6):
        logits = made.decode(TEXT[:, length - 1 : length], cache)
        same(logits[:, -1], made(TEXT[:, :length])[:, -1])


def test_a_cached_step_reads_one_token() -> None:
    made = language()
    seen: list[int] = []
    made.stack.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    decoded(made, (), [1] * 9)
    assert seen == [1] * 9


# --- writing, end to end ---

DECODINGS = [Greedy(), Beam(), Beam(length_penalty=0.0), Sample(top_p=0.8, temperature=0.7)]
LONG = Interface(context=12, vocabulary=11)
BEGIN = torch.zeros(3, 1, dtype=torch.long)


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("end", [None, 3])
@pytest.mark.parametrize("mixer", ["attention", "convolution", "lstm", "previous_token"])
def test_texts_have_the_scores_that_the_whole_forward_pass_gives_them(
    decoding: Decoding, end: int | None, mixer: str
) -> None:
    options: Any = PreviousToken() if mixer == "previous_token" else model(kind="decoder", mixer=mixer).mixer
    written = 0
    for made, inputs in (
        (network(Decoder(width=8, depth=2, mixer=options), LANGUAGE), ()),
        (network(EncoderDecoder(width=8, depth=2, mixer=options), PAIRS), (SOURCE, valid())),
    ):
        made.train()
        found = generate(made, inputs, decoding=decoding, most=8, end=end, prompt=BEGIN)
        assert made.training
        text = torch.cat([BEGIN, found.tokens], 1)
        with torch.no_grad():
            log_probs = made(*inputs, text)[:, :-1].log_softmax(-1).gather(-1, found.tokens[..., None])[..., 0]
        counted = torch.ones_like(found.tokens, dtype=torch.bool)
        if end is not None:
            counted = (found.tokens == end).cumsum(1).roll(1, 1).index_fill(1, torch.tensor([0]), 0) == 0
        same(found.scores, (log_probs * counted).sum(1))
        written += int(counted.sum())
    assert written >= 12


def test_no_beam_is_under_greedy_in_model_score_and_some_are_above() -> None:
    above = 0
    for seed in range(6):
        for made, inputs in ((language(), ()), (pairs(), (SOURCE, valid()))):
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for parameter in made.parameters():
                    parameter.normal_(0, 0.6, generator=generator)
            greedy, beam = (
                generate(made, inputs, decoding=each, most=8, prompt=BEGIN).scores
                for each in (Greedy(), Beam(width=4, length_penalty=0.0))
            )
            assert (beam >= greedy - 1e-12).all()
            above += int((beam > greedy + 1e-9).sum())
    assert above >= 5


def test_draws_of_a_network_are_its_distribution() -> None:
    made = drawn(network(model(kind="decoder"), LONG), std=0.3)
    prompt = torch.tensor([[4, 1]]).expand(4000, 2)
    found = generate(made, (), decoding=Sample(), most=1, prompt=prompt)
    share = torch.bincount(found.tokens[:, 0], minlength=11) / 4000
    with torch.no_grad():
        expected = made(prompt[:1])[0, -1].softmax(-1)
    assert float((share - expected).abs().max()) < 0.03  # four standard deviations of a share of a half
