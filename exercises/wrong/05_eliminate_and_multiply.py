"""Wrong solutions of assignment 5: each must lose the parts it names, no more.

An entry changes the instructor's solution. `changes` holds triples: a cell,
what stands in its solution, and what stands there instead.
"""

WRONG = [
    {
        "name": "lumped-mass",
        "about": "the mass matrix of a trapezoidal rule; one factor of K_uu "
        "serves all elements",
        "changes": [
            ("answer-1-1", "tau * one + 3 / h", "tau * one + 1 / h"),
            ("answer-1-1", "exact([[2, 1], [1, 2]])", "one"),
            (
                "answer-2-1",
                "np.linalg.solve(K_uu, right)",
                "np.linalg.solve(K_uu[:1], right)",
            ),
        ],
        "loses": ("test-1-1", "test-2-1"),
    },
    {
        "name": "inward-flux",
        "about": "the sign of the flux is turned: K_hh, and the source in g",
        "changes": [
            ("answer-1-1", "-K_uu, K_hh", "-K_uu, -K_hh"),
            (
                "answer-1-2",
                "g = -K_hu @ solve_exactly(K_uu, f)",
                "g = K_hu @ solve_exactly(K_uu, f)",
            ),
        ],
        "loses": ("test-1-1", "test-1-2"),
    },
    {
        "name": "in-floats",
        "about": "right to rounding where it should be exact",
        "changes": [
            ("answer-1-1", "tau * one + 3 / h", "tau * one + 3.0 / h"),
            ("answer-1-3", "q[k] = 2 / h", "q[k] = 2.0 / h"),
        ],
        "loses": ("test-1-1", "test-1-3"),
    },
    {
        "name": "symmetric-of-course",
        "about": "the second equation's matrix is taken to be the first one's "
        "transpose",
        "changes": [
            ("answer-1-2", "H = K_hh - K_hu @", "H = K_hh - K_uh.T @"),
            (
                "answer-2-1",
                "K_hh - K_hu @",
                "K_hh - K_uh.transpose(0, 2, 1) @",
            ),
        ],
        "loses": ("test-1-2", "test-2-1"),
    },
    {
        "name": "nothing-from-the-ends",
        "about": "what given traces contribute to other rows is forgotten; it "
        "is nothing where zero is given",
        "changes": [
            (
                "answer-1-3",
                "    b = b - A[:, 0] * ends[0] - A[:, K] * ends[1]\n",
                "",
            ),
            ("answer-2-4", "    np.add.at(rhs, rows, -moved[..., 0])\n", ""),
        ],
        "loses": ("test-1-3", "test-2-4"),
    },
    {
        "name": "equal-elements",
        "about": "all elements are as long as the first; the columns of given "
        "traces stay, and the matrix is symmetric no more",
        "changes": [
            (
                "answer-1-3",
                "        h = points[k + 1] - points[k]\n",
                "        h = points[1] - points[0]\n",
            ),
            ("answer-2-4", "    values[known] = 0\n", ""),
        ],
        "loses": ("test-1-3", "test-2-4"),
    },
    {
        "name": "ascending",
        "about": "the columns of a row are sorted: the face itself stands "
        "anywhere, and is looked for in front; X likewise has the columns of a "
        "block together, not those of a face",
        "changes": [
            ("answer-2-2", "return columns", "return np.sort(columns, axis=1)"),
            (
                "answer-3-1",
                "x[columns].reshape",
                "x[columns].transpose(0, 2, 1).reshape",
            ),
        ],
        "loses": ("test-2-2", "test-3-1"),
    },
    {
        "name": "nobody-is-minus-one",
        "about": "rows of boundary faces are filled up with -1, which to NumPy "
        "is the last face; blocks that fill up are taken for neighbors",
        "changes": [
            (
                "answer-2-2",
                "    filled = np.ones",
                "    columns[:, 1:] = -1\n    filled = np.ones",
            ),
            ("answer-3-3", "if b == 0 or face != l:", "if face >= 0:"),
        ],
        "loses": ("test-2-2", "test-3-3"),
    },
    {
        "name": "one-of-two-adds",
        "about": "two elements add to a block of their common face, and one of "
        "them is lost",
        "changes": [
            (
                "answer-2-3",
                "np.add.at(values, (rows, place), block)",
                "values[rows, place] += block",
            ),
        ],
        "loses": ("test-2-3",),
    },
    {
        "name": "the-element's-order",
        "about": "nodes of a face are taken in the order of each element",
        "changes": [
            ("answer-2-3", "mine = order[:, a]", "mine = np.arange(m)[None]"),
            ("answer-2-3", "theirs = order[:, b]", "theirs = mine"),
            (
                "answer-6-1",
                "np.put_along_axis(traces, order, trace[numbers], axis=2)",
                "traces[...] = trace[numbers]",
            ),
        ],
        "loses": ("test-2-3", "test-6-1"),
    },
    {
        "name": "transposed-blocks",
        "about": "rows and columns inside a block are exchanged, which a "
        "symmetric matrix of one node a face does not show",
        "changes": [
            (
                "answer-2-3",
                "a, mine[:, :, None], b, theirs[:, None]",
                "a, mine[:, None], b, theirs[:, :, None]",
            ),
            (
                "answer-3-1",
                "(b * m + j) * faces * m + l * m + i",
                "(b * m + i) * faces * m + l * m + j",
            ),
        ],
        "loses": ("test-2-3", "test-3-1"),
    },
    {
        "name": "no-guard",
        "about": "threads behind the last row compute as well; the own face is "
        "taken for what fills up",
        "changes": [
            ("answer-3-2", "if t < y.size:", "if t >= 0:"),
            ("answer-3-3", "if b == 0 or face != l:", "if face != l:"),
        ],
        "loses": ("test-3-2", "test-3-3"),
    },
    {
        "name": "row-by-row",
        "about": "right, but neighboring threads have the same row of "
        "neighboring faces, and read A with a stride",
        "changes": [
            (
                "answer-3-2",
                "l = t // m\n",
                "l = t % (y.size // m)\n"
                "            t = l * m + t // (y.size // m)\n",
            ),
        ],
        "loses": ("test-3-2",),
    },
    {
        "name": "sum-in-double",
        "about": "right on the simulator, with double-precision arithmetic in "
        "a single-precision kernel; a face's number is taken for that of its "
        "first unknown",
        "changes": [
            ("answer-3-2", "total = real(0)", "total = 0.0"),
            ("answer-3-3", "x[face * m + j]", "x[face + j]"),
        ],
        "loses": ("test-3-2", "test-3-3"),
    },
    {
        "name": "y-for-free",
        "about": "only x is counted; a product takes its bytes and its flops "
        "one after the other",
        "changes": [
            (
                "answer-4-1",
                "vectors = 2 * faces * m * word",
                "vectors = faces * m * word",
            ),
            (
                "answer-4-2",
                'max(moved / machine["bandwidth"], '
                'flops / machine["flops"][word])',
                'moved / machine["bandwidth"] + flops / machine["flops"][word]',
            ),
        ],
        "loses": ("test-4-1", "test-4-2"),
    },
    {
        "name": "full-rows-everywhere",
        "about": "compressed formats store what fills up, too; an index costs "
        "half a number in any precision",
        "changes": [
            (
                "answer-4-1",
                "full, filled = 5 * faces - 2 * boundary, 5 * faces",
                "full, filled = 5 * faces, 5 * faces",
            ),
            ("answer-4-2", "limits = {4: 2.0,", "limits = {4: 1.5,"),
        ],
        "loses": ("test-4-1", "test-4-2"),
    },
    {
        "name": "ones",
        "about": "x is 1 everywhere, as the colleague's; the barrier is still "
        "missing",
        "changes": [
            (
                "answer-5-1",
                "x = rng.standard_normal((len(columns), 3))",
                "x = np.ones((len(columns), 3))",
            ),
            ("answer-5-2", "        cuda.syncthreads()\n", ""),
        ],
        "loses": ("test-5-1", "test-5-2"),
    },
    {
        "name": "nan-is-close",
        "about": "what was never written differs by NaN, which is not more "
        "than any tolerance; blocks still begin at a face",
        "changes": [
            (
                "answer-5-1",
                '"right" if np.allclose(y, want, rtol=0, atol=1e-12) '
                'else "wrong"',
                '"wrong" if (abs(y - want) > 1e-12).any() else "right"',
            ),
            ("answer-5-2", "(row // m - first // m) * q", "t // m * q"),
        ],
        "loses": ("test-5-1", "test-5-2"),
    },
    {
        "name": "to-the-last-bit",
        "about": "another order of the sum counts as wrong; only threads with "
        "a row wait",
        "changes": [
            (
                "answer-5-1",
                "np.allclose(y, want, rtol=0, atol=1e-12)",
                "np.array_equal(y, want)",
            ),
            (
                "answer-5-2",
                "        cuda.syncthreads()\n        row = first + t\n",
                "        row = first + t\n        if row < y.size:\n"
                "            cuda.syncthreads()\n",
            ),
        ],
        "loses": ("test-5-1", "test-5-2"),
    },
    {
        "name": "stops-only-out-of-range",
        "about": "a barrier that not all threads reach ends the test, too",
        "changes": [
            (
                "answer-5-1",
                "except SimulatorError as error:",
                "except IndexError as error:",
            ),
        ],
        "loses": ("test-5-1",),
    },
    {
        "name": "the-trace-added",
        "about": "the traces' term on the wrong side; the order is that of "
        "halved elements, always",
        "changes": [
            ("answer-6-1", "f[:, :, None] - K_uh", "f[:, :, None] + K_uh"),
            ("answer-6-2", "/ np.diff(np.log(h))", "/ -np.log(2)"),
        ],
        "loses": ("test-6-1", "test-6-2"),
    },
    {
        "name": "never-imposed",
        "about": "the system is solved as it was assembled",
        "changes": [
            (
                "answer-6-2",
                "tools.impose(*whole, columns, parts.given, parts.data)",
                "whole",
            ),
        ],
        "loses": ("test-6-2",),
    },
    {
        "name": "visible-tests-only",
        "about": "made to pass the tests one can see: two triangles, one node "
        "a face, two formats",
        "changes": [
            ("answer-2-2", "    return columns\n", "    return PAIR_COLUMNS\n"),
            (
                "answer-4-1",
                "    return matrix + vectors + 2",
                "    return vectors + 2",
            ),
            (
                "answer-6-1",
                "np.put_along_axis(traces, order, trace[numbers], axis=2)",
                "traces[...] = trace[numbers][:, :, ::-1]",
            ),
        ],
        "loses": ("test-2-2", "test-4-1", "test-6-1"),
    },
    {
        "name": "hang-and-crash",
        "about": "one function waits for what never comes, one ends the run",
        "changes": [
            (
                "answer-2-4",
                "    known = given[columns]\n",
                '    __import__("threading").Event().wait()\n'
                "    known = given[columns]\n",
            ),
            (
                "answer-4-2",
                "    blocks = 5 * faces\n",
                "    os._exit(1)\n    blocks = 5 * faces\n",
            ),
        ],
        "loses": ("test-2-4", "test-4-2"),
    },
]
