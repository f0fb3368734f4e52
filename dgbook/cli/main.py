"""The command line: what is here, solve, measure, tune, and reproduce the papers."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import dgbook

if TYPE_CHECKING:
    from dgbook.lab.reproduce import Paper

FAMILIES = {
    "machine": "the GPU itself: bandwidth, latency, banks, tensor cores, launches (chapter 2)",
    "linear": "constant-coefficient waves in 1D, 2D and 3D: advection, the wave system",
    "maxwell": "Maxwell's equations on tetrahedra (klockner2009)",
    "acoustics": "acoustic waves on tetrahedra, nodal and Bernstein-Bezier (chan2015)",
    "euler": "compressible Euler on triangles (chen)",
    "hdg": "hybridized DG and its matrix product (roca2011)",
    "parallel": "meshes in parts, on one GPU and on several (README)",
    "swept": "the swept rule for 1D heat, Kuramoto-Sivashinsky, Euler (magee2017)",
}
VERBS = {
    "run": "solve a problem with a family's solver",
    "bench": "measure a family's kernels on this GPU",
    "tune": "search a family's launch plans for this GPU and remember the fastest",
}
NOT_IN_THIS_VERSION = 3
PIPE_CLOSED = 141
"""What a shell makes of SIGPIPE."""

EXAMPLES = """\
examples:
  python -m dgbook info                          what is here to compute on, and its ceilings
  python -m dgbook run linear --help             the options of a family
  python -m dgbook reproduce                     all tables and figures of the five papers
  python -m dgbook reproduce klockner2009        those of one paper
  python -m dgbook reproduce klockner2009 table2 the paper's values, ours, their ratio, a verdict
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: done. 1: it failed, or a reproduced value differs and nobody has said why. 2: it was called
    wrongly. 3: what was asked for is not in this version. 130, 141: stopped by Ctrl-C, or since
    nobody reads what it prints.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            if argv[:1] != ["run"]:
                return _code(argv)
            from dgbook.cli import ranks

            return ranks.run(lambda complain: _code(argv, complain))
        finally:
            sys.stdout.flush()  # here, where somebody hears it if this fails
    except BrokenPipeError:  # of `| head`
        nowhere = os.open(os.devnull, os.O_WRONLY)  # for what Python still flushes when it ends
        os.dup2(nowhere, sys.stdout.fileno())
        return PIPE_CLOSED


def _complain(message: str) -> None:
    print(message, file=sys.stderr)


