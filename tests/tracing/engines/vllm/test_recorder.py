"""Requests are taken out of packed batches and joined; every way an engine cuts them is one text.

The engine here is a few lines long: it packs, cuts, preempts and caches as vLLM does.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closeness import assert_close
from glassformer.errors import TraceError
from glassformer.functional import Causal, Window
from glassformer.functional.reference import attention_weights
from glassformer.tracing.engines.vllm import recorder as recorder_file
from glassformer.tracing.engines.vllm.backends import Heard
from glassformer.tracing.engines.vllm.recorder import EngineRecorder
from glassformer.tracing.engines.vllm.watched_model import WatchedModel
from glassformer.tracing.operand_store import OperandStore
from glassformer.tracing.selection import Selection
from glassformer.tracing.trace import Trace

H, K, D, SIZE, LONGEST = 4, 2, 5, 4, 24
NAMES = ["model.layers.0.self_attn.attn", "model.layers.1.self_attn.attn"]


class _Computes:
    """Stands for vLLM's implementation; its pages are (K, size, 2 · D)."""

    scale, logits_soft_cap, alibi_slopes, sinks = 0.3, 0, None, None

    def forward(self, *_: Any, **__: Any) -> None:
        return None

    def do_kv_cache_update(self, _: Any, k: Tensor, v: Tensor, cache: Tensor, at: Tensor) -> None:
        for each_k, each_v, slot in zip(k, v, at.tolist(), strict=True):
            cache[slot // SIZE, :, slot % SIZE] = torch.cat([each_k, each_v], -1)


class _Implementation(Heard, _Computes):
    pass


class Attention(nn.Module):
    """A layer as vLLM has it; the name of its class is looked at."""

    attn_type, kv_sharing_target_layer_name, use_mm_prefix = "decoder", None, False
    dtype = kv_cache_torch_dtype = torch.float32
    num_heads, num_kv_heads = H, K

    def __init__(self, name: str, window: int | None) -> None:
        super().__init__()
        self.layer_name, self.sliding_window, self.impl = name, window, _Implementation()
        self.kv_cache = torch.zeros(40, K, SIZE, 2 * D)


class ToyEngine:
    """Packs requests into steps; operands are a function of layer, request and position."""

    def __init__(self) -> None:
        self.layers = {name: Attention(name, w) for name, w in zip(NAMES, (None, 3), strict=True)}
        config = SimpleNamespace(to_dict=lambda: {"hidden_size": 8})
        self.runner = SimpleNamespace(
            vllm_config=SimpleNamespace(
                model_config=SimpleNamespace(
                    hf_text_config=config, hf_config=config, architecture="Toy", model="toy"
                ),
                compilation_config=SimpleNamespace(static_forward_context=self.layers),
                parallel_config=SimpleNamespace(tensor_parallel_size=1),
                speculative_config=None,
            ),
            input_batch=SimpleNamespace(token_ids_cpu=np.zeros((8, LONGEST), dtype=np.int32)),
        )
        self.pages: dict[str, list[int]] = {}
        self.context: Any = None

    def operands(self, name: str, request: str) -> tuple[Tensor, Tensor, Tensor]:
        """Requests of one letter begin alike: the number after it counts from position 8 on."""
        layer = NAMES.index(name)
        seeds = (ord(request[0]) * 10 + layer, hash_of(request) * 10 + layer)
        q, k, v = (
            torch.cat([_random(n, seeds[0] + i)[:8], _random(n, seeds[1] + i)[8:]])
            for i, n in ((0, H), (100, K), (200, K))
        )
        return q, k, v

    def step(self, **spans: tuple[int, int, int]) -> None:
        """One step: for each request where it starts, where it ends, and its prompt's length."""
        requests = list(spans)
        lengths = [stop - start for start, stop, _ in spans.values()]
        offsets = np.array([0, *np.cumsum(lengths)], dtype=np.int32)
        batch, table = self.runner.input_batch, np.zeros((len(spans), LONGEST // SIZE), np.int32)
        for i, request in enumerate(requests):
            pages = self.pages.setdefault(request, [])
            while len(pages) * SIZE < spans[request][1]:
                pages.append(1 + sum(map(len, self.pages.values())))
            table[i, : len(pages)] = pages
            batch.token_ids_cpu[i] = tokens_of(request)
        batch.num_reqs, batch.req_ids = len(spans), requests
        batch.num_computed_tokens_cpu = np.array([s[0] for s in spans.values()], dtype=np.int32)
        batch.num_prompt_tokens = np.array([s[2] for s in spans.values()], dtype=np.int32)
        self.runner.query_start_loc = SimpleNamespace(np=offsets)
        ids = [tokens_of(r)[start:stop] for r, (start, stop, _) in spans.items()]
        padding = [0, 0]
        self.runner.input_ids = SimpleNamespace(gpu=torch.tensor(np.concatenate([*ids, padding])))
        self.context = SimpleNamespace(ubatch_slices=None)
        metadata = SimpleNamespace(block_table=torch.from_numpy(table))
        for name, layer in self.layers.items():
            parts = [
                [t[start:stop] for t in self.operands(name, r)]
                for r, (start, stop, _) in spans.items()
            ]
            packed = [torch.cat([*each, torch.zeros(2, *each[0].shape[1:])]) for each in
                      zip(*parts, strict=True)]  # fmt: skip
            slots = [
                self.pages[r][at // SIZE] * SIZE + at % SIZE
                for r, (start, stop, _) in spans.items()
                for at in range(start, stop)
            ]
            n = len(slots)
            layer.impl.do_kv_cache_update(
                layer, packed[1][:n], packed[2][:n], layer.kv_cache, torch.tensor(slots)
            )
            out = torch.zeros(n + 2, H * D)
            layer.impl.forward(layer, *packed, layer.kv_cache, metadata, output=out)
            for each in packed:
                each.fill_(torch.nan)  # engines use their buffers again


def hash_of(request: str) -> int:
    return sum(ord(c) * 7**i for i, c in enumerate(request))


def tokens_of(request: str) -> np.ndarray:
    return (np.arange(LONGEST) + hash_of(request)) % 97


def _random(n_heads: int, seed: int) -> Tensor:
    return torch.randn(LONGEST, n_heads, D, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ToyEngine:
    made = ToyEngine()
    here = SimpleNamespace(get_forward_context=lambda: made.context)
    monkeypatch.setattr(recorder_file, "import_module", lambda _: here)
    return made


def listen(engine: ToyEngine, **options: Any) -> EngineRecorder:
    recorder = EngineRecorder(WatchedModel(engine.runner), Selection(**options), OperandStore())
    recorder.check()
    recorder.attach()
    return recorder


def check_run(engine: ToyEngine, trace: Trace, i: int, request: str, S: int) -> None:
    """Weights of every recorded row and head are those of the definition."""
    run = trace.runs[i]
    assert run.refusals == {}
    assert run.texts["tokens"].tokens[0].tolist() == tokens_of(request)[:S].tolist()
    for name, site in zip(NAMES, run.sites.values(), strict=True):
        q, k, _ = (t[:S].transpose(0, 1)[None] for t in engine.operands(name, request))
        mask = Causal() if name == NAMES[0] else Causal() & Window(left=2)
        expected = attention_weights(q, k, mask=mask, scale=0.3)
        rows = list(range(S)) if site.rows is None else list(site.rows)
        assert_close(site.weights(), expected[0][list(site.head_numbers)][:, rows], 1e-6)


def test_packed_steps_become_runs(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5), b=(0, 3, 9))
    engine.step(a=(5, 6, 5), b=(3, 9, 9), c=(0, 1, 2))
    engine.step(c=(1, 2, 2), b=(9, 10, 9))  # the order changes, one has ended
    recorder.detach()
    engine.step(a=(6, 7, 5))
    trace = recorder.finish()
    assert [site.rows for site in trace.runs[1].sites.values()] == [None, None]
    for i, (request, S) in enumerate((("a", 6), ("b", 10), ("c", 2))):
        check_run(engine, trace, i, request, S)


def test_trace_grows_while_it_is_read(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5))
    check_run(engine, recorder.trace, 0, "a", 5)
    engine.step(a=(5, 6, 5))
    check_run(engine, recorder.trace, 0, "a", 6)


def test_preempted_request_is_one_run(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 5, 5))
    engine.step(a=(5, 6, 5))
    engine.step(a=(6, 7, 5))
    engine.step(a=(0, 4, 5))  # all again, up to a part of the prompt …
    engine.step(a=(4, 7, 5))
    engine.step(a=(7, 8, 5))
    check_run(engine, recorder.finish(), 0, "a", 8)


def test_cached_prefix_is_read_from_its_pages(engine: ToyEngine) -> None:
    engine.step(a1=(0, 12, 12))
    recorder = listen(engine)
    engine.pages["a2"] = engine.pages["a1"][:2]
    engine.step(a2=(8, 11, 11), b=(0, 2, 2))
    engine.step(a2=(11, 12, 11))
    trace = recorder.finish()
    check_run(engine, trace, 0, "a2", 12)
    check_run(engine, trace, 1, "b", 2)
    assert {site.rows for site in trace.runs[0].sites.values()} == {(8, 9, 10, 11)}


def test_preempted_request_may_lose_its_cached_prefix(engine: ToyEngine) -> None:
    engine.step(a1=(0, 12, 12))
    recorder = listen(engine)
    engine.pages["a2"] = engine.pages["a1"][:2]
    engine.step(a2=(8, 11, 11))
    del engine.pages["a2"]
    engine.step(a2=(0, 11, 11))
    check_run(engine, recorder.finish(), 0, "a2", 11)


def test_parts_can_be_selected(engine: ToyEngine) -> None:
    recorder = listen(engine, layers=[1], heads=[1, 3], rows="last")
    engine.step(a=(0, 3, 5), b=(0, 2, 2))
    engine.step(a=(3, 5, 5), b=(2, 3, 2))
    engine.step(a=(5, 6, 5), b=(3, 4, 2))
    trace = recorder.finish()
    for i, (request, S, rows) in enumerate((("a", 6, (4, 5)), ("b", 4, (1, 2, 3)))):
        (site,) = trace.runs[i].sites.values()
        assert (site.name, site.heads, site.rows) == ("decoder.1.self", (1, 3), rows)
        q, k, _ = (t[:S].transpose(0, 1)[None] for t in engine.operands(NAMES[1], request))
        mask = Causal() & Window(left=2)
        expected = attention_weights(q, k, mask=mask, scale=0.3)[0][[1, 3]]
        assert_close(site.weights(), expected[:, list(rows)], 1e-6)


def test_fault_costs_the_site_alone(engine: ToyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 3, 3))
    keep = recorder._keep

    def fail(batch: Any, layer: Attention, *rest: Any) -> None:
        if layer.layer_name == NAMES[1]:
            raise MemoryError("no room")
        keep(batch, layer, *rest)

    monkeypatch.setattr(recorder, "_keep", fail)
    engine.step(a=(3, 4, 3), b=(0, 2, 2))
    monkeypatch.undo()
    engine.step(c=(0, 2, 2))
    trace = recorder.finish()
    for run in trace.runs[:2]:
        assert list(run.sites) == ["decoder.0.self"]
        assert "MemoryError: no room" in run.refusals["decoder.1.self"]
    assert list(trace.runs[2].sites) == ["decoder.0.self", "decoder.1.self"]
    assert list(recorder.guard.faults) == ["decoder.1.self"]


def test_steps_in_halves_spoil_the_trace(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.context = SimpleNamespace(ubatch_slices=[1, 2])
    x = torch.zeros(1, 1, 1)
    recorder.hear(engine.layers[NAMES[0]], (x, x, x), x, None, x)
    (run,) = recorder.finish().runs
    assert set(run.refusals.values()) == {
        "Steps that vLLM computes in two halves cannot be followed"
    }


def test_steps_that_passed_unseen_are_told(engine: ToyEngine) -> None:
    recorder = listen(engine)
    engine.step(a=(0, 3, 3))
    recorder.detach()
    engine.step(a=(3, 4, 3))
    recorder.attach()
    engine.step(a=(4, 5, 3))
    (run,) = recorder.finish().runs
    assert run.refusals == {"Toy": "Its tokens 3 … 3 passed unseen"}


def test_layers_that_cannot_be_shown_have_a_reason(engine: ToyEngine) -> None:
    engine.layers[NAMES[1]].impl.sinks = torch.zeros(H)  # type: ignore[assignment]
    recorder = listen(engine)
    engine.step(a=(0, 3, 3))
    (run,) = recorder.finish().runs
    assert list(run.sites) == ["decoder.0.self"]
    assert run.refusals == {
        "decoder.1.self": "its attention has sinks, which is not read from engines yet"
    }


def test_model_without_a_layer_to_watch_is_refused(engine: ToyEngine) -> None:
    for layer in engine.layers.values():
        layer.attn_type = "encoder_only"
    with pytest.raises(TraceError, match=r"No layer of Toy can be watched; model\.layers\.0"):
        listen(engine)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"layers": [2]}, r"layers 0 … 1; got layers=\[2\]"), ({"heads": [4]}, "heads 0 … 3; got")],
)
def test_numbers_out_of_range_are_refused(
    engine: ToyEngine, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        listen(engine, **options)
