"""Wrong kernels for processor cores: the right ones but for one mistake in their texts."""

MISTAKES = {
    "maxwell": {
        "the jump is a sum": ("E0, H0 = E0 - load(u, mine)", "E0, H0 = E0 + load(u, mine)"),
        "the upwinding of H turns round": ("store(flux, to, wE * Ea - wH * Hb)",
                                           "store(flux, to, wE * Ea + wH * Hb)"),
        "a derivative in the wrong direction": ("j, k = (i + 1) % 3, (i + 2) % 3",
                                                "j, k = (i + 2) % 3, (i + 1) % 3"),
        "the lift is that of the first face": ("lifts + f * Np * Nfp, work, flux",
                                               "lifts + 0 * Np * Nfp, work, flux"),
        "the boundary data are forgotten": ("E2 = mE * E2 + out * gather",
                                            "E2 = mE * E2 + 0 * gather"),
        "a wall keeps its sign": ("H1 = mH * H1", "H1 = mE * H1"),
        "matter is forgotten": ("across * S1 - mu * H1", "across * S1 - H1"),
        "the metric is transposed": ("x1 * X + y1 * Y + z1 * Z", "x1 * X + x2 * Y + x3 * Z"),
    },
    "acoustics": {
        "the jump is a sum": ("p, X = p - load(u, mine)", "p, X = p + load(u, mine)"),
        "the central flux has one part": ("wc * normal - wd * p", "wc * normal"),
        "the divergence misses a direction": ("first_two + load(work, at + 6 * field)",
                                                  "first_two"),
        "the neighbor's nodes are mine": ("p, X = gather(u, 0, places, here)",
                                          "p, X = load(u, mine)"),
        "density in place of its reciprocal": ("[rst_xyz, kappa, 1 / rho]",
                                               "[rst_xyz, kappa, rho]"),
    },
    "linear": {
        "the mirror is forgotten": ("across = across + mirror * load", "across = across + load"),
        "the flux matrix is a number": ("load(faces, F + d * L)", "load(faces, F)"),
        "the metric is transposed": ("(i * dim + d) * L", "(d * dim + i) * L"),
    },
    "euler": {
        "the neighbor runs the same way": ("[:, :, ::-1]", "[:, :, :]"),
        "a wall lets the flow through": ("w1, w2 = w1 - normal * nx, w2 - normal * ny", "pass"),
        "the flux leaves with the wrong sign": ("-operator.face_scale", "operator.face_scale"),
        "the pressure acts along r only": ("store(work, s + both, w1 * vs + p * sx)",
                                           "store(work, s + both, w1 * vs)"),
    },
}  # fmt: skip
"""By family and by what is wrong: what stands once in the text, and what is put in its place."""
