"""Generate the unstructured meshes that the chapters and the tests read, with Gmsh.

    pip install gmsh==4.15.2
    python tools/make_meshes.py              # all of them
    python tools/make_meshes.py jet ball     # some
    python tools/make_meshes.py wire_fine    # for measurements, into _build/meshes: not kept

The others are committed, so that nobody needs Gmsh to read the book. One thread, fixed seeds, fixed
algorithms and a fresh start of Gmsh for every mesh make the output reproducible with the same
version of Gmsh.
"""

import gzip
import sys
from functools import partial
from pathlib import Path

import gmsh
import numpy as np

ROOT = Path(__file__).parents[1]
CHAPTER_MESHES = ROOT / "chapters" / "meshes"
TEST_DATA = ROOT / "tests" / "data"


def start() -> None:
    """A fresh model with the options that make the result reproducible."""
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.clear()
    for option, value in {
        "General.NumThreads": 1,
        "Mesh.RandomSeed": 1,
        "Mesh.Algorithm": 6,  # frontal Delaunay in the plane and on surfaces
        "Mesh.Algorithm3D": 1,  # Delaunay in space
        "Mesh.Optimize": 1,
        "Mesh.MeshSizeExtendFromBoundary": 0,
        "Mesh.MeshSizeFromPoints": 0,
        "Mesh.MeshSizeFromCurvature": 0,
        "Mesh.MeshSizeMin": 0,
        "Mesh.MeshSizeMax": 1e22,
    }.items():
        gmsh.option.setNumber(option, value)


def save(path: Path, version: float = 4.1, binary: bool = False) -> None:
    """Write the current mesh to a file."""
    gmsh.option.setNumber("Mesh.MshFileVersion", version)
    gmsh.option.setNumber("Mesh.Binary", int(binary))
    path.parent.mkdir(parents=True, exist_ok=True)
    gmsh.write(str(path.with_suffix("") if path.suffix == ".gz" else path))
    if path.suffix == ".gz":
        plain = path.with_suffix("")
        path.write_bytes(gzip.compress(plain.read_bytes(), 9, mtime=0))
        plain.unlink()
    counts = [len(tags) for tags in gmsh.model.mesh.getElements(gmsh.model.getDimension())[1]]
    print(f"{path.relative_to(ROOT)}: {sum(counts)} elements, {path.stat().st_size / 1e3:.0f} kB")


def size_from_distance(surfaces, curves, near: float, far: float, reach: float) -> None:
    """Element size growing linearly with the distance from some entities."""
    field = gmsh.model.mesh.field
    distance = field.add("Distance")
    field.setNumbers(distance, "SurfacesList", surfaces)
    field.setNumbers(distance, "CurvesList", curves)
    field.setNumber(distance, "Sampling", 60)
    threshold = field.add("Threshold")
    for name, value in {
        "InField": distance,
        "SizeMin": near,
        "SizeMax": far,
        "DistMin": 0,
        "DistMax": reach,
    }.items():
        field.setNumber(threshold, name, value)
    field.setAsBackgroundMesh(threshold)


def aeroplane() -> None:
    """The mesh of the chapters' figures and small examples; see ``aeroplane_in_air``."""
    aeroplane_in_air(near=0.085, far=0.85)
    save(CHAPTER_MESHES / "aeroplane.msh")


def jet() -> None:
    """The same aeroplane in as many elements as klockner2009 has in its Figure 12: 78,745."""
    aeroplane_in_air(near=0.0291, far=0.41)
    save(CHAPTER_MESHES / "jet.msh.gz", binary=True)


