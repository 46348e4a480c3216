"""How much of a prediction the parts that gf.why names carry, and how much is lost without them.

python benchmarks/why_prompts.py                                  the included writer
python benchmarks/why_prompts.py --model SmolLM2-135M-Instruct.Q4_1.gguf --json smollm2.jsonl
python benchmarks/why_prompts.py --show smollm2.jsonl             its tables

Forty prompts (why_prompts_texts.py); each time the model's most probable next token against the
second. The named parts are kept alone, or removed alone, by mean and by zero ablation; beside them
as many heads and feed-forwards drawn at random. Shares are of what the difference of the two logits
changes by when every part is removed.

Removal is by the mean over the prompt's own positions (mean); by zeros (zero); or by the mean over
the other prompts, which does not know the answer (other texts). As in gf.why, first tokens are left
out of means and stay as they are: trained models write huge vectors there.
"""

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

import glassformer as gf
from glassformer.analysis import Verdict
from why_prompts_texts import PROMPTS

How = Literal["mean", "other texts", "zero"]
Place = tuple[str, int | None]  # a part, and its head where it is attention
HOWS: tuple[How, ...] = get_args(How)
BATCH = 24  # changed runs side by side


class Score(NamedTuple):
    """One set of parts on one prompt."""

    kind: str
    prompt: str
    token: str
    against: str
    difference: float
    top: int
    how: How
    of: str  # named or random
    n_parts: int
    none: float  # the difference when every part is removed
    kept: float  # the share that is there when all other parts are removed
    lost: float  # the share that is missing when they are
    is_kept: bool  # whether the token is still the most probable when all others are removed
    is_lost: bool  # whether it is not, when they are


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="writer")
    parser.add_argument("--top", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--depth", type=int, default=1, help="3 also names what wrote q, k and v")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, help="prompts of each kind")
    parser.add_argument("--json", type=Path, help="append every score to this file")
    parser.add_argument("--show", type=Path, nargs="+", help="tables of such files, and no run")
    args = parser.parse_args()
    if args.show:
        files = [path.read_text(encoding="utf-8").splitlines() for path in args.show]
        models = [[Score(**json.loads(line)) for line in lines] for lines in files]
        print("\n\n".join([*map(summarize, models), tabulate_prompts(models)]))
        return 0
    torch.set_num_threads(1)
    model: Any = gf.load(args.model)
    prompts = {p: kind for kind, each in PROMPTS.items() for p in each[: args.limit]}
    removals = {prompt: PlainAblation(model, prompt) for prompt in prompts}
    scores = []
    for prompt, kind in prompts.items():
        removals[prompt].compare_with([r for p, r in removals.items() if p != prompt])
        found = list(study(removals[prompt], kind, prompt, args))
        scores += found
        print(describe_prompt(found), flush=True)
        if args.json:
            with args.json.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(score._asdict())}\n" for score in found)
    print(summarize(scores))
    return 0


def study(
    removal: "PlainAblation", kind: str, prompt: str, args: argparse.Namespace
) -> Iterator[Score]:
    """All sets of parts of one prompt."""
    with torch.no_grad(), gf.watch(removal.model, residual=True) as trace:
        removal.model(removal.tokens)
    places = list_places(trace)
    draw = random.Random(f"{args.seed} {prompt}")
    sets: list[tuple[int, str, list[Place]]] = []
    tops = [top for top in args.top if top < len(places)]
    explain = partial(gf.why, trace, depth=args.depth, draws=0)
    chains = {tops[-1]: explain(top=tops[-1])}
    if args.depth > 2:  # otherwise a smaller tree is the beginning of the largest
        chains |= {top: explain(top=top) for top in tops[:-1]}
    verdicts = {top: each.verdict.carried for top, each in chains.items() if each.verdict}
    chain = chains[tops[-1]]
    for top in tops:
        named = list_named(chains.get(top, chain), places)
        named = named if top in chains else named[:top]
        if len(named) == len(places):
            continue  # nothing is left to remove
        sets.append((top, "named", named))
        for _ in range(args.draws):
            sets.append((top, "random", draw_alike(places, named, draw)))
    ids = choose_tokens(trace)
    for how in HOWS:
        none, shares = removal.measure([each for *_, each in sets], places, ids, how)
        for (top, of, parts), found in zip(sets, shares, strict=True):
            yield Score(
                kind, prompt, chain.token, chain.against, chain.logit, top, how, of, len(parts),
                none, *found,
            )  # fmt: skip
            if of == "named" and how == "mean" and top in verdicts:
                assert abs(verdicts[top] - found[0]) < 1e-3 * max(1, abs(found[0]))


def list_places(trace: gf.Trace) -> list[Place]:
    """Every head and every feed-forward."""
    found: list[Place] = []
    for part in trace.residual().parts:
        heads = [None] if part.site is None else range(trace[part.site].n_heads)
        found += [(part.name, head) for head in heads]
    return found


