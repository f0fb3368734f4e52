"""Blanks: right answers are accepted, wrong ones told apart in words that say where."""

import inspect
from dataclasses import replace

import numba.cuda
import numpy as np
import pytest

from dgbook.gpu import cuda, jit
from dgbook.page import Task, check, check_function

f4 = np.float32
K, Np = 6, 4


def given(rng):
    return {
        "u": rng.random(K * Np, dtype=f4),
        "D": rng.random((Np, Np), dtype=f4),
        "new": np.full(K * Np, np.nan, f4),
    }


def right(given):
    return {"new": given["u"].reshape(K, Np) @ given["D"].T}


TASK = Task(K, Np, given, right, reads={"u": 1}, barriers=1)


def row(u, D, new):
    s = cuda.shared.array(Np, f4)
    i = cuda.threadIdx.x
    j = cuda.blockIdx.x * Np + i
    s[i] = u[j]
    cuda.syncthreads()
    total = f4(0)
    for m in range(Np):
        total += D[i, m] * s[m]
    new[j] = total


TEXT = inspect.getsource(row)


@pytest.fixture
def answer(tmp_path):
    """A reader's kernel: the right one with a part of it replaced."""

    def make(old="", new=""):
        assert old in TEXT
        path = tmp_path / "answer.py"
        path.write_text("@jit\n" + TEXT.replace(old, new, 1))
        space = {"cuda": cuda, "jit": jit, "f4": f4, "Np": Np}
        exec(compile(path.read_text(), path, "exec"), space)
        return space["row"]

    return make


def test_the_right_answer_is_right(answer):
    verdict = check(answer(), TASK)
    assert verdict and repr(verdict) == "Right: all 24 values, on random input."


@pytest.mark.parametrize(
    ("old", "new"),
    [("s[i] = u[j]", "s[i] = u[...]"), ("cuda.syncthreads()", "..."),
     ("total = f4(0)", "raise NotImplementedError")],
)  # fmt: skip
def test_a_blank_is_no_error(answer, old, new):
    verdict = check(answer(old, new), TASK)
    assert verdict.kind == "blank" and verdict.title == "Not yet." and not verdict
    assert ("or delete the line" in verdict.words) == (new == "...")
    assert ("in line" in verdict.words) == ("..." in new)


WRONG = [
    ("    cuda.syncthreads()\n", "", "stopped",
     "Thread 0 reads s[1] in line 9, but thread 1, which writes it in line 6, may not have come "
     "there yet. Nothing makes one wait for the other. Do all threads pass a cuda.syncthreads() "
     "between lines 6 and 9?"),
    ("s[i] = u[j]", "s[0] = u[j]", "stopped",
     "Thread 1 writes s[0] in line 6, which thread 0 wrote in line 6. Two threads own the same "
     "word: should each have its own?"),
    ("* Np + i", "* Np + i + 1", "stopped",
     "Thread 3 of block 5 wants u[24] in line 6, which is out of range: the shape of u is (24,)."),
    ("    cuda.syncthreads()", "    if i < 2:\n        cuda.syncthreads()",
     "stopped", "Thread 2 reads s[0] in line 11, which thread 0 wrote in line 6."),
    ("    for m", "    if i < 2:\n        cuda.syncthreads()\n    for m", "stopped",
     "Thread 0 of block 0 waits at a barrier in line 10 for all threads of its block, but not all "
     "wait there with it: thread 2 never comes to this line."),
    ("= total", "= -total", "wrong", "Every value of new has the wrong sign."),
    ("= total", "= 2 * total", "wrong", "Every value of new is 2 times what it should be."),
    ("new[j]", f"new[(j + 1) % {K * Np}]", "wrong",
     "Every entry of new holds what belongs to the entry before it: off by one."),
    ("    new[j]", "    if i > 0:\n        new[j]", "wrong",
     "Nobody wrote 6 of 24 words of new, the first at element 0, node 0."),
    ("new[j] = total", "new[j] == total", "wrong", "No thread has written anything into new."),
    ("D[i, m]", "D[m, i]", "wrong", "All values of new are wrong. The first, at element 0, node 0"),
    ("= total", "= total + (i == 2)", "wrong", "new is wrong at node 2 only. The first, at element "
     "0, node 2, is"),
    ("= total", "= total + (j // Np == 3)", "wrong", "new is wrong in element 3 only."),
    ("= total", "= total + (j // Np != 3)", "wrong", "new is right in element 3 only."),
    ("D[i, m]", "D[i, m + 1]", "stopped", "Its second index goes too far: 3 is the last."),
    ("s[m]", "u[cuda.blockIdx.x * Np + m]", "wrong", "thread 0 reads u 5 times where once would"),
    ("        total", "        cuda.syncthreads()\n        total", "wrong",
     "thread 0 waits 5 times at a barrier where once would do."),
    ("    new[j]", "    cuda.syncthreads()\n    new[j]", "wrong",
     "thread 0 waits twice at a barrier where once would do."),
    ("s[i] = u[j]", "s[:] = u[j]", "stopped", "In line 6, s is an array: an index is missing."),
    ("u[j]", "v[j]", "stopped", "in line 6: NameError"),
    ("(u, D, new)", "(u, D, result)", "wrong", "No parameter is called result here"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "kind", "words"), WRONG)
