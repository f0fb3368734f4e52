"""Wrong solutions of assignment 4: each must lose the parts it names, no more.

An entry changes the instructor's solution. `changes` holds triples: a cell,
what stands in its solution, and what stands there instead.
"""

WRONG = [
    {
        "name": "layers-of-equal-size",
        "about": "within a layer the degree is still N; padding points to "
        "control point 0",
        "changes": [
            ("answer-1-1", "        left -= a[d]\n", ""),
            ("answer-2-2", "if a[j] > 0 else n", "if a[j] > 0 else 0"),
        ],
        "loses": ("test-1-1", "test-2-2"),
    },
    {
        "name": "in-floats",
        "about": "right to rounding where it should be exact",
        "changes": [
            ("answer-1-2", "factorial(sum(a)) //", "factorial(sum(a)) /"),
            ("answer-1-3", "Fraction(a[j], n + 1)", "a[j] / (n + 1)"),
            (
                "answer-4-3",
                "bool((mass(3, N) @ matrix == want).all())",
                "np.allclose((mass(3, N) @ matrix - want).astype(float), 0)",
            ),
        ],
        "loses": ("test-1-2", "test-1-3", "test-4-3"),
    },
    {
        "name": "plain-means",
        "about": "each point raised is the mean of those below it; the "
        "multinomial of the values is forgotten",
        "changes": [
            (
                "answer-1-2",
                "factorial(sum(a)) // prod(factorial(n) for n in a)",
                "factorial(len(a)) // factorial(len(a))",
            ),
            (
                "answer-1-3",
                "Fraction(a[j], n + 1)",
                "Fraction(1, sum(i > 0 for i in a))",
            ),
        ],
        "loses": ("test-1-2", "test-1-3"),
    },
    {
        "name": "moved-the-other-way",
        "about": "columns a + e_j - e_m, which are the rows of a column",
        "changes": [
            (
                "answer-2-2",
                "moved[j] -= 1\n                moved[m] += 1",
                "moved[j] += 1\n                moved[m] -= 1",
            ),
            ("answer-2-2", "if a[j] > 0 else n", "if a[m] > 0 else n"),
        ],
        "loses": ("test-2-2",),
    },
    {
        "name": "raised-not-differentiated",
        "about": "the factor N of the derivative is forgotten, which is 1 in "
        "the visible test; a row is taken to have four entries, always",
        "changes": [
            ("answer-2-2", "np.array(rows)", "np.array(rows) // N"),
            ("answer-2-3", "4 * 4 * comb(N + 2, 3)", "4 * 4 * Np"),
        ],
        "loses": ("test-2-2", "test-2-3"),
    },
    {
        "name": "strictly-more",
        "about": "as many as asked for does not count as enough; one of the "
        "four columns is not loaded",
        "changes": [
            (
                "answer-2-3",
                "entries(N)[0] < times",
                "entries(N)[0] <= times",
            ),
            ("answer-3-1", "range(1, 4)", "range(1, 3)"),
        ],
        "loses": ("test-2-3", "test-3-1"),
    },
    {
        "name": "the-columns-of-D-0",
        "about": "m is not used; all threads load before any has stored",
        "changes": [
            ("answer-3-1", "4 * (m * Np + n)", "4 * n"),
            ("answer-3-2", "        cuda.syncthreads()\n", ""),
        ],
        "loses": ("test-3-1", "test-3-2"),
    },
    {
        "name": "threads-that-leave",
        "about": "threads without an element return before the barrier",
        "changes": [
            (
                "answer-3-2",
                "            s[e, n] = u[k * Np + n]\n"
                "        cuda.syncthreads()\n",
                "            s[e, n] = u[k * Np + n]\n"
                "        if k >= K:\n"
                "            return\n"
                "        cuda.syncthreads()\n",
            ),
        ],
        "loses": ("test-3-2",),
    },
    {
        "name": "half-in-double",
        "about": "right on the simulator, with double-precision arithmetic in "
        "a single-precision kernel",
        "changes": [
            ("answer-3-2", "half * (row(s, e, 1", "0.5 * (row(s, e, 1"),
        ],
        "loses": ("test-3-2",),
    },
    {
        "name": "all-layers-positive",
        "about": "the signs of the layers are lost, in matrix and sweep; the "
        "simplex has measure 1",
        "changes": [
            (
                "answer-4-1",
                "Fraction(2**d * powers",
                "Fraction(factorial(d) * powers",
            ),
            ("answer-4-2", "Fraction((-1) ** i * comb", "Fraction(comb"),
            ("answer-4-4", "total / -(i + 2)", "total / (i + 2)"),
        ],
        "loses": ("test-4-1", "test-4-2", "test-4-4"),
    },
    {
        "name": "reduced-from-the-top",
        "about": "L_0 reduces first and raises then",
        "changes": [
            (
                "answer-4-2",
                "raised = elevation(2, N)\n"
                "    L_0 = Fraction((N + 1) ** 2, 2) * (raised.T @ raised)",
                "raised = elevation(2, N - 1)\n"
                "    L_0 = Fraction((N + 1) ** 2, 2) * (raised @ raised.T)",
            ),
        ],
        "loses": ("test-4-2",),
    },
    {
        "name": "rescaled-by-each",
        "about": "right, with six products and divisions a control point",
        "changes": [
            (
                "answer-4-4",
                "above[:, j] * s[..., columns]",
                "above[:, j] * s[..., columns] / -(i + 2)",
            ),
            ("answer-4-4", "s = total / -(i + 2)", "s = total"),
        ],
        "loses": ("test-4-4",),
    },
    {
        "name": "undefined-is-no-race",
        "about": "reads of what nobody has written yet are taken for another "
        "mistake; D is believed to stand behind the loop",
        "changes": [
            ("answer-5-1", "(RaceError, UndefinedReadError)", "RaceError"),
            ("answer-5-3", 'site in "CD"', 'site in "C"'),
        ],
        "loses": ("test-5-1", "test-5-3"),
    },
    {
        "name": "tried-at-three-orders",
        "about": "order 4 is never tried; one of two sets is found",
        "changes": [
            ("answer-5-1", "range(1, 5)", "range(1, 4)"),
            ("answer-5-3", '{"ACE", "ABD"}', '{"ACE"}'),
        ],
        "loses": ("test-5-1", "test-5-3"),
    },
    {
        "name": "like-the-colleague",
        "about": "no barrier in the loop but before it",
        "changes": [
            (
                "answer-5-4",
                "        for degree in range(N - 1, -1, -1):\n"
                "            cuda.syncthreads()\n",
                "        cuda.syncthreads()\n"
                "        for degree in range(N - 1, -1, -1):\n",
            ),
        ],
        "loses": ("test-5-4",),
    },
    {
        "name": "barrier-in-the-branch",
        "about": "only threads with an element wait before gathering; the "
        "time of flops and that of bytes are added",
        "changes": [
            (
                "answer-5-4",
                "        cuda.syncthreads()\n        if inside:\n",
                "        if inside:\n            cuda.syncthreads()\n",
            ),
            (
                "answer-6-2",
                'max(flops / machine["flops"], moved / machine["bandwidth"])',
                'flops / machine["flops"] + moved / machine["bandwidth"]',
            ),
        ],
        "loses": ("test-5-4", "test-6-2"),
    },
    {
        "name": "two-a-slice",
        "about": "right, with twice the barriers that it takes; four scalars "
        "of a face are lifted",
        "changes": [
            (
                "answer-5-4",
                "            start += points\n",
                "            start += points\n            cuda.syncthreads()\n",
            ),
            ("answer-6-1", "2 * 4 * Nfp * Np", "2 * 4 * 4 * Nfp * Np"),
        ],
        "loses": ("test-5-4", "test-6-1"),
    },
    {
        "name": "own-traces-only",
        "about": "the neighbors' traces cost nothing; at a tie the nodal "
        "basis counts as slower",
        "changes": [
            ("answer-6-1", "(8 * Np + 16 * Nfp) * word", "8 * Np * word"),
            (
                "answer-6-2",
                'seconds("nodal", N) > seconds',
                'seconds("nodal", N) >= seconds',
            ),
        ],
        "loses": ("test-6-1", "test-6-2"),
    },
    {
        "name": "lift-subtracted",
        "about": "the lift has the sign of the volume; the error of each "
        "element counts the same, whatever its size",
        "changes": [
            (
                "answer-7-1",
                "lift(surface(u)) - volume",
                "-(lift(surface(u)) + volume)",
            ),
            (
                "answer-7-2",
                'np.einsum("k,fki,ij,fkj->", jacobian, e, M, e)',
                'np.einsum("fki,ij,fkj->", e, M, e) * jacobian.mean()',
            ),
        ],
        "loses": ("test-7-1", "test-7-2"),
    },
    {
        "name": "rows-for-columns",
        "about": "the gradient by the transposed metric; meshes are taken to "
        "be halved, each time",
        "changes": [
            (
                "answer-7-1",
                '"kid,ikn->dkn"',
                '"kdi,ikn->dkn"',
            ),
            ("answer-7-2", "/ np.diff(np.log(cells))", "/ np.log(2)"),
        ],
        "loses": ("test-7-1", "test-7-2"),
    },
    {
        "name": "visible-tests-only",
        "about": "made to pass the tests one can see",
        "changes": [
            (
                "answer-4-1",
                "    return M\n",
                "    return M if N < 2 else None\n",
            ),
            (
                "answer-4-3",
                "bool((mass(3, N) @ matrix == want).all())",
                "matrix[0, 0] == Fraction(3, 2)",
            ),
            ("answer-6-1", "    lower = comb(N + 2, 3)\n", "    lower = N\n"),
        ],
        "loses": ("test-4-1", "test-4-3", "test-6-1"),
    },
    {
        "name": "hang-and-crash",
        "about": "one function waits for what never comes, one ends the run",
        "changes": [
            (
                "answer-1-1",
                "    place, left = 0, sum(a)\n",
                '    __import__("threading").Event().wait()\n'
                "    place, left = 0, sum(a)\n",
            ),
            (
                "answer-1-2",
                "    value = factorial",
                "    os._exit(1)\n    value = factorial",
            ),
        ],
        "loses": ("test-1-1", "test-1-2"),
    },
]
