"""Circuits: the model's own matrices, whatever they are called, fused and normed."""

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.analysis.reading import find_state_before
from glassformer.analysis.site_weights import SiteWeights, divide_by_size
from glassformer.errors import TraceError
from glassformer.models.config import Norms
from tiny_models import tiny
from tracing.test_stream import build
from tracing.watched_architectures import ARCHITECTURES, inputs

TEXTS = [name for name, each in ARCHITECTURES.items() if each.reads == "text"]
NONE = {"mobilebert", "gemma3n", "xlnet"}  # no stream that is followed; no single tokens
Matrix = tuple[Tensor, Tensor | None]  # a weight (out, in), and its bias


def linear(module: nn.Linear) -> Matrix:
    return module.weight.detach().double(), (
        None if module.bias is None else module.bias.detach().double()
    )


def rows(matrix: Matrix, start: int, stop: int) -> Matrix:
    return matrix[0][start:stop], None if matrix[1] is None else matrix[1][start:stop]


def split(matrix: Matrix, *sizes: int) -> list[Matrix]:
    ends = torch.tensor(sizes).cumsum(0).tolist()
    return [rows(matrix, end - n, end) for n, end in zip(sizes, ends, strict=True)]


def gpt2(model: nn.Module, i: int) -> tuple[list[Matrix], Tensor, nn.Module]:
    block = model.transformer.h[i]
    fused = block.attn.c_attn.weight.detach().double().mT, block.attn.c_attn.bias.detach().double()
    return split(fused, 12, 12, 12), block.attn.c_proj.weight.detach().double().mT, block.ln_1


def llama(model: nn.Module, i: int) -> tuple[list[Matrix], Tensor, nn.Module]:
    block = model.model.layers[i]
    own = block.self_attn
    qkv = [linear(each) for each in (own.q_proj, own.k_proj, own.v_proj)]
    return qkv, linear(own.o_proj)[0], block.input_layernorm


def phi3(model: nn.Module, i: int) -> tuple[list[Matrix], Tensor, nn.Module]:
    block = model.model.layers[i]
    qkv = split(linear(block.self_attn.qkv_proj), 24, 8, 8)
    return qkv, linear(block.self_attn.o_proj)[0], block.input_layernorm


def neox(model: nn.Module, i: int) -> tuple[list[Matrix], Tensor, nn.Module]:
    """Head by head: its queries, keys and values follow each other."""
    block = model.gpt_neox.layers[i]
    weight, bias = linear(block.attention.query_key_value)
    weight, bias = weight.view(6, 3, 4, 24), bias.view(6, 3, 4)
    qkv = [(weight[:, j].flatten(0, 1), bias[:, j].flatten()) for j in range(3)]
    return qkv, linear(block.attention.dense)[0], block.input_layernorm


def opt(model: nn.Module, i: int) -> tuple[list[Matrix], Tensor, nn.Module]:
    block = model.model.decoder.layers[i]
    own = block.self_attn
    qkv = [linear(each) for each in (own.q_proj, own.k_proj, own.v_proj)]
    return qkv, linear(own.out_proj)[0], block.self_attn_layer_norm


def fold(norm: nn.Module | None, matrix: Matrix, *, plus_one: bool = False) -> Matrix:
    weight, bias = matrix
    bias = torch.zeros(len(weight), dtype=torch.float64) if bias is None else bias
    if norm is None:
        return weight, bias
    gain = norm.weight.detach().double() + (1 if plus_one else 0)
    if getattr(norm, "bias", None) is not None:
        bias = bias + weight @ norm.bias.detach().double()
    weight = weight * gain
    if isinstance(norm, nn.LayerNorm):
        weight = weight - weight.mean(-1, keepdim=True)
    return weight, bias


