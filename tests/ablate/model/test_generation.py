"""Writing texts through the public door, and reading all anew against going on from a cache."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ablate.model.generation import Rereading, generate
from ablate.slots import Cache, Decoding
from ablate_plugins.decoding import Beam, Greedy, Sample

VOCABULARY = 6


class Recurrent(nn.Module):
    """A small GRU, begun by the mean of a source where there is one; dropout makes training mode visible."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 8)
        self.cell = nn.GRU(8, 8, batch_first=True)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(8, VOCABULARY)
        draws = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(generator=draws)
        self.double()

    def start(self, inputs: tuple[Tensor, ...]) -> Tensor | None:
        if not inputs:
            return None
        source, valid = inputs
        total: Tensor = (self.embed(source) * valid[..., None]).sum(1)
        return total / valid.sum(1, keepdim=True)

    def read(self, tokens: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        seen, left = self.cell(self.embed(tokens), None if hidden is None else hidden[None])
        return self.head(self.dropout(seen)), left[0]

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.read(inputs[-1], self.start(inputs[:-1]))[0]

    def begin(self, *inputs: Tensor) -> Cache:
        cache = Cache()
        if (hidden := self.start(inputs)) is not None:
            cache.states["cell"] = (hidden,)
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        hidden = cache.states["cell"][0] if "cell" in cache.states else None
        logits, left = self.read(tokens, hidden)
        cache.states["cell"] = (left,)
        cache.length += tokens.shape[1]
        return logits


class Uncached(Recurrent):
    """The same network, which keeps nothing."""

    @property
    def rereading(self) -> Rereading:
        return Rereading(lambda inputs, tokens: self(*inputs, tokens))

    def begin(self, *inputs: Tensor) -> Cache:
        return self.rereading.begin(*inputs)

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.rereading.decode(tokens, cache)


SOURCE = torch.tensor([[1, 2, 3], [4, 5, 0], [2, 2, 2]])
VALID = torch.tensor([[True, True, True], [True, True, False], [True, True, True]])
BEGIN = torch.zeros(3, 1, dtype=torch.long)
PROMPT = torch.tensor([[1, 2], [3, 4], [5, 0]])
DECODINGS = [Greedy(), Beam(), Sample(top_p=0.9)]


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("end", [None, 0])
@pytest.mark.parametrize("inputs", [(), (SOURCE, VALID)], ids=["language", "sequences"])
def test_reading_anew_writes_what_the_cache_writes(
    decoding: Decoding, end: int | None, inputs: tuple[Tensor, ...]
) -> None:
    prompt = BEGIN if inputs else PROMPT
    cached = generate(Recurrent(), inputs, decoding=decoding, most=7, end=end, prompt=prompt)
    anew = generate(Uncached(), inputs, decoding=decoding, most=7, end=end, prompt=prompt)
    assert cached.tokens.tolist() == anew.tokens.tolist()
    torch.testing.assert_close(cached.scores, anew.scores, atol=1e-12, rtol=0)
    other = generate(Recurrent(), (SOURCE.flip(0), VALID.flip(0)), decoding=decoding, most=7, end=end, prompt=BEGIN)
    assert other.tokens.tolist() != cached.tokens.tolist()


def test_rereading_keeps_tokens_and_inputs_by_row() -> None:
    network = Uncached().eval()
    cache = network.begin(SOURCE, VALID)
    network.decode(BEGIN, cache)
    cache.select(torch.tensor([2, 0]))
    logits = network.decode(torch.tensor([[1, 4], [2, 5]]), cache)
    assert cache.length == 3
    assert {path: [state.tolist() for state in states] for path, states in cache.states.items()} == {
        "inputs.0": [[[2, 2, 2], [1, 2, 3]]],
        "inputs.1": [[[True, True, True], [True, True, True]]],
        "tokens": [[[0, 1, 4], [0, 2, 5]]],
    }
    whole = network(SOURCE[[2, 0]], VALID[[2, 0]], torch.tensor([[0, 1, 4], [0, 2, 5]]))
    assert torch.equal(logits, whole[:, 1:])


def test_one_input_needs_no_tuple() -> None:
    class Doubled(Recurrent):
        def start(self, inputs: tuple[Tensor, ...]) -> Tensor | None:
            return super().start((inputs[0], torch.ones_like(inputs[0])))

    one, wrapped = (
        generate(Doubled(), inputs, decoding=Greedy(), most=5, prompt=BEGIN) for inputs in (SOURCE, (SOURCE,))
    )
    assert one.tokens.tolist() == wrapped.tokens.tolist()


def test_a_network_writes_in_evaluation_mode_and_is_then_as_it_was() -> None:
    network = Recurrent().train()
    network.cell.eval()
    modes = {name: module.training for name, module in network.named_modules()}
    written = generate(network, (), decoding=Greedy(), most=9, prompt=PROMPT)
    assert {name: module.training for name, module in network.named_modules()} == modes
    evaluated = generate(Recurrent().eval(), (), decoding=Greedy(), most=9, prompt=PROMPT)
    assert torch.equal(written.scores, evaluated.scores)
    assert not written.scores.requires_grad

    def fail(tokens: Tensor, cache: Cache) -> Tensor:
        raise RuntimeError("no")

    network.decode = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no"):
        generate(network, (), decoding=Greedy(), most=9, prompt=PROMPT)
    assert {name: module.training for name, module in network.named_modules()} == modes


def test_draws_are_keyed_by_the_seed_alone() -> None:
    network = Recurrent()
    one, other = (generate(network, (), decoding=Sample(), most=9, prompt=PROMPT, seed=seed) for seed in (0, 1))
    state = torch.get_rng_state()
    again = generate(network, (), decoding=Sample(), most=9, prompt=PROMPT)
    assert torch.equal(torch.get_rng_state(), state)
    assert one.tokens.tolist() == again.tokens.tolist()
    assert one.tokens.tolist() != other.tokens.tolist()


@pytest.mark.parametrize(
    ("prompt", "end", "words"),
    [
        (PROMPT + 1, 0, "`prompt` has the token 6, and tokens go from 0 to 5"),
        (PROMPT - 1, 0, "`prompt` has the token -1, and tokens go from 0 to 5"),
        (PROMPT, 6, "`end` is 6, and tokens go from 0 to 5"),
        (PROMPT, -1, "`end` is -1, and tokens go from 0 to 5"),
    ],
)
@pytest.mark.parametrize("network", [Recurrent, Uncached])
def test_a_token_outside_of_the_vocabulary_is_said(
    network: type[nn.Module], prompt: Tensor, end: int, words: str
) -> None:
    with pytest.raises(ValueError) as said:  # noqa: PT011  # the whole text is compared
        generate(network(), (SOURCE, VALID), decoding=Greedy(), most=4, end=end, prompt=prompt)
    assert str(said.value) == words


@pytest.mark.parametrize(
    ("network", "prompt", "most", "words"),
    [
        (nn.Linear(1, 1), PROMPT, 4, "this network cannot write texts: it has no `begin` and `decode`"),
        (Recurrent(), None, 4, "a `prompt` is needed: tokens (B, t) that the texts go on from"),
        (Recurrent(), PROMPT[0], 4, "`prompt` must be tokens (B, t), and its shape is (2,)"),
        (Recurrent(), PROMPT[:, :0], 4, "`prompt` is empty: its shape is (3, 0), and it needs at least one token"),
        (Recurrent(), PROMPT[:2], 4, "`prompt` has 2 sequences, and an input has 3"),
        (Recurrent(), PROMPT, 0, "`most` must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_written_is_said(network: nn.Module, prompt: Tensor | None, most: int, words: str) -> None:
    with pytest.raises(ValueError) as said:  # noqa: PT011  # the whole text is compared
        generate(network, (SOURCE, VALID), decoding=Greedy(), most=most, prompt=prompt)
    assert str(said.value) == words
