"""Every table and figure of the five papers: what it shows, what it prints, and ours beside it."""

from dgbook.lab.papers import Item, Ours, Paper, find, paper, papers
from dgbook.lab.reproduce.verdict import Verdict, compare

__all__ = ["Item", "Ours", "Paper", "Verdict", "compare", "find", "paper", "papers"]
