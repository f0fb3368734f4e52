"""Wrong solutions of assignment 2: each must lose the parts it names, no more.

An entry changes the instructor's solution. `changes` holds triples: a cell,
what stands in its solution, and what stands there instead.
"""

WRONG = [
    {
        "name": "flux-sign",
        "about": "the electric jump enters with the wrong sign: the flux takes "
        "what leaves, and energy grows",
        "changes": [
            (
                "answer-1-2",
                "w = jump_Ez + nx * jump_Hy - ny * jump_Hx",
                "w = -jump_Ez + nx * jump_Hy - ny * jump_Hx",
            ),
        ],
        "loses": ("test-1-2",),
    },
    {
        "name": "central-flux",
        "about": "the second vector of f is left out: not upwind",
        "changes": [
            (
                "answer-1-2",
                "return -ny * w, nx * w, w",
                "return -ny * jump_Ez, nx * jump_Ez, w - jump_Ez",
            ),
        ],
        "loses": ("test-1-2",),
    },
    {
        "name": "wall-sign",
        "about": "behind a wall the electric field goes on, in NumPy and in "
        "the kernel: nothing happens at walls",
        "changes": [
            ("answer-1-3", "-minus[2], plus[2]", "minus[2], plus[2]"),
            (
                "answer-2-2",
                "            if plus == minus:\n"
                "                jump_Ez = real(-2) * q[2, minus]\n",
                "",
            ),
        ],
        "loses": ("test-1-3", "test-2-2"),
    },
    {
        "name": "half-a-wall",
        "about": "on a wall itself the field is zero, so the one behind it is "
        "taken for zero too",
        "changes": [
            ("answer-1-3", "-minus[2], plus[2]", "0 * minus[2], plus[2]"),
        ],
        "loses": ("test-1-3",),
    },
    {
        "name": "neighbor-runs-backwards",
        "about": "the nodes of the neighbor's face are taken in reverse order, "
        "which fits some faces",
        "changes": [
            (
                "answer-2-1",
                "candidates[np.argmin(dx**2 + dy**2, axis=1)]",
                "candidates[::-1]",
            ),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "exact-coordinates",
        "about": "nodes are matched with ==, and coordinates are rounded",
        "changes": [
            (
                "answer-2-1",
                "np.argmin(dx**2 + dy**2, axis=1)",
                "np.argmax((dx == 0) & (dy == 0), axis=1)",
            ),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "scale-forgotten",
        "about": "the gather kernel leaves out Fs, the lift kernel the barrier",
        "changes": [
            (
                "answer-2-2",
                "g[i] = real(0.5) * face_scale[face] * w",
                "g[i] = real(0.5) * w",
            ),
            ("answer-3-1", "        cuda.syncthreads()\n", ""),
        ],
        "loses": ("test-2-2", "test-3-1"),
    },
    {
        "name": "jump-sign",
        "about": "jumps are own minus neighbor in the gather kernel",
        "changes": [
            (
                "answer-2-2",
                "w -= normals[face, 1] * jump_Hx",
                "w = -(w - normals[face, 1] * jump_Hx)",
            ),
        ],
        "loses": ("test-2-2",),
    },
    {
        "name": "double-constant",
        "about": "0.5 in place of real(0.5): right, but in double precision",
        "changes": [
            (
                "answer-2-2",
                "g[i] = real(0.5) * face",
                "g[i] = 0.5 * face",
            ),
        ],
        "loses": ("test-2-2",),
    },
    {
        "name": "no-guard",
        "about": "threads beyond the last face node write too; rows beyond the "
        "mesh wait at no barrier",
        "changes": [
            ("answer-2-2", "if i < g.size:", "if True:"),
            (
                "answer-3-1",
                "                i += Np\n        cuda.syncthreads()",
                "                i += Np\n            cuda.syncthreads()",
            ),
        ],
        "loses": ("test-2-2", "test-3-1"),
    },
    {
        "name": "transposed-lift",
        "about": "the lift matrix is read as if it were not transposed",
        "changes": [
            ("answer-3-1", "LT[j, node] * mine", "LT[node, j] * mine"),
        ],
        "loses": ("test-3-1",),
    },
    {
        "name": "one-fetch-a-thread",
        "about": "each thread fetches one face value, though there may be more "
        "values than threads",
        "changes": [
            (
                "answer-3-1",
                "            while i < Nf:\n",
                "            if i < Nf:\n",
            ),
        ],
        "loses": ("test-3-1",),
    },
    {
        "name": "global-memory",
        "about": "shared memory is filled and not used: right, but all of g is "
        "read by every thread",
        "changes": [
            ("answer-3-1", "* mine[row, j]", "* g[k * Nf + j]"),
        ],
        "loses": ("test-3-1",),
    },
    {
        "name": "words-not-told-apart",
        "about": "threads that want one word are counted as a conflict, in the "
        "function and on paper",
        "changes": [
            (
                "answer-4-1",
                "banks.setdefault(word % 32, set()).add(word)",
                "banks.setdefault(word % 32, []).append(word)",
            ),
            ("answer-4-2", "5: 21}", "5: 32}"),
        ],
        "loses": ("test-4-1", "test-4-2"),
    },
    {
        "name": "wrong-stride",
        "about": "one column more whatever the stride: odd ones become even",
        "changes": [
            (
                "answer-4-3",
                "        stride += 1  # an odd",
                "        stride += 2  # an odd",
            ),
            ("answer-4-4", "stride = Nf + 1 - Nf % 2", "stride = Nf + 1"),
        ],
        "loses": ("test-4-3", "test-4-4"),
    },
    {
        "name": "padding-too-wide",
        "about": "always an odd stride, also where an even one would do; the "
        "loop runs over the padding",
        "changes": [
            (
                "answer-4-3",
                "    stride = Nf\n",
                "    stride = Nf + 1 - Nf % 2\n",
            ),
            ("answer-4-4", "for m in range(Nf)", "for m in range(stride)"),
        ],
        "loses": ("test-4-3", "test-4-4"),
    },
    {
        "name": "matrix-left-outside",
        "about": "no conflicts, since the matrix is read from global memory",
        "changes": [
            ("answer-4-4", "matrix[node, m] * mine", "L[node, m] * mine"),
        ],
        "loses": ("test-4-4",),
    },
    {
        "name": "race-unseen",
        "about": "the barrier is suspected, the test has one element in one "
        "row, and atomic additions repair",
        "changes": [
            ("answer-5-1", 'racing_line = "C"', 'racing_line = "D"'),
            ("answer-5-1", "{2, 3, 5}", "{2, 3}"),
            ("answer-5-3", "N, rows, K = 2, 2, 5", "N, rows, K = 2, 1, 1"),
            (
                "answer-5-4",
                "mine[row, face_nodes[i]] += v[k * Nf + i]",
                "m = (row, face_nodes[i])\n"
                "                cuda.atomic.add(mine, m, v[k * Nf + i])",
            ),
        ],
        "loses": ("test-5-1", "test-5-3", "test-5-4"),
    },
    {
        "name": "full-blocks-only",
        "about": "the test fills all its blocks; the repaired kernel has its "
        "barrier where spare rows do not come",
        "changes": [
            ("answer-5-3", "N, rows, K = 2, 2, 5", "N, rows, K = 2, 2, 4"),
            (
                "answer-5-4",
                "+= v[k * Nf + i]\n            cuda.syncthreads()",
                "+= v[k * Nf + i]\n            if k < K:\n"
                "                cuda.syncthreads()",
            ),
        ],
        "loses": ("test-5-3", "test-5-4"),
    },
    {
        "name": "results-compared",
        "about": "the test compares results in place of catching the race; the "
        "repair has barriers enough, but all faces have their turn at once",
        "changes": [
            (
                "answer-5-3",
                "    return False\n",
                "    want = [(face_nodes == m).sum() for m in range(6)]\n"
                "    return not np.allclose(sums, K * want)\n",
            ),
            ("answer-5-4", "and i // Nfp == f", "and f == 0"),
        ],
        "loses": ("test-5-3", "test-5-4"),
    },
    {
        "name": "last-step",
        "about": "equal steps of the given length that overshoot the end; the "
        "indices are counted as wide as the numbers; times are added",
        "changes": [
            (
                "answer-6-1",
                "0.0, t_end, dt)",
                "0.0, dt * np.ceil(t_end / dt), dt)",
            ),
            ("answer-6-2", "+ 4 * (K * Nf + Nf)", "+ word * (K * Nf + Nf)"),
            (
                "answer-6-3",
                "seconds.append(max(computing, moving))",
                "seconds.append(computing + moving)",
            ),
        ],
        "loses": ("test-6-1", "test-6-2", "test-6-3"),
    },
    {
        "name": "mirrors-all",
        "about": "a sign of the magnetic jump that one sees only along a face, "
        "walls that turn the magnetic field, too; the last step is shorter; "
        "time is counted by bytes alone",
        "changes": [
            (
                "answer-1-2",
                "w = jump_Ez + nx * jump_Hy - ny * jump_Hx",
                "w = jump_Ez - nx * jump_Hy + ny * jump_Hx",
            ),
            (
                "answer-1-3",
                "plus[2] = np.where(p.exterior == interior, -minus[2], plus[2]",
                "plus = np.where(p.exterior == interior, -minus, plus",
            ),
            (
                "answer-6-1",
                "q = lsrk45.integrate(lambda q, t: rhs(q), q, 0.0, t_end, dt)",
                "for step in [dt] * int(t_end / dt) + [t_end % dt]:\n"
                "        rate = lambda q, t: rhs(q)\n"
                "        q = lsrk45.integrate(rate, q, 0.0, step, step)",
            ),
            ("answer-6-3", "/ max(computing, moving)", "/ moving"),
        ],
        "loses": ("test-1-2", "test-1-3", "test-6-1", "test-6-3"),
    },
    {
        "name": "three-products",
        "about": "the magnetic field turns the other way; the lift is counted "
        "as three products a matrix entry",
        "changes": [
            ("answer-6-1", "    Hx = -b / omega", "    Hx = b / omega"),
            ("answer-6-2", "3 * (2 * Nfp + 5) + 3", "3 * (6 * Nfp + 5) + 3"),
        ],
        "loses": ("test-6-1", "test-6-2"),
    },
    {
        "name": "visible-tests-only",
        "about": "made to pass the tests one can see: one normal, one order, "
        "one stride",
        "changes": [
            ("answer-1-2", "return -ny * w, nx", "return -0.8 * w, 0.6"),
            ("answer-2-2", "i // Nf * Np", "i // Nf * 3"),
            ("answer-3-1", "i += Np\n", "i += 3\n"),
            (
                "answer-4-3",
                "    stride = Nf\n",
                "    return {32: 33}.get(Nf, Nf)\n    stride = Nf\n",
            ),
            ("answer-6-2", "3 * (2 * Nfp + 5) + 3", "30"),
        ],
        "loses": (
            "test-1-2",
            "test-2-2",
            "test-3-1",
            "test-4-3",
            "test-6-2",
        ),
    },
    {
        "name": "hang-and-crash",
        "about": "one function waits for what never comes, one ends the run",
        "changes": [
            (
                "answer-2-1",
                "    K, Np = x.shape\n",
                '    __import__("threading").Event().wait()\n'
                "    K, Np = x.shape\n",
            ),
            (
                "answer-5-3",
                "    N, rows, K = 2, 2, 5\n",
                "    N, rows, K = 2, 2, 5\n    os._exit(1)\n",
            ),
        ],
        "loses": ("test-2-1", "test-5-3"),
    },
]