def list_named(chain: Any, places: Sequence[Place]) -> list[Place]:
    """Every head and feed-forward of the tree."""
    nodes = [node for reason in chain.reasons for node in reason.walk()]
    return [p for p in dict.fromkeys((n.part, n.head) for n in nodes) if p in places]


def draw_alike(places: Sequence[Place], named: Sequence[Place], draw: random.Random) -> list[Place]:
    """As many heads and as many feed-forwards as are named."""
    found = []
    for is_head in (True, False):
        n = sum((head is not None) == is_head for _, head in named)
        found += draw.sample([p for p in places if (p[1] is not None) == is_head], n)
    return found


def choose_tokens(trace: gf.Trace) -> tuple[int, int]:
    stream = trace.residual()
    first, second = stream.require_readout()(stream.end[:, [-1]])[0, 0].topk(2).indices.tolist()
    return first, second


class PlainAblation:
    """Removal of parts by plain PyTorch, many sets side by side: a check of the verdict that gf.why
    gives, and several times as fast. Blocks must be pre-norm.
    """

    def __init__(self, model: Any, prompt: str) -> None:
        self.model, self.tokens = model, torch.tensor([model.tokenizer.encode(prompt)])
        self.values: dict[str, Tensor] = {}  # of each part, (L, H, D) or (L, C), in the whole run
        self.others: dict[str, Tensor] = {}  # their means over other texts, (H, D) or (C,)
        self.whole = self._run([set()], "zero")[0]

    def compare_with(self, others: Sequence["PlainAblation"]) -> None:
        for name in self.values:
            self.others[name] = torch.cat([each.values[name][1:] for each in others]).mean(0)

    def _run(self, removals: Sequence[set[Place]], how: How) -> Tensor:
        """The last logits of the text, once for each set of parts that are removed."""
        changed = []
        for i, block in enumerate(self.model.decoder.blocks):
            attention, mlp = block.attention, block.feed_forward
            attention.out.forward = partial(
                self._write_heads, attention, f"decoder.{i}.self", removals, how
            )
            attention.forward = partial(
                self._run_rows, attention, f"decoder.{i}.self", removals, how, attention.forward
            )
            mlp.forward = partial(
                self._run_rows, mlp, f"decoder.{i}.mlp", removals, how, mlp.forward
            )
            changed += [attention.out, attention, mlp]
        head = self.model.head
        handle = head.register_forward_pre_hook(lambda _, args: (args[0][:, -1:], *args[1:]))
        try:
            with torch.no_grad():
                return self.model(self.tokens.expand(len(removals), -1))[:, 0].double()
        finally:
            handle.remove()
            for module in changed:
                del module.forward

    def _run_rows(
        self,
        module: Any,
        name: str,
        removals: Sequence[set[Place]],
        how: How,
        forward: Callable[..., Tensor],
        x: Tensor,
        **options: Any,
    ) -> Tensor:
        """A part runs only for the sets that do not remove all of it."""
        places = (
            [(name, h) for h in range(module.n_heads)] if _is_attention(name) else [(name, None)]
        )
        rows = [i for i, each in enumerate(removals) if not each.issuperset(places)]
        if len(rows) == len(x):
            out = forward(x, **options)
        else:
            values = self._replace(name, how)
            values = _write(module, values) if _is_attention(name) else values
            out = values.expand(len(x), -1, -1).clone()
            if rows:
                out[rows] = forward(x[rows], **options)
        if not _is_attention(name):
            self.values.setdefault(name, out[0].clone())
        return out

    def _write_heads(
        self, module: Any, name: str, removals: Sequence[set[Place]], how: How, x: Tensor
    ) -> Tensor:
        """The output matrix, on heads of which some are replaced."""
        x = x.unflatten(-1, (module.n_heads, -1)).clone()  # B L H D
        self.values.setdefault(name, x[0].clone())
        places = [(name, h) for h in range(module.n_heads)]
        rows = [each for each in removals if not each.issuperset(places)]
        values = self._replace(name, how)
        for i, each in enumerate(rows):
            for h in range(module.n_heads):
                if (name, h) in each:
                    x[i, :, h] = values[:, h]
        return _write(module, x)

    def _replace(self, name: str, how: How) -> Tensor:
        """What stands in for the values of a part at each position."""
        values = self.values[name]
        if how == "zero":
            other = torch.zeros_like(values[0])
        else:
            other = values[1:].mean(0) if how == "mean" else self.others[name]
        return torch.cat([values[:1], other.expand_as(values)[1:]])

    def measure(
        self,
        sets: Sequence[Sequence[Place]],
        places: Sequence[Place],
        ids: tuple[int, int],
        how: How,
    ) -> tuple[float, list[tuple[float, float, bool, bool]]]:
        """The difference without any part; for each set the share when it is kept alone, the share
        that is lost without it, and whether the token is still, or no longer, the first.
        """
        removals: list[set[Place]] = [set(places)]
        for each in sets:
            removals += [set(places) - set(each), set(each)]
        logits = [self.whole[None]]
        for i in range(0, len(removals), BATCH):
            some = removals[i : i + BATCH]
            logits.append(self._run(some, how))
        found = torch.cat(logits)
        whole, none, *rest = (found[:, ids[0]] - found[:, ids[1]]).tolist()
        is_first = (found.argmax(-1) == ids[0]).tolist()[2:]
        return none, [
            ((kept - none) / (whole - none), (whole - removed) / (whole - none), still, not without)
            for kept, removed, still, without in zip(
                rest[::2], rest[1::2], is_first[::2], is_first[1::2], strict=True
            )
        ]


