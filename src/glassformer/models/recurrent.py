"""LSTM baselines: what a Transformer must beat at the same number of parameters.

    language model           tokens ─ embed ─ LSTM ─────────────────────────── logits
    sequence to sequence     source ─ embed ─ LSTM ⇄ ─┬ last states ┐
                             target ─ embed ─ LSTM ───│─────────────┴─┬─────── logits
                                                      └─ attention ───┘   (where asked for)

The recurrence is torch.nn.LSTM's, fused on a GPU. Forget gates start open (Józefowicz et al. 2015),
embeddings are scaled by √dim and shared with the output (Vaswani et al. 2017, §3.4): a baseline
should have the tricks that its rival has.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from glassformer.errors import ConfigError, ShapeError

Layered = Float[Tensor, "n_layers B C"]
State = tuple[Layered, Layered]
Context = Float[Tensor, "B S E"]
SourceMask = Bool[Tensor, "B S"]  # True where there is a source token, False in padding


class LSTMLanguageModel(nn.Module):
    """Each token's logits for the next one, from a state that carries everything before.

        h_t, c_t = LSTM(embed(token_t), h_{t−1}, c_{t−1})        logits_t = W h_t

    Pass the returned state back in to continue, token by token or piece by piece. When tied,
    W is the embedding.

    >>> model = LSTMLanguageModel(vocab_size=11, dim=6, n_layers=2)
    >>> tokens = torch.tensor([[3, 1, 4, 1, 5]])
    >>> whole, _ = model(tokens)
    >>> first, state = model(tokens[:, :2])
    >>> rest, _ = model(tokens[:, 2:], state)
    >>> torch.allclose(whole, torch.cat((first, rest), dim=1), atol=1e-6)
    True
    """

    def __init__(
        self, vocab_size: int, dim: int, n_layers: int, *, dropout: float = 0.0, tied: bool = True
    ) -> None:
        super().__init__()
        _check_settings(vocab_size=vocab_size, dim=dim, n_layers=n_layers, dropout=dropout)
        self.embedding = _Embedding(vocab_size, dim, dropout=dropout)
        self.lstm = _lstm(dim, n_layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.out_proj = None if tied else nn.Linear(dim, vocab_size, bias=False)

    def forward(
        self, tokens: Int[Tensor, "B L"], state: State | None = None
    ) -> tuple[Float[Tensor, "B L V"], State]:
        _check_tokens("tokens", tokens, self.embedding.num_embeddings)
        _check_state(state, self.lstm, len(tokens))
        hidden, last = self.lstm(self.embedding(tokens), state)  # (B, L) → (B, L, C)
        return _to_logits(self.dropout(hidden), self.out_proj, self.embedding), last


class Memory(NamedTuple):
    """What the decoder knows of a source: where it starts, and what it may look back at."""

    state: State
    context: Context  # both directions side by side, E = 2C
    mask: SourceMask


class LSTMSeq2Seq(nn.Module):
    """One LSTM reads the source in both directions, another writes the target.

    ::

        attention=False   all of the source passes through the decoder's first state
                          (Sutskever et al. 2014)
        attention=True    besides, each target position looks back at every source position
                          (Bahdanau et al. 2015)

        logits_t = W tanh(mix [h_t; Σ_s weights_ts e_s])       without attention: W h_t

    Bahdanau's attention is asked by the state before the step and feeds the step; ours is asked by
    the state after it (Luong et al. 2015, §3.1), so that a whole target is one call of the LSTM.
    What is padding in the source cannot change the answer. With target_vocab_size=None there is one
    vocabulary, and one embedding, for both.

    >>> model = LSTMSeq2Seq(11, 13, dim=6, n_layers=1, attention=True)
    >>> source, lengths = torch.tensor([[3, 1, 4, 0, 0], [2, 7, 1, 8, 2]]), torch.tensor([3, 5])
    >>> target = torch.tensor([[1, 5, 9, 2], [1, 6, 5, 3]])
    >>> model(source, lengths, target).shape
    torch.Size([2, 4, 13])
    >>> memory = model.encode(source, lengths)
    >>> logits, state = model.decode(target[:, :1], memory)
    >>> logits, state = model.decode(target[:, 1:2], memory, state)
    >>> model.attend_weights(target, memory)[0, 0, 3:]
    tensor([0., 0.], grad_fn=<SliceBackward0>)
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int | None,
        dim: int,
        n_layers: int,
        *,
        dropout: float = 0.0,
        attention: bool = False,
        tied: bool = True,
    ) -> None:
        super().__init__()
        _check_settings(
            source_vocab_size=source_vocab_size,
            target_vocab_size=source_vocab_size if target_vocab_size is None else target_vocab_size,
            dim=dim,
            n_layers=n_layers,
            dropout=dropout,
        )
        self.source_embedding = _Embedding(source_vocab_size, dim, dropout=dropout)
        self.target_embedding = None
        if target_vocab_size is not None:
            self.target_embedding = _Embedding(target_vocab_size, dim, dropout=dropout)
        self.encoder = _lstm(dim, n_layers, dropout=dropout, bidirectional=True)
        # Two directions end in two states of each layer; the decoder has room for one.
        self.hidden_bridge = nn.Linear(2 * dim, dim)
        self.cell_bridge = nn.Linear(2 * dim, dim)
        self.decoder = _lstm(dim, n_layers, dropout=dropout)
        self.attention = AdditiveAttention(dim, 2 * dim) if attention else None
        self.mix = nn.Linear(3 * dim, dim) if attention else None
        self.dropout = nn.Dropout(dropout)
        n_targets = self._output_embedding().num_embeddings
        self.out_proj = None if tied else nn.Linear(dim, n_targets, bias=False)

    def _output_embedding(self) -> "_Embedding":
        return self.source_embedding if self.target_embedding is None else self.target_embedding

    def encode(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"]) -> Memory:
        """Read the first `lengths` tokens of each source."""
        _check_tokens("source", source, self.source_embedding.num_embeddings)
        lengths = lengths.cpu()  # where packing wants them
        _check_lengths(lengths, source)
        packed = pack_padded_sequence(
            self.source_embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        read, (hidden, cell) = self.encoder(packed)
        context, _ = pad_packed_sequence(read, batch_first=True, total_length=source.shape[1])
        places = torch.arange(source.shape[1], device=source.device)
        mask = places < lengths.to(source.device)[:, None]  # (S,) → (B, S)
        # tanh as the LSTM itself has it: h lies between −1 and 1, c is not bounded.
        hidden = self.hidden_bridge(_concatenate_directions(hidden)).tanh()
        return Memory((hidden, self.cell_bridge(_concatenate_directions(cell))), context, mask)

    def decode(
        self, tokens: Int[Tensor, "B L"], memory: Memory, state: State | None = None
    ) -> tuple[Float[Tensor, "B L V"], State]:
        """Logits after each target token; a state continues, none starts from the memory."""
        hidden, state = self._advance(tokens, memory, state)
        if self.attention is not None and self.mix is not None:
            looked = self.attention(hidden, memory.context, mask=memory.mask)  # (B, L, E)
            hidden = self.mix(torch.cat((hidden, looked), dim=-1)).tanh()  # (B, L, C + E) → C
        return _to_logits(self.dropout(hidden), self.out_proj, self._output_embedding()), state

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, " B"],
        target_tokens: Int[Tensor, "B L"],
    ) -> Float[Tensor, "B L V"]:
        return self.decode(target_tokens, self.encode(source, source_lengths))[0]

    def attend_weights(
        self, tokens: Int[Tensor, "B L"], memory: Memory, state: State | None = None
    ) -> Float[Tensor, "B L S"]:
        """How much each target position takes from each source position in `decode`."""
        if self.attention is None:
            raise ConfigError(
                "attend_weights must have attention to look at; got a model with attention=False. "
                "Build it with attention=True."
            )
        hidden, _ = self._advance(tokens, memory, state)
        return self.attention.weights(hidden, memory.context, mask=memory.mask)

    def _advance(
        self, tokens: Int[Tensor, "B L"], memory: Memory, state: State | None
    ) -> tuple[Float[Tensor, "B L C"], State]:
        _check_tokens("tokens", tokens, self._output_embedding().num_embeddings)
        if len(tokens) != len(memory.mask):
            raise ShapeError(
                "tokens and memory must have the same batch; got "
                f"{len(tokens)} targets for {len(memory.mask)} sources."
            )
        _check_state(state, self.decoder, len(tokens))
        return self.decoder(
            self._output_embedding()(tokens), memory.state if state is None else state
        )


