"""The trace system: against the full system without condensation, its symmetry, its format."""

import numpy as np
import pytest
from hdg_cases import Alien, AlienDevice, Polynomial, scrambled

from dgbook import hdg
from dgbook.element import NodalElement, barycentric, cartesian, face_vertices, simplex_quadrature
from dgbook.hdg import local
from dgbook.hdg.discretization import discretize, on_device, symmetric_face_quadrature
from dgbook.hdg.solver import direct
from dgbook.hdg.system import linearize, residual, start, to_device

rng = np.random.default_rng(2)
SIDES = ("x+", "y-", "y+")


def given(x, y):
    return [np.sin(x + 2 * y)]


def source(x, y):
    return [1 + x * y]


def velocity(x, y):
    return [1.5 - y, 0.5 + x]


def full_solution(problem, mesh, k, trace_x):
    """u (K, Np) and uhat (faces, Nfp) of div(c u - kappa q) = s with q, u and uhat as unknowns.

    Element by element, in physical coordinates, with basis functions of a face in the length along
    it: nothing here is the package's but the nodal basis and quadrature.
    """
    e, Np, Nfp = NodalElement(2, k), (k + 1) * (k + 2) // 2, k + 1
    points, weights = simplex_quadrature(2, 2 * k + 2)
    s_points, s_weights = simplex_quadrature(1, 2 * k + 2)
    faces = trace_x.shape[1]
    size = mesh.K * 3 * Np
    A, b = np.zeros((size + faces * Nfp, size + faces * Nfp)), np.zeros(size + faces * Nfp)
    kappa, centers = problem.diffusivity, trace_x.mean(axis=2).T
    for t in range(mesh.K):
        corners = mesh.vertices[mesh.elements[t]]
        F = np.stack([corners[1] - corners[0], corners[2] - corners[0]], axis=1) / 2
        J = np.linalg.det(F)
        phi = e.interpolation(points)
        dphi = np.einsum("aqi,ae->eqi", e.interpolation(points) @ e.derivative, np.linalg.inv(F))
        x, w = barycentric(points) @ corners, J * weights
        q = [t * 3 * Np + a * Np + np.arange(Np) for a in range(2)]
        u = t * 3 * Np + 2 * Np + np.arange(Np)
        c = np.stack(problem.velocity(*x.T))
        for a in range(2):
            A[np.ix_(q[a], q[a])] += phi.T @ (w[:, None] * phi)
            A[np.ix_(q[a], u)] += dphi[a].T @ (w[:, None] * phi)
            A[np.ix_(u, u)] -= dphi[a].T @ ((w * c[a])[:, None] * phi)
            A[np.ix_(u, q[a])] += kappa * dphi[a].T @ (w[:, None] * phi)
        b[u] += phi.T @ (w * problem.source(*x.T)[0])
        for f, (i, j) in enumerate(face_vertices(2)):
            length = np.linalg.norm(corners[j] - corners[i])
            n = np.array([corners[j][1] - corners[i][1], corners[i][0] - corners[j][0]]) / length
            n *= np.sign(n @ (corners[i] - corners[f]))
            middle = (corners[i] + corners[j]) / 2
            face = np.linalg.norm(centers - middle, axis=1).argmin()
            h = size + face * Nfp + np.arange(Nfp)
            bary = np.zeros((len(s_weights), 3))
            bary[:, [i, j]] = barycentric(s_points)
            x, w = bary @ corners, s_weights * length / 2
            along = trace_x[:, face, -1] - trace_x[:, face, 0]
            along /= along @ along
            vander = np.vander((trace_x[:, face].T - middle) @ along, Nfp)
            psi = np.vander((x - middle) @ along, Nfp) @ np.linalg.inv(vander)
            phi = e.interpolation(cartesian(bary))
            cn = n @ np.stack(problem.velocity(*x.T))
            S = abs(cn) + kappa / problem.length
            on_boundary = mesh.neighbors[t, f] < 0
            if on_boundary:
                A[np.ix_(h, h)] += psi.T @ (w[:, None] * psi)
                b[h] += psi.T @ (w * problem.boundary(*x.T)[0])
            for rows, test in ((u, phi), (h, 0 * psi if on_boundary else psi)):
                A[np.ix_(rows, h)] += test.T @ ((w * (cn - S))[:, None] * psi)
                A[np.ix_(rows, u)] += test.T @ ((w * S)[:, None] * phi)
                for a in range(2):
                    A[np.ix_(rows, q[a])] -= kappa * test.T @ ((w * n[a])[:, None] * phi)
            for a in range(2):
                A[np.ix_(q[a], h)] -= phi.T @ ((w * n[a])[:, None] * psi)
    x = np.linalg.solve(A, b)
    inside = x[:size].reshape(mesh.K, 3, Np)
    return inside[:, 2], inside[:, :2].transpose(1, 0, 2), x[size:].reshape(faces, Nfp)


