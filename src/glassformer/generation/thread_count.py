"""How many threads work on a call into C: several, unless other programs take the processors."""

import torch

from glassformer.generation.native_structures import Barrier

# Threads sleep at 0.7 to 1 of the barriers where another program is busy, and otherwise at 0.4 at
# most (two processors, models of 5 to 135 million parameters).
_CROWDED = 0.6
_PHASES = 200  # between two barriers: what an opinion takes
# Calls of one thread. Where threads wait in vain, several are up to ten times slower than one,
# while one is at most as many times slower as there are threads: better too long alone.
_LEAST_ALONE, _MOST_ALONE = 16, 64


class ThreadCount:
    """Of one model. Where threads wait for each other in vain, one is faster.

    It works alone for some calls, and for twice as many each time that it turns out to be so again.
    """

    def __init__(self) -> None:
        self.n_wait = self.n_alone = 0  # calls of one thread: all, and those that are left
        self.is_trial = False  # whether several work again, who should soon be asked how it went

    def count(self, barrier: Barrier) -> int:
        """For the next call; the barrier has counted since the last look."""
        if barrier.n_passed >= _PHASES:
            is_crowded = barrier.n_slept > _CROWDED * barrier.n_passed
            self.n_wait = min(_MOST_ALONE, 2 * self.n_wait or _LEAST_ALONE) if is_crowded else 0
            self.n_alone = self.n_wait
            barrier.n_passed = barrier.n_slept = 0
        self.is_trial = self.n_alone == 0 and self.n_wait > 0
        if self.n_alone == 0:
            return torch.get_num_threads()
        self.n_alone -= 1
        return 1