class AdditiveAttention(nn.Module):
    """Attention whose scores are made by a small network instead of a dot product.

        score(h, e) = vᵀ tanh(W_q h + W_k e)        (Bahdanau et al. 2015, §A.1.2)

    >>> attend = AdditiveAttention(dim=6, context_dim=10)
    >>> hidden, context = torch.randn(2, 3, 6), torch.randn(2, 5, 10)
    >>> attend(hidden, context, mask=torch.ones(2, 5, dtype=torch.bool)).shape
    torch.Size([2, 3, 10])
    """

    def __init__(self, dim: int, context_dim: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(context_dim, dim, bias=False)
        self.score_weight = nn.Parameter(torch.empty(dim).uniform_(-(dim**-0.5), dim**-0.5))
        self.core = AdditiveCore()

    def forward(
        self, hidden: Float[Tensor, "B L C"], context: Context, *, mask: SourceMask
    ) -> Float[Tensor, "B L E"]:
        q, k = self.q_proj(hidden), self.k_proj(context)
        return self.core(q, k, context, mask=mask, score_weight=self.score_weight)

    def weights(
        self, hidden: Float[Tensor, "B L C"], context: Context, *, mask: SourceMask
    ) -> Float[Tensor, "B L S"]:
        """The weights with which `forward` takes the context."""
        q, k = self.q_proj(hidden), self.k_proj(context)
        return additive_weights(q, k, mask=mask, score_weight=self.score_weight)


class AdditiveCore(nn.Module):
    """Additive attention without parameters: the place where q, k and v can be observed.

        out = weights v

    >>> q, k, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.ones(2, 5, 7)
    >>> mask = torch.arange(5) < torch.tensor([[2], [5]])
    >>> out = AdditiveCore()(q, k, v, mask=mask, score_weight=torch.randn(4))
    >>> torch.allclose(out, torch.ones(2, 3, 7))  # a mean of ones
    True
    """

    def forward(
        self,
        q: Float[Tensor, "B L D"],
        k: Float[Tensor, "B S D"],
        v: Float[Tensor, "B S E"],
        *,
        mask: Bool[Tensor, "B S"],
        score_weight: Float[Tensor, " D"],
    ) -> Float[Tensor, "B L E"]:
        weights = additive_weights(q, k, mask=mask, score_weight=score_weight)
        return weights.to(v.dtype) @ v  # (B, L, S) × (B, S, E) → (B, L, E)


def additive_weights(
    q: Float[Tensor, "B L D"],
    k: Float[Tensor, "B S D"],
    *,
    mask: Bool[Tensor, "B S"],
    score_weight: Float[Tensor, " D"],
) -> Float[Tensor, "B L S"]:
    """softmax over the keys of score_weightᵀ tanh(q + k), 0 where the mask is False.

    Every pair of positions has D tanhs of its own: B · L · S · D numbers in memory.

    >>> q, k = torch.zeros(1, 1, 2), torch.tensor([[[0.0, 0.0], [9.0, 9.0], [9.0, 9.0]]])
    >>> mask = torch.tensor([[True, True, False]])
    >>> additive_weights(q, k, mask=mask, score_weight=torch.full((2,), math.log(3) / 2))
    tensor([[[0.2500, 0.7500, 0.0000]]])
    """
    scores = (q[:, :, None] + k[:, None]).tanh() @ score_weight  # (B, L, S, D) → (B, L, S)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    allowed = mask[:, None]  # (B, S) → (B, 1, S)
    # The second fill is for rows with nothing allowed, where softmax gives NaN.
    return scores.masked_fill(~allowed, -math.inf).softmax(dim=-1).masked_fill(~allowed, 0.0)


class _Embedding(nn.Embedding):
    """Tokens to vectors of variance 1, from a table that is also fit to make logits."""

    def __init__(self, vocab_size: int, dim: int, *, dropout: float) -> None:
        super().__init__(vocab_size, dim)
        nn.init.normal_(self.weight, std=dim**-0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, input: Int[Tensor, "B L"]) -> Float[Tensor, "B L C"]:
        return self.dropout(super().forward(input) * math.sqrt(self.embedding_dim))


def _to_logits(
    hidden: Float[Tensor, "B L C"], out_proj: nn.Linear | None, embedding: _Embedding
) -> Float[Tensor, "B L V"]:
    # A tied table is kept in one place and looked up at each call, so that no loading can untie it.
    weight = embedding.weight if out_proj is None else out_proj.weight
    return nn.functional.linear(hidden, weight)


def _lstm(dim: int, n_layers: int, *, dropout: float, bidirectional: bool = False) -> nn.LSTM:
    lstm = nn.LSTM(
        dim,
        dim,
        n_layers,
        batch_first=True,
        bidirectional=bidirectional,
        dropout=dropout if n_layers > 1 else 0.0,  # it acts between layers
    )
    with torch.no_grad():
        for name, parameter in lstm.named_parameters():
            if name.startswith("bias_ih"):
                parameter[dim : 2 * dim] = 1.0  # input, forget, cell, output: the second of four
    return lstm


def _concatenate_directions(states: Float[Tensor, "twice B C"]) -> Float[Tensor, "n_layers B E"]:
    # torch stacks layer by layer, and in each layer forward before backward.
    return torch.cat((states[0::2], states[1::2]), dim=-1)


def _check_settings(*, dropout: float, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(f"{name} must be at least 1; got {name}={size}.")
    if not 0 <= dropout < 1:
        raise ConfigError(
            f"dropout must be at least 0 and less than 1; got dropout={dropout}. Use 0 for none."
        )


def _check_tokens(name: str, tokens: Tensor, vocab_size: int) -> None:
    if tokens.ndim != 2 or tokens.numel() == 0:
        raise ShapeError(
            f"{name} must be (batch, length), both at least 1; got {tuple(tokens.shape)}. "
            "A single sequence is tokens[None]."
        )
    if torch.compiler.is_compiling():  # looking at values would break the graph
        return
    outside = (tokens < 0) | (tokens >= vocab_size)
    if outside.any():
        raise ConfigError(
            f"{name} must hold ids from 0 to {vocab_size - 1}, in padding too; got "
            f"{int(tokens[outside][0])}. Use the tokenizer that the model was built for."
        )


def _check_lengths(lengths: Tensor, source: Tensor) -> None:
    if lengths.shape != source.shape[:1]:
        raise ShapeError(
            "lengths must be (batch,), one for each source; got lengths "
            f"{tuple(lengths.shape)} for source {tuple(source.shape)}."
        )
    low, high = int(lengths.min()), int(lengths.max())
    if low < 1 or high > source.shape[1]:
        raise ShapeError(
            f"lengths must lie between 1 and the length of source, {source.shape[1]}; got lengths "
            f"from {low} to {high}. Leave empty sources out."
        )


def _check_state(state: State | None, lstm: nn.LSTM, n_rows: int) -> None:
    expected = (lstm.num_layers, n_rows, lstm.hidden_size)
    if state is not None and any(part.shape != expected for part in state):
        raise ShapeError(
            f"state must be two tensors of (n_layers, batch, dim) = {expected}; got "
            f"{' and '.join(str(tuple(part.shape)) for part in state)}. Use the state that came "
            "out for the same batch."
        )