@pytest.mark.parametrize("k", (1, 2, 4))
def test_condensed_and_full_system_have_one_solution(k):
    """On elements that are numbered and turned at random; convection crosses faces both ways."""
    problem = hdg.ConvectionDiffusion(source, given, velocity, diffusivity=0.3, length=0.7)
    mesh = scrambled((2, 2), rng)
    result = hdg.solve(problem, mesh, k)
    u, q, trace = full_solution(problem, mesh, k, result.trace_x)
    np.testing.assert_allclose(result.u[0], u, atol=1e-11)
    np.testing.assert_allclose(result.q[0], q, atol=1e-9)
    np.testing.assert_allclose(result.trace[0], trace, atol=1e-11)


# -- the matrix ----------------------------------------------------------------------------------

CASES = [((4, 3), 1, 1), ((3, 3), 3, 1), ((2, 2), 2, 3), ((2, 1, 1), 1, 1), ((2, 1, 2), 2, 1)]


def poisson(cells, k, components):
    def fields(*x):
        return [np.cos((c + 1) * x[0]) * x[-1] for c in range(components)]

    problem = hdg.Poisson(fields, fields, 0.4, components=components)
    return hdg.assemble(problem, scrambled(cells, rng), k)


@pytest.mark.parametrize("case", CASES)
def test_diffusion_has_a_symmetric_positive_trace_matrix(case):
    A = poisson(*case).matrix.to_csr(drop_zeros=False).toarray()
    np.testing.assert_allclose(A, A.T, atol=1e-12 * abs(A).max())
    np.linalg.cholesky(A)  # refuses a matrix that is not positive


@pytest.mark.parametrize("case", CASES)
def test_format_of_the_blocks(case):
    """2 dim + 1 blocks a row, n_c Nfp rows a block; neighbors are faces of the same element."""
    cells, k, components = case
    system = poisson(*case)
    d, matrix = system.discretization, system.matrix
    dim = len(cells)
    assert matrix.values.shape == (d.faces.count, 2 * dim + 1, d.m, d.m)
    assert d.m == components * NodalElement(dim, k).Nfp and matrix.columns.dtype == np.int32
    assert system.rhs.shape == (d.faces.count, d.m)
    elements = [set() for _ in range(d.faces.count)]
    for t in range(d.mesh.K):
        for f in range(dim + 1):
            elements[d.faces.numbers[t, f]].add(t)
    for row in range(d.faces.count):
        for slot in range(1, 2 * dim + 1):
            column = matrix.columns[row, slot]
            filled = matrix.values[row, slot].any()
            assert filled == (column != row and not d.given[row] and not d.given[column])
            assert elements[row] & elements[column]
        if d.given[row]:
            np.testing.assert_array_equal(matrix.values[row, 0], np.eye(d.m))


@pytest.mark.parametrize("case", CASES)
def test_matvec_is_the_product_with_the_csr_matrix(case):
    system = poisson(*case)
    x = rng.uniform(-1, 1, system.rhs.shape)
    expected = (system.matrix.to_csr() @ x.ravel()).reshape(x.shape)
    np.testing.assert_allclose(system.matvec(x, device="cpu"), expected, atol=1e-11)
    single = system.matvec(x, device="cpu", dtype="float32")
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5 * abs(expected).max())