def check(
    site: SiteWeights,
    qkv: list[Matrix],
    o: Tensor,
    norm: nn.Module | None,
    *,
    key_norm: nn.Module | None = None,
    scales_queries: float = 1.0,
    plus_one: bool = False,
) -> None:
    assert not site.refusals and not site.frozen
    norms = [norm, key_norm, key_norm] if site.is_cross else [norm] * 3
    ours = zip((site.q, site.k, site.v), (site.q_bias, site.k_bias, site.v_bias), strict=True)
    for i, ((weight, bias), theirs) in enumerate(zip(ours, qkv, strict=True)):
        by_hand, shift = fold(norms[i], theirs, plus_one=plus_one)
        factor = scales_queries if i == 0 else 1.0
        assert_close(weight.flatten(0, 1).double(), factor * by_hand, 1e-5)
        assert_close(bias.flatten().double(), factor * shift, 1e-5)
    by_head = o.unflatten(1, (site.n_heads, -1)).transpose(0, 1)
    assert_close(site.o.double(), by_head, 1e-6)
    head = site.n_heads - 1
    group = site.n_heads // len(site.k)
    q, k, v = (fold(n, m, plus_one=plus_one)[0] for n, m in zip(norms, qkv, strict=True))
    D, E = site.q.shape[1], site.v.shape[1]
    key = head // group
    qk = scales_queries * site.scale * q[head * D :][:D].mT @ k[key * D :][:D]
    assert_close(site.qk(head).matrix().double(), qk, 1e-4)
    assert_close(site.ov(head).matrix().double(), by_head[head] @ v[key * E :][:E], 1e-4)


OPT_SCALE = 4**-0.5  # OPT scales its queries itself


@pytest.mark.parametrize(
    ("name", "slices", "options"),
    [
        ("gpt2", gpt2, {}),
        ("llama", llama, {}),
        ("qwen2", llama, {}),
        ("gemma", llama, {"plus_one": True}),
        ("phi3", phi3, {}),
        ("gpt-neox", neox, {}),
        ("opt", opt, {"scales_queries": OPT_SCALE}),
    ],
)
def test_the_matrices_are_the_models(name: str, slices, options: dict) -> None:
    model = build(name)
    found = gf.circuits(model)
    assert list(found.sites) == ["decoder.0.self", "decoder.1.self"] and not found.refusals
    for i in range(2):
        qkv, o, norm = slices(model, i)
        check(found[f"decoder.{i}.self"], qkv, o, norm, **options)


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in NONE])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_every_architecture_reads_its_stream_by_these_matrices(name: str) -> None:
    """On a text: the state before a site, divided by its size, is all that q, k and v need."""
    model = build(name)
    found = gf.circuits(model)
    with torch.no_grad(), gf.watch(model, residual=True) as trace:
        model(**inputs(model, "text"))
    checked = 0
    for site_name, site in found.sites.items():
        own = trace[site_name]
        state = find_state_before(trace.residual(site.stack), site_name)[2]
        context = trace.residual("encoder").end if site.is_cross else state
        given = divide_by_size(site.query_norm, state), divide_by_size(site.key_norm, context)
        for operand, word in {"q": "queries", "k": "keys", "v": "values"}.items():
            if operand in site.refusals or site.notes(word):
                continue
            weight, bias = getattr(site, operand), getattr(site, f"{operand}_bias")
            x = given[0 if operand == "q" else 1][:, 0].double()  # rotary angles are zero there
            by_hand = torch.einsum("hdc,bc->bhd", weight.double(), x) + bias.double()
            theirs = getattr(own, operand)
            n_sinks = max(0, theirs.shape[2] - given[operand != "q"].shape[1])
            theirs = theirs[:, :, n_sinks]
            assert_close(theirs.double(), by_hand, 2e-5 * float(by_hand.abs().max()))
            checked += 1
    assert checked or name == "deepseek-v3"  # where a norm divides each of them


def test_most_architectures_that_read_text_have_circuits() -> None:
    assert len(TEXTS) - len(NONE) >= 80


def bart_cross(model: nn.Module, i: int) -> tuple[list[Matrix], Tensor, None]:
    own = model.model.decoder.layers[i].encoder_attn
    qkv = [linear(each) for each in (own.q_proj, own.k_proj, own.v_proj)]
    return qkv, linear(own.out_proj)[0], None


