"""Exact solutions of Maxwell's equations, and the meshes on which they are tried."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh_tridiagonal

from dgbook.maxwell.exact import BoxMode, SlabMode, SphereMode, SquareMode
from dgbook.mesh import box, geometric_factors, read

MESHES = Path(__file__).parents[2] / "chapters" / "meshes"
RANDOM = np.random.default_rng(4)
BOXES = [BoxMode(), BoxMode(2, 1, 0, (1.0, 2.0, 0.5), (3.0, 1.0, 2.0)), SquareMode()]
SPHERES = [
    SphereMode(),
    SphereMode(2.0, 3, "TE", 2),
    SphereMode(1.0, 1, "TE"),
    SphereMode(1.3, 4, "TM", 3),
]
SLABS = [
    SlabMode(),
    SlabMode(3, (1.0, 4.0), (2.0, 1.0), 0.3, 2, (1.0, 1.0, 2.0)),
    SlabMode(1, (1.0, 9.0), (1.0, 1.0), 0.7, 4),  # evanescent in medium 1
    SlabMode(2, (1.0, 1.0)),  # Ey vanishes on the interface
]


def residual(mode, points, t, epsilon=1.0, mu=1.0, h=2e-3):
    """Largest errors of the two curl equations and of div E, by differences of order 8.

    Differences divide what the fields are rounded by, about 1e-13 in a sphere, by h.
    """
    d = [0, 0, 0, 0]
    for i in range(4):
        for j, w in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), 1):
            step = np.zeros(4)
            step[i] = j * h
            ahead = np.array(mode(*(points + step[:3, None]), t + step[3]))
            behind = np.array(mode(*(points - step[:3, None]), t - step[3]))
            d[i] = d[i] + w / h * (ahead - behind)
    dx, dy, dz, dt = d
    curls = [
        np.array([dy[v + 2] - dz[v + 1], dz[v] - dx[v + 2], dx[v + 1] - dy[v]]) for v in (0, 3)
    ]
    return max(
        np.abs(mu * dt[3:] + curls[0]).max(),
        np.abs(epsilon * dt[:3] - curls[1]).max(),
        np.abs(dx[0] + dy[1] + dz[2]).max(),
        np.abs(dx[3] + dy[4] + dz[5]).max(),
    )


@pytest.mark.parametrize("mode", BOXES + SPHERES, ids=str)
def test_modes_of_one_medium_satisfy_the_equations(mode):
    points = RANDOM.uniform(-0.6, 0.6, (3, 40))
    points[:, 0] = 0
    points[:2, 1] = 0
    assert residual(mode, points, 0.37) < 3e-9
    assert max(np.abs(v).max() for v in mode(*points, 0.37)) > 0.1


@pytest.mark.parametrize("mode", SLABS, ids=str)
def test_slab_modes_satisfy_the_equations_in_both_media(mode):
    for i, (lower, upper) in enumerate([(0, mode.interface), (mode.interface, mode.lengths[0])]):
        points = RANDOM.uniform(0, 1, (3, 40))
        points[0] = lower + 0.01 + (upper - lower - 0.02) * points[0]
        assert residual(mode, points, 0.37, mode.epsilon[i], mode.mu[i]) < 1e-8
        # The medium next door has other equations.
        j = 1 - i
        if mode.epsilon[i] != mode.epsilon[j]:
            assert residual(mode, points, 0.37, mode.epsilon[j], mode.mu[j]) > 0.1


def walls(mode):
    """Points on the six walls of a box and the axis to which each is perpendicular."""
    for axis in range(3):
        for end in (0, 1):
            share = RANDOM.uniform(0, 1, (3, 20))
            share[axis] = end
            origin = getattr(mode, "origin", (0.0, 0.0, 0.0))
            yield axis, np.array(origin)[:, None] + np.array(mode.lengths)[:, None] * share


@pytest.mark.parametrize("mode", BOXES + SLABS, ids=str)
def test_the_walls_of_boxes_are_perfect_conductors(mode):
    for axis, points in walls(mode):
        fields = mode(*points, 0.37)
        tangential = [fields[i] for i in range(3) if i != axis]
        assert np.abs([*tangential, fields[3 + axis]]).max() < 1e-11


@pytest.mark.parametrize("mode", SPHERES, ids=str)
def test_the_wall_of_a_sphere_is_a_perfect_conductor(mode):
    n = RANDOM.standard_normal((3, 50))
    n[:, 0] = (0, 0, 1)
    n /= np.linalg.norm(n, axis=0)
    fields = np.array(mode(*(mode.radius * n), 0.37))
    assert np.abs(np.cross(n, fields[:3], axis=0)).max() < 1e-11
    assert np.abs((n * fields[3:]).sum(axis=0)).max() < 1e-11
    assert np.abs(fields).max() > 0.1


def test_frequencies_of_spheres():
    """The known roots: TM of (x j_l)' and TE of j_l."""
    for kind, l, root, expected in (
        ("TM", 1, 1, 2.743707269992),
        ("TM", 2, 1, 3.870238580222),
        ("TM", 1, 2, 6.116764265),
        ("TE", 1, 1, 4.493409457909),
        ("TE", 1, 2, 7.725251836938),
    ):
        assert np.isclose(SphereMode(1.0, l, kind, root).omega, expected, rtol=1e-9)
        assert np.isclose(SphereMode(2.5, l, kind, root).omega, expected / 2.5, rtol=1e-9)
    assert np.allclose(SphereMode()(0.0, 0.0, 0.0, 0.0), [0, 0, 1, 0, 0, 0])