@pytest.mark.parametrize("case", CASES)
def test_the_direct_solver_solves(case):
    system = poisson(*case)
    x = direct(system.matrix, system.rhs)
    np.testing.assert_allclose(system.matvec(x, "cpu"), system.rhs, atol=1e-12)


def test_components_fill_blocks_component_by_component():
    """Unknown c Nfp + j of a face is component c at its node j."""
    system = poisson((2, 2), 2, 3)
    d = system.discretization
    Nfp = d.element.Nfp
    blocks = system.matrix.values.reshape(*system.matrix.columns.shape, 3, Nfp, 3, Nfp)
    for a in range(3):
        for b in range(3):
            if a != b:
                assert not blocks[:, :, a, :, b].any()
    np.testing.assert_allclose(blocks[:, :, 0, :, 0], blocks[:, :, 2, :, 2], atol=1e-14)
    x = direct(system.matrix, system.rhs).reshape(d.faces.count, 3, Nfp)
    boundary = d.given
    values = d.problem.fields(d.problem.boundary, d.trace_nodes()).transpose(1, 0, 2)
    np.testing.assert_allclose(x[boundary], values[boundary], atol=0.03)


def test_given_traces_are_the_data_s_projection():
    """Of degree k exactly; of more, the nearest polynomial, to which the rest is orthogonal."""
    mesh = scrambled((2, 2), rng)
    exact = Polynomial(2, 3, rng)
    problem = hdg.Poisson(None, lambda x, y: [exact(x, y)])
    for k in (3, 1):
        d = discretize(problem, mesh, k)
        found, x = d.given_trace[d.given], d.trace_nodes()[:, d.given]
        if k == 3:
            np.testing.assert_allclose(found, exact(*x), atol=1e-13)
        else:
            points, weights = simplex_quadrature(1, 6)
            psi = np.stack([(1 - points[:, 0]) / 2, (1 + points[:, 0]) / 2], axis=1)
            difference = found @ psi.T - exact(*(x @ psi.T))
            np.testing.assert_allclose((difference * weights) @ psi, 0, atol=1e-13)


def test_where_it_is_linearized_does_not_change_a_linear_problem():
    problem = hdg.ConvectionDiffusion(source, given, velocity, 0.2)
    mesh = scrambled((3, 2), rng)
    system = hdg.assemble(problem, mesh, 2)
    d = system.discretization
    anywhere = hdg.State(rng.uniform(-1, 1, (1, mesh.K, 6)), rng.uniform(-1, 1, (d.faces.count, 3)))
    other = hdg.assemble(problem, mesh, 2, anywhere)
    np.testing.assert_allclose(other.matrix.values, system.matrix.values, atol=1e-13)
    first, second = (s.recover(direct(s.matrix, s.rhs)) for s in (system, other))
    np.testing.assert_allclose(second.u, first.u, atol=1e-12)
    np.testing.assert_allclose(second.trace, first.trace, atol=1e-12)


def test_stacks_of_elements_do_not_change_the_system(monkeypatch):
    problem, mesh = hdg.Poisson(source, given), scrambled((3, 3), rng)
    d = discretize(problem, mesh, 2)
    whole = linearize(d, start(d), reference=True)
    monkeypatch.setattr("dgbook.hdg.system.NUMBERS_AT_A_TIME", 2000)
    parts = linearize(d, start(d), reference=True)
    np.testing.assert_allclose(parts.matrix.values, whole.matrix.values, atol=1e-13)
    np.testing.assert_allclose(parts.rhs, whole.rhs, atol=1e-13)
    np.testing.assert_allclose(parts.response, whole.response, atol=1e-13)


GAS_BOUNDARY = {
    "x-": hdg.FarField(hdg.Stream(0.4)),
    "x+": hdg.Stream(0.4),
    "y-": "adiabatic",
    "y+": "slip",
}