@pytest.mark.parametrize("i", [0, 2])
def test_cross_attention_of_a_post_norm_model(i: int) -> None:
    model = tiny("bart")
    qkv, o, norm = bart_cross(model, i)
    check(gf.circuits(model)[f"decoder.{i}.cross"], qkv, o, norm, scales_queries=1.0)


def test_cross_attention_behind_two_norms() -> None:
    """T5: the norm of the decoder's block, and the final norm of the encoder."""
    model = tiny("t5")
    site = gf.circuits(model)["decoder.2.cross"]
    layer = model.decoder.block[2].layer[1]
    own = layer.EncDecAttention
    qkv = [linear(each) for each in (own.q, own.k, own.v)]
    last = model.encoder.final_layer_norm
    assert site.is_cross and site.scale == 1.0
    check(site, qkv, linear(own.o)[0], layer.layer_norm, key_norm=last)


@pytest.mark.parametrize("kind", ["rms", "layer"])
@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_our_models(family: str, place: str, kind: str) -> None:
    torch.manual_seed(5)
    model = gf.build(
        gf.Config(
            family=family,
            vocab_size=13,
            dim=12,
            n_layers=2,
            n_heads=6,
            n_kv_heads=2,
            head_dim=5,
            biases="all",
            max_len=16,
            norms=Norms(place=place, kind=kind),
        )
    )
    for part in model.parameters():
        part.data.normal_(mean=0.1, std=0.4)
    found = gf.circuits(model)
    is_before = place == "pre"
    for i, block in enumerate(model.decoder.blocks):
        qkv = split(linear(block.attention.qkv), 30, 10, 10)
        norm = block.attention_norm if is_before else None
        check(found[f"decoder.{i}.self"], qkv, linear(block.attention.out)[0], norm)
        if family == "decoder":
            continue
        qkv = [linear(block.cross.q), *split(linear(block.cross.kv), 10, 10)]
        norm = block.cross_norm if is_before else None
        last = model.encoder.final_norm if model.config.norms.final else None
        check(found[f"decoder.{i}.cross"], qkv, linear(block.cross.out)[0], norm, key_norm=last)


@pytest.mark.parametrize("name", ["qwen3", "olmo2", "gemma3"])
def test_norms_of_queries_and_keys_are_left_out_and_said_to_be(name: str) -> None:
    model = build(name)
    site = gf.circuits(model)["decoder.1.self"]
    assert site.frozen[:2] == (
        "the size that the queries are divided by is left out",
        "the size that the keys are divided by is left out",
    )
    assert ("the size that the norm after it divides by is left out" in site.frozen) == (
        name != "qwen3"
    )
    own = model.model.layers[1].self_attn
    before = None if name == "olmo2" else model.model.layers[1].input_layernorm
    by_hand, _ = fold(before, linear(own.q_proj), plus_one=name == "gemma3")
    gain = own.q_norm.weight.detach().double() + (name == "gemma3")
    gain = gain if name == "olmo2" else gain.repeat(6)
    assert_close(site.q.flatten(0, 1).double(), gain[:, None] * by_hand, 1e-5)
    if name != "qwen3":
        behind = model.model.layers[1].post_attention_layernorm.weight.detach().double()
        behind = behind + (name == "gemma3")
        o = behind[:, None] * linear(own.o_proj)[0]
        assert_close(site.o.double(), o.unflatten(1, (6, -1)).transpose(0, 1), 1e-5)


@pytest.mark.parametrize(
    ("name", "head", "reason"),
    [
        ("deepseek-v3", "qk", "A norm inside decoder.1.self divides only a part of its keys"),
        ("bitnet", "ov", "Between the heads of decoder.1.self and the stream lies more than a mat"),
        ("qwen3-next", "ov", "Between the heads of decoder.1.self and the stream lies more than"),
    ],
)
def test_one_circuit_is_refused_and_the_other_stays(name: str, head: str, reason: str) -> None:
    found = gf.circuits(build(name))
    other = {"qk": "ov", "ov": "qk"}[head]
    assert getattr(found, other)("decoder.1.self", 0).matrix().shape == (24, 24)
    with pytest.raises(TraceError, match=reason):
        getattr(found, head)("decoder.1.self", 0)
    assert reason.partition("decoder")[0] in repr(found)


