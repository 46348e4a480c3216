import doctest
import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.functional import scaled_dot_product_attention

from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional import cache as module
from glassformer.functional.cache import CrossCache, GrowingCache, StaticCache

# torch's own compiler imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method.:DeprecationWarning")

B, H, K, D, E = 2, 6, 3, 5, 7
MAX_LEN = 23
DTYPE = torch.float64
SPLITS = st.lists(st.integers(1, 7), min_size=1, max_size=3)
CACHES = ["growing", "static"]
untimed = settings(deadline=None, max_examples=30)


def new_cache(kind):
    return GrowingCache() if kind == "growing" else StaticCache(B, K, MAX_LEN, D, E, dtype=DTYPE)


def normal(*shape, seed=0, dtype=DTYPE):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def operands(length, seed=0, batch=B):
    return (
        normal(batch, H, length, D, seed=seed),
        normal(batch, K, length, D, seed=seed + 1),
        normal(batch, K, length, E, seed=seed + 2),
    )


def causal(n_queries, n_keys, start):
    """Key j is allowed for query i where j ≤ i + start."""
    return torch.arange(n_keys) <= torch.arange(n_queries)[:, None] + start


def attend(q, k, v, start):
    mask = causal(q.shape[2], k.shape[2], start)
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def step(cache, q, k, v):
    k, v = cache.append(k, v)
    return attend(q, k, v, cache.offset)


def chunks(operands, sizes):
    return zip(*(x.split(sizes, dim=2) for x in operands), strict=True)


def kept(cache):
    """What a cache holds, without the room that is left."""
    n = int(cache.length)
    return cache.k[:, :, :n], cache.v[:, :, :n]


def same(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, atol=0, rtol=0)


def test_doctests():
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ── the laws of both caches ──


def test_the_mask_of_a_step_drawn():
    drawing = [[int(allowed) for allowed in row] for row in causal(2, 5, 2)]
    assert drawing == [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
    ]


