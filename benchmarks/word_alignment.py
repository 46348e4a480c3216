"""Word alignment by IBM Model 1 (Brown et al. 1993), of tokens: no neural network is involved.

t(f | e), the probability that the token e is translated by f, is estimated by expectation
maximization from pairs of texts; e may also be nothing (NULL).
"""

from collections.abc import Sequence

import numpy as np

NULL = -1
Pair = tuple[Sequence[int], Sequence[int]]


class Model1:
    """t(f | e) of all pairs of tokens that occur together."""

    def __init__(self, pairs: Sequence[Pair], rounds: int = 6) -> None:
        e, f, row = [], [], []  # one entry for each source token, or NULL, and target token
        n_rows = 0
        for source, target in pairs:
            seen = np.array([NULL, *source])
            e.append(np.tile(seen, len(target)))
            f.append(np.repeat(np.asarray(target), len(seen)))
            row.append(n_rows + np.repeat(np.arange(len(target)), len(seen)))
            n_rows += len(target)
        sources, targets, rows = (np.concatenate(each) for each in (e, f, row))
        self.width = int(targets.max()) + 1
        keys, entries = np.unique((sources + 1) * self.width + targets, return_inverse=True)
        of_source = keys // self.width
        probability = np.ones(len(keys))
        for _ in range(rounds):
            weight = probability[entries]
            weight /= np.bincount(rows, weight, n_rows)[rows]
            counts = np.bincount(entries, weight, len(keys))
            probability = counts / np.bincount(of_source, counts)[of_source]
        self.table = dict(zip(keys.tolist(), probability.tolist(), strict=True))

    def align(self, source: Sequence[int], target: Sequence[int], least: float) -> dict[int, int]:
        """For target positions, the source position that has at least this share; others are
        left out, and so are those whose source token occurs twice.
        """
        found = {}
        for i, f in enumerate(target):
            weights = [self.table.get((e + 1) * self.width + f, 0.0) for e in (NULL, *source)]
            j = int(np.argmax(weights))
            if j and weights[j] >= least * sum(weights) and source.count(source[j - 1]) == 1:
                found[i] = j - 1
        return found
