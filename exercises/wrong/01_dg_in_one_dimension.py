"""Wrong solutions of assignment 1: each must lose the parts it names, no more.

An entry changes the instructor's solution. `changes` holds triples: a cell,
what stands in its solution, and what stands there instead.
"""

WRONG = [
    {
        "name": "flux-sign",
        "about": "dissipation with the wrong sign: the flux takes the value "
        "downstream, and energy grows",
        "changes": [
            (
                "answer-1-3",
                "return n * a * mean + (1",
                "return n * a * mean - (1",
            ),
            (
                "answer-1-4",
                "return -(1 - alpha) * abs(a)",
                "return (1 - alpha) * abs(a)",
            ),
        ],
        "loses": ("test-1-3", "test-1-4"),
    },
    {
        "name": "transposed-derivative",
        "about": "D of the transposed system: V^-1 on the wrong side",
        "changes": [
            (
                "answer-2-1",
                "V_r @ np.linalg.inv(V)",
                "(V_r @ np.linalg.inv(V)).T",
            ),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "constant-inputs",
        "about": "the faces are left out, which is right for constants",
        "changes": [
            (
                "answer-2-2",
                "return 2 / h * (-a * u @ D.T + faces)",
                "return 2 / h * (-a * u @ D.T + 0 * faces)",
            ),
        ],
        "loses": ("test-2-2",),
    },
    {
        "name": "soft-walls",
        "about": "behind the walls pressure is turned round, not velocity; "
        "orders are measured as if meshes always doubled",
        "changes": [
            (
                "answer-2-4",
                "= p[0, 0], p[-1, -1]",
                "= -p[0, 0], -p[-1, -1]",
            ),
            (
                "answer-2-4",
                "= -v[0, 0], -v[-1, -1]",
                "= v[0, 0], v[-1, -1]",
            ),
            ("answer-2-3", "np.diff(np.log(elements))", "np.log(2)"),
        ],
        "loses": ("test-2-3", "test-2-4"),
    },
    {
        "name": "missing-barrier",
        "about": "the volume kernel reads what other threads may not have "
        "written; the stage kernel has its barrier where not all threads come",
        "changes": [
            ("answer-3-1", "        cuda.syncthreads()\n", ""),
            (
                "answer-3-3",
                "= u[k, node]\n        cuda.syncthreads()",
                "= u[k, node]\n            cuda.syncthreads()",
            ),
        ],
        # A stage kernel that does not run has no precision to speak of.
        "loses": ("test-3-1", "test-3-3", "test-3-4"),
    },
    {
        "name": "global-memory",
        "about": "the volume kernel fills shared memory and does not use it: "
        "right, but every thread reads all of its element's u",
        "changes": [("answer-3-1", "* state[row, m]", "* u[k, m]")],
        "loses": ("test-3-1",),
    },
    {
        "name": "wrap-off-by-one",
        "about": "the first element takes its last neighbor but one",
        "changes": [
            (
                "answer-3-2",
                "- u[(k - 1) % K, Np - 1]",
                "- u[k - 1 if k > 0 else K - 2, Np - 1]",
            ),
        ],
        "loses": ("test-3-2",),
    },
    {
        "name": "double-constant",
        "about": "0.5 in place of real(0.5): right, but in double precision",
        "changes": [
            (
                "answer-3-3",
                "g_0 = real(0.5) * (-a - wind)",
                "g_0 = 0.5 * (-a - wind)",
            ),
        ],
        "loses": ("test-3-4",),
    },
    {
        "name": "whole-constant",
        "about": "a whole number beside a single: Numba makes it double",
        "changes": [("answer-3-3", "real(1) - alpha", "1 - alpha")],
        "loses": ("test-3-4",),
    },
    {
        "name": "speed-of-one",
        "about": "right for constants and for a speed of 1: the norm takes "
        "row sums of the mass matrix, the walls' flux leaves out c",
        "changes": [
            ("answer-2-3", "np.sum(v @ M * v)", "np.sum(v**2 @ M)"),
            ("answer-2-4", "g_p = c / 2 *", "g_p = 1 / 2 *"),
        ],
        "loses": ("test-2-3", "test-2-4"),
    },
    {
        "name": "in-place-and-guessed",
        "about": "the stage writes into u, which other blocks still read; the "
        "hazard is guessed",
        "changes": [
            (
                "answer-3-3",
                "            new[k, node] = state[row, node] + B * r",
                "            u[k, node] = state[row, node] + B * r\n"
                "            new[k, node] = u[k, node]",
            ),
            ("answer-4-1", 'hazard = "WAR"', 'hazard = "RAW"'),
            ("answer-4-2", "smallest_Np = 33", "smallest_Np = 32"),
        ],
        "loses": ("test-3-3", "test-3-4", "test-4-1", "test-4-2"),
    },
    {
        "name": "visible-tests-only",
        "about": "made to pass the tests one can see: wind from the left, one "
        "size, one count, one degree",
        "changes": [
            (
                "answer-1-3",
                "    return n * a * mean + (1 - alpha) * abs(a) / 2 * jump\n",
                "    return n * a * mean + (1 - alpha) * a / 2 * jump\n",
            ),
            ("answer-3-1", "for m in range(Np)", "for m in range(2)"),
            ("answer-3-2", "* abs(a)", "* a"),
            ("answer-5-1", "2 * Np + 21", "25"),
            ("answer-5-3", "    N = 1\n", "    return 5 if word == 4 else 1\n"),
        ],
        "loses": ("test-1-3", "test-3-1", "test-3-2", "test-5-1", "test-5-3"),
    },
    {
        "name": "barrier-misplaced",
        "about": "the second barrier follows the first; neighbors' values are "
        "counted twice, and times are added",
        "changes": [
            (
                "answer-4-3",
                "= total\n            cuda.syncthreads()",
                "= total",
            ),
            (
                "answer-4-3",
                "cuda.syncthreads()\n            total",
                "cuda.syncthreads()\n            cuda.syncthreads()\n"
                "            total",
            ),
            ("answer-5-1", "words = 4 * K * Np", "words = 4 * K * Np + 2 * K"),
            ("answer-5-2", "max(computing, moving)", "computing + moving"),
        ],
        "loses": ("test-4-3", "test-5-1", "test-5-2"),
    },
    {
        "name": "hang-and-crash",
        "about": "one function disarms the tests, one never returns, one ends "
        "the process",
        "changes": [
            (
                "answer-1-3",
                "    mean = (u_minus + u_plus) / 2\n",
                "    global compare\n"
                "    compare = print\n"
                "    mean = (u_minus + u_plus) / 3\n",
            ),
            (
                "answer-2-2",
                "    left, right = u[:, 0], u[:, -1]\n",
                "    while True:\n"
                "        try:\n"
                '            __import__("threading").Event().wait()\n'
                "        except BaseException:\n"
                "            pass\n",
            ),
            (
                "answer-3-2",
                "    real = np.dtype(dtype).type\n",
                "    real = np.dtype(dtype).type\n    os._exit(1)\n",
            ),
        ],
        "loses": ("test-1-3", "test-2-2", "test-3-2"),
    },
]
