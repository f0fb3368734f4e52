"""What CUDA devices from compute capability 7.5 on have in common, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32  # lanes: threads that run in step
FULL_MASK = 0xFFFFFFFF  # all lanes of a warp
MAX_THREADS = 1024  # in a block
MAX_BLOCKS = 32  # on a multiprocessor
MAX_UNROLL = 64  # turns of a loop: with more, compilers take minutes
STATIC_SHARED_LIMIT = 48 * 1024  # bytes a block; what needs more must ask for it at the launch
REGISTERS = 65536  # 32-bit registers of a multiprocessor, on all of these architectures
REGISTER_UNIT = 256  # registers are given to warps in multiples of this
PARTITIONS = 4  # of a multiprocessor: each has its quarter of the registers and of the warps


@dataclass(frozen=True)
class Architecture:
    """What limits the blocks that a multiprocessor holds at once.

    CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".

    Attributes
    ----------
    warps, blocks : int
        At most, resident on a multiprocessor.
    shared, shared_block : int
        Bytes of shared memory of a multiprocessor, and what one block may have of it.
    shared_unit, shared_reserved : int
        Bytes: shared memory is given in multiples of the one, the system takes the other for each
        block.
    """

    warps: int
    blocks: int
    shared: int
    shared_block: int
    shared_unit: int = 128
    shared_reserved: int = 1024


_KB = 1024
ARCHITECTURES = {
    (7, 5): Architecture(32, 16, 64 * _KB, 64 * _KB, shared_unit=256, shared_reserved=0),
    (8, 0): Architecture(64, 32, 164 * _KB, 163 * _KB),
    (8, 6): Architecture(48, 16, 100 * _KB, 99 * _KB),
    (8, 9): Architecture(48, 24, 100 * _KB, 99 * _KB),
    (9, 0): Architecture(64, 32, 228 * _KB, 227 * _KB),
    (10, 0): Architecture(64, 32, 228 * _KB, 227 * _KB),
    (12, 0): Architecture(48, 24, 100 * _KB, 99 * _KB),
}


def architecture(capability: tuple[int, int]) -> Architecture:
    """The limits of a compute capability: those of the newest known one that is not newer."""
    known = [known for known in ARCHITECTURES if known <= capability]
    return ARCHITECTURES[max(known, default=min(ARCHITECTURES))]


def resident_blocks(
    limits: Architecture, threads: int, registers: int, shared_bytes: int = 0
) -> int:
    """How many blocks of a kernel a multiprocessor holds at once; 0 if not even one.

    Parameters
    ----------
    limits : Architecture
    threads : int
        In a block, 1 to 1024.
    registers : int
        32-bit registers per thread.
    shared_bytes : int
        Of a block, static and dynamic.
    """
    if not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads = {threads}; a block has 1 to {MAX_THREADS}")
    warps = -(-threads // WARP)
    by_warps = limits.warps // warps

    per_warp = _round_up(registers * WARP, REGISTER_UNIT)
    by_registers = REGISTERS // PARTITIONS // per_warp * PARTITIONS // warps

    if shared_bytes > limits.shared_block:
        return 0
    per_block = _round_up(shared_bytes + limits.shared_reserved, limits.shared_unit)
    by_shared = limits.shared // per_block if per_block else limits.blocks
    return min(limits.blocks, by_warps, by_registers, by_shared)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