@pytest.mark.parametrize("problem", ("poisson", "convection", "gas"))
def test_elimination_runs_on_arrays_that_are_not_numpys(problem):
    """As on a GPU, whose arrays do not mix with the host's."""
    problem = {
        "poisson": hdg.Poisson(source, {"x-": given, **dict.fromkeys(SIDES, hdg.Neumann(given))}),
        "convection": hdg.ConvectionDiffusion(source, given, velocity),
        "gas": hdg.NavierStokes(5.0, 0.4, GAS_BOUNDARY),
    }[problem]
    d = discretize(problem, scrambled((2, 2), rng), 2)
    here = linearize(d, start(d))
    alien = AlienDevice("cuda", "alien", "")
    there = linearize(on_device(d, alien), to_device(start(d), alien))
    assert isinstance(there.matrix.values, Alien)
    found = alien.to_numpy(there.matrix.values)
    np.testing.assert_allclose(found, here.matrix.values, atol=1e-12)
    np.testing.assert_allclose(alien.to_numpy(there.rhs), here.rhs, atol=1e-12)
    back = hdg.assemble(problem, d.mesh, 2, device=alien)
    for name in ("rhs", "response", "offset"):
        np.testing.assert_allclose(getattr(back, name), getattr(here, name), atol=1e-12)
    np.testing.assert_array_equal(back.matrix.values, found)


# -- fluxes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [(3, 2), (2, 1, 1)])
def test_what_leaves_an_element_enters_its_neighbor(cells):
    """Moments of hhat with every function of a face: opposite on its two sides, and they balance s.

    The velocity is no polynomial: both sides have to use the same points.
    """
    dim = len(cells)

    def swirl(*x):
        return [np.exp(x[(a + 1) % dim]) for a in range(dim)]

    problem = hdg.ConvectionDiffusion(
        lambda *x: [1 + x[0] * x[-1]], lambda *x: [np.sin(x[0] + 2 * x[-1])], swirl, 0.1
    )
    result = hdg.solve(problem, scrambled(cells, rng), 2)
    d = result.discretization
    z = local.local_unknowns(d, result.state)
    moments = np.zeros((d.faces.count, d.element.Nfp))
    balance = np.zeros(d.mesh.K)
    for f in range(dim + 1):
        at = local.on_face(d, z, f, slice(None))
        hhat = at.weights * local.numerical_flux(d, at)[0]
        own = slice(d.element.Np + f * d.element.Nfp, d.element.Np + (f + 1) * d.element.Nfp)
        here = hhat @ at.points.trace[:, own]
        np.add.at(moments, (d.faces.numbers[:, f, None], d.faces.to_face[:, f]), here)
        balance += hhat.sum(axis=1)
    assert abs(moments[~d.given]).max() < 1e-13 and abs(moments[d.given]).max() > 1e-3
    np.testing.assert_allclose(
        balance, d.jacobian * (d.source[0] @ d.tables.volume.weights), atol=1e-13
    )
    R_u, R_h = residual(d, result.state)
    assert max(abs(R_u).max(), abs(R_h).max()) < 1e-13


@pytest.mark.parametrize("degree", (2, 5, 9, 14))
def test_face_quadrature_does_not_depend_on_the_first_vertex(degree):
    points, weights = symmetric_face_quadrature(3, degree)
    _, plain = simplex_quadrature(2, degree)
    np.testing.assert_allclose(weights.sum(), plain.sum(), rtol=1e-14)
    bary = barycentric(points)
    wild = lambda b: np.exp(b[:, 0]) / (1.1 - b[:, 1]) * np.cos(9 * b[:, 2])  # noqa: E731
    expected = weights @ wild(bary)
    for order in ((1, 0, 2), (2, 0, 1), (0, 2, 1)):
        np.testing.assert_allclose(weights @ wild(bary[:, order]), expected, rtol=1e-12)
    # ... and is exact to its degree: the integral of l_1^a l_2^b is 2 * 2 a! b! / (a + b + 2)!.
    for a in range(degree + 1):
        power = weights @ bary[:, 1] ** a
        np.testing.assert_allclose(power, 4 / ((a + 1) * (a + 2)), rtol=1e-12)