def test_the_square_mode_is_what_it_says():
    x, y, z = RANDOM.uniform(-1, 1, (3, 20))
    k, t = np.pi / 2, 0.4
    w = np.sqrt(2) * k
    mode = SquareMode()
    expected = [
        *(0 * x, 0 * x, np.cos(k * x) * np.cos(k * y) * np.cos(w * t)),
        k / w * np.cos(k * x) * np.sin(k * y) * np.sin(w * t),
        -k / w * np.sin(k * x) * np.cos(k * y) * np.sin(w * t),
        0 * x,
    ]
    assert np.allclose(mode(x, y, z, t), expected, atol=1e-14)
    assert np.isclose(mode.omega, w)


def test_the_frequency_of_the_papers_cavity():
    assert np.isclose(BoxMode(1, 2, 2).omega, 3 * np.pi)


@pytest.mark.parametrize("mode", SLABS, ids=str)
def test_slab_modes_continue_through_the_interface(mode):
    points = RANDOM.uniform(0, 1, (3, 20))
    before, after = (
        np.array(mode(mode.interface + side, *points[1:], 0.37)) for side in (-1e-12, 1e-12)
    )
    assert np.allclose(before[[1, 5]], after[[1, 5]], atol=1e-10)
    assert np.allclose(mode.mu[0] * before[3], mode.mu[1] * after[3], atol=1e-10)


@pytest.mark.parametrize(
    "media",
    [
        {},
        {"epsilon": (1.0, 1.0)},
        {"epsilon": (1.0, 9.0), "interface": 0.7, "q": 4},
        {"epsilon": (1.0, 4.0), "mu": (3.0, 1.0), "interface": 0.3},
        {"epsilon": (100.0, 1.0), "mu": (1.0, 5.0), "interface": 0.2},
    ],
)
def test_slab_frequencies_are_those_of_finite_elements(media):
    """None is left out: the eight lowest, against 4000 linear elements with lumped mass."""
    mode = SlabMode(**media)
    n = 4000
    first = (np.arange(n) + 0.5) / n < mode.interface
    e, m = np.where(first, *mode.epsilon), np.where(first, *mode.mu)

    def at_nodes(values):
        return (values[:-1] + values[1:]) / 2

    mass = at_nodes(e) / n
    diagonal = (2 * n * at_nodes(1 / m) + mode.kz**2 * at_nodes(1 / m) / n) / mass
    beside = -n / m[1:-1] / np.sqrt(mass[:-1] * mass[1:])
    squares = eigh_tridiagonal(diagonal, beside, True, select="i", select_range=(0, 7))
    ours = [SlabMode(mode=i, **media).omega for i in range(1, 9)]
    assert np.allclose(ours, np.sqrt(squares), rtol=1e-4)