def _is_attention(name: str) -> bool:
    return name.endswith("self")


def _write(attention: Any, heads: Tensor) -> Tensor:
    return F.linear(heads.flatten(-2), attention.out.weight, attention.out.bias)


def describe_prompt(scores: Sequence[Score]) -> str:
    """A row: the token, and kept and lost by mean ablation for each top."""
    first = scores[0]
    cells = [
        f"{s.top}: {s.kept:+.2f} {s.lost:+.2f}"
        for s in scores
        if s.of == "named" and s.how == "mean"
    ]
    return (
        f"{first.kind:<11} {first.prompt!r} → {first.token!r} − {first.against!r} "
        f"{first.difference:+.2f}; kept, lost by top {'; '.join(cells)}"
    )


def tabulate_prompts(models: Sequence[Sequence[Score]], top: int = 8) -> str:
    """A row for each prompt: what each model says, and its shares, by mean ablation."""
    cells: dict[str, list[str]] = {}
    for scores in models:
        for s in scores:
            if (s.top, s.how, s.of) == (top, "mean", "named"):
                said = f"{s.token} − {s.against}".replace("|", "\\|")
                shares = f"{s.difference:.2f} | {s.kept:.2f} | {s.lost:.2f}"
                cells.setdefault(s.prompt, []).append(f"{said} | {shares}")
    columns = ["prompt", *["tokens", "difference", "kept", "lost"] * len(models)]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {prompt} | {' | '.join(each)} |" for prompt, each in cells.items()]
    return "\n".join(lines)


def summarize(scores: Sequence[Score]) -> str:
    """A table over prompts; a random set counts by the mean of its draws on a prompt."""
    lines = [
        "| top | removal | parts | how many | kept alone: mean ± sd | 10 / 25 / 50 / 75 / 90 % | "
        "lost without: mean ± sd | 10 / 25 / 50 / 75 / 90 % | "
        "still first, kept alone | no longer first, removed | telling | enough | needed |",
        "|---" * 13 + "|",
    ]
    groups: dict[tuple[int, How, str], dict[str, list[Score]]] = {}
    for score in scores:
        key = (score.top, score.how, score.of)
        groups.setdefault(key, {}).setdefault(score.prompt, []).append(score)
    for (top, how, of), prompts in sorted(groups.items()):
        kept, lost, is_kept, is_lost, n_parts = (
            [statistics.mean(getattr(s, name) for s in each) for each in prompts.values()]
            for name in ("kept", "lost", "is_kept", "is_lost", "n_parts")
        )
        found = "– | – | –"
        if of == "named" and (top, how, "random") in groups:
            judged = [
                judge(each[0], groups[top, how, "random"][prompt])
                for prompt, each in prompts.items()
            ]
            shares = [statistics.mean(column) for column in zip(*judged, strict=True)]
            found = " | ".join(f"{share:.0%}" for share in shares)
        lines.append(
            f"| {top} | {how} | {of} | {statistics.mean(n_parts):.1f} | {_spread(kept)} | "
            f"{_spread(lost)} | "
            f"{statistics.mean(is_kept):.0%} | {statistics.mean(is_lost):.0%} | {found} |"
        )
    return "\n".join(lines)


def judge(named: Score, others: Sequence[Score]) -> tuple[bool, bool, bool]:
    """Whether a verdict of gf.why would be telling; whether the parts are enough, and needed."""
    verdict = Verdict(
        whole=1.0,
        kept=named.kept,
        removed=1 - named.lost,
        none=0.0,
        how="mean",
        n_parts=named.n_parts,
        random_kept=tuple(each.kept for each in others),
        random_removed=tuple(1 - each.lost for each in others),
    )
    gone = (named.difference - named.none) * math.copysign(1.0, named.difference)
    is_telling = gone >= 0.5 * abs(named.difference)
    return is_telling, is_telling and verdict.is_enough, is_telling and verdict.is_needed


def _spread(values: Sequence[float]) -> str:
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    at = torch.tensor(values, dtype=torch.float64).quantile(
        torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9], dtype=torch.float64)
    )
    quantiles = " / ".join(f"{q:.2f}" for q in at.tolist())
    return f"{statistics.mean(values):.2f} ± {sd:.2f} | {quantiles}"


if __name__ == "__main__":
    sys.exit(main())
