"""The tree of a beam search: every hypothesis that it considered, and what became of each."""

from collections.abc import Sequence
from typing import Any

from glassformer.generation import Candidate, Hypothesis
from glassformer.text import Tokenizer
from glassformer.text.pieces import CONTINUED, labels

_MOST_PIECES = 4  # of a character in UTF-8


def grow_tree(
    steps: Sequence[Sequence[Candidate]], best: Hypothesis, tokenizer: Tokenizer, *, beams: int
) -> list[dict[str, Any]]:
    """The hypotheses of a search for one prompt, parents before children.

    A hypothesis that was kept is `extended` by others, is `dead` once everything that continues it
    has been pruned, or is still `open` when the search ends.
    """
    nodes: list[dict[str, Any]] = []
    live: list[int | None] = [None]  # the node of each beam
    for depth, step in enumerate(steps):
        # A text may end only among the best `beams`; where one does, the next best are kept.
        least_ended = [each.log_probability for each in step][:beams][-1:]
        least_kept = [each.log_probability for each in step if each.fate == "kept"][-1:]
        kept: list[int | None] = []
        continued: set[int | None] = set()
        for each in step:
            parent = live[each.parent]
            fate = "open" if each.fate == "kept" else each.fate
            least = least_kept or least_ended
            if fate == "pruned" and not any(each.log_probability <= value for value in least):
                least = least_ended
            if fate != "pruned":
                continued.add(parent)
            if each.fate == "kept":
                kept.append(len(nodes))
            nodes.append(
                {
                    "parent": parent,
                    "token": each.token,
                    "piece": "",
                    "text": "",
                    "depth": depth,
                    "log_probability": each.log_probability,
                    "score": each.log_probability / (depth + 1),
                    "fate": fate,
                    "least_kept": least[0] if fate == "pruned" else None,
                    "is_best": False,
                }
            )
        for node in live:
            if node is None:
                continue
            nodes[node]["fate"] = "extended" if node in continued else "dead"
            if node not in continued:
                nodes[node]["least_kept"] = (least_kept or least_ended or [None])[0]
        live = kept
    for number, node in enumerate(nodes):
        tokens = [nodes[each]["token"] for each in _walk_up(nodes, number)]
        node["piece"], node["text"] = _label_last(tokenizer, tokens), tokenizer.decode(tokens)
    _mark_best(nodes, best)
    return nodes


def _label_last(tokenizer: Tokenizer, tokens: list[int]) -> str:
    """The last token as a label; one that completes a character shows that character."""
    near = labels(tokenizer, tokens[-_MOST_PIECES:])
    return next((label for label in reversed(near) if label != CONTINUED), near[-1])


def _mark_best(nodes: list[dict[str, Any]], best: Hypothesis) -> None:
    """Mark the way to the text that the search has chosen."""
    for number, node in enumerate(nodes):
        if node["fate"] not in ("finished", "open"):
            continue
        if node["log_probability"] != best.log_probability:
            continue
        way = _walk_up(nodes, number)
        tokens = [nodes[each]["token"] for each in way]
        if tuple(tokens[: -1 if node["fate"] == "finished" else None]) == best.tokens:
            for each in way:
                nodes[each]["is_best"] = True
            return


def _walk_up(nodes: list[dict[str, Any]], number: int) -> list[int]:
    """The nodes from the beginning of the text to this one."""
    way: list[int] = []
    at: int | None = number
    while at is not None:
        way.append(at)
        at = nodes[at]["parent"]
    return way[::-1]