def aeroplane_in_air(near: float, far: float) -> None:
    """An aeroplane of ellipsoids (fuselage, wing, tailplane, fin) in a box of air.

    Nose in direction -x, one unit of length is half the fuselage. Boundaries "body" and
    "farfield", region "fluid". Elements have the size `near` at the body and `far` a fuselage away.
    """
    start()
    occ = gmsh.model.occ
    # Thin parts are made of two halves, and fusing keeps the rim between them as a curve of the
    # geometry: the mesh follows the edges of wing, tailplane and fin.
    gmsh.option.setNumber("Geometry.OCCUnionUnify", 0)
    fuselage = [(3, occ.addSphere(0, 0, 0, 1))]
    occ.rotate(fuselage, 0, 0, 0, 0, 1, 0, np.pi / 2)  # the poles of the sphere to nose and tail
    occ.dilate(fuselage, 0, 0, 0, 1.0, 0.18, 0.18)
    thin = []
    for x, z, a, b, c, upright in (
        (-0.15, -0.04, 0.30, 1.10, 0.075, False),
        (0.73, 0.04, 0.18, 0.45, 0.06, False),
        (0.75, 0.16, 0.20, 0.30, 0.06, True),
    ):
        for bottom, top in ((-np.pi / 2, 0.0), (0.0, np.pi / 2)):
            half = [(3, occ.addSphere(0, 0, 0, 1, angle1=bottom, angle2=top))]
            occ.dilate(half, 0, 0, 0, a, b, c)
            if upright:
                occ.rotate(half, 0, 0, 0, 1, 0, 0, np.pi / 2)
            occ.translate(half, x, 0, z)
            thin += half
    body, _ = occ.fuse(fuselage, thin)
    box = occ.addBox(-2.0, -2.0, -1.4, 4.4, 4.0, 2.8)
    fluid, _ = occ.cut([(3, box)], body)
    occ.synchronize()
    surfaces = [tag for _, tag in gmsh.model.getBoundary(fluid, oriented=False)]
    outer = [
        tag
        for tag in surfaces
        if np.ptp(np.reshape(gmsh.model.getBoundingBox(2, tag), (2, 3)), axis=0).min() < 1e-5
    ]
    inner = [tag for tag in surfaces if tag not in outer]
    gmsh.model.addPhysicalGroup(2, inner, name="body")
    gmsh.model.addPhysicalGroup(2, outer, name="farfield")
    gmsh.model.addPhysicalGroup(3, [tag for _, tag in fluid], name="fluid")
    size_from_distance(inner, [], near=near, far=far, reach=1.6)
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.optimize("Netgen")


# Name, size, and Gmsh's algorithms in the plane (1 MeshAdapt, 5 Delaunay, 6 frontal) and in space
# (1 Delaunay, 4 frontal). Of many combinations these have the numbers of elements that klockner2009
# gives in its Table 2, to 0.5 per cent, and elements of like quality: interpolation of a smooth
# function gets better from mesh to mesh at the rate that their sizes promise.
CAVITIES = {
    "cavity_475": (0.269, 5, 4),
    "cavity_728": (0.2265, 1, 1),
    "cavity_1187": (0.1872, 6, 1),
    "cavity_1844": (0.15217, 1, 4),
}


def cavity(name: str) -> None:
    """The unit cube in unstructured tetrahedra. Boundary "wall", region "vacuum"."""
    start()
    size, plane, space = CAVITIES[name]
    gmsh.option.setNumber("Mesh.Algorithm", plane)
    gmsh.option.setNumber("Mesh.Algorithm3D", space)
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(2, [t for _, t in gmsh.model.getEntities(2)], name="wall")
    gmsh.model.addPhysicalGroup(3, [1], name="vacuum")
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.optimize("Netgen")
    save(CHAPTER_MESHES / f"{name}.msh", binary=True)


def scale_to_ball(surface: int) -> None:
    """Stretch the mesh so that the polyhedron of a surface about 0 has the unit ball's volume.

    Vertices on the sphere put a polyhedron into it that is too small, and with it everything that
    depends on its size: frequencies, cross-sections. With the right volume these are wrong by less
    than the facets are.
    """
    tags, xyz, _ = gmsh.model.mesh.getNodes()
    row = dict(zip(tags.tolist(), xyz.reshape(-1, 3), strict=True))
    triangles = gmsh.model.mesh.getElements(2, surface)[2][0]
    corners = np.array([row[t] for t in triangles.tolist()]).reshape(-1, 3, 3)
    volume = np.abs(np.linalg.det(corners)).sum() / 6
    s = (4 * np.pi / 3 / volume) ** (1 / 3)
    gmsh.model.mesh.affineTransform([s, 0, 0, 0, 0, s, 0, 0, 0, 0, s, 0])


