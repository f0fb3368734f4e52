"""How elements are laid out so that threads meet memory's alignment: padding and microblocks."""

from __future__ import annotations


def padded(count: int, granularity: int) -> int:
    """`count` rounded up to the nearest multiple of `granularity`.

    Raises
    ------
    ValueError
        If `count` is negative or `granularity` is not positive.
    """
    if count < 0 or granularity < 1:
        raise ValueError(
            f"count = {count}, granularity = {granularity}; "
            "allowed: a count from 0 and a granularity from 1"
        )
    return -(-count // granularity) * granularity


def padding_waste(count: int, granularity: int) -> float:
    """The share of the places that stays empty when `count` values are padded.

    With one thread for each place it is also the share of idle threads: padding the 35 nodes of a
    tetrahedron of order 4 to a warp of 32 wastes 29 of 64 (klockner2009, section 4).
    """
    if count < 1:
        raise ValueError(f"count = {count}; allowed: at least 1")
    return 1.0 - count / padded(count, granularity)


def microblock_size(Np: int, granularity: int = 16, waste: float = 0.05) -> int:
    """The smallest number of elements that, stored together, pad with little waste.

    Parameters
    ----------
    Np : int
        Nodes of one element.
    granularity : int
        Padding goes to the next multiple of this many nodes; half a warp in the paper.
    waste : float
        The padding must be less than this share of the padded block.

    Returns
    -------
    int
        K_M: a microblock holds K_M elements in N_pM = padded(K_M Np, granularity) places. It is
        `granularity` at most, since that many elements need no padding at all.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    klockner2009, section 4 and Figure 3(b).
    """
    if Np < 1:
        raise ValueError(f"Np = {Np}; allowed: at least 1 node")
    if not 0.0 < waste <= 1.0:
        raise ValueError(f"waste = {waste}; allowed: above 0 and at most 1")
    elements = 1
    while padding_waste(elements * Np, granularity) >= waste:
        elements += 1
    return elements