@pytest.mark.parametrize("kind", CACHES)
@untimed
@given(SPLITS, st.integers(0, 2**31))
def test_cache_is_no_cache(kind, sizes, seed):
    whole = operands(sum(sizes), seed)
    cache = new_cache(kind)
    by_steps = torch.cat([step(cache, *chunk) for chunk in chunks(whole, sizes)], dim=2)
    torch.testing.assert_close(by_steps, attend(*whole, 0), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", CACHES)
@untimed
@given(SPLITS, st.data())
def test_crop_then_append_is_never_having_appended(kind, sizes, data):
    whole = operands(sum(sizes))
    cache = new_cache(kind)
    for _, k, v in chunks(whole, sizes):
        cache.append(k, v)
    length = data.draw(st.integers(0, sum(sizes)))
    cache.crop(length)
    assert cache.length == length

    q, k, v = operands(2, seed=11)
    other = new_cache(kind)
    other.append(whole[1][:, :, :length], whole[2][:, :, :length])
    same([step(cache, q, k, v)], [step(other, q, k, v)])
    same(cache.append(k, v), other.append(k, v))
    assert cache.offset == other.offset == length + 2


@pytest.mark.parametrize("kind", CACHES)
@untimed
@given(st.lists(st.integers(0, B - 1), min_size=B, max_size=B))
def test_reorder_is_indexing(kind, indices):
    cache = new_cache(kind)
    _, k, v = operands(5)
    cache.append(k, v)
    cache.reorder(torch.tensor(indices))
    same(kept(cache), (k[indices], v[indices]))
    assert (cache.length, cache.offset) == (5, 0)

    _, k_next, v_next = operands(2, seed=11)
    cache.append(k_next, v_next)
    same(kept(cache), (torch.cat((k[indices], k_next), 2), torch.cat((v[indices], v_next), 2)))


@untimed
@given(SPLITS)
def test_static_is_growing(sizes):
    growing, static = new_cache("growing"), new_cache("static")
    for q, k, v in chunks(operands(sum(sizes)), sizes):
        out = step(growing, q, k, v)
        torch.testing.assert_close(step(static, q, k, v), out, atol=1e-12, rtol=0)
        same(kept(static), kept(growing))
        assert (static.length, static.offset) == (growing.length, growing.offset)


@pytest.mark.parametrize("kind", CACHES)
def test_length_before_an_append_is_offset_after_it(kind):
    cache = new_cache(kind)
    assert (cache.length, cache.offset) == (0, 0)
    for n, start in ((5, 0), (1, 5), (3, 6)):
        _, k, v = operands(n)
        before = cache.length
        assert before == start
        cache.append(k, v)
        after = cache.offset
        # Both were read at different times, and both still say so now.
        assert before == after == start
        assert cache.length == start + n
    cache.crop(7)
    assert (cache.length, cache.offset) == (7, 6)
    cache.crop(2)
    assert (cache.length, cache.offset) == (2, 2)
    cache.reset()
    assert (cache.length, cache.offset) == (0, 0)


@pytest.mark.parametrize("kind", CACHES)
def test_numbers_that_were_read_do_not_change(kind):
    cache = new_cache(kind)
    cache.append(*operands(5)[1:])
    length, offset = cache.length, cache.offset
    cache.append(*operands(2)[1:])
    cache.crop(1)
    cache.reset()
    assert (length, offset) == (5, 0)


@pytest.mark.parametrize("kind", CACHES)
def test_a_reset_cache_is_a_new_one(kind):
    cache = new_cache(kind)
    step(cache, *operands(5, seed=11))
    cache.reset()
    assert cache.length == 0
    whole = operands(3)
    same([step(cache, *whole)], [step(new_cache(kind), *whole)])


@pytest.mark.parametrize("kind", CACHES)
def test_an_empty_cache_can_be_cropped_to_nothing_and_reordered(kind):
    cache = new_cache(kind)
    cache.crop(0)
    cache.reorder(torch.tensor([1, 1]))
    assert (cache.length, cache.offset) == (0, 0)


# ── growing ──


@untimed
@given(SPLITS)
def test_gradients_are_those_without_a_cache(sizes):
    whole = [x.requires_grad_() for x in operands(sum(sizes))]
    cotangent = normal(B, H, sum(sizes), E, seed=11)
    expected = torch.autograd.grad(attend(*whole, 0), whole, cotangent)
    cache = GrowingCache()
    by_steps = torch.cat([step(cache, *chunk) for chunk in chunks(whole, sizes)], dim=2)
    for actual, wanted in zip(
        torch.autograd.grad(by_steps, whole, cotangent), expected, strict=True
    ):
        torch.testing.assert_close(actual, wanted, atol=1e-12, rtol=0)


def test_growing_reorder_may_change_the_number_of_rows():
    cache, (_, k, v) = GrowingCache(), operands(5)
    cache.append(k, v)
    cache.reorder(torch.tensor([1, 0, 1, 1, 0]))
    same(kept(cache), (k[[1, 0, 1, 1, 0]], v[[1, 0, 1, 1, 0]]))
    cache.reorder(torch.tensor([2]))
    same(kept(cache), (k[1:], v[1:]))


# ── static ──


def test_static_gives_whole_buffers_of_one_address():
    cache, (_, k, v) = new_cache("static"), operands(5)
    k_all, v_all = cache.append(k, v)
    assert k_all.shape == (B, K, MAX_LEN, D)
    assert v_all.shape == (B, K, MAX_LEN, E)
    assert not k_all[:, :, 5:].any()
    addresses = k_all.data_ptr(), v_all.data_ptr()
    cache.crop(3)
    cache.reorder(torch.tensor([1, 0]))
    cache.append(k, v)
    cache.reset()
    k_all, v_all = cache.append(k, v)
    assert (k_all.data_ptr(), v_all.data_ptr()) == addresses


def test_static_numbers_are_tensors_on_its_device():
    cache = StaticCache(B, K, MAX_LEN, D, device="meta", dtype=torch.bfloat16)
    assert cache.k.shape == cache.v.shape == (B, K, MAX_LEN, D)
    assert cache.max_len == MAX_LEN
    for number in (cache.length, cache.offset):
        assert (number.dtype, number.shape, number.device.type) == (torch.int64, (), "meta")
    for buffer in (cache.k, cache.v):
        assert (buffer.dtype, buffer.device.type) == (torch.bfloat16, "meta")


@pytest.mark.parametrize("forget", [lambda c: c.crop(3), lambda c: c.reset()])
def test_static_leaves_nothing_behind_that_a_weight_of_zero_cannot_hide(forget):
    cache, (q, k, v) = new_cache("static"), operands(3)
    cache.append(k, v)
    cache.append(torch.full_like(k, torch.inf), torch.full_like(v, torch.inf))
    forget(cache)
    assert step(cache, q, k, v).isfinite().all()


def test_static_may_be_filled_to_the_brim():
    cache, whole = new_cache("static"), operands(MAX_LEN)
    cache.append(whole[1][:, :, :-1], whole[2][:, :, :-1])
    out = step(cache, *(x[:, :, -1:] for x in whole))
    torch.testing.assert_close(out, attend(*whole, 0)[:, :, -1:], atol=1e-12, rtol=0)


# ── cross ──


def test_cross_calls_make_once():
    cache, (_, k, v), calls = CrossCache(), operands(5), []

    def make():
        calls.append(1)
        return k, v

    assert cache.length == 0
    for _ in range(3):
        k_kept, v_kept = cache.keep(make)
        assert k_kept is k
        assert v_kept is v
        assert cache.length == 5
    assert len(calls) == 1
    cache.reset()
    assert cache.length == 0
    cache.keep(make)
    assert len(calls) == 2


def test_cross_reorder_is_indexing():
    cache, (_, k, v) = CrossCache(), operands(5)
    cache.reorder(torch.tensor([0]))
    assert cache.length == 0
    cache.keep(lambda: (k, v))
    cache.reorder(torch.tensor([1, 0, 1]))
    same(cache.keep(lambda: (k, v)), (k[[1, 0, 1]], v[[1, 0, 1]]))


# ── what is refused ──

MISFITS = {
    "batch": (normal(3, K, 2, D), normal(3, K, 2, E), "k", r"\(3, 3, 2, 5\)"),
    "heads": (normal(B, 1, 2, D), normal(B, 1, 2, E), "k", r"\(2, 1, 2, 5\)"),
    "head_dim": (normal(B, K, 2, 11), normal(B, K, 2, E), "k", r"\(2, 3, 2, 11\)"),
    "value_dim": (normal(B, K, 2, D), normal(B, K, 2, 11), "v", r"\(2, 3, 2, 11\)"),
}


def unchanged(cache, k, v):
    same(kept(cache), (k, v))
    assert (cache.length, cache.offset) == (5, 0)


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("misfit", MISFITS)
def test_what_is_appended_must_fit(kind, misfit):
    cache, (_, k, v) = new_cache(kind), operands(5)
    cache.append(k, v)
    k_new, v_new, name, came = MISFITS[misfit]
    holds = (r"\(2, 3, {}, 5\)" if name == "k" else r"\(2, 3, {}, 7\)").format(
        5 if kind == "growing" else MAX_LEN
    )
    with pytest.raises(ShapeError, match=rf"the cache holds {name} {holds}, got {came}\."):
        cache.append(k_new, v_new)
    unchanged(cache, k, v)


@pytest.mark.parametrize("kind", CACHES)
def test_what_is_appended_must_have_the_dtype_and_device(kind):
    cache, (_, k, v) = new_cache(kind), operands(5)
    cache.append(k, v)
    with pytest.raises(
        DtypeError, match=r"holds torch\.float64 on cpu, got torch\.float32 on cpu\."
    ):
        cache.append(k.float(), v.float())
    with pytest.raises(
        DtypeError, match=r"holds torch\.float64 on cpu, got torch\.float64 on meta\."
    ):
        cache.append(k.to("meta"), v.to("meta"))
    unchanged(cache, k, v)


@pytest.mark.plain
@pytest.mark.parametrize("kind", [*CACHES, "cross"])
def test_k_and_v_must_fit_each_other(kind):
    def give(k, v):
        return (
            CrossCache().keep(lambda: (k, v)) if kind == "cross" else new_cache(kind).append(k, v)
        )

    _, k, v = operands(5)
    with pytest.raises(ShapeError, match=r"got k \(2, 3, 5, 5\) and v \(2, 3, 4, 7\)\."):
        give(k, v[:, :, 1:])
    with pytest.raises(ShapeError, match=r"got k \(3, 5, 5\) and v \(2, 3, 5, 7\)\."):
        give(k[0], v)
    with pytest.raises(ShapeError, match=r"got k \(2, 3, 5, 5\) and v \(3, 5, 7\)\."):
        give(k, v[0])
    with pytest.raises(DtypeError, match=r"k torch\.float64 on cpu and v torch\.float32 on cpu\."):
        give(k, v.float())
    with pytest.raises(DtypeError, match=r"k torch\.float64 on cpu and v torch\.float64 on meta\."):
        give(k, v.to("meta"))


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("length", [6, -1])
def test_crop_must_shorten(kind, length):
    cache, (_, k, v) = new_cache(kind), operands(5)
    cache.append(k, v)
    with pytest.raises(ShapeError, match=rf"0 … 5, its length; got length={length}\."):
        cache.crop(length)
    unchanged(cache, k, v)


def test_overflow():
    cache, (_, k, v) = new_cache("static"), operands(5)
    cache.append(k, v)
    with pytest.raises(ShapeError, match=r"max_len=23, length=5, 19 more were appended\."):
        cache.append(*operands(19)[1:])
    unchanged(cache, k, v)


def test_static_reorder_keeps_the_number_of_rows():
    cache = new_cache("static")
    with pytest.raises(ShapeError, match=r"cache of 2 rows.*got indices of shape \(3,\)\."):
        cache.reorder(torch.tensor([0, 1, 1]))


@pytest.mark.parametrize("at", range(5))
def test_sizes_must_be_positive(at):
    sizes = [2, 3, 23, 5, 7]
    sizes[at] = 0
    sentence = "batch={}, n_kv_heads={}, max_len={}, head_dim={}, value_dim={}".format(*sizes)
    with pytest.raises(ConfigError, match=rf"at least 1; got {sentence}\."):
        StaticCache(*sizes)


# ── compiled ──


def mask_before(cache, q, k, v):
    start = cache.length
    return attend(q, *cache.append(k, v), start)


def step_in_full(cache, q, k, v):
    out = step(cache, q, k, v)
    cache.reorder(torch.tensor([1, 0]))
    return out


@pytest.mark.plain
@pytest.mark.parametrize("run", [step, mask_before, step_in_full])
def test_decoding_compiles_once(run):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(run, fullgraph=True, backend=counter)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for _ in range(2):  # a second cache is no reason to compile again
            cache, twin = new_cache("static"), new_cache("static")
            for n in (cache, twin):
                step(n, *operands(7))
            for seed in range(5):
                chunk = operands(1, seed)
                out = compiled(cache, *chunk)
                torch.testing.assert_close(out, run(twin, *chunk), atol=1e-12, rtol=0)
                same(kept(cache), kept(twin))
                assert (cache.length, cache.offset) == (twin.length, twin.offset)
            assert cache.length == 12
    assert counter.frame_count == 1


@pytest.mark.plain
@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
def test_inductor_keeps_every_number():
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="inductor")
    def run(cache, k, v):
        before, early = cache.length, cache.offset
        cache.append(k, v)
        return before, early, cache.offset, cache.length

    cache, (_, k, v) = new_cache("static"), operands(2)
    with torch.no_grad():
        for start in (0, 2, 4):
            assert run(cache, k, v) == (start, max(start - 2, 0), start, start + 2)
            assert (cache.length, cache.offset) == (start + 2, start)
    same(kept(cache), (k.repeat(1, 1, 3, 1), v.repeat(1, 1, 3, 1)))