def test_wrong_answers_are_told_apart(answer, old, new, kind, words):
    verdict = check(answer(old, new), TASK)
    assert verdict.kind == kind and words in repr(verdict), repr(verdict)


def test_the_order_of_indices_is_asked_for_where_another_one_fits(tmp_path):
    """A word of two rows of five, asked for as if there were five rows."""
    path = tmp_path / "answer.py"
    path.write_text("@jit\ndef first(D, new):\n    i = cuda.threadIdx.x\n    new[i] = D[i, 0]\n")
    space = {"cuda": cuda, "jit": jit}
    exec(compile(path.read_text(), path, "exec"), space)
    given = {"D": np.ones((2, 5), f4), "new": np.full(5, np.nan, f4)}
    task = Task(1, 5, lambda rng: dict(given), lambda g: {"new": g["D"][0]}, ("node",))
    verdict = check(space["first"], task)
    assert verdict.kind == "stopped"
    words = "Its first index goes too far: 1 is the last. Are its indices in the right order?"
    assert repr(verdict).endswith(words), repr(verdict)


def test_a_loop_that_never_ends_is_told(answer, monkeypatch):
    """Whatever it waits for, memory or nothing."""
    monkeypatch.setattr("dgbook.page.log.MOST_STEPS", 1000)
    loops = ["while True:", "while u[j] < 2:", "while True: m += 1  # all on a line\n    if m:"]
    for endless in loops:
        found = check(answer("for m in range(Np):", f"m = 0\n    {endless}"), TASK)
        assert found.kind == "stopped" and "a loop of it never ends" in found.words


def test_statements_are_followed_only_where_the_simulator_stops(answer, monkeypatch):
    """Following takes many times as long."""
    monkeypatch.setattr("dgbook.page.blank.record", None)
    assert check(answer(), TASK)
    assert check(answer("s[m]", "s[0]"), TASK).kind == "wrong"
    assert check(answer("cuda.syncthreads()", "pass"), TASK).words.endswith("not callable")


def test_a_single_value_is_told_without_a_place():
    verdict = check_function(double, 4.5, 2)
    assert repr(verdict) == "Not quite. The value is 4.0000 and should be 4.5000."


def test_a_value_is_told_with_what_it_should_be(answer):
    u, D = (given(np.random.default_rng(1))[name] for name in "uD")
    verdict = check(answer("D[i, m]", "D[m, i]"), TASK)
    assert f"is {u[:4] @ D[:, 0]:.4f} and should be {D[0] @ u[:4]:.4f}." in verdict.words


