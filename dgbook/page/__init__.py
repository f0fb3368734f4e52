"""What a page shows and asks: kernel films and blanks. The core never imports it."""

from dgbook.page.blank import Task, Verdict, check, check_function
from dgbook.page.film import Film, film

__all__ = ["Film", "Task", "Verdict", "check", "check_function", "film"]
