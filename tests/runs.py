"""What tests of runs on the command line share: what happens in the middle, what is refused."""

from dgbook.nodal.solving import March


def at_step(monkeypatch, number, do):
    """Do something before a step, counted from 0 in each march, once."""
    step = March.step

    def watched(march):
        if march.done == number:
            monkeypatch.setattr(March, "step", step)
            do()
        step(march)

    monkeypatch.setattr(March, "step", watched)


def assert_refused(run, options, refused, tmp_path, monkeypatch, capsys):
    """A run ends with a code and a message before a step is taken or a file written.

    Parameters
    ----------
    run : function
        ``run(options)`` runs, and returns the code.
    options : str
    refused : dict
        By options the code, and a part of the message.
    tmp_path, monkeypatch, capsys
    """

    def computed(*arguments):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(March, "step", computed)
    monkeypatch.chdir(tmp_path)
    code, message = refused[options]
    assert run(options) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())
