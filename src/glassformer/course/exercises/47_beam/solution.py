"""Several sentences side by side; the best of all their continuations survive."""

from collections.abc import Callable


def beam_search(
    log_probs: Callable[[list[int]], list[float]],
    begin: int,
    end: int,
    beams: int,
    max_new: int,
    length_penalty: float,
) -> tuple[list[int], float]:
    """The sentence with the highest total / length^length_penalty found by the search"""
    live: list[tuple[list[int], float]] = [([begin], 0.0)]
    finished: list[tuple[list[int], float]] = []
    for _ in range(max_new):
        candidates = [
            ([*tokens, token], total + log_p)
            for tokens, total in live
            for token, log_p in enumerate(log_probs(tokens))
        ]
        # All candidates compete: the successors of a good sentence may displace a weak one.
        best = sorted(candidates, key=lambda each: each[1], reverse=True)[:beams]
        finished += [each for each in best if each[0][-1] == end]
        live = [each for each in best if each[0][-1] != end]
        if not live:
            break
    scored = [
        (tokens, total / (len(tokens) - 1) ** length_penalty) for tokens, total in finished + live
    ]
    return max(scored, key=lambda each: each[1])