def _code(argv: list[str], complain: Callable[[str], None] = _complain) -> int:
    """The exit code of one command, which has been run; `complain` tells what went wrong."""
    try:
        # A family parses what follows its name: only it knows its options.
        if argv and argv[0] in VERBS:
            return _family(*argv[:2], argv[2:]) if argv[1:] else _verb_help(argv[0], 2)
        arguments = _parser().parse_args(argv)
        return arguments.command(arguments)
    except (FileNotFoundError, MemoryError, RuntimeError, ValueError) as error:
        told = f"python -m dgbook: {error}"  # names of files stay whole
        kept = {"break_on_hyphens": False, "break_long_words": False}
        complain(textwrap.fill(told, 100, **kept))
        return 2 if isinstance(error, ValueError) else 1
    except KeyboardInterrupt:
        complain("python -m dgbook: interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dgbook",
        description=f"dgbook {dgbook.__version__}: discontinuous Galerkin methods on GPUs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dgbook {dgbook.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    info = commands.add_parser(
        "info",
        help="what device is here, which versions, which ceilings",
        description="Say what is here to compute on. On a GPU, measure its ceilings (seconds).",
    )
    info.add_argument("--no-ceilings", action="store_true", help="do not measure")
    info.add_argument("--json", action="store_true", help="the same for a program to read")
    info.set_defaults(command=_info)

    for verb, meaning in VERBS.items():
        commands.add_parser(verb, help=meaning)  # listed here, parsed by `_family`

    reproduce = commands.add_parser(
        "reproduce",
        help="a table or figure of the five papers: theirs, ours, a verdict",
        description="Reproduce a table or figure of the five papers, or list what there is.",
        epilog="exit codes: 0 matches, differs for a known reason or cannot be reproduced;\n"
        "1 differs and nobody has said why; 3 not yet in this version.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.add_argument("paper", nargs="?", help="klockner2009, roca2011, chen, ...")
    reproduce.add_argument("item", nargs="*", help='table2, figure3a, "Figure 3(a)", figure3')
    reproduce.set_defaults(command=_reproduce)
    return parser


# ------------------------------------------------------------------------------------- families


def _family(verb: str, family: str, argv: list[str]) -> int:
    """Give a family's own command line what follows its name.

    A family takes part by having a module `dgbook.cli.FAMILY` with two functions for each verb
    that it knows: `add_run_arguments(parser)` and `run(arguments)`, and so on for `bench` and
    `tune`. What the second returns is the exit code; None is 0.
    """
    if family in ("-h", "--help"):
        return _verb_help(verb, 0)
    module = _command_module(family)
    if module is None or not hasattr(module, verb):
        print(f"{verb} {family}: there is none.\n{_families(verb)}", file=sys.stderr)
        return NOT_IN_THIS_VERSION
    parser = argparse.ArgumentParser(
        prog=f"python -m dgbook {verb} {family}",
        description=getattr(module, verb).__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    getattr(module, f"add_{verb}_arguments")(parser)
    arguments = parser.parse_args(argv)
    if verb == "run":
        from dgbook.cli import ranks

        ranks.begin(family, arguments, [verb, family, *argv])
    if verb == "bench":
        from dgbook.lab.records import check_folder

        check_folder(arguments.out)
    return getattr(module, verb)(arguments) or 0


def _command_module(family: str) -> ModuleType | None:
    """A family's module in `dgbook.cli`, or None where this version has none."""
    if family not in FAMILIES:
        raise ValueError(f"family = {family!r}; allowed are {', '.join(FAMILIES)}")
    name = f"dgbook.cli.{family}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def _verb_help(verb: str, code: int) -> int:
    print(
        f"usage: python -m dgbook {verb} FAMILY [options]\n\n"
        f"{verb}: {VERBS[verb]}; python -m dgbook {verb} FAMILY --help lists its options.\n\n"
        f"{_families(verb)}",
        file=sys.stderr if code else sys.stdout,
    )
    return code


def _families(verb: str) -> str:
    """The families that know a verb and those that do not, as text."""
    lines = ["families:"]
    for family, meaning in FAMILIES.items():
        known = hasattr(_command_module(family), verb)
        lines.append(f"  {family:10} {meaning}" + ("" if known else f" (no {verb})"))
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------- info


def _info(arguments: argparse.Namespace) -> int:
    from dgbook.gpu import device, versions

    current_device = device()
    measured = {}
    if current_device.kind == "cuda" and not arguments.no_ceilings:
        from dgbook.lab.roofline import ceilings

        measured = ceilings(current_device).as_dict()
    if arguments.json:
        fields = ("kind", "name", "compute_capability", "memory_bytes", "driver", "runtime")
        content = {key: getattr(current_device, key) for key in fields}
        print(json.dumps(content | {"versions": versions(), "ceilings": measured}, indent=1))
        return 0
    print(_paragraph("Device", current_device.sentence))
    print(_paragraph("Versions", ", ".join(f"{k} {v}" for k, v in versions().items())))
    if current_device.kind != "cuda":
        print(_paragraph("Ceilings", "none to measure without a GPU"))
    for line in _ceilings(measured, "LIVE", current_device.name) + _recorded_ceilings():
        print(_paragraph("Ceilings", line))
    return 0


def _ceilings(measured: Mapping[str, float], label: str, source: str) -> list[str]:
    from dgbook.lab.numbers import Number

    units = {
        "copy_TBps": "TB/s copied",
        "fp32_TFLOPs": "TFLOP/s in fp32",
        "fp64_TFLOPs": "TFLOP/s in fp64",
        "fp32_tensor_TFLOPs": "TFLOP/s in fp32 on tensor cores",
        "fp64_tensor_TFLOPs": "TFLOP/s in fp64 on tensor cores",
    }
    return [str(Number(value, units[key], label, source)) for key, value in measured.items()]


def _recorded_ceilings() -> list[str]:
    """The newest recorded ceilings of each GPU that the book has records of."""
    from dgbook.lab.records import all_records

    try:
        records = sorted(all_records(), key=lambda record: record.date)
    except FileNotFoundError:
        return []  # installed without the book: there is nothing to show, and nothing is wrong
    newest = {record.gpu: record for record in records}
    return [
        line
        for record in newest.values()
        for line in _ceilings(record.ceilings, "RECORDED", record.source)
    ]


def _paragraph(name: str, text: str) -> str:
    return textwrap.fill(text, 100, initial_indent=f"{name:10}", subsequent_indent=" " * 10)


# ------------------------------------------------------------------------------------ reproduce


def _reproduce(arguments: argparse.Namespace) -> int:
    from dgbook.lab import reproduce
    from dgbook.lab.reproduce.verdict import NOT_YET, UNEXPLAINED

    if arguments.paper is None:
        print("\n\n".join(_listing(paper) for paper in reproduce.papers()))
        print("\npython -m dgbook reproduce PAPER ITEM shows theirs, ours and a verdict.")
        return 0
    paper = reproduce.paper(arguments.paper)
    if not arguments.item:
        print(_listing(paper))
        return 0
    codes = {UNEXPLAINED: 1, NOT_YET: NOT_IN_THIS_VERSION}
    code = 0
    for item in reproduce.find(paper.name, " ".join(arguments.item)):
        verdict = reproduce.compare(paper, item)
        print(verdict, end="\n\n")
        code = max(code, codes.get(verdict.word, 0))
    return code


def _listing(paper: Paper) -> str:
    """All items of a paper: name, kind, what `reproduce` can do with it, title."""
    year = f" ({paper.year})" if paper.year else ""
    states = [item.state for item in paper.items]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    lines = [
        f"{paper.name}: {paper.authors}{year}. {paper.title}.",
        f"On {paper.hardware}.",
        f"{len(paper.items)} tables, figures and panels: {counts}.",
    ]
    lines = [line for text in lines for line in textwrap.wrap(text, 100)]
    for item in paper.items:
        known = f"  {item.id:9} {item.kind:12} {item.state:11} "
        indent = " " * len(known)
        lines += textwrap.wrap(item.title, 100, initial_indent=known, subsequent_indent=indent)
    return "\n".join(lines)
