"""Which tokens a head copies: it attends to one, and what it writes raises that token's own logit.

What a key writes through a head is W_O v, exactly; read by the unembedding it is a list of logits.
A token is copied if it is among the first five of that list, the criterion by which Wang et al.
(2022) tell name movers.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from glassformer.analysis.site_weights import carry, linear_part
from glassformer.errors import TraceError
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Stream, Transform

_FIRST = 5


def find_copied(
    site: Site,
    stream: Stream,
    tokens: Int[Tensor, " S"],
    keys: Int[Tensor, " N"],
    *,
    sequence: int = 0,
) -> Bool[Tensor, "H N"]:
    """Whether each head copies each of these keys. Sizes that norms divide by play no part."""
    part = next((part for part in stream.parts if part.site == site.name), None)
    if part is None or part.writing is None or site.heads is not None:
        raise TraceError(f"No single matrix writes the heads of {site.name} to the stream.")
    readout = stream.require_readout()
    unembedding = readout.require_matrix()
    device, dtype = unembedding.device, torch.promote_types(unembedding.dtype, torch.float32)
    steps = stream.steps[stream.steps.index(part) :]
    steps = [*part.writing.then, *(step for step in steps if isinstance(step, Transform))]
    slices = part.writing.weight.to(device, dtype).chunk(site.n_heads, dim=1)  # each C E
    v = site.v[sequence, :, keys.to(site.v.device)].to(device, dtype)
    v = v.repeat_interleave(site.n_heads // len(v), dim=0)  # H N E
    own = tokens[keys].to(device)
    copied = []
    for values, matrix in zip(v, slices, strict=True):
        written = carry(values @ matrix.mT, steps)  # N C
        written = written if readout.norm is None else linear_part(readout.norm, written)
        logits = written @ unembedding.to(dtype).mT  # N V
        copied.append((logits > logits.gather(1, own[:, None])).sum(-1) < _FIRST)
    return torch.stack(copied).cpu()