def test_what_is_not_linear_is_refused() -> None:
    model = tiny("llama")
    own = model.model.layers[1].self_attn
    own.k_proj = nn.Sequential(own.k_proj, nn.Tanh())
    found = gf.circuits(model)
    assert found.ov("decoder.1.self", 2).shape == (24, 24)
    with pytest.raises(TraceError, match=r"The keys of decoder.1.self are no linear function"):
        found.qk("decoder.1.self", 2)


def test_what_is_read_must_be_the_stream() -> None:
    model = tiny("llama")

    def mix(_module, args, options):
        x = options["hidden_states"]
        return args, {**options, "hidden_states": x + x.roll(1, -1)}

    model.model.layers[1].self_attn.register_forward_pre_hook(mix, with_kwargs=True)
    found = gf.circuits(model)
    assert list(found.sites) == ["decoder.0.self"]
    with pytest.raises(TraceError, match=r"decoder.1.self reads is neither the stream nor a norm"):
        found.qk("decoder.1.self", 0)


def test_a_norm_of_another_kind_is_refused() -> None:
    model = tiny("llama")
    norm = model.model.layers[1].input_layernorm
    norm.register_forward_hook(lambda _module, _args, out: out + out.roll(1, -1))
    found = gf.circuits(model)
    with pytest.raises(TraceError, match=r"What decoder.1.self reads passes LlamaRMSNorm, which"):
        found.qk("decoder.1.self", 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_has_the_weights_it_holds(dtype: torch.dtype) -> None:
    """A large bias costs the columns no more than its share in a probe."""
    model = build("qwen2")
    for block in model.model.layers:
        block.self_attn.k_proj.bias.data *= 10
    model = model.to(dtype)
    site = gf.circuits(model)["decoder.1.self"]
    assert not site.refusals and site.q.dtype == torch.float32
    by_hand, _ = fold(*[llama(model, 1)[2], llama(model, 1)[0][1]])
    assert_close(site.k.flatten(0, 1).double(), by_hand, 8 * torch.finfo(dtype).eps)


def test_the_model_stays_as_it_is() -> None:
    model = tiny("qwen3").train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    given = torch.arange(3, 9)[None]
    with torch.no_grad():
        before = model(given).logits
    gf.circuits(model).copying("decoder.0.self")
    assert [module.training for module in model.modules()] == modes
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with torch.no_grad():
        assert torch.equal(model(given).logits, before)


def test_hooks_are_removed_if_the_model_fails() -> None:
    model = tiny("llama").train()
    calls = []

    def fail(_module, _args, _out):
        calls.append(1)
        if len(calls) == 2:  # while it is probed
            raise RuntimeError("out of memory")

    handle = model.model.norm.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        gf.circuits(model)
    handle.remove()
    assert model.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (nn.MultiheadAttention(8, 2), "circuits needs a model of glassformer or transformers"),
        ("vit", "circuits needs a model that reads tokens; ViTModel reads pixel_values"),
        ("gemma3n", "The residual stream of decoder could not be recorded"),
        ("xlnet", "decoder.0.self could not be probed with one token at a time"),
    ],
)
def test_what_has_no_circuits_is_refused(model, reason: str) -> None:
    model = build(model) if model in ("vit", "gemma3n", "xlnet") else model
    with pytest.raises(TraceError, match=reason):
        gf.circuits(model)


@pytest.mark.plain
def test_only_models_have_circuits() -> None:
    with pytest.raises(TraceError, match=r"circuits takes a model, a torch.nn.Module; got str"):
        gf.circuits("not a model")


def test_sites_and_heads_are_checked() -> None:
    found = gf.circuits(tiny("llama"))
    with pytest.raises(TraceError, match=r"A site must be one of decoder.0.self, decoder.1.self"):
        found.qk("decoder.7.self", 0)
    with pytest.raises(TraceError, match=r"decoder.0.self has heads 0 … 5; got head=6"):
        found.ov("decoder.0.self", 6)
