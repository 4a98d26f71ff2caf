"""Writes traces/*/simplices.csv: how the step times between the measured shapes are interpolated.

The points are those of placements.csv, averaged over the placements with the same number of nodes,
replicas and batch size, in ascending order, and after them those of scalability.csv. The points lie
on a grid, so that their Delaunay triangulation is ambiguous: Qhull's has cells without volume, and
the cells on their two sides do not agree on the face between them. The files hold the cells that
scipy's LinearNDInterpolator finds, less those without volume, less those of at most four nodes,
where every placement was measured, and less those of NCF, which is never spread. Their order is
such that the first cell that holds a point is the one in which scipy looks it up, for every whole
number of nodes, replicas and samples. Made with numpy 1.24.4, pandas 1.5.3 and scipy 1.11.4:

  python3 -m pip install numpy==1.24.4 pandas==1.5.3 scipy==1.11.4
  python3 allocator/simulator/loads/pollux/triangulate.py
"""

import collections
import heapq
import pathlib

import numpy
import pandas
from scipy.interpolate import LinearNDInterpolator

POINT = ["num_nodes", "num_replicas", "local_bsz"]
TIMES = ["step_time", "sync_time"]
MEASURED_NODES = 4
MOST_NODES = 16
SLOTS_PER_NODE = 4
NEVER_SPREAD = ["ncf"]
ROUNDING = 1e-9


def points(folder):
    rings = pandas.read_csv(folder / "placements.csv", dtype={"placement": str})
    rings["num_nodes"] = rings.placement.apply(len)
    rings["num_replicas"] = rings.placement.apply(lambda ring: sum(map(int, ring)))
    means = rings.groupby(POINT)[POINT + TIMES].mean()
    scales = pandas.read_csv(folder / "scalability.csv")
    return pandas.concat([means, scales], ignore_index=True)


def lookups(batches):
    """Every point that a simulation may ask for."""
    for nodes in range(MEASURED_NODES + 1, MOST_NODES + 1):
        for replicas in range(nodes, SLOTS_PER_NODE * nodes + 1):
            for batch in range(int(batches.min()), int(batches.max()) + 1):
                yield (nodes, replicas, batch)


class Cells:
    """The cells with volume, by their number in scipy's triangulation."""

    def __init__(self, at, times, triangulation):
        nodes = at[:, 0][triangulation.simplices]
        solid = ~numpy.isnan(triangulation.transform[:, 0, 0])
        self.numbers = numpy.flatnonzero(solid & (nodes.max(axis=1) > MEASURED_NODES))
        self.corners = triangulation.simplices[self.numbers]
        self.inverse = triangulation.transform[self.numbers, :3]
        self.last = triangulation.transform[self.numbers, 3]
        self.times = times[self.corners]

    def around(self, point):
        """The cells that hold a point, and the times each gives it."""
        weights = numpy.einsum("nij,nj->ni", self.inverse, point - self.last)
        weights = numpy.concatenate([weights, 1 - weights.sum(axis=1, keepdims=True)], axis=1)
        found = numpy.flatnonzero(weights.min(axis=1) > -ROUNDING)
        return found, numpy.einsum("ni,nij->nj", weights[found], self.times[found])


def ambiguous(cells, triangulation, batches):
    """Of each point whose cells disagree: those that say what scipy says, and the others."""
    position = {number: i for i, number in enumerate(cells.numbers)}
    for point in lookups(batches):
        found, times = cells.around(numpy.array(point, dtype=float))
        if len(found) < 2 or numpy.allclose(times, times[0], rtol=ROUNDING, atol=0):
            continue
        # One by one: the search for a point starts where that for the last one ended.
        chosen = position.get(int(triangulation.find_simplex([point])[0]))
        if chosen is None:
            print("  ", point, "is in no cell with volume")
            continue
        right = numpy.isclose(times, times[list(found).index(chosen)], rtol=ROUNDING, atol=0)
        yield found[right.all(axis=1)].tolist(), found[~right.all(axis=1)].tolist()


def ordered(count, points):
    """The cells, changed in order so that at each point a right one comes before the wrong ones."""
    right_at = collections.defaultdict(list)
    wrong_at = collections.defaultdict(list)
    wrong = collections.Counter()  # undecided points at which a cell is wrong
    for i, (rights, wrongs) in enumerate(points):
        for cell in rights:
            right_at[cell].append(i)
        for cell in wrongs:
            wrong_at[cell].append(i)
            wrong[cell] += 1
    undecided = set(range(len(points)))
    # To take a cell that is wrong nowhere never hurts, so the first will do.
    ready = [cell for cell in range(count) if wrong[cell] == 0]
    left = set(range(count)) - set(ready)
    order = []
    lost = 0
    while ready or left:
        if not ready:
            cell = min(left, key=lambda c: (wrong[c], c))
            lost += wrong[cell]
            left.remove(cell)
            ready.append(cell)
        cell = heapq.heappop(ready)
        order.append(cell)
        for i in right_at[cell] + wrong_at[cell]:
            if i not in undecided:
                continue
            undecided.remove(i)
            for other in points[i][1]:
                wrong[other] -= 1
                if wrong[other] == 0 and other in left:
                    left.remove(other)
                    heapq.heappush(ready, other)
    return order, lost


def main():
    for folder in sorted((pathlib.Path(__file__).parent / "traces").iterdir()):
        lines = ["a,b,c,d"]
        if folder.name not in NEVER_SPREAD:
            table = points(folder)
            at = table[POINT].values.astype(float)
            triangulation = LinearNDInterpolator(at, table[TIMES].values).tri
            cells = Cells(at, table[TIMES].values, triangulation)
            unsure = list(ambiguous(cells, triangulation, table.local_bsz))
            order, lost = ordered(len(cells.corners), unsure)
            print(f"{folder.name}: {len(order)} cells; of {len(unsure)} points on which several"
                  f" disagree, {lost} are not as scipy has them", flush=True)
            lines += [",".join(map(str, cells.corners[cell])) for cell in order]
        (folder / "simplices.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