@pytest.mark.parametrize(
    ("have", "want", "told"),
    [(0.53712, 0.53714, "0.53712 and should be 0.53714"),
     (0.537, 0.538, "0.5370 and should be 0.5380"),
     (-1e-5, 0.0, "-1e-05 and should be 0"),
     (-1e-5, 1.0, "-0.0000 and should be 1.0000"),
     (1e-9, 1.1e-9, "1e-09 and should be 1.1e-09"),
     (2e6, 2e6 + 0.5, "2000000 and should be 2000000.5")],
)  # fmt: skip
def test_values_are_told_with_digits_that_differ(have, want, told):
    """By a function and, in the same words, by a kernel."""

    def constant():
        return have

    def fill(out):
        out[cuda.threadIdx.x] = have if cuda.threadIdx.x == 1 else 3.0

    def task_of(number):
        right = {"out": np.array([3.0, number])}
        return Task(1, 2, lambda rng: {"out": np.zeros(2)}, lambda g: right, axes=("word",),
                    tolerance=1e-15)  # fmt: skip

    assert repr(check_function(constant, want)) == f"Not quite. The value is {told}."
    assert repr(check(fill, task_of(want))).endswith(f"at word 1, is {told}.")


def test_infinities_are_told_although_no_digit_differs():
    assert "is inf and should be 1." in repr(check_function(infinite, 1.0))
    with np.errstate(invalid="ignore"):  # inf - inf
        assert "is inf and should be inf." in repr(check_function(infinite, np.inf))


def test_a_known_mistake_of_a_kernel_is_named(answer):
    def transposed(given):
        return {"D was taken by columns.": {"new": given["u"].reshape(K, Np) @ given["D"]}}

    task = replace(TASK, known=transposed)
    assert check(answer("D[i, m]", "D[m, i]"), task).words == "D was taken by columns."
    assert "columns" not in check(answer("D[i, m]", "D[i, i]"), task).words
    assert check(answer(), task).kind == "right"


def test_a_kernel_that_is_meant_to_be_wrong(answer):
    task = Task(K, Np, given, right, objection="unwritten")
    verdict = check(answer("    cuda.syncthreads()\n", ""), task)
    assert verdict and verdict.title == "As intended, the simulator objects."
    assert "was to object" in check(answer(), task).words
    with pytest.raises(ValueError, match="objection = 'undefined'"):
        Task(K, Np, given, right, objection="undefined")


def test_a_write_in_a_branch_may_lack_its_barrier_as_well(answer):
    """Threads that skip the branch wait with the others, or the right kernel would seem wrong."""
    task = Task(K, Np, given, right, objection="unwritten")
    once, guard = "s[i] = u[j]\n", "    cuda.syncthreads()\n"
    half = "if i {} 2:\n        s[i] = u[j]\n"
    branched = half.format("<") + "    " + half.format(">=")
    verdict = check(answer(once + guard, branched), task)
    assert verdict.title == "As intended, the simulator objects.", repr(verdict)
    wrong = check(answer(once + guard, branched.replace("u[j]", "u[0]")), task)
    assert wrong.kind == "wrong" and "more is amiss" in wrong.words


def test_kernels_of_numba_and_plain_functions_are_checked_as_well():
    def copy(u, new):
        i = cuda.grid(1)
        new[i] = u[i]

    task = Task(K, Np, given, lambda given: {"new": given["u"]}, axes=("node",))
    assert check(copy, task) and check(numba.cuda.jit(copy), task)
    assert "at node 0, is" in check(copy, Task(K, Np, given, lambda g: {"new": g["u"] ** 2},
                                               axes=("node",))).words  # fmt: skip


def test_what_only_a_gpu_can_call_is_no_blank():
    def copy(u, new):
        new[numba.cuda.grid(1)] = 0  # through a module that the simulator does not replace

    assert check(copy, TASK).kind == "stopped"


def test_words_are_shown_as_words(answer):
    html = check(answer("u[j]", "u['<i>']"), TASK)._repr_html_()
    assert html.startswith('<div class="dgc stopped" role="status">')
    assert "<i>" not in html and "&lt;i&gt;" in html


def double(x):
    return 2 * x


def infinite():
    return np.inf


def flat(x):
    return (2 * x).ravel()


def shifted(x):
    return 2 * x + np.array([0, 0, 1e-12])


def opposite(x):
    return -2 * x


def double_again(x):
    return 4 * x


def empty(x):
    return x * ...


def typed(x):
    x[0] = 0
    return x + "2"


