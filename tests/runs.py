"""What happens in the middle of a run on the command line."""

from dgbook.solving import March


def at_step(monkeypatch, number, do):
    """Do something before a step, counted from 0 in each march, once."""
    step = March.step

    def watched(march):
        if march.done == number:
            monkeypatch.setattr(March, "step", step)
            do()
        step(march)

    monkeypatch.setattr(March, "step", watched)