def test_materials_are_set_by_the_centroid():
    mode, mesh = SlabMode(epsilon=(1.0, 4.0), mu=(2.0, 1.0)), box((4, 1, 1))
    left = mesh.vertices[mesh.elements, 0].mean(axis=1) < 0.5
    assert (mode.epsilon_of(mesh) == np.where(left, 1.0, 4.0)).all()
    assert (mode.mu_of(mesh) == np.where(left, 2.0, 1.0)).all()
    with pytest.raises(ValueError, match="cross the interface"):
        mode.epsilon_of(box((3, 1, 1)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: BoxMode(0, 1, 1), "m = 0"),
        (lambda: BoxMode(1, 1.5, 1), "n = 1.5"),
        (lambda: BoxMode(1, 1, -1), "p = -1"),
        (lambda: BoxMode(lengths=(1, 1)), "lengths"),
        (lambda: BoxMode(lengths=(1, 0, 1)), "lengths"),
        (lambda: BoxMode(origin=(0, 0, np.nan)), "origin"),
        (lambda: SphereMode(0.0), "radius"),
        (lambda: SphereMode(l=0), "l = 0"),
        (lambda: SphereMode(root=0), "root = 0"),
        (lambda: SphereMode(kind="TEM"), "kind = 'TEM'"),
        (lambda: SlabMode(0), "mode = 0"),
        (lambda: SlabMode(q=0), "q = 0"),
        (lambda: SlabMode(interface=1.0), "interface = 1.0"),
        (lambda: SlabMode(epsilon=(1.0, -2.0)), "epsilon"),
        (lambda: SlabMode(mu=2.0), "mu"),
    ],
)
def test_bad_modes_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# ----------------------------------------------------------------------------------------- meshes


@pytest.mark.parametrize("K", [475, 728, 1187, 1844])
def test_cavity_meshes_are_those_of_the_paper_in_number(K):
    mesh = read(MESHES / f"cavity_{K}.msh")
    g = geometric_factors(mesh)
    assert abs(mesh.K / K - 1) < 0.006
    assert set(mesh.boundary) == {"wall"}
    assert np.isclose(g.jacobian.sum() * 4 / 3, 1, rtol=1e-12)
    # No slivers, and none of the mesh's elements is the copy of another.
    assert g.altitude.min() * K ** (1 / 3) > 0.55
    assert len(np.unique(g.jacobian.round(12))) > 0.8 * mesh.K


@pytest.mark.parametrize("name", ["ball", "ball_coarse", "sphere_shell"])
def test_round_meshes_have_the_volume_of_what_they_stand_for(name):
    mesh = read(MESHES / f"{name}.msh")
    wall = "sphere" if name == "sphere_shell" else "wall"
    assert set(mesh.boundary) == {wall, "farfield"} - ({"farfield"} if wall == "wall" else set())
    g = geometric_factors(mesh)
    k, f = mesh.faces(wall).T
    # Divergence theorem: |x.n| is the distance of a facet's plane.
    anchor = mesh.vertices[mesh.elements[k, (f + 1) % 4]]
    volume = np.abs((anchor * g.normals[k, f]).sum(axis=1)) @ (2 * g.face_jacobian[k, f]) / 3
    assert np.isclose(volume, 4 / 3 * np.pi, rtol=1e-12)
    radius = np.linalg.norm(anchor, axis=1)
    assert np.ptp(radius) < 1e-6
    assert 1 < radius.mean() < (1.03 if name == "ball_coarse" else 1.012)


def test_the_jet_is_as_large_as_the_papers():
    mesh = read(MESHES / "jet.msh.gz")
    assert 78_000 <= mesh.K <= 80_000  # 78,745
    assert set(mesh.boundary) == {"body", "farfield"}
    assert geometric_factors(mesh).altitude.min() > 0.003
