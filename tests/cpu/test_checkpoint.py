"""Checkpoints: whose file is replaced or removed, what is believed, and what failures leave."""

import json
import os
import signal
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from runs import at_step

from dgbook.__main__ import main
from dgbook.cli import checkpoint, output, running
from dgbook.cli.checkpoint import Checkpoint
from dgbook.cli.output import WriteError, replacing
from dgbook.mesh import box, read
from dgbook.nodal.solving import March

ROOT = Path(__file__).parents[2]
TWO_BOXES = ROOT / "tests" / "data" / "two_boxes_4.1_ascii.msh"
PROBLEM = {"order": 2, "name": "a cube"}
U = np.random.default_rng(3).standard_normal((2, 3, 4))
KEPT = Checkpoint(U, U.ravel(), 5, 0.1, 2.0)
SMALL = "--cells 1 --order 1 --t-end 1"


def run(*options):
    """Maxwell's equations on the CPU, options given as texts with several words, or paths."""
    words = [w for o in options for w in ([str(o)] if isinstance(o, Path) else o.split())]
    return main(["run", "maxwell", "--device", "cpu", *words])


def load(path):
    return checkpoint.load(path, PROBLEM, U.shape, U.dtype)


def message(capsys):
    """What was told, as one line."""
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def path(tmp_path):
    """A sound checkpoint."""
    path = tmp_path / "kept.checkpoint"
    checkpoint.save(path, KEPT, PROBLEM)
    return path


# ----------------------------------------------------------------------------------- other files


@pytest.mark.parametrize("kind", ["mesh", "empty", "folder", "pipe", "link", "dangling link"])
def test_what_is_not_a_checkpoint_is_left_alone(kind, tmp_path, monkeypatch, capsys):
    """Neither a step is taken nor a pipe waited for."""
    path, target = tmp_path / "mine.checkpoint", tmp_path / "target"
    target.write_bytes(TWO_BOXES.read_bytes())
    match kind:
        case "mesh":
            target.rename(path)
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(target)
        case "dangling link":
            path.symlink_to(tmp_path / "nowhere")
    before = sorted((p.name, p.lstat().st_ino) for p in tmp_path.iterdir())

    def computed(march):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(March, "step", computed)
    mesh = ("--mesh", path) if kind == "mesh" else ("--cells 1",)
    assert run(*mesh, "--order 1 --checkpoint", path) == 2
    told = message(capsys)
    assert f"{path} exists and is not a checkpoint" in told or "this is a folder" in told
    assert sorted((p.name, p.lstat().st_ino) for p in tmp_path.iterdir()) == before
    if kind in ("mesh", "link"):
        assert path.read_bytes() == TWO_BOXES.read_bytes()


