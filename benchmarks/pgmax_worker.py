"""Binary deconvolution with PGMax; runs by itself, in an environment that has PGMax.

Takes a folder with ``problem.npz`` (images and settings) and leaves ``solution.npz`` (S, W and what
it cost) there.  Seconds are of the processor: other work does not count.  Nothing of hcnet is
imported: the two need different versions of JAX.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import jax
import numpy as np
from pgmax import fgraph, fgroup, infer, vgroup

Variable = tuple[int, int]


def main(folder: Path) -> None:
    """Solve the problem in a folder."""
    problem = np.load(folder / "problem.npz")
    before = status("VmRSS")
    began = time.process_time()
    X = problem["images"]
    graph, groups = build(X.shape, int(problem["n_features"]), tuple(problem["feature_size"]))
    S, W, _, _ = groups
    inferer = infer.build_inferer(graph.bp_state, backend="bp")
    arrays = inferer.init(evidence_updates=evidence(groups, X, problem))
    built = time.process_time()

    def iterate(potentials: jax.Array, messages: jax.Array, given: jax.Array) -> jax.Array:
        before = infer.BPArrays(log_potentials=potentials, ftov_msgs=messages, evidence=given)
        n = int(problem["iterations"])
        return inferer.run(before, num_iters=n, damping=0.5, temperature=0.0).ftov_msgs

    given = (arrays.log_potentials, arrays.ftov_msgs, arrays.evidence)
    compiled = jax.jit(iterate).lower(*given).compile()
    ready = time.process_time()
    messages = jax.block_until_ready(compiled(*given))
    done = time.process_time()
    arrays = infer.BPArrays(log_potentials=given[0], ftov_msgs=messages, evidence=given[2])
    states = infer.decode_map_states(inferer.get_beliefs(arrays))
    np.savez(
        folder / "solution.npz",
        S=np.asarray(states[S], bool),
        W=np.asarray(states[W], bool),
        ands=np.prod(groups[2].shape),
        seconds_build=built - began,
        seconds_compile=ready - built,
        seconds_run=done - ready,
        megabytes=(status("VmHWM") - before) / 1024,
    )


def build(
    shape: tuple[int, ...], n_features: int, size: tuple[int, ...]
) -> tuple[fgraph.FactorGraph, list[vgroup.NDVarArray]]:
    """One AND for every weight of every placement, one OR for every pixel.

    Variables are shared tuples, and there is one product variable per AND: less memory than one
    per pixel, feature and weight, of which some belong to no placement.
    """
    n, channels, height, width = shape
    rows, columns = height - size[0] + 1, width - size[1] + 1
    S = vgroup.NDVarArray(num_states=2, shape=(n, n_features, rows, columns))
    W = vgroup.NDVarArray(num_states=2, shape=(channels, n_features, *size))
    both = vgroup.NDVarArray(num_states=2, shape=(*S.shape, channels, *size))
    X = vgroup.NDVarArray(num_states=2, shape=shape)
    s, w, p, x = (variables(group) for group in (S, W, both, X))
    weights = list(itertools.product(range(channels), range(size[0]), range(size[1])))
    ands: list[list[Variable]] = []
    parents: list[list[Variable]] = [[] for _ in x]
    products = iter(p)
    for top, (k, f, i, j) in zip(s, np.ndindex(*S.shape), strict=True):
        for a, r, c in weights:
            product = next(products)
            weight = w[((a * n_features + f) * size[0] + r) * size[1] + c]
            ands.append([top, weight, product])
            parents[((k * channels + a) * height + i + r) * width + j + c].append(product)
    ors = [[*above, pixel] for above, pixel in zip(parents, x, strict=True)]
    graph = fgraph.FactorGraph(variable_groups=[S, W, both, X])
    graph.add_factors(fgroup.ANDFactorGroup(ands))
    graph.add_factors(fgroup.ORFactorGroup(ors))
    return graph, [S, W, both, X]


def variables(group: vgroup.NDVarArray) -> list[Variable]:
    """All variables of a group, as PGMax names them."""
    return [(name, 2) for name in group.variable_hashes.ravel().tolist()]


def evidence(
    groups: list[vgroup.NDVarArray], X: np.ndarray, problem: np.lib.npyio.NpzFile
) -> dict[vgroup.NDVarArray, np.ndarray]:
    """Priors of S and W, perturbed by Gumbel noise to break ties, and the observed pixels."""
    S, W, _, pixels = groups
    rng = np.random.default_rng(int(problem["seed"]))
    given = {}
    for group, log_odds in ((S, problem["logit_S"]), (W, problem["logit_W"])):
        given[group] = rng.gumbel(size=(*group.shape, 2))
        given[group][..., 1] += log_odds
    given[pixels] = np.zeros((*X.shape, 2))
    given[pixels][..., 1] = np.where(X, problem["logit_X"], -problem["logit_X"])
    return given


def status(name: str) -> int:
    """Kilobytes of this process; 0 where the system does not say."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith(name + ":")), 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
