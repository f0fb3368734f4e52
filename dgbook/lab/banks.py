"""Bank conflicts of the paper's element-local kernels, counted from addresses: Figures 5 and 7."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.maxwell.plan import HALF_WARP, Shape, odd

WARP = 2 * HALF_WARP


@dataclass(frozen=True)
class SharedMemory:
    """How shared memory serves 32-bit words.

    Attributes
    ----------
    banks : int
        Word w lies in bank w mod banks.
    group : int
        So many threads are served together.
    multicast : bool
        Whether threads may share any number of words at no cost, one in each bank. If not, one
        access either serves one word to all threads that want it, or different banks to one thread
        each.
    """

    banks: int
    group: int
    multicast: bool

    def accesses(self, words: np.ndarray) -> int:
        """In how many turns the words that one group reads are served; negative ones are none."""
        wanted, threads = np.unique(words[words >= 0], return_counts=True)
        if not len(wanted):
            return 0
        by_bank = [
            np.sort(threads[wanted % self.banks == b]) for b in np.unique(wanted % self.banks)
        ]
        if self.multicast:
            return max(map(len, by_bank))
        # `rest` turns serve a thread a bank each; before that, a turn for each word that must be
        # broadcast so that no bank has more than `rest` threads left: those most in demand.
        return min(
            rest + sum(int((np.cumsum(bank) > rest).sum()) for bank in by_bank)
            for rest in range(threads.sum() + 1)
        )


PAPER = SharedMemory(banks=16, group=HALF_WARP, multicast=False)
"""klockner2009, section 3: half a warp at a time, different banks or one word for all."""

TODAY = SharedMemory(banks=32, group=WARP, multicast=True)
"""Every device since compute capability 2.0."""


def turns(words: np.ndarray, memory: SharedMemory) -> np.ndarray:
    """How often each warp is served in one step: the most of any of its groups, (warps,).

    A warp whose one half must be served twice makes the other wait (klockner2009, section 5.2), so
    that one more conflict in the same warp costs nothing.

    Parameters
    ----------
    words : (threads,) ints
        The word that each thread reads, negative for none; by the threads' number in the block.
    memory : SharedMemory
    """
    padded = np.full(-(-len(words) // WARP) * WARP, -1)
    padded[: len(words)] = words
    groups = padded.reshape(-1, WARP // memory.group, memory.group)
    return np.array([max(map(memory.accesses, warp)) for warp in groups])


def threads(shape: Shape, w_p: int, order: str) -> tuple[np.ndarray, np.ndarray]:
    """What each thread of a field-in-shared block works on: its microblock and its place there.

    By the number of the thread, for "mitigating" blocks of 16 x w_p x N_pM/16 threads, Figure 5(b),
    or "plain" ones of N_pM x w_p, 5(a).
    """
    number = np.arange(shape.N_pM * w_p)
    if order == "plain":
        return number // shape.N_pM, number % shape.N_pM
    half, lane = number // (HALF_WARP * w_p), number % HALF_WARP
    return number // HALF_WARP % w_p, half * HALF_WARP + lane


def lift_words(shape: Shape, w_p: int, order: str) -> np.ndarray:
    """The words that the threads of a lift read from the fields in its first step, with w_i = 1.

    In later steps each reads the next one, and conflicts are the same.
    """
    microblock, place = threads(shape, w_p, order)
    words = microblock * shape.N_fM + place // shape.Np * shape.Nf
    return np.where(place < shape.K_M * shape.Np, words, -1)


def matrix_words(shape: Shape, columns: int, segmented: bool = True) -> np.ndarray:
    """The words that N_pM threads read from a matrix in shared memory in the first step.

    Parameters
    ----------
    shape : Shape
    columns : int
        Of the matrix; rows have the next odd number of words.
    segmented : bool
        True for rows that go on with the first after the last, so that thread i reads row i of the
        segments; False for one copy of the matrix, where it reads row i mod Np: Figure 7(c).
    """
    place = np.arange(shape.N_pM)
    row = place if segmented else place % shape.Np
    return np.where(place < shape.K_M * shape.Np, row * odd(columns), -1)