def test_what_takes_a_checkpoints_place_during_a_run_is_left_alone(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.checkpoint"
    at_step(monkeypatch, 2, lambda: path.write_text("my thesis"))
    assert run(SMALL, "--checkpoint", path) == 0
    assert path.read_text() == "my thesis"
    path.unlink()
    at_step(monkeypatch, 2, lambda: path.write_text("my thesis"))
    assert run(SMALL, "--checkpoint-every 0 --checkpoint", path) == 2
    assert path.read_text() == "my thesis" and "is not a checkpoint" in message(capsys)


def test_the_mesh_is_not_the_output(tmp_path, capsys):
    path = tmp_path / "mesh.vtu"
    path.write_bytes(TWO_BOXES.read_bytes())
    (tmp_path / "same.vtu").symlink_to(path)
    for name in ("mesh.vtu", "same.vtu"):
        assert run("--mesh", path, "--order 1 --output", tmp_path / name) == 2
        assert "is the file of --mesh" in message(capsys)
    assert path.read_bytes() == TWO_BOXES.read_bytes()
    assert main(["run", "hdg", "--mesh", str(path), "--output", str(path)]) == 2
    assert "is the file of --mesh" in message(capsys)


# -------------------------------------------------------------------------------- two at one file


def test_a_second_run_to_one_checkpoint_is_refused(path, monkeypatch, capsys):
    before = path.read_bytes()
    codes = []
    at_step(monkeypatch, 2, lambda: codes.append(run(SMALL, "--checkpoint", path)))
    with checkpoint.claimed(path):
        assert run(SMALL, "--checkpoint", path) == 2
        assert f"another run writes the checkpoint {path}" in message(capsys)
    assert path.read_bytes() == before
    assert run(SMALL, "--checkpoint", path) == 0 and codes == [2]
    assert not list(path.parent.iterdir())


def test_locks_of_killed_runs_are_in_nobodys_way_and_other_files_are_not_locks(path, capsys):
    lock = path.with_name("kept.checkpoint.lock")
    lock.touch()
    with checkpoint.claimed(path):
        assert lock.exists()
    assert not lock.exists()
    lock.write_text("my notes")
    assert run(SMALL, "--checkpoint", path) == 2
    assert "is not a lock of a checkpoint" in message(capsys)
    assert lock.read_text() == "my notes" and path.exists()
    lock.unlink()
    lock.symlink_to(path)
    assert run(SMALL, "--checkpoint", path) == 2
    assert "cannot be made" in message(capsys) and path.exists()


def test_two_writers_of_one_file_have_a_temporary_file_each(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]


# -------------------------------------------------------------------------- what cannot be written


def full(descriptor):
    raise OSError(28, "No space left on device")


def test_a_checkpoint_survives_a_failed_one(path, monkeypatch):
    monkeypatch.setattr(output.os, "fsync", full)
    with pytest.raises(WriteError, match=r"cannot be written: No space left on device. What was"):
        checkpoint.save(path, replace(KEPT, done=6), PROBLEM)
    found = load(path)
    assert (found.done, found.dt, found.total) == (5, 0.1, 2.0)
    np.testing.assert_array_equal(found.u, U)
    np.testing.assert_array_equal(found.raw, U.ravel())
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("what", ["checkpoint", "output"])
def test_a_run_whose_disk_is_full_ends_in_one_line(what, tmp_path, monkeypatch, capsys):
    """The last complete checkpoint is kept, and the run goes on from there."""
    path, fields = tmp_path / "kept.checkpoint", tmp_path / "f.vtu"
    options = (SMALL, "--checkpoint", path, "--output", fields)
    at_step(monkeypatch, 3, lambda: monkeypatch.setattr(output.os, "fsync", full))
    every = 0 if what == "checkpoint" else 1000
    if what == "output":
        checkpoint.save(path, KEPT, PROBLEM)
    before = path.read_bytes() if path.exists() else b""
    assert run(*options, f"--checkpoint-every {every}") == 1
    told = message(capsys)
    assert f"{path if what == 'checkpoint' else fields} cannot be written: No space left" in told
    assert [p.name for p in tmp_path.iterdir()] == ["kept.checkpoint"]
    if what == "output":
        assert path.read_bytes() == before
        return
    monkeypatch.undo()
    assert run(*options, "--resume") == 0
    assert ", of which 3 are done" in capsys.readouterr().out


def test_the_swept_rules_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch, capsys):
    path = tmp_path / "u.npz"
    path.write_bytes(b"old")
    command = ["run", "swept", "--n", "64", "--steps", "2", "--device", "cpu", "--output"]
    assert main([*command, str(tmp_path / "nowhere" / "u.npz")]) == 1
    assert "there is no folder" in message(capsys)
    monkeypatch.setattr(output.os, "fsync", full)
    assert main([*command, str(path)]) == 1
    assert f"{path} cannot be written: No space left on device" in message(capsys)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


# -------------------------------------------------------------------------------- what is believed


def rewritten(path, **changes):
    """The same archive with other entries; None leaves one out."""
    with np.load(path) as file:
        entries = {name: file[name] for name in file.files} | changes
    np.savez(path.open("wb"), **{n: v for n, v in entries.items() if v is not None})


def with_entry(path, name, content):
    """The same archive with other bytes for an entry."""
    with zipfile.ZipFile(path) as old:
        entries = {n: old.read(n) for n in old.namelist()} | {f"{name}.npy": content}
    with zipfile.ZipFile(path, "w") as new:
        for each, data in entries.items():
            new.writestr(each, data)


def with_header(path, text):
    """The same archive with another header for u."""
    header = text.encode() + b" " * (117 - len(text)) + b"\n"
    with_entry(path, "u", b"\x93NUMPY\x01\x00v\x00" + header + U.tobytes())


def compressed(path, values):
    with np.load(path) as file:
        entries = dict(file) | {"u": values}
    np.savez_compressed(path.open("wb"), **entries)


