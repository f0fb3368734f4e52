"""Wrong solutions of assignment 6: each must lose the parts it names, no more.

An entry changes the instructor's solution. `changes` holds triples: a cell,
what stands in its solution, and what stands there instead.
"""

WRONG = [
    {
        "name": "reach-one",
        "about": "right for three-point stencils, the reach is forgotten",
        "changes": [
            ("answer-1-1", "return r * k, B - r * k", "return k, B - k"),
            ("answer-1-2", "r * k, r * k + 2 * r", "r * k, r * k + 2"),
        ],
        "loses": ("test-1-1", "test-1-2"),
    },
    {
        "name": "base-counted",
        "about": "what was given counts as computed; an edge is as wide as the "
        "reach",
        "changes": [
            (
                "answer-1-1",
                "return (h - 1) * B // 2",
                "return (h + 1) * B // 2",
            ),
            (
                "answer-1-2",
                "return B - r * k - 2 * r, B - r * k",
                "return B - r * k - r, B - r * k",
            ),
        ],
        "loses": ("test-1-1", "test-1-2"),
    },
    {
        "name": "doubled-ends",
        "about": "what is behind an end is the end itself",
        "changes": [
            ("answer-2-1", "u[1:2], u[:-1]", "u[:1], u[:-1]"),
            ("answer-2-1", "u[1:], u[-2:-1]", "u[1:], u[-1:]"),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "another-order",
        "about": "the same sum in another order: right to rounding, not to the "
        "last bit",
        "changes": [
            (
                "answer-2-1",
                "u + Fo * ((west - u) + (east - u))",
                "u + Fo * (west - 2 * u + east)",
            ),
        ],
        "loses": ("test-2-1",),
    },
    {
        "name": "time-asked-for",
        "about": "compared with the solution at t_end, where no step ends",
        "changes": [("answer-2-2", "** 2) * steps * dt)", "** 2) * t_end)")],
        "loses": ("test-2-2",),
    },
    {
        "name": "halved-each-time",
        "about": "the spacing is taken to be halved from each size to the next",
        "changes": [
            (
                "answer-2-2",
                "np.diff(np.log(errors)) / np.diff(np.log(spacing))",
                "-np.diff(np.log2(errors))",
            ),
        ],
        "loses": ("test-2-2",),
    },
    {
        "name": "no-barrier-after-loading",
        "about": "level 1 reads what may not have come; a verdict is found "
        "with one block, which has a single level",
        "changes": [
            (
                "answer-3-1",
                "        cuda.syncthreads()\n        at = t + 1\n",
                "        at = t + 1\n",
            ),
            ("answer-3-2", "np.zeros(32), 16,", "np.zeros(4), 4,"),
        ],
        "loses": ("test-3-1", "test-3-2"),
    },
    {
        "name": "barrier-in-the-branch",
        "about": "only threads with a point wait; D is believed to race, for "
        "it has more barriers than it needs",
        "changes": [
            (
                "answer-3-1",
                "                )\n            cuda.syncthreads()\n",
                "                )\n                cuda.syncthreads()\n",
            ),
            ("answer-3-2", '"D": "runs"', '"D": "race"'),
        ],
        "loses": ("test-3-1", "test-3-2"),
    },
    {
        "name": "narrow-edges",
        "about": "the right edge is one point off; what is divergent is taken "
        "for a race",
        "changes": [
            (
                "answer-3-1",
                "rows[k % 2, B - k - 2 + i + 1]",
                "rows[k % 2, B - k - 2 + i]",
            ),
            ("answer-3-2", 'return "divergent"', 'return "race"'),
        ],
        "loses": ("test-3-1", "test-3-2"),
    },
    {
        "name": "one-mirror",
        "about": "a mirror at the first point, none at the last",
        "changes": [
            ("answer-4-1", "at + 1 if g < n - 1 else at - 1", "at + 1"),
        ],
        "loses": ("test-4-1",),
    },
    {
        "name": "never-around",
        "about": "the points of the split diamond's left half are negative, "
        "and nothing comes before block 0",
        "changes": [
            ("answer-4-1", "return g if g >= 0 else g + n", "return g"),
            (
                "answer-4-2",
                "        if before < 0:\n            before = blocks - 1\n",
                "",
            ),
        ],
        "loses": ("test-4-1", "test-4-2"),
    },
    {
        "name": "a-ring",
        "about": "no mirrors at all: heat flows from one end to the other",
        "changes": [
            ("answer-4-1", "at - 1 if g > 0 else at + 1", "at - 1"),
            ("answer-4-1", "at + 1 if g < n - 1 else at - 1", "at + 1"),
        ],
        "loses": ("test-4-1",),
    },
    {
        "name": "edges-exchanged",
        "about": "seeded by those two edges that lie outside",
        "changes": [
            ("answer-4-2", "right[before, k, i]", "left[before, k, i]"),
            ("answer-4-2", "= left[after, k, i]", "= right[after, k, i]"),
        ],
        "loses": ("test-4-2",),
    },
    {
        "name": "flanks-do-not-open",
        "about": "edges stand as they stood in their own triangles",
        "changes": [
            ("answer-4-2", "B // 2 - 1 - k + i]", "1 + k + i]"),
        ],
        "loses": ("test-4-2",),
    },
    {
        "name": "wrong-parity",
        "about": "a level is computed from its own row, not from the other",
        "changes": [("answer-4-3", "old = (k + 1) % 2", "old = k % 2")],
        "loses": ("test-4-3",),
    },
    {
        "name": "edges-too-early",
        "about": "no barrier between the last level and the edges; the "
        "down-triangle has none at all after seeding",
        "changes": [
            (
                "answer-4-3",
                "                )\n            cuda.syncthreads()\n",
                "                )\n            if k < B - 1:\n"
                "                cuda.syncthreads()\n",
            ),
            (
                "answer-5-1",
                "            cuda.syncthreads()\n            if B",
                "            if k > 1:\n                cuda.syncthreads()\n"
                "            if B",
            ),
        ],
        "loses": ("test-4-3", "test-5-1"),
    },
    {
        "name": "stops-at-the-widest",
        "about": "the diamond's level h is computed once too narrow; the "
        "down-triangle returns level h - 1",
        "changes": [
            ("answer-4-3", "half = min(k, B - k)", "half = min(k, B - k - 1)"),
            ("answer-5-1", "rows[0, at]  # h is even", "rows[1, at]"),
        ],
        "loses": ("test-4-3", "test-5-1"),
    },
    {
        "name": "block-by-block",
        "about": "the shifted down-triangle's temperatures are stored as if it "
        "were not; results that nobody has are given for the next time below",
        "changes": [
            ("answer-5-1", "u[g] = rows", "u[b * B + t] = rows"),
            ("answer-5-2", "if steps < 1 or steps % h:", "if steps < h:"),
        ],
        "loses": ("test-5-1", "test-5-2"),
    },
    {
        "name": "never-shifts-back",
        "about": "all diamonds and the down-triangle are shifted",
        "changes": [("answer-5-2", "        shifted = not shifted\n", "")],
        "loses": ("test-5-2",),
    },
    {
        "name": "edges-in-double",
        "about": "right, but edges are in double precision whatever u is; what "
        "nobody has written yet is not taken for a race",
        "changes": [
            (
                "answer-3-2",
                "except (RaceError, UndefinedReadError) as error:",
                "except RaceError as error:",
            ),
            ("answer-5-2", "blocks, h, 2), u.dtype)", "blocks, h, 2))"),
        ],
        "loses": ("test-3-2", "test-5-2"),
    },
    {
        "name": "three-reads-a-point",
        "about": "Classic fetches each value for three threads; the bytes of a "
        "cycle are not shared among its steps",
        "changes": [
            ("answer-6-1", "h * 2 * n * word, 0.0", "h * 4 * n * word, 0.0"),
            (
                "answer-6-2",
                '(machine["launch"] + levels + moved) / h',
                '(machine["launch"] + levels) / h + moved',
            ),
        ],
        "loses": ("test-6-1", "test-6-2"),
    },
    {
        "name": "half-idle",
        "about": "half of the turns are idle, whatever B; parts of a wave cost "
        "parts of its time",
        "changes": [
            ("answer-6-1", "1 - h / (2 * h - 1)", "0.5"),
            (
                "answer-6-2",
                'h, waves = B // 2, -(-n // machine["threads"])',
                'h, waves = B // 2, n / machine["threads"]',
            ),
        ],
        "loses": ("test-6-1", "test-6-2"),
    },
    {
        "name": "from-the-predictor",
        "about": "the second half of a step starts from the predictor",
        "changes": [
            (
                "answer-7-1",
                "= rows[0, at] + weight",
                "= rows[old, at] + weight",
            ),
        ],
        "loses": ("test-7-1",),
    },
    {
        "name": "weights-in-double",
        "about": "right on the simulator, with double-precision arithmetic in "
        "a single-precision kernel",
        "changes": [
            ("answer-7-1", "real(dt / 2), real(dt)", "dt / 2, real(dt)"),
        ],
        "loses": ("test-7-1",),
    },
    {
        "name": "two-cells-a-row",
        "about": "rows narrow as those of a three-point stencil do",
        "changes": [
            (
                "answer-7-1",
                "half = 2 * min(level, B // 2 - level)",
                "half = min(2 * level, B // 2 + 1 - level)",
            ),
        ],
        "loses": ("test-7-1",),
    },
    {
        "name": "visible-tests-only",
        "about": "made to pass the tests one can see: one block, one step, "
        "one order",
        "changes": [
            (
                "answer-1-1",
                "return (h - 1) * B // 2, h * B",
                "return 12, 32",
            ),
            ("answer-2-1", "    for _ in range(steps):\n", "    if True:\n"),
            (
                "answer-2-2",
                "return np.diff(np.log(errors)) / np.diff(np.log(spacing))",
                "return np.full(len(sizes) - 1, 2.0)",
            ),
            ("answer-6-1", "return 1, 2 * h, 4 * n", "return 1, h, 2 * n"),
        ],
        "loses": ("test-1-1", "test-2-1", "test-2-2", "test-6-1"),
    },
    {
        "name": "hang-and-crash",
        "about": "one function waits for what never comes, one ends the run",
        "changes": [
            (
                "answer-5-2",
                "    shifted = True\n",
                "    shifted = True\n"
                '    __import__("threading").Event().wait()\n',
            ),
            (
                "answer-6-2",
                '    if scheme == "classic":\n',
                '    os._exit(1)\n    if scheme == "classic":\n',
            ),
        ],
        "loses": ("test-5-2", "test-6-2"),
    },
]
