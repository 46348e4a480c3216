"""Right answers that no author of an exercise wrote: other calls, loops, einsum, whole matrices."""

HEADS = """
import torch
import torch.nn.functional as F
from torch import nn

class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        if dim % n_heads != 0:
            raise ValueError(f"{{dim}} is not a multiple of {{n_heads}}")
        self.h = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(dim, dim) for _ in "qkvo")
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, L, C = x.shape
        q, k, v = (
            p(x).view(B, L, self.h, C // self.h).permute(0, 2, 1, 3)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        s = torch.einsum("bhid,bhjd->bhij", q, k) * (C // self.h) ** -0.5
        if mask is not None:
            s = torch.where(mask, s, torch.full_like(s, float("-inf")))
        w = F.softmax(s, dim=-1)
        {drop}
        o = torch.einsum("bhij,bhjd->bihd", w, v).reshape(B, L, C)
        return self.out_proj(o)
"""
DROPS = {
    "module": "w = self.dropout(w)",
    "F.dropout, by place": "w = F.dropout(w, self.dropout.p, self.training)",
    "F.dropout, by name": "w = F.dropout(w, p=self.dropout.p, training=self.training)",
    "F.dropout, in place": "w = F.dropout(w, self.dropout.p, self.training, inplace=True)",
    "torch.dropout": "w = torch.dropout(w, self.dropout.p, self.training)",
    "rand": "p = self.dropout.p\n"
    "        if self.training: w = w * (torch.rand_like(w) >= p) / (1 - p)",
    "bernoulli": "keep = 1 - self.dropout.p\n"
    "        if self.training: w = w * torch.bernoulli(torch.full_like(w, keep)) / keep",
    "functional module": "w = self.dropout.forward(w)",
}
PAIR = """
import torch
import torch.nn.functional as F

def attention(q, k, v, dropout=None):
    w = torch.softmax(torch.matmul(q, k.mT).div(q.size(-1) ** 0.5), -1)
    kept = w
    if dropout is not None:
        {drop}
    return torch.matmul(kept, v), w
"""
PAIR_DROPS = {
    "module": "kept = dropout(w)",
    "F.dropout": "kept = F.dropout(w, dropout.p, dropout.training)",
    "by hand": "p = dropout.p\n"
    "        if dropout.training: kept = w * (torch.rand(w.shape) > p).to(w) / (1 - p)",
}
CONFIG = """
import torch
import torch.nn.functional as F
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads: raise ValueError("heads")
        self.n, self.p, self.causal = n_heads, dropout, causal
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(dim, dim, bias=False))
        self.weights_dropout, self.out_dropout = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, q, k, v):
        q, k, v = self.q_proj(q), self.k_proj(k), self.v_proj(v)
        q, k, v = (torch.stack(x.chunk(self.n, -1), 1) for x in (q, k, v))
        s = torch.einsum("bhld,bhsd->bhls", q, k) / q.shape[-1] ** 0.5
        if self.causal:
            L, S = s.shape[-2:]
            hidden = torch.arange(S)[None] > torch.arange(S - L, S)[:, None]
            s = s.masked_fill(hidden, float("-inf"))
        w = F.softmax(s.float(), -1).type_as(v)
        w = F.dropout(w, self.{weights}, self.training)
        out = torch.cat(list((w @ v).unbind(1)), -1)
        return F.dropout(self.out_proj(out), self.{out}, self.training)
"""
ENCODER = """
import torch.nn.functional as F
from torch import nn

class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.dropout = attention, feed_forward, dropout
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def drop(self, y):
        return {drop}

    def forward(self, x, mask=None):
        x = self.attention_norm(self.drop(self.attention(x, x, mask)) + x)
        return self.feed_forward_norm(self.drop(self.feed_forward(x)) + x)
"""
ENCODER_DROPS = {
    "module": "self.dropout(y)",
    "F.dropout": "F.dropout(y, self.dropout.p, self.training)",
}