def flipped(path):
    """A bit of the state: only a checksum tells."""
    content = bytearray(path.read_bytes())
    content[content.index(U.tobytes()) + 11] ^= 1
    path.write_bytes(content)


NAN = np.where(U == U.max(), np.nan, U)
SHAPE = "{{'descr': '<f8', 'fortran_order': False, 'shape': {}, }}"
DAMAGED = {
    "empty": lambda p: p.write_bytes(b""),
    "text": lambda p: p.write_text("order = 2"),
    "truncated": lambda p: p.write_bytes(p.read_bytes()[:-30]),
    "half": lambda p: p.write_bytes(p.read_bytes()[:500]),
    "something before it": lambda p: p.write_bytes(b"$MeshFormat\n" + p.read_bytes()),
    "a bit of u": flipped,
    "u of another shape": lambda p: rewritten(p, u=U[:1]),
    "u of another type": lambda p: rewritten(p, u=U.astype("f4")),
    "u with NaN": lambda p: rewritten(p, u=NAN),
    "u of objects": lambda p: rewritten(p, u=U.astype(object)),
    "u of terabytes": lambda p: with_header(p, SHAPE.format((2**20, 2**20))),
    "u of absurd shape": lambda p: with_header(p, SHAPE.format((2**70, -3))),
    "u of deep shape": lambda p: with_header(p, "-" * 110 + "1"),
    "u of another version": lambda p: with_entry(p, "u", b"\x93NUMPY\x02\x00v\x00\x00\x00"),
    "u without a header": lambda p: with_entry(p, "u", b""),
    "raw with infinity": lambda p: rewritten(p, raw=np.full(24, np.inf)),
    "raw of text": lambda p: rewritten(p, raw=np.full(24, "1.0")),
    "raw of numbers": lambda p: rewritten(p, raw=np.arange(24)),
    "done negative": lambda p: rewritten(p, done=-1),
    "done text": lambda p: rewritten(p, done="5"),
    "done real": lambda p: rewritten(p, done=5.0),
    "done an array": lambda p: rewritten(p, done=[5, 5]),
    "dt text": lambda p: rewritten(p, dt="0.1"),
    "dt NaN": lambda p: rewritten(p, dt=np.nan),
    "dt zero": lambda p: rewritten(p, dt=0.0),
    "dt infinite": lambda p: rewritten(p, dt=np.inf),
    "total NaN": lambda p: rewritten(p, total=np.nan),
    "without raw": lambda p: rewritten(p, raw=None),
    "one entry more": lambda p: rewritten(p, more=1),
    "another format": lambda p: rewritten(p, format="somebody's format"),
    "a format of numbers": lambda p: rewritten(p, format=np.arange(3)),
    "a problem that is a list": lambda p: rewritten(p, problem="[]"),
    "a problem that is not JSON": lambda p: rewritten(p, problem="{order"),
    "a deep problem": lambda p: rewritten(p, problem='{"a":' + 100_000 * "["),
    "a long problem": lambda p: rewritten(p, problem=json.dumps({"a": "a" * 2**23})),
    "compressed": lambda p: compressed(p, U),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_or_crafted_checkpoint_is_refused(what, path):
    DAMAGED[what](path)
    with pytest.raises(ValueError, match=r"kept.checkpoint is not a checkpoint, or is damaged"):
        load(path)


def test_a_bomb_is_refused_without_memory(path):
    """64 MiB of zeros in 64 KiB of file."""
    compressed(path, np.zeros(2**23))
    assert path.stat().st_size < 2**18
    tracemalloc.start()
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_any_byte_may_be_wrong(path):
    """A wrong byte is refused, or stands where nothing is read."""
    whole, random = path.read_bytes(), np.random.default_rng(4)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for place in random.integers(0, len(whole), 300):
            content = bytearray(whole)
            content[place] ^= 1 << random.integers(8)
            path.write_bytes(content)
            try:
                found = load(path)
            except ValueError:
                refused += 1
                continue
            assert found.done == 5 and np.array_equal(found.u, U)
    assert refused > 200


def test_what_only_one_of_two_runs_knows_is_a_difference(path):
    rewritten(path, problem=json.dumps({"name": "a cube"}))
    with pytest.raises(ValueError, match=r"another run: order = null there, 2 here$"):
        load(path)
    rewritten(path, problem=json.dumps({**PROBLEM, "flux": 1}))
    with pytest.raises(ValueError, match=r"another run: flux = 1 there, null here$"):
        load(path)


def test_a_lock_that_its_owner_has_just_removed_is_made_again(tmp_path, monkeypatch):
    """He removes the file after we have opened it, and before we lock it."""
    path, lock = tmp_path / "kept.checkpoint", tmp_path / "kept.checkpoint.lock"
    opened, calls = os.open, []

    def open_(name, *arguments, **keywords):
        descriptor = opened(name, *arguments, **keywords)
        if str(name) == str(lock):
            calls.append(descriptor)
            if len(calls) == 1:
                lock.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_)
    with checkpoint.claimed(path):
        assert len(calls) == 2 and lock.exists()
        with pytest.raises(ValueError, match="another run writes"), checkpoint.claimed(path):
            pass
    assert not lock.exists()


