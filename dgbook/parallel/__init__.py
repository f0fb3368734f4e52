"""One mesh in several parts: partitions, ghosts, exchanges, transports, and a solver on top."""

from .peers import PeerRanks
from .pieces import Message, Piece, cut, divide
from .solver import TRACES, Solver, State
from .surface import Surface, surface, surfaces
from .transport import Connection, MpiRanks, NcclRanks, OneProcess, Packet, Transport

__all__ = [
    "TRACES",
    "Connection",
    "Message",
    "MpiRanks",
    "NcclRanks",
    "OneProcess",
    "Packet",
    "PeerRanks",
    "Piece",
    "Solver",
    "State",
    "Surface",
    "Transport",
    "cut",
    "divide",
    "surface",
    "surfaces",
]