def ball(name: str, size: float) -> None:
    """A ball of radius 1, about 0. Boundary "wall", region "vacuum"."""
    start()
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.model.occ.addSphere(0, 0, 0, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(2, [1], name="wall")
    gmsh.model.addPhysicalGroup(3, [1], name="vacuum")
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.optimize("Netgen")
    scale_to_ball(1)
    save(CHAPTER_MESHES / f"{name}.msh", binary=True)


# Element size at the sphere and at the far boundary, radius of that boundary.
SHELLS = {
    "sphere_shell.msh": (0.22, 0.7, 3.5),
    "sphere_shell_far.msh.gz": (0.22, 0.9, 6.0),
    "sphere_shell_fine.msh.gz": (0.11, 0.6, 3.5),
}


def sphere_shell(name: str) -> None:
    """Between a sphere of radius 1 and a larger one. Boundaries "sphere" and "farfield"."""
    near, far, boundary = SHELLS[name]
    start()
    occ = gmsh.model.occ
    occ.cut([(3, occ.addSphere(0, 0, 0, boundary))], [(3, occ.addSphere(0, 0, 0, 1))])
    occ.synchronize()
    radius = {t: gmsh.model.getBoundingBox(2, t)[3] for _, t in gmsh.model.getEntities(2)}
    outer, inner = sorted(radius, key=radius.get, reverse=True)
    gmsh.model.addPhysicalGroup(2, [inner], name="sphere")
    gmsh.model.addPhysicalGroup(2, [outer], name="farfield")
    gmsh.model.addPhysicalGroup(3, [t for _, t in gmsh.model.getEntities(3)], name="vacuum")
    size_from_distance([inner], [], near=near, far=far, reach=boundary - 1.5)
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.optimize("Netgen")
    scale_to_ball(inner)
    save(CHAPTER_MESHES / name, binary=True)


# Name, element size at the wire and far from it.
WIRES = {"wire": (0.012, 0.45), "wire_fine": (0.0019, 0.0955)}


def wire(name: str) -> None:
    """A thin wire in a cube of air: elements of very different sizes, for local time steps.

    The wire has the radius 0.01 and the length 1, the cube the edge 2. Boundaries "wire" and
    "farfield", region "air". Both are for measurements and not kept. The fine one should have
    about a million elements: with sizes 1.12 times as large it had 715,720.
    """
    start()
    occ = gmsh.model.occ
    box = occ.addBox(-1, -1, -1, 2, 2, 2)
    occ.cut([(3, box)], [(3, occ.addCylinder(0, 0, -0.5, 0, 0, 1, 0.01))])
    occ.synchronize()
    tags = [tag for _, tag in gmsh.model.getEntities(2)]
    outer = [tag for tag in tags if np.abs(gmsh.model.getBoundingBox(2, tag)).max() > 0.9]
    inner = [tag for tag in tags if tag not in outer]
    gmsh.model.addPhysicalGroup(2, inner, name="wire")
    gmsh.model.addPhysicalGroup(2, outer, name="farfield")
    gmsh.model.addPhysicalGroup(3, [t for _, t in gmsh.model.getEntities(3)], name="air")
    near, far = WIRES[name]
    size_from_distance(inner, [], near=near, far=far, reach=0.9)
    gmsh.model.mesh.generate(3)
    gmsh.model.mesh.optimize("Netgen")
    save(ROOT / "_build" / "meshes" / f"{name}.msh.gz", binary=True)


def airfoil() -> None:
    """A NACA 0012 airfoil of chord 1 at zero incidence in a rectangle of air.

    Thickness by the usual polynomial, whose last coefficient -0.1036 closes the trailing edge
    (Jacobs, Ward and Pinkerton 1933 have -0.1015, which leaves it open). Boundaries "airfoil" and
    "farfield", region "fluid".
    """
    start()
    geo = gmsh.model.geo
    x = (1 - np.cos(np.linspace(0, np.pi, 41))) / 2
    y = 0.6 * (0.2969 * np.sqrt(x) - 0.1260 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    nose, tail = geo.addPoint(0, 0, 0), geo.addPoint(1, 0, 0)
    profile = []
    for side in (y, -y):
        between = [geo.addPoint(a, b, 0) for a, b in zip(x[1:-1], side[1:-1], strict=True)]
        profile.append(geo.addSpline([nose, *between, tail]))
    corners = [geo.addPoint(a, b, 0) for a, b in ((-2, -2), (3, -2), (3, 2), (-2, 2))]
    outer = [geo.addLine(corners[i], corners[(i + 1) % 4]) for i in range(4)]
    hole = geo.addCurveLoop([profile[1], -profile[0]])
    surface = geo.addPlaneSurface([geo.addCurveLoop(outer), hole])
    geo.synchronize()
    gmsh.model.addPhysicalGroup(1, profile, name="airfoil")
    gmsh.model.addPhysicalGroup(1, outer, name="farfield")
    gmsh.model.addPhysicalGroup(2, [surface], name="fluid")
    size_from_distance([], profile, near=0.04, far=0.4, reach=1.6)
    gmsh.model.mesh.generate(2)
    save(CHAPTER_MESHES / "airfoil.msh")


def vortex() -> None:
    """The square [-5, 5]^2, unstructured.

    Boundaries "x-", "x+", "y-", "y+", as of ``dgbook.mesh.box``; opposite ones match, so that they
    can be joined.
    """
    start()
    geo = gmsh.model.geo
    corners = [geo.addPoint(a, b, 0) for a, b in ((-5, -5), (5, -5), (5, 5), (-5, 5))]
    sides = [geo.addLine(corners[i], corners[(i + 1) % 4]) for i in range(4)]
    surface = geo.addPlaneSurface([geo.addCurveLoop(sides)])
    for side in sides:
        geo.mesh.setTransfiniteCurve(side, 21)
    geo.synchronize()
    for side, name in zip(sides, ("y-", "x+", "y+", "x-"), strict=True):
        gmsh.model.addPhysicalGroup(1, [side], name=name)
    gmsh.model.addPhysicalGroup(2, [surface], name="fluid")
    gmsh.option.setNumber("Mesh.MeshSizeExtendFromBoundary", 1)
    gmsh.model.mesh.generate(2)
    # Gmsh divides a line to 1e-11: joined edges would differ in length, and lose mass.
    tags, points, _ = gmsh.model.mesh.getNodes(1)
    for tag, point in zip(tags, points.reshape(-1, 3), strict=True):
        gmsh.model.mesh.setNode(tag, np.round(point, 6), [])
    save(CHAPTER_MESHES / "vortex.msh")


def cylinder() -> None:
    """The upper half of the plane around a cylinder of diameter 1, out to a radius of 40.

    A flow that is its own mirror image needs no other half. The cylinder is half a polygon of 32
    edges; elements grow with the radius, slower behind the body. Boundaries "cylinder", "axis" (the
    line y = 0 before and behind it) and "farfield", region "fluid".
    """
    start()
    geo, field = gmsh.model.geo, gmsh.model.mesh.field
    center, top = geo.addPoint(0, 0, 0), geo.addPoint(0, 40, 0)
    west, front, rear, east = (geo.addPoint(x, 0, 0) for x in (-40, -0.5, 0.5, 40))
    body = geo.addCircleArc(rear, center, front)
    outer = [geo.addCircleArc(east, center, top), geo.addCircleArc(top, center, west)]
    axis = [geo.addLine(west, front), geo.addLine(rear, east)]
    geo.addPlaneSurface([geo.addCurveLoop([*outer, axis[0], -body, axis[1]])])
    geo.mesh.setTransfiniteCurve(body, 17)
    geo.synchronize()
    for name, curves in (("cylinder", [body]), ("axis", axis), ("farfield", outer)):
        gmsh.model.addPhysicalGroup(1, curves, name=name)
    gmsh.model.addPhysicalGroup(2, [1], name="fluid")
    behind = "(Abs(x-2) - 1.7 + Abs(Abs(x-2) - 1.7)) / 2"  # how far from 0.3 < x < 3.7
    sizes = []
    for size in ("0.22 * Sqrt(x*x + y*y)", f"0.22 + 0.3 * y + 0.4 * {behind}"):
        sizes.append(field.add("MathEval"))
        field.setString(sizes[-1], "F", size)
    smallest = field.add("Min")
    field.setNumbers(smallest, "FieldsList", sizes)
    field.setAsBackgroundMesh(smallest)
    gmsh.model.mesh.generate(2)
    save(CHAPTER_MESHES / "cylinder.msh")


def two_boxes() -> None:
    """Two touching boxes in every version and kind of file, for the tests of the reader.

    Groups of all sorts: named and unnamed, overlapping, one that is partly boundary and partly
    interface, and boundary faces in no group.
    """
    start()
    occ = gmsh.model.occ
    left, right = occ.addBox(0, 0, 0, 1, 1, 1), occ.addBox(1, 0, 0, 1.5, 1, 1)
    occ.fragment([(3, left)], [(3, right)])
    occ.synchronize()

    def surfaces(x):
        return [
            t for _, t in gmsh.model.getEntitiesInBoundingBox(x - 0.1, -1, -1, x + 0.1, 2, 2, 2)
        ]

    gmsh.model.addPhysicalGroup(2, surfaces(0), 7, name="inflow")
    gmsh.model.addPhysicalGroup(2, surfaces(2.5) + surfaces(1), 8, name="outflow and middle")
    gmsh.model.addPhysicalGroup(2, surfaces(0) + surfaces(2.5), 9)
    gmsh.model.addPhysicalGroup(3, [left], 1, name="copper")
    gmsh.model.addPhysicalGroup(3, [left, right], 2, name="all of it")
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.8)
    gmsh.model.mesh.generate(3)
    for version in (2.2, 4.1):
        for binary in (False, True):
            kind = "binary" if binary else "ascii"
            save(TEST_DATA / f"two_boxes_{version}_{kind}.msh", version, binary)


def periodic_cube() -> None:
    """A cube meshed alike on opposite sides, for the tests of periodic matching."""
    start()
    gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
    gmsh.model.occ.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.4)
    for axis, name in enumerate("xyz"):
        pair = []
        for end in (0, 1):
            lower, upper = np.full(3, -0.1), np.full(3, 1.1)
            lower[axis], upper[axis] = end - 0.1, end + 0.1
            pair += [t for _, t in gmsh.model.getEntitiesInBoundingBox(*lower, *upper, 2)]
        shift = np.eye(4)
        shift[axis, 3] = 1
        gmsh.model.mesh.setPeriodic(2, pair[1:], pair[:1], shift.ravel().tolist())
        gmsh.model.addPhysicalGroup(2, pair[:1], name=name + "-")
        gmsh.model.addPhysicalGroup(2, pair[1:], name=name + "+")
    gmsh.model.addPhysicalGroup(3, [1], name="cube")
    gmsh.model.mesh.generate(3)
    save(TEST_DATA / "periodic_cube.msh")


MESHES = {
    "aeroplane": aeroplane,
    "airfoil": airfoil,
    "cylinder": cylinder,
    "vortex": vortex,
    "two_boxes": two_boxes,
    "periodic_cube": periodic_cube,
    "jet": jet,
    **{name: partial(cavity, name) for name in CAVITIES},
    "ball": partial(ball, "ball", 0.217),
    "ball_coarse": partial(ball, "ball_coarse", 0.43),
    **{name.split(".")[0]: partial(sphere_shell, name) for name in SHELLS},
}


MEASURED = {name: partial(wire, name) for name in WIRES}
"""Made by name only."""


def main() -> None:
    """Write the meshes named on the command line, or all that the repository keeps."""
    for name in sys.argv[1:] or MESHES:
        gmsh.initialize()
        (MESHES | MEASURED)[name]()
        gmsh.finalize()


if __name__ == "__main__":
    main()