def test_the_lock_of_a_killed_run_is_free(tmp_path):
    """The operating system unlocks it when the process ends, whatever ends it."""
    path = tmp_path / "kept.checkpoint"
    program = (
        "import pathlib, sys, time\n"
        "from dgbook.cli import checkpoint\n"
        "with checkpoint.claimed(pathlib.Path(sys.argv[1])):\n"
        "    print('claimed', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout.readline() == "claimed\n"
            with pytest.raises(ValueError, match="another run writes"), checkpoint.claimed(path):
                pass
        finally:
            owner.kill()
    with checkpoint.claimed(path):
        pass
    assert not list(tmp_path.iterdir())


def test_names_in_a_message_are_printable_and_short(path):
    rewritten(path, problem=json.dumps({**PROBLEM, "\x1b[2Jorder": "a" * 10**6}))
    with pytest.raises(ValueError, match="is of another run") as caught:
        load(path)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_more_steps_done_than_there_are_are_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "kept.checkpoint"
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert run(SMALL, "--checkpoint", path) == 130
    rewritten(path, done=10**6)
    assert run(SMALL, "--resume --checkpoint", path) == 2
    assert f"checkpoint {path}: done = 1000000; allowed: 0 to" in message(capsys)


def test_what_is_saved_is_what_is_loaded_in_any_order_of_memory(path):
    checkpoint.save(path, replace(KEPT, u=np.asfortranarray(U)), PROBLEM)
    np.testing.assert_array_equal(load(path).u, U)
    with pytest.raises(ValueError, match="order = 2 there, 3 here"):
        checkpoint.load(path, {**PROBLEM, "order": 3}, U.shape, U.dtype)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load(path.with_name("other.checkpoint"))


# ------------------------------------------------------------------------------------ fingerprints


def test_a_moved_vertex_is_another_mesh():
    mesh = box((1, 1, 1))
    moved = replace(mesh, vertices=mesh.vertices + 1e-15)
    renamed = replace(mesh, boundary={name + "!": f for name, f in mesh.boundary.items()})
    turned = replace(mesh, face_permutation=np.maximum(mesh.face_permutation, 1))
    marks = {checkpoint.fingerprint(m) for m in (mesh, moved, renamed, turned)}
    assert len(marks) == 4 and checkpoint.fingerprint(box((1, 1, 1))) in marks


def test_another_layout_of_matter_is_another_mesh(tmp_path, monkeypatch, capsys):
    """The same elements, one of which is no longer copper: its checkpoint is refused."""
    path, mesh = tmp_path / "kept.checkpoint", read(TWO_BOXES)
    fewer = replace(mesh, regions={**mesh.regions, "copper": mesh.regions["copper"][1:]})
    others = np.setdiff1d(np.arange(mesh.K), mesh.regions["copper"])
    moved = replace(mesh, regions={**mesh.regions, "copper": others[: len(mesh.regions["copper"])]})
    assert len({checkpoint.fingerprint(m) for m in (mesh, fewer, moved)}) == 3
    options = ("--mesh", TWO_BOXES, "--epsilon copper=2 --order 1 --t-end 1 --checkpoint", path)
    at_step(monkeypatch, 2, lambda: signal.raise_signal(signal.SIGINT))
    assert run(*options) == 130
    monkeypatch.setattr(running, "read", lambda path: fewer)
    assert run(*options, "--resume") == 2
    assert f"mesh = {mesh.K} elements, sha256" in message(capsys)
