"""Every table and figure of the five papers: what it shows, what it prints, and ours beside it."""

from dgbook.reproduce.registry import Item, Ours, Paper, find, paper, papers
from dgbook.reproduce.verdict import Verdict, compare

__all__ = ["Item", "Ours", "Paper", "Verdict", "compare", "find", "paper", "papers"]
