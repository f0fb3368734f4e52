"""What grading consists of, a module a job; ``tools/assignments.py`` puts them together.

``submissions`` finds, reads and repairs what students handed in, ``sandbox`` locks their code up,
``execution`` runs a notebook in there, ``feedback`` makes a page from it.
"""
