"""Wrong solutions of assignment 3: each must lose the parts it names, no more.

An entry changes the instructor's solution. `changes` holds triples: a cell,
what stands in its solution, and what stands there instead.
"""

WRONG = [
    {
        "name": "density-weights",
        "about": "means weighted with the density, not with its root; the fix "
        "is for the slow waves too, which have no rarefactions",
        "changes": [
            (
                "answer-1-2",
                "a, b = np.sqrt(left[0]), np.sqrt(right[0])",
                "a, b = left[0], right[0]",
            ),
            ("answer-1-3", "np.abs(un) * (d_rho", "fixed(un) * (d_rho"),
            ("answer-1-3", "np.abs(un) * rho", "fixed(un) * rho"),
        ],
        "loses": ("test-1-2", "test-1-3"),
    },
    {
        "name": "defect-with-sign",
        "about": "the largest difference, not the largest in size; no fix",
        "changes": [
            (
                "answer-1-2",
                "return np.abs(change - flux_matrix(u, v, H, n) "
                "@ (right - left)).max()",
                "return (change - flux_matrix(u, v, H, n) "
                "@ (right - left)).max()",
            ),
            ("answer-1-3", "< fix * c", "< 0 * c"),
        ],
        "loses": ("test-1-2", "test-1-3"),
    },
    {
        "name": "arithmetic-density",
        "about": "the density of the waves is the arithmetic mean; a shock in "
        "place of the expansion",
        "changes": [
            (
                "answer-1-3",
                "rho = np.sqrt(left[0] * right[0])",
                "rho = (left[0] + right[0]) / 2",
            ),
            (
                "answer-1-4",
                "return slow, conservative(1.0, speed, 0.0, 1.0)",
                "return conservative(1.0, speed, 0.0, 1.0), slow",
            ),
        ],
        "loses": ("test-1-3", "test-1-4"),
    },
    {
        "name": "overwrites-its-input",
        "about": "the cells that were handed in are changed",
        "changes": [("answer-1-4", "    U = U.copy()\n", "")],
        "loses": ("test-1-4",),
    },
    {
        "name": "one-block",
        "about": "one block with a thread an edge: nobody beyond, nobody in "
        "another block; lost sums of two are forgotten",
        "changes": [
            ("answer-2-1", "threads=5)", "threads=p.E)"),
            ("answer-2-1", "{2, 3, 5, 7, 8, 10}", "{2, 3, 5, 10}"),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "results-compared",
        "about": "what is not right is taken for a race",
        "changes": [
            (
                "answer-2-1",
                "        run_edge(make, u, p, 0 * u, threads=5)",
                "        res = run_edge(make, u, p, 0 * u, threads=5)\n"
                "        return not np.allclose(res.sum(axis=(1, 2)), 0)",
            ),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "left-side-only",
        "about": "every element takes itself for the left one; the right "
        "neighbor gets plain additions",
        "changes": [
            ("answer-2-3", "side = element_sides[k, f]", "side = 0"),
            (
                "answer-2-4",
                "cuda.atomic.add(res, (i, m, nodes[g, j]), minus[i, j])",
                "res[i, m, nodes[g, j]] += minus[i, j]",
            ),
        ],
        "loses": ("test-2-3", "test-2-4"),
    },
    {
        "name": "no-guard",
        "about": "threads beyond the last edge work too",
        "changes": [
            ("answer-2-3", "if e < half.size:", "if True:"),
            ("answer-2-4", "if e < half.size:", "if True:"),
        ],
        "loses": ("test-2-3", "test-2-4"),
    },
    {
        "name": "fetched-twice",
        "about": "right, but a trace is read twice, and entries of res are "
        "changed once for each edge",
        "changes": [
            (
                "answer-2-3",
                "            nx = normal[e, 0]\n",
                "            fetch(u, edges[e, 0], edges[e, 1], nodes, left)\n"
                "            nx = normal[e, 0]\n",
            ),
            (
                "answer-2-5",
                "total[i, nodes[f, j]] += plus",
                "res[i, k, nodes[f, j]] += plus",
            ),
        ],
        "loses": ("test-2-3", "test-2-5"),
    },
    {
        "name": "edges-have-one-number",
        "about": "an edge is taken to have the same number in the neighbor, "
        "which does not show for p = 0",
        "changes": [
            (
                "answer-2-5",
                "neighbor_edges[k, f], nodes",
                "f, nodes",
            ),
        ],
        "loses": ("test-2-5",),
    },
    {
        "name": "double-sums",
        "about": "sums are collected in double precision, whatever dtype is; "
        "an atomic addition counts one word",
        "changes": [
            (
                "answer-2-5",
                "total = cuda.local.array((4, Np), real)",
                "total = cuda.local.array((4, Np), np.float64)",
            ),
            ("answer-2-6", "2 * 2 * trace)\n    else", "2 * trace)\n    else"),
        ],
        "loses": ("test-2-5", "test-2-6"),
    },
    {
        "name": "neighbors-for-free",
        "about": "own traces are counted, those of the neighbors are not; two "
        "results are the same if they are close",
        "changes": [
            ("answer-2-6", "3 * 2 * trace", "3 * trace"),
            ("answer-2-7", "np.array_equal(", "np.allclose("),
        ],
        "loses": ("test-2-6", "test-2-7"),
    },
    {
        "name": "old-numbers-for-new",
        "about": "an order is taken for its own inverse, as that of back to "
        "front is",
        "changes": [
            ("answer-2-7", "new = np.argsort(order)", "new = order"),
        ],
        "loses": ("test-2-7",),
    },
    {
        "name": "two-terms-commute-not",
        "about": "x + y and y + x are thought to differ; indices and numbers "
        "are counted alike",
        "changes": [
            ("answer-2-7", '{"a", "c"}', '{"a", "b", "c"}'),
            ("answer-5-1", "+ 4 * 4 * E", "+ 4 * word * E"),
        ],
        "loses": ("test-2-7", "test-5-1"),
    },
    {
        "name": "lost-additions",
        "about": "the race in NumPy: += with an element more than once",
        "changes": [
            (
                "answer-3-1",
                "    R = volume + shares.sum(axis=2)\n",
                "    R = volume.copy()\n"
                "    R[:, p.edges[:, 0]] += left\n"
                "    R[:, p.edges[:, 2]] += right\n",
            ),
        ],
        "loses": ("test-3-1",),
    },
    {
        "name": "no-mass",
        "about": "the mass matrix is taken for the identity; nodal values are "
        "summed with one weight",
        "changes": [
            (
                "answer-3-1",
                "np.linalg.solve(p.M, R[..., None])[..., 0]",
                "R * 1 / p.M.sum() * p.Np",
            ),
            (
                "answer-3-3",
                'np.einsum("fki,ij,k->f", U, p.M, p.J)',
                "(U.mean(axis=2) * p.J).sum(axis=1) * 2",
            ),
        ],
        "loses": ("test-3-1", "test-3-3"),
    },
    {
        "name": "last-step",
        "about": "steps of the given length that overshoot the end; the "
        "first half of the run counts too",
        "changes": [
            ("answer-3-2", "U, t_end / steps)", "U, dt)"),
            ("answer-4-1", "if t > t_end / 2:", "if t > 0:"),
        ],
        "loses": ("test-3-2", "test-4-1"),
    },
    {
        "name": "half-a-stage",
        "about": "the last stage goes half the way; a run that breaks returns "
        "what it had come to",
        "changes": [
            ("answer-3-2", "k4 = f(U + dt * k3)", "k4 = f(U + dt / 2 * k3)"),
            ("answer-4-1", "return np.inf", "return largest / u_star - 1"),
        ],
        "loses": ("test-3-2", "test-4-1"),
    },
    {
        "name": "last-element-is-a-neighbor",
        "about": "-1 is taken for an element, and NumPy for its word; times "
        "are added",
        "changes": [
            (
                "answer-4-3",
                "np.where(neighbors < 0, element, neighbors)",
                "neighbors",
            ),
            (
                "answer-5-2",
                'return max(flops / rate, moved / ceilings["copy_TBps"])',
                'return (flops / rate + moved / ceilings["copy_TBps"])',
            ),
        ],
        "loses": ("test-4-3", "test-5-2"),
    },
    {
        "name": "density-alone",
        "about": "only the density drops to its mean; roots are not counted",
        "changes": [
            (
                "answer-4-3",
                "return np.where(troubled, mean[:, :, None], u)",
                "flat = np.where(troubled, mean[:, :, None], u)\n"
                "    return np.concatenate([flat[:1], u[1:]])",
            ),
            ("answer-5-1", "2 * 2 + 2 * 3 +", "2 * 2 + 2 * 2 +"),
        ],
        "loses": ("test-4-3", "test-5-1"),
    },
    {
        "name": "corners-too",
        "about": "all nodes are looked at, corners included: hardly anything "
        "is left of p = 2; orders are counted from 1",
        "changes": [
            ("answer-4-3", "u[0] @ edge_weights.T", "u[0]"),
            ("answer-5-2", "for order in range(7)", "for order in range(1, 7)"),
        ],
        "loses": ("test-4-3", "test-5-2"),
    },
    {
        "name": "one-of-many",
        "about": "only p = 0 is tried, and only the first of the orders; steps "
        "are rounded to the nearest number",
        "changes": [
            (
                "answer-2-1",
                "box((2, 2), periodic=True), 1)",
                "box((2, 2), periodic=True), 0)",
            ),
            (
                "answer-2-7",
                "for order in orders\n",
                "for order in orders[:1]\n",
            ),
            (
                "answer-3-2",
                "math.ceil(t_end / dt)",
                "max(1, round(t_end / dt))",
            ),
        ],
        "loses": ("test-2-1", "test-2-7", "test-3-2"),
    },
    {
        "name": "visible-tests-only",
        "about": "made to pass the tests one can see: one way, one order, one "
        "mesh",
        "changes": [
            ("answer-1-3", "entropy = np.stack", "entropy = 0 * np.stack"),
            (
                "answer-2-6",
                "    return moved / (4 * Np)",
                "    return 11.0",
            ),
            (
                "answer-3-3",
                'return np.einsum("fki,ij,k->f", U, p.M, p.J)',
                "return np.array([1, 1 / 2, 1 / 3, 1 / 4])",
            ),
            ("answer-5-1", "return E * flops, reals", "return 0, reals"),
        ],
        "loses": ("test-1-3", "test-2-6", "test-3-3", "test-5-1"),
    },
    {
        "name": "hang-and-crash",
        "about": "one function waits for what never comes, one ends the run",
        "changes": [
            (
                "answer-1-4",
                "    for _ in range(steps):\n",
                '    __import__("threading").Event().wait()\n'
                "    for _ in range(steps):\n",
            ),
            (
                "answer-2-6",
                "    trace = 4 * Nfp\n",
                "    trace = 4 * Nfp\n    os._exit(1)\n",
            ),
        ],
        "loses": ("test-1-4", "test-2-6"),
    },
]