# exercise: a way that differs from the solution's
ALTERNATIVES = {
    "dot_product_scores": """
import torch
def scores(q, k):
    return torch.einsum("...ld,...sd->...ls", q, k)
""",
    "scaling": """
import torch
def scaled_scores(q, k):
    return torch.stack([(k * row.unsqueeze(-2)).sum(-1) for row in q.unbind(-2)], -2).mul(
        q.size(-1) ** -0.5)
""",
    "stable_softmax": """
import torch
def softmax(scores):
    top = torch.max(scores, dim=-1, keepdim=True).values
    e = torch.pow(torch.e, scores - top)
    return torch.div(e, e.sum(-1, True))
""",
    "attention": """
import torch
def attention(q, k, v):
    rows = []
    for i in range(q.shape[-2]):
        s = (k * q[..., i, None, :]).sum(-1) / torch.tensor(q.shape[-1]).sqrt().to(q)
        e = torch.exp(s - s.max(-1, keepdim=True)[0])
        w = e / e.sum(-1, keepdim=True)
        rows.append((w[..., None] * v).sum(-2))
    return torch.stack(rows, dim=-2)
""",
    "linear_on_sequences": """
import torch
def linear(x, weight, bias=None):
    y = torch.tensordot(x, weight, dims=([-1], [1]))
    if bias is not None:
        y = torch.add(y, bias)
    return y
""",
    "single_head_parameters": """
import torch
from torch import nn
class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        for name in ("q_weight", "k_weight", "v_weight"):
            self.register_parameter(name, nn.Parameter(torch.randn(dim, head_dim)))
    def forward(self, x):
        q, k, v = (torch.einsum("blc,cd->bld", x, w) for w in self.parameters())
        w = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** .5, 2)
        return torch.bmm(w, v), w
""",
    "padding_mask": """
import torch
def padding_mask(lengths, length):
    rows = [torch.arange(length) < n for n in lengths]
    return torch.stack(rows).unsqueeze(1)
def attention(q, k, v, mask):
    s = torch.baddbmm(torch.zeros(1, 1, 1).to(q), q, k.mT) / q.shape[-1] ** .5
    s = s + torch.zeros(mask.shape).to(s).masked_fill(mask.logical_not(), float("-inf"))
    w = s.softmax(2)
    return w @ v, w
""",
    "causal_mask": """
import torch
def causal_mask(n_queries, n_keys):
    i = torch.arange(n_queries).unsqueeze(1) + (n_keys - n_queries)
    return torch.arange(n_keys).unsqueeze(0).le(i)
def causal_attention(q, k, v):
    mask = causal_mask(q.size(-2), k.size(-2))
    s = torch.where(mask, q @ k.mT * q.size(-1) ** -0.5, -torch.inf)
    return torch.softmax(s, -1) @ v
""",
    "causal_bias": """
import torch
def causal_bias(length):
    b = torch.zeros(length, length)
    for i in range(length):
        b[i, i + 1:] = float("-inf")
    return b
def causal_weights(scores):
    L = scores.shape[-1]
    return torch.softmax(scores + causal_bias(L).type_as(scores), dim=-1)
""",
    "fully_masked_rows": """
import torch
def masked_attention(q, k, v, mask):
    s = (q @ k.mT) / q.shape[-1] ** 0.5
    mask = mask.expand(s.shape)
    lowest = torch.where(mask, s, torch.finfo(s.dtype).min).amax(-1, keepdim=True).detach()
    e = torch.where(mask, (s - lowest).clamp(max=0).exp(), 0.)
    w = (e / e.sum(-1, keepdim=True).clamp_min(torch.finfo(s.dtype).tiny)).to(s.dtype)
    return w @ v, w
""",
    "split_heads": """
import torch
def split_heads(x, n_heads):
    return torch.stack(torch.tensor_split(x, n_heads, dim=-1), dim=1)
""",
    "merge_heads": """
import torch
def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)
""",
    "cross_attention": """
import torch
from torch import nn
class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.D, self.E = head_dim, value_dim
    def forward(self, x, context):
        outs, ws = [], []
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        for a, b, c in zip(q.split(self.D, -1), k.split(self.D, -1), v.split(self.E, -1)):
            w = torch.softmax(a @ b.mT / self.D ** 0.5, -1)
            outs.append(w @ c); ws.append(w)
        return self.out_proj(torch.cat(outs, -1)), torch.stack(ws, 1)
""",
    "einsum": """
import torch
def multi_head(x, context, w_q, w_k, w_v, w_o):
    s = torch.einsum("blc,hcd,bsk,hkd->bhls", x, w_q, context, w_k) / w_q.shape[-1] ** 0.5
    w = s.softmax(-1)
    return torch.einsum("bhls,bsk,hkd,hdc->blc", w, context, w_v, w_o), w
""",
    "sinusoidal": """
import math, torch
def sinusoidal(positions, dim):
    table = torch.zeros(len(positions), dim, dtype=positions.dtype)
    rates = torch.exp(torch.arange(0, dim, 2).to(positions) * (-math.log(10000.0) / dim))
    table[:, 0::2] = torch.sin(positions.unsqueeze(1) * rates)
    table[:, 1::2] = torch.cos(positions.unsqueeze(1) * rates)
    return table
""",
    "embedding": """
import torch
from torch import nn
class Embedding(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, dim).normal_(std=dim ** -0.5))
    def forward(self, tokens):
        rows = torch.index_select(self.weight, 0, tokens.reshape(-1))
        return rows.reshape(*tokens.shape, -1) * self.weight.size(1) ** 0.5
""",
    "feed_forward": """
import torch
from torch import nn
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.down, self.up = nn.Linear(hidden_dim, dim), nn.Linear(dim, hidden_dim)
        self.act = nn.ReLU()
    def forward(self, x):
        return nn.Sequential(self.up, self.act, self.down)(x)
""",
    "layer_norm": """
import torch
from torch import nn
class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(dim)), None, eps
        self.bias = nn.Parameter(torch.zeros(dim))
    def forward(self, x):
        variance, mean = torch.var_mean(x, -1, unbiased=False, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + self.eps), self.weight)
""",
    "residual": """
import torch
def post_norm(x, sublayer, norm):
    y = sublayer(x)
    y = torch.add(y, x)
    return norm(y)
def pre_norm(x, sublayer, norm):
    return torch.stack([x, sublayer(norm(x))]).sum(0)
""",
    "shifted_targets": """
import torch
def shift(tokens):
    n = tokens.size(1) - 1
    return tokens.narrow(1, 0, n), tokens.narrow(1, 1, n)
def loss(logits, targets, pad):
    log_p = logits - logits.logsumexp(-1, keepdim=True)
    real = targets.ne(pad)
    safe = targets.where(real, torch.zeros_like(targets))
    picked = log_p.gather(2, safe.unsqueeze(2)).squeeze(2)
    return -(picked * real).sum() / real.sum()
""",
    "label_smoothing": """
import torch
def smoothed_loss(logits, targets, smoothing):
    V = logits.shape[-1]
    q = torch.full_like(logits, smoothing / V)
    q.scatter_add_(-1, targets.unsqueeze(-1),
                   torch.full_like(logits[..., :1], 1 - smoothing))
    return -(q * torch.log_softmax(logits, -1)).sum(-1).mean()
""",
    "schedule": """
import math
def learning_rate(step, dim, warmup):
    scale = 1 / math.sqrt(dim)
    return scale * step / warmup / math.sqrt(warmup) if step < warmup else scale / math.sqrt(step)
""",
    "sampling": """
import torch
def probabilities(logits, temperature, top_k=None, top_p=None):
    rows = []
    for row in logits:
        row = (row / temperature).clone()
        if top_k is not None:
            keep = row >= row.sort(descending=True)[0][top_k - 1]
            row = torch.where(keep, row, -torch.inf)
        if top_p is not None:
            p, order = row.softmax(-1).sort(descending=True)
            total, keep = 0.0, torch.zeros_like(row, dtype=torch.bool)
            for value, place in zip(p.tolist(), order.tolist()):
                if total >= top_p:
                    break
                keep[place] = True
                total += value
            row = torch.where(keep, row, -torch.inf)
        rows.append(row.softmax(-1))
    return torch.stack(rows)
""",
    "kv_cache": """
import torch
from torch import nn
class CachedAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(dim, dim) for _ in range(3))
    def forward(self, x, cache=None):
        k, v = self.k_proj(x), self.v_proj(x)
        if cache is not None:
            k, v = torch.hstack((cache[0], k)), torch.hstack((cache[1], v))
        n_old = k.shape[1] - x.shape[1]
        outs = []
        for i, q in enumerate(self.q_proj(x).unbind(1)):
            seen = n_old + i + 1
            w = torch.einsum("bc,bsc->bs", q, k[:, :seen]).div(q.shape[-1] ** 0.5).softmax(-1)
            outs.append(torch.einsum("bs,bsc->bc", w, v[:, :seen]))
        return torch.stack(outs, 1), (k, v)
""",
    "rotary": """
import torch
def rotary(q, k, positions, base=10000.0):
    half = q.shape[-1] // 2
    i = torch.arange(half, dtype=torch.float64)
    angle = torch.outer(positions.double(), 1 / base ** (i / half))
    turn = torch.polar(torch.ones_like(angle), angle)
    def rotate(x):
        z = torch.complex(x[..., :half].double(), x[..., half:].double()) * turn
        return torch.cat([z.real, z.imag], -1).to(x.dtype)
    return rotate(q), rotate(k)
""",
    "alibi": """
import torch
def alibi(n_heads, n_queries, n_keys):
    bias = torch.zeros(n_heads, n_queries, n_keys)
    for h in range(n_heads):
        for i in range(n_queries):
            for j in range(n_keys):
                bias[h, i, j] = -2 ** (-8 * (h + 1) / n_heads) * abs(n_keys - n_queries + i - j)
    return bias
""",
    "grouped_queries": """
import torch
def grouped_attention(q, k, v):
    B, H, L, D = q.shape
    K = k.shape[1]
    q = q.reshape(B, K, H // K, L, D)
    w = torch.einsum("bkgld,bksd->bkgls", q, k).mul(D ** -0.5).softmax(-1)
    return torch.einsum("bkgls,bkse->bkgle", w, v).reshape(B, H, L, -1)
""",
    "sliding_window": """
import torch
def sliding_window(n_queries, n_keys, window):
    full = torch.ones(n_queries, n_keys, dtype=torch.bool)
    shift = n_keys - n_queries
    return full.tril(shift) & full.triu(shift - window + 1)
""",
    "learn_merges": """
import re
from collections import defaultdict
def learn_merges(counts, n):
    words = {" ".join(w): c for w, c in counts.items()}
    merges = []
    while len(merges) < n:
        pairs = defaultdict(int)
        for w, c in words.items():
            s = w.split()
            for i in range(len(s) - 1):
                pairs[s[i], s[i + 1]] += c
        if not pairs:
            return merges
        top = max(pairs.values())
        a, b = sorted(p for p in pairs if pairs[p] == top)[0]
        merges.append([a, b])
        at = re.compile(rf"(?<!\\S){a} {b}(?!\\S)")
        words = {at.sub(a + b, w): c for w, c in words.items()}
    return merges
""",
    "apply_merges": """
def encode(word, merges):
    rank, s = {p: i for i, p in enumerate(merges)}, list(word)
    while True:
        found = [(rank[p], i) for i, p in enumerate(zip(s, s[1:])) if p in rank]
        if not found:
            return s
        i = min(found)[1]
        s = s[:i] + [s[i] + s[i + 1]] + s[i + 2:]
""",
    "stream_bytes": """
import codecs
def stream(pieces):
    decoder = codecs.getincrementaldecoder("utf-8")()
    return [decoder.decode(piece) for piece in pieces]
""",
    "rope_scaling": """
import torch
def linear(frequencies, factor):
    return frequencies * (1 / factor)
def ntk(frequencies, factor):
    n = frequencies.numel()
    return torch.stack([f * factor ** (-i / (n - 1)) for i, f in enumerate(frequencies)])
def by_parts(frequencies, factor, original_len, low, high):
    wavelength = 2 * torch.pi / frequencies
    turns = original_len / wavelength
    mix = (turns - low) / (high - low)
    blended = (1 - mix) * frequencies / factor + mix * frequencies
    out = torch.where(turns >= high, frequencies, blended)
    return torch.where(turns <= low, frequencies / factor, out)
""",
    "streaming_cache": """
import torch
def evict(k, v, n_sinks, window):
    while k.size(2) > n_sinks + window:
        k, v = (torch.cat([t[:, :, :n_sinks], t[:, :, n_sinks + 1 :]], 2) for t in (k, v))
    return k, v, torch.tensor(range(k.size(2)))
""",
    "pool_heads": """
import torch
def pool_heads(weight, n_heads, n_kv_heads):
    heads = weight.chunk(n_heads, 0)
    n = n_heads // n_kv_heads
    return torch.cat([sum(heads[i * n : (i + 1) * n]) / n for i in range(n_kv_heads)])
""",
    "absorbed_attention": """
import torch
def absorb(q, w_uk):
    return torch.einsum("bhld,hdr->bhlr", q, w_uk)
def latent_attention(q, c, w_uk, w_uv):
    scores = torch.einsum("bhlr,bsr->bhls", absorb(q, w_uk), c) * q.size(-1) ** -0.5
    values = torch.einsum("bsr,her->bhse", c, w_uv)
    return torch.softmax(scores, -1) @ values
""",
    "in_batch_negatives": """
import torch
def mean_pool(hidden, mask):
    return torch.stack([row[keep].mean(0) for row, keep in zip(hidden, mask)])
def info_nce(queries, documents, temperature):
    a = queries / queries.norm(dim=1, keepdim=True)
    b = documents / documents.norm(dim=1, keepdim=True)
    s = torch.einsum("bc,nc->bn", a, b) / temperature
    return (torch.logsumexp(s, dim=1) - s.diagonal()).mean()
""",
    "recall_at_k": """
def ranks(scores, right):
    rows = zip(scores.tolist(), right.tolist())
    return [sum(1 for s in row if s >= row[r]) for row, r in rows]
def recall_at_k(scores, right, k):
    found = ranks(scores, right)
    return sum(r <= k for r in found) / len(found)
def mean_reciprocal_rank(scores, right):
    return sum(1 / r for r in ranks(scores, right)) / len(right)
""",
    "online_softmax": """
import torch
def online_softmax(blocks):
    top = total = None
    for block in blocks:
        for column in block.unbind(-1):
            if top is None:
                top, total = column, torch.ones_like(column)
                continue
            new = column.maximum(top)
            total, top = total * torch.exp(top - new) + torch.exp(column - new), new
    return top, total
""",
    "flash_in_blocks": """
import torch
def flash_attention(q, k, v, block):
    scale, top, total, out = q.size(-1) ** -0.5, None, None, None
    for start in range(0, k.size(-2), block):
        s = torch.einsum("...ld,...sd->...ls", q * scale, k[..., start : start + block, :])
        high = s.max(-1, keepdim=True).values
        e = torch.exp(s - high)
        part, vs = e.sum(-1, keepdim=True), e @ v[..., start : start + block, :]
        if top is None:
            top, total, out = high, part, vs
            continue
        new = torch.maximum(top, high)
        a, b = torch.exp(top - new), torch.exp(high - new)
        total, out, top = total * a + part * b, out * a + vs * b, new
    return out / total, (top + torch.log(total)).squeeze(-1)
""",
    "lse_weights": """
import torch
def weight(q, k, lse, b, h, i, j):
    return torch.exp(torch.dot(q[b, h, i], k[b, h, j]).div(q.shape[3] ** 0.5) - lse[b][h][i])
""",
    "statistics": """
import torch
def statistics(q, k, chunk):
    entropy, received = [], 0
    for start in range(0, len(q), chunk):
        w = torch.softmax(q[start:start + chunk] @ k.t() * q.shape[1] ** -0.5, 1)
        entropy.append(torch.special.entr(w).sum(1))
        received = received + w.sum(0)
    return torch.hstack(entropy), received
""",
    "backward_of_softmax": """
import torch
def softmax_backward(weights, grad):
    J = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return (J @ grad.unsqueeze(-1)).squeeze(-1)
""",
    "additive_attention": """
import torch
def additive_attention(hidden, context, w_q, w_k, v, mask):
    rows = []
    for i in range(hidden.shape[1]):
        joined = torch.tanh((hidden[:, i] @ w_q).unsqueeze(1) + context @ w_k)
        scores = torch.einsum("bsd,d->bs", joined, v)
        rows.append(torch.where(mask, scores, torch.tensor(float("-inf"), dtype=scores.dtype)))
    weights = torch.softmax(torch.stack(rows, 1), 2)
    return torch.einsum("bls,bse->ble", weights, context), weights
""",
    "ngram_model": """
import math
from collections import Counter
def probability(text, context, word, vocab_size):
    n = len(context) + 1
    grams = Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
    after = sum(count for gram, count in grams.items() if list(gram[:-1]) == list(context))
    return (grams[(*context, word)] + 1) / (after + vocab_size)
def perplexity(text, tokens, n, vocab_size):
    product, k = 1.0, len(tokens) - n + 1
    for i in range(k):
        *context, word = tokens[i : i + n]
        product *= probability(text, context, word, vocab_size)
    return product ** (-1 / k)
""",
}