X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [(double, "right", "Right: all 6 values, to rounding."),
     (flat, "wrong", "The shape of the result is (6,) and should be (2, 3)."),
     (shifted, "wrong", "2 of 6 values are wrong. The first, at [0, 2], is 6.000000000001 and "
      "should be 6.000000000000."),
     (opposite, "wrong", "Every value has the wrong sign."),
     (double_again, "wrong", "Every value is 2 times what it should be."),
     (empty, "blank", "Put something in place of ... in line 2."),
     (typed, "stopped", "in line 3: ")],
)  # fmt: skip
def test_a_function_of_numpy_is_told_what_is_wrong(function, kind, words):
    verdict = check_function(function, 2 * X, X)
    assert verdict.kind == kind and words in repr(verdict)
    assert X[0, 0] == 1, "what it was given stays"


@pytest.mark.parametrize(
    ("want", "kind", "words"),
    [(2 * X + 1j, "right", "all 6 values"),
     (-2 * X - 1j, "wrong", "Every value has the wrong sign."),
     (2 * X - 1j, "wrong", "6 of 6 values are wrong. The first, at [0, 0], is 2.0000+1.0000j and "
      "should be 2.0000-1.0000j.")],
)  # fmt: skip
def test_the_imaginary_part_counts(want, kind, words):
    verdict = check_function(double, want, X + 0.5j)
    assert verdict.kind == kind and words in repr(verdict)


def test_a_lambda_is_refused_with_a_word():
    with pytest.raises(ValueError, match="begin with def"):
        check_function(lambda x: 2 - x, 1, 1)


def first_column(x):
    return x[..., 0]


def last_column(x):
    return x[..., -1]


def first_row(x):
    return x[0, ...]


def any_row(x):
    return x[0][...]


def some_entry(x):
    return x[..., ...]


@pytest.mark.parametrize(
    ("function", "want", "kind"),
    [(first_column, X[:, 0], "right"), (last_column, X[:, 0], "wrong"),
     (first_row, X[0], "right"), (first_row, X[1], "blank"),
     (any_row, X[0], "blank"), (some_entry, X[0], "blank")],
)  # fmt: skip
def test_numpys_own_dots_are_no_blank(function, want, kind):
    """Beside other entries of an index; last among them they are, unless the answer is right."""
    verdict = check_function(function, want, X)
    assert verdict.kind == kind
    assert (kind == "blank") == ("in line 2" in repr(verdict))


def test_each_case_of_a_function_is_looked_at():
    also = [(2 * X[1], X[1]), (3 * X[0], X[0])]
    assert check_function(double, 2 * X, X, also=also[:1]).kind == "right"
    found = check_function(double, 2 * X, X, also=also)
    assert found.kind == "wrong" and "3 of 3 values are wrong" in repr(found)


def test_a_known_mistake_is_named():
    known = {"Twice is not thrice.": 2 * X}
    found = check_function(double, 3 * X, X, known=known)
    assert found.kind == "wrong" and "Twice is not thrice." in repr(found)
    assert check_function(double, 2 * X, X, known={"Right is no mistake.": 2 * X}).kind == "right"
    other = check_function(double, 3 * X, X, known={"Another one.": X})
    assert other.kind == "wrong" and "Another one." not in repr(other)


def test_a_known_mistake_is_named_in_another_case():
    """In the first case it may be right by chance; what is known has the shape of its case."""
    known = {"Of many.": np.ones((2, 3)), "Seven, not eight.": 8.0}
    found = check_function(double, 2 * X, X, also=[(7.0, 4.0)], known=known)
    assert found.kind == "wrong" and "Seven, not eight." in repr(found)


def test_integers_are_right_to_the_last_digit():
    @jit
    def count(out):
        out[cuda.threadIdx.x] = 2**30 + cuda.threadIdx.x

    def task(*right):
        given = {"out": np.zeros(4, np.uint32)}
        want = {"out": 2**30 + np.array(right)}
        return Task(1, 4, lambda rng: given, lambda given: want, axes=("word",))

    assert check(count, task(0, 1, 2, 3)).kind == "right"
    verdict = check(count, task(0, 1, 2, 4))
    assert verdict.kind == "wrong" and "word 3, is 1073741827 and should be 1073741828" in repr(
        verdict
    )