@pytest.mark.plain
def test_growing_compiles_whole():
    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    cache, twin = GrowingCache(), GrowingCache()
    for n in (7, 1, 1, 2):
        chunk = operands(n)
        out = step(twin, *chunk)
        torch.testing.assert_close(compiled(cache, *chunk), out, atol=1e-12, rtol=0)


@pytest.mark.plain
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
# torch captures an empty graph of its own to hold the memory of the others, and then wonders at it.
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled")
def test_decoding_replays_a_cuda_graph():
    from torch._dynamo.utils import counters
    from torch._inductor import config

    torch._dynamo.reset()
    counters.clear()

    def decode(cache, q, k, v):
        start = cache.length
        k, v = cache.append(k, v)
        mask = torch.arange(MAX_LEN, device="cuda")[None] <= start
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)

    compiled = torch.compile(decode, fullgraph=True, mode="reduce-overhead")
    with (
        torch.no_grad(),
        torch._dynamo.config.patch(error_on_recompile=True),
        config.patch(force_disable_caches=True),
    ):
        for _ in range(2):
            cache = StaticCache(B, K, MAX_LEN, D, E, dtype=DTYPE, device="cuda")
            twin = GrowingCache()
            for seed in range(7):
                chunk = [x.cuda() for x in operands(1, seed)]
                expected = step(twin, *(x.cpu() for x in chunk))
                out = compiled(cache, *chunk).cpu()
                torch.testing.assert_close(out, expected, atol=1e-12, rtol=0)
                same([x.cpu() for x in kept(cache)], kept(twin))
            assert (cache.length, cache.offset) == (7, 6)
    assert counters["inductor"]["cudagraph_skips"] == 0
