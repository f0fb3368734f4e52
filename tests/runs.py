"""What tests of runs on the command line share: what happens in the middle, what is refused."""

import xml.etree.ElementTree as ElementTree

import meshio
import numpy as np

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


def files_of(path):
    """A .vtu file, or those of a .pvtu."""
    if path.suffix == ".vtu":
        return [path]
    pieces = ElementTree.parse(path).getroot().iter("Piece")
    return [path.with_name(piece.get("Source")) for piece in pieces]


def at_points(path, name):
    """What a .vtu or .pvtu says of a field at each point, however its elements are numbered.

    Returns
    -------
    (n, ...) array
        Of each point, sorted, its coordinates, how many elements have it, and the sum and the sum
        of squares of their values there.
    """
    found = [meshio.read(file) for file in files_of(path)]
    points = np.concatenate([piece.points for piece in found]).round(9)
    values = [piece.point_data[name].reshape(len(piece.points), -1) for piece in found]
    values = np.concatenate(values).astype(np.float64)
    where, number = np.unique(points, axis=0, return_inverse=True)
    sums = np.zeros((len(where), 1 + 2 * values.shape[1]))
    ones = np.ones((len(values), 1))
    np.add.at(sums, number.ravel(), np.hstack([ones, values, values**2]))
    return np.hstack([where, sums])
