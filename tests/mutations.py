"""Break the package on purpose, one line at a time, and see that the named test fails each time.

Run from the root of the repository: python -m tests.mutations [words that the name must hold]. Every mutation is
made in a temporary copy of the package, so the repository itself is not changed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutation(NamedTuple):
    """A line broken on purpose, and the test that has to fail."""

    name: str
    file: str
    right: str
    wrong: str
    test: str


SWEEP, SYSTEMS, RESCALE = "kernels/sweep.py", "kernels/systems.py", "kernels/rescale.py"
LANES = "kernels/lanes.py"
GIBBS = "tests/sampler/test_gibbs.py"
RANDOM, TRUNCATED = "kernels/random.py", "kernels/truncated_normal.py"
CONDITIONAL = "tests/kernels/test_sweep.py::test_one_entry_against_the_joint_density"
FORMS = "tests/kernels/test_sweep.py::test_forms_agree"
BLOCKS = "tests/kernels/test_sweep.py::test_blocks_of_missing_entries"
SAME_DRAWS = "tests/kernels/test_lanes.py::test_vector_draws_equal_scalar_draws"
RETURN = "tests/statistical/test_calibration.py::test_sweeps_from_a_joint_draw_return_to_the_prior"
REFERENCE = "tests/kernels/test_sweep.py::test_reference_agrees"
VARIANCES = "tests/kernels/test_sweep.py::test_variances_and_scales_of_rows_and_columns"
HIERARCHY = "tests/statistical/test_hierarchy.py::test_sweeps_from_a_joint_draw_return_to_the_prior"
PRIOR_INVARIANT = "tests/kernels/test_rescale.py::test_prior_is_invariant"

MUTATIONS = [
    Mutation("sign of λ", SWEEP, "* precision - load(lanes.lin", "* precision + load(lanes.lin",
             f"{CONDITIONAL}[gee-all observed]"),
    Mutation("rule of the paper in place of the exact one", SWEEP, "if not paper_rule:", "if paper_rule:",
             f"{CONDITIONAL}[gl22inf-all observed]"),
    Mutation("pairwise rate times the wrong sum", SWEEP, "broadcast(pairwise) * (total - old)",
             "broadcast(pairwise) * total", f"{CONDITIONAL}[gl12-all observed]"),
    Mutation("sum of the row not updated", SWEEP, "        total = total + change\n", "", REFERENCE),
    Mutation("wrong sign of listed missing entries", SYSTEMS, "sign = -1.0 if row_lists_missing",
             "sign = 1.0 if row_lists_missing", FORMS),
    Mutation("wrong sign of a block of missing entries", SYSTEMS, "- load(blocks", "+ load(blocks", BLOCKS),
    Mutation("missing entries counted in Σ z² of shared rows", SWEEP,
             "load_broadcast(systems, lanes.system_of[0] + k * side + k)", "load_broadcast(systems, k * side + k)",
             f"{CONDITIONAL}[gl22-one missing]"),
    Mutation("missing entries counted in Σ z² of separate rows", SWEEP, "copy_to_lane(systems, system, side + 1",
             "copy_to_lane(systems, 0, side + 1", FORMS),
    Mutation("residual product of the next entry not updated in shared rows", SWEEP,
             "for j in range(k + 1, n_components):", "for j in range(k + 2, n_components):", BLOCKS),
    Mutation("residual product of the next entry not updated in separate rows", SWEEP,
             "range(k // WIDTH * WIDTH, side, WIDTH)", "range(k // WIDTH * WIDTH + WIDTH, side, WIDTH)", REFERENCE),
    Mutation("missing factor 2 in the acceptance of vector draws", LANES, "> height + height", "> height", SAME_DRAWS),
    Mutation("stream of a lane advanced after acceptance", LANES, "select(where, s0 ^ t3, s0)", "s0 ^ t3", SAME_DRAWS),
    Mutation("missing factor 2 in the squared error", SWEEP, "change * (zr + zr - zz", "change * (zr - zz",
             "tests/kernels/test_sweep.py::test_every_rank_and_length"),
    Mutation("sums of another pattern used", "data/views.py", "(patterns[1:] == patterns[:-1]) & (patterns[1:] >= 0)",
             "patterns[1:] >= 0",
             f"{GIBBS}::test_rows_with_the_same_pattern_share_their_sums_and_nothing_else"),
    Mutation("missing ½ of the squared error", "model/noise.py", "0.5 * squared_error", "squared_error",
             "tests/model/test_noise.py"),
    Mutation("missing ½ of the count", "model/noise.py", "0.5 * n_observed", "n_observed", "tests/model/test_noise.py"),
    Mutation("noise counted over M·N", "data/views.py", "self.matrix.shape[1] - n_listed, n_listed)",
             "self.matrix.shape[1], self.matrix.shape[1])", f"{RETURN}[0.3-True-gee]"),
    Mutation("mask ignored in one half", "data/views.py", "view(filled.T, mask.T)", "view(filled.T, mask.T | True)",
             f"{RETURN}[0.3-True-gl22]"),
    Mutation("mask ignored in one view", "data/views.py", "view(filled.T, mask.T)", "view(filled.T, mask.T | True)",
             "tests/data/test_observed.py::test_dense_containers"),
    Mutation("priors of W and Z exchanged", "sampler/gibbs.py", "    prior_W, prior_Z = model.coefficients(state",
             "    prior_Z, prior_W = model.coefficients(state", f"{RETURN}[0.0-False-gee and gl22inf]"),
    Mutation("cancelled squared error believed", "sampler/gibbs.py", "    if needs_errors:\n", "    if False:\n",
             f"{GIBBS}::test_squared_error_of_a_state_is_that_of_its_factors"),
    Mutation("sweeps share one stream", "sampler/streams.py", "self.chain, sweep, keys)", "self.chain, 0, keys)",
             f"{GIBBS}::test_sweeps_of_one_chain_use_different_streams"),
    Mutation("rows share one stream", RANDOM, "high = key_high + U64(row) * GOLDEN_GAMMA", "high = key_high",
             "tests/kernels/test_random.py::test_neighbouring_rows_follow_the_distribution_and_are_independent"),
    Mutation("normal tail without acceptance", RANDOM, "if 2.0 * height >= x * x:", "if height >= 0.0:",
             "tests/kernels/test_random.py::test_normal_tail"),
    Mutation("normal accepted at the end of every strip", RANDOM,
             "if low + height * (high - low) < math.exp(-0.5 * x * x):", "if height >= 0.0:",
             "tests/kernels/test_random.py::test_one_stream_follows_the_distribution"),
    Mutation("missing factor 2 in the acceptance", TRUNCATED, "            if p * x * x <= 2.0 * height:",
             "            if p * x * x <= height:", "tests/kernels/test_truncated_normal.py::test_draw_positive"),
    Mutation("tail draw without acceptance", TRUNCATED, "            if p * x * x <= 2.0 * height:",
             "            if height >= 0.0:", "tests/kernels/test_truncated_normal.py::test_draw_positive"),
    Mutation("max_rate ignored beyond the kink", TRUNCATED, "beyond = b - max_rate - p * kink",
             "beyond = b - p * kink",
             "tests/kernels/test_truncated_normal.py::test_draw_two_piece"),
    Mutation("wrong power in the rescaling move", RESCALE, "float(W.shape[0] - Z.shape[0])",
             "float(Z.shape[0] - W.shape[0])", PRIOR_INVARIANT),
    Mutation("rescaling move given the old scales", RESCALE, "others += scales[j] * W[row, j]", "others += W[row, j]",
             "tests/kernels/test_rescale.py::test_scales_are_drawn_given_the_new_scales_of_other_components"),
    Mutation("missing ½ of the tangent", "priors/exact_draws.py", "0.5 * pairwise * distance**2",
             "pairwise * distance**2", "tests/priors/test_exact_draws.py::test_row_sum_under_l1_squared_is_chi"),
    Mutation("λ of a product taken twice", "priors/norms.py", "quadratic=self.rate, pairwise=self.rate",
             "quadratic=self.rate, pairwise=2.0 * self.rate", "tests/priors/test_norms.py"),
    Mutation("root of the variance forgotten", "sampler/gibbs.py", "root = 1.0 / np.sqrt(entry_variance)",
             "root = 1.0 / entry_variance", VARIANCES),
    Mutation("precision of a row ignored", SWEEP, "lanes.precision[lane] = precision[row]",
             "lanes.precision[lane] = precision[0]", VARIANCES),
    Mutation("missing ½ of the counts of a column", "model/noise.py", "strength + 0.5 * counts", "strength + counts",
             f"{HIERARCHY}[columns of given strength]"),
    Mutation("missing ½ of the errors of a row", "model/noise.py", "strength * scale + 0.5 * errors",
             "strength * scale + errors",
             "tests/model/test_noise.py::test_variances_follow_their_conditional"),
    Mutation("strength forgotten in the scale of the variances", "model/noise.py",
             "SCALE_SHAPE + strength * precision.size", "SCALE_SHAPE + precision.size", f"{HIERARCHY}[columns]"),
    Mutation("normalising constant of one precision in the strength", "model/noise.py",
             "logs + precision.size * (strengths", "logs + (strengths",
             "tests/model/test_noise.py::test_strength_follows_its_conditional"),
    Mutation("bound of the precisions forgotten", "model/noise.py", "if not beyond.any():", "if True:",
             "tests/model/test_noise.py::test_bounded_gamma"),
    Mutation("rate drawn from the wrong factor", "model/model.py", "[factors[i] for i in learned.factors]",
             "[factors[1 - i] for i in learned.factors]", f"{HIERARCHY}[rate of W alone]"),
    Mutation("degree of a penalty off by a factor 2", "priors/base.py", "n_entries / self.degree", "n_entries",
             f"{HIERARCHY}[rate of L2Squared]"),
    Mutation("rate of a component drawn from all of them", "priors/norms.py",
             "return W.sum(axis=0) if self.is_by_component else W.sum()", "return 0.0 * W.sum(axis=0) + W.sum()",
             f"{HIERARCHY}[rates of L1 by component]"),
    Mutation("units forgotten in one half", "model/model.py",
             "return ScaledView(self.data.columns, row_scale=self._factor)", "return ScaledView(self.data.columns)",
             f"{HIERARCHY}[columns in other units]"),
]  # fmt: skip


def caught(mutation: Mutation) -> bool:
    """Return whether the test fails in a copy of the package that has the mutation."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src", copy / "src")
        shutil.copytree(ROOT / "tests", copy / "tests")
        shutil.copy(ROOT / "pyproject.toml", copy)
        file = copy / "src" / "bnmf" / mutation.file
        source = file.read_text(encoding="utf-8")
        if mutation.right not in source:
            raise ValueError(f"{mutation.file} no longer has {mutation.right!r}")
        file.write_text(source.replace(mutation.right, mutation.wrong), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutation.test]
        environment = os.environ | {"PYTHONPATH": str(copy / "src")}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=1800)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{mutation.name}: the test did not run\n{done.stdout}{done.stderr}")
        return done.returncode == 1


def main(words: list[str]) -> int:
    """Try every mutation whose name holds all the words, and return the number that nothing caught."""
    survivors = 0
    for mutation in MUTATIONS:
        if all(word in mutation.name for word in words):
            found = caught(mutation)
            survivors += not found
            print(f"{'caught  ' if found else 'SURVIVED'}  {mutation.name}", flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
