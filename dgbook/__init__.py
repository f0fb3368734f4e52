"""Discontinuous Galerkin methods on GPUs, in Python: the code of the book.

Each part is imported by its own name: `from dgbook.element import NodalElement`,
`from dgbook.mesh import box`, `from dgbook import linear`. Importing `dgbook` itself loads nothing
and touches no GPU; `python -m dgbook info` says what is here to compute on.
"""

__version__ = "0.1.0"
