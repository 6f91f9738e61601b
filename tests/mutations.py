"""Break the package on purpose, one line at a time, and see that the named test fails each time.

Run from the root of the repository: python -m tests.mutations [words that the name must hold]. Every mutation is
made in a temporary copy of the package, so the repository itself is not changed. Kernels are compiled for the level of
this processor only, and only as far as they have changed. With --check it only tells which mutations no longer fit the
code.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bnmf.kernels.compiled import LEVEL

ROOT = Path(__file__).resolve().parents[1]


class Mutation(NamedTuple):
    """A line broken on purpose, and the test that has to fail."""

    name: str
    file: str
    right: str
    wrong: str
    test: str


ROWS, RESIDUALS, SYSTEMS = "kernels/rows.hpp", "kernels/residuals.hpp", "kernels/systems.hpp"
PRODUCTS, VECTORS, ARRAYS = "kernels/products.hpp", "kernels/vectors.hpp", "kernels/arrays.hpp"
DRAW = "kernels/draw.cpp"
LANES, MOVES, SWEEP, ERRORS = "kernels/lanes.hpp", "kernels/moves.hpp", "kernels/sweep.hpp", "kernels/errors.hpp"
RANDOM, TRUNCATED, GAMMAS = "kernels/random.hpp", "kernels/truncated_normal.hpp", "kernels/gammas.hpp"
LATENT, FOLLOWERS = "kernels/latent.hpp", "kernels/interwoven.hpp"
LIMITS, FILLED = "data/limits.py", "data/latent.py"
# Rows of the tile of this level of the processor: only its sources are compiled.
TILE = {"v4": "LANES = 8;\nconstexpr Tile TILE{8,", "v3": "LANES = 4;\nconstexpr Tile TILE{4,"}.get(LEVEL, "TILE{2,")
GROSS = "tests/model/test_contaminated.py::"
LIMITED_GROSS = "test_entries_with_limits_and_gross_errors_follow_their_conditional"
COLUMNS, MIXED = "columns.py", "mixed.py"
CHECKSUMS, ARCHIVE = "sampler/checkpoint.py", "posterior/archive.py"
GIBBS, CHECKPOINT = "tests/sampler/test_gibbs.py", "tests/sampler/test_checkpoint.py"
CONDITIONAL = "tests/kernels/test_sweep.py::test_one_entry_against_the_joint_density"
FROM_SCRATCH = "tests/kernels/test_sweep.py::test_conditionals_from_scratch"
VARIANCES = "tests/kernels/test_sweep.py::test_variances_and_scales_of_rows_and_columns"
SIZES = "tests/kernels/test_systems.py::test_any_number_of_rows_with_a_pattern"
SYSTEM = "tests/kernels/test_systems.py::test_any_number_of_missing_entries"
EVERY_RANK = "tests/kernels/test_sweep.py::test_every_rank_and_length"
ANY_RANK = "tests/kernels/test_residuals.py::test_any_rank"
PASSES = "tests/kernels/test_residuals.py::test_several_passes"
PANELS = "tests/kernels/test_residuals.py::test_several_panels"
CANCEL = "tests/kernels/test_residuals.py::test_all_rows_cancel"
SAME_DRAWS = "tests/kernels/test_lanes.py::test_vector_draws_equal_scalar_draws"
SAME_REAL = "tests/kernels/test_lanes.py::test_real_draws_equal_scalar_draws"
SAME_WITH_KINK = "tests/kernels/test_lanes.py::test_draws_with_a_kink_equal_scalar_draws"
WEIGHTS = "tests/kernels/test_sweep.py::test_one_entry_with_weights_against_the_joint_density"
PRIOR_INVARIANT = "tests/kernels/test_moves.py::test_prior_is_invariant"
SHEAR_CONDITIONAL = "tests/kernels/test_moves.py::test_shear_follows_its_conditional"
RETURN = "tests/statistical/test_calibration.py::test_sweeps_from_a_joint_draw_return_to_the_prior"
ALL_OBSERVED = "tests/statistical/test_calibration.py::test_without_missing_entries_and_moves"
LATENT_JOINT = "tests/kernels/test_latent.py::test_one_entry_against_the_joint_density"
LATENT_PLACES = "tests/kernels/test_latent.py::test_all_places_hold_the_same_values"
LIMITED_RETURN = "tests/statistical/test_calibration.py::test_sweeps_of_limited_data_return_to_the_prior"
LATENT_LANES = "tests/kernels/test_latent.py::test_draws_within_intervals_side_by_side"
GAMMA, BOUNDED = "tests/kernels/test_gammas.py::test_gamma", "tests/kernels/test_gammas.py::test_bounded_gamma"
PRECISIONS = "tests/kernels/test_gammas.py::test_precisions_scale_and_strength_follow_their_conditionals"
RATE = "tests/kernels/test_gammas.py::test_rate_follows_its_conditional"
INTERWOVEN = "tests/kernels/test_interwoven.py::test_one_component_against_the_joint_density"
HIERARCHY = "tests/statistical/test_hierarchy.py::test_sweeps_from_a_joint_draw_return_to_the_prior"

MUTATIONS = [Mutation(*row) for row in [
    # Entries that are known to lie between limits.
    ("upper limit of a limited entry forgotten", LANES, "rejected = x > width;", "rejected = x > x;", LATENT_LANES),
    ("limited entry drawn from the wrong end", LATENT, "mean - low * unit, high * unit - mean",
     "mean - low * unit, mean - high * unit", f"{LATENT_JOINT}[dense]"),
    ("limited density that increases not mirrored", LANES, "return select(mirrored, width - drawn, drawn);",
     "return drawn;", LATENT_LANES),
    ("limited entry in a flat interval uniform", LANES,
     "rejected = highest - (b - half * p * x) * x > propose(exponentials(), pending, streams);",
     "rejected = x > propose(exponentials(), pending, streams) + width;", LATENT_LANES),
    ("limited entry without the variance of its row", LATENT, "broadcast(given.row_variance[row])",
     "broadcast(given.row_variance[0])", f"{LATENT_JOINT}[dense]"),
    ("limits in units of the data", LATENT, "width = (high - low) * unit", "width = high - low",
     f"{LATENT_JOINT}[dense]"),
    ("weight of a limited entry forgotten", LATENT, "if (weights != nullptr) std::copy_n(weights + begin, n, p_of);",
     "", f"{LATENT_JOINT}[Student's t]"),
    ("limited entry left out of the columns", FILLED, "targets += self.columns.targets(to, at)\n", "pass\n",
     f"{LATENT_PLACES}[dense]"),
    ("limited entry left out of lists", "data/views.py", "(listed >= 0).any()", "False",
     f"{LATENT_PLACES}[dense]"),
    ("rows and columns of limited entries exchanged", FILLED, "targets += self.columns.targets(to, at)\n",
     "targets += self.columns.targets(at, to)\n",
     f"{LATENT_PLACES}[dense]"),
    ("old squares of limited rows", "data/half_sweeps.py", "self.squares[:] = self.sums_of_squares", "pass",
     f"{LATENT_PLACES}[dense]"),
    # Gross errors.
    ("gross errors forgotten in the variances", "model/contaminated.py",
     "errors, counts = errors + squares / ERROR_VARIANCE, counts + n_gross.astype(np.int64)", "pass",
     f"{GROSS}test_shares_and_variances_follow_their_conditionals"),
    ("share of gross errors among so many others", "model/contaminated.py", "b + (counts - gross[0])", "b + counts",
     f"{GROSS}test_shares_and_variances_follow_their_conditionals"),
    ("odds of gross errors in place of their share", "kernels/module.cpp", "return x / (x + y);", "return x / y;",
     f"{GROSS}test_shares_and_variances_follow_their_conditionals"),
    ("density of gross errors without their scale", "model/contaminated.py",
     "normal(squares / FACTOR) - 0.5 * math.log(FACTOR)", "normal(squares / FACTOR)",
     f"{GROSS}test_law_of_predictions"),
    ("new rows without gross errors", "posterior/new_rows.py",
     "if law.has_entries and turn < n_sweeps - 1:",
     "if law.has_entries and not law.has_outliers:", f"{GROSS}test_weights_of_a_new_row_follow_their_posterior"),
    ("new rows that do not follow Z", "posterior/new_rows.py", "of_noise @ (before - Zt)", "0.0 * (of_noise @ Zt)",
     "tests/posterior/test_new_rows.py::test_new_rows_follow_components_that_change_together"),
    ("new rows that follow Z the wrong way", "posterior/new_rows.py", "(before - Zt)", "(Zt - before)",
     "tests/posterior/test_new_rows.py::test_new_rows_follow_components_that_change_together"),
    ("new rows with the odds of gross errors of another column", "model/contaminated.py",
     "expit(odds[columns] + (0.5 - 0.5 / FACTOR) * squares)", "expit(odds[0] + (0.5 - 0.5 / FACTOR) * squares)",
     f"{GROSS}test_weights_of_a_new_row_follow_their_posterior"),
    ("shares of gross errors kept as they were", "sampler/gibbs.py",
     "noise = model.noise_model.update_share(noise, filled.gross(), n_observed, key)", "pass",
     f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("odds of gross errors without their scale", "kernels/outliers.hpp",
     "log_odds[column] - 0.5 * std::log(factor)", "log_odds[column]",
     f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("gross error taken for the whole residual", "kernels/outliers.hpp", "(1.0 - 1.0 / factor) * residuals[lane]",
     "residuals[lane]", f"{GROSS}test_gross_errors_follow_their_conditional[listed]"),
    ("rare gross errors as likely as their candidates", "kernels/outliers.hpp",
     "exponential(stream) > log_share - logit &&", "(log_share < 0.0 || exponential(stream) > -logit) &&",
     f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("gross errors as likely as their odds", "kernels/outliers.hpp",
     "uniform(stream) * (1.0 + std::exp(-std::fabs(logit))) < 1.0", "uniform(stream) < 1.0",
     f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("too many candidates for gross errors", "kernels/outliers.hpp", "int64_t(exponential(stream) * mean)",
     "int64_t(exponential(stream) * 0.3 * mean)", f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("gross errors of missing entries", "kernels/outliers.hpp", "                possible &= seen[byte];\n", "",
     f"{GROSS}test_missing_entries_have_no_gross_errors"),
    ("gross errors of what is left of the last ones", "kernels/outliers.hpp", "if (n < WIDTH || old_errors != 0)",
     "if (n < WIDTH)", f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("gross errors that stay", "kernels/outliers.hpp", "} else if (!(old_errors & bit)) {", "} else {",
     f"{GROSS}test_gross_errors_follow_their_conditional[dense]"),
    ("gross errors of limited entries whatever their limits", LATENT, "+ log_masses + gain * q * m * m - log_scale", "",
     f"{GROSS}{LIMITED_GROSS}[dense]"),
    ("gross errors of limited entries as likely as their candidates", LATENT,
     "uniform(stream) * std::exp(std::min(extract_lane(bound, lane), 0.0))", "uniform(stream)",
     f"{GROSS}{LIMITED_GROSS}[dense]"),
    ("limited entries with a gross error drawn without it", LATENT, "p_of[__builtin_ctz(left)] / factor",
     "p_of[__builtin_ctz(left)]", f"{GROSS}{LIMITED_GROSS}[listed]"),
    ("gross errors of limited entries left in them", LATENT, "values[lane] -= error / scale;", "",
     f"{GROSS}{LIMITED_GROSS}[listed]"),
    ("gross errors of limited entries not counted", LATENT, "sums_of_tile(row)[column] += 1.0;", "",
     f"{GROSS}{LIMITED_GROSS}[dense]"),
    ("limited entries with a second gross error", FILLED, "values[limits.rows, limits.columns] = np.nan", "pass",
     f"{GROSS}{LIMITED_GROSS}[dense]"),
    ("listed limited entries with a second gross error", FILLED, "return at[exact], to[exact], values[exact]",
     "return at, to, values", f"{GROSS}{LIMITED_GROSS}[listed]"),
    ("gross errors by default where most entries have limits", "model/build.py", "is_table and is_exact and",
     "is_table and", f"{GROSS}test_where_it_cannot_be"),
    ("columns with old values of limited entries", FILLED, "(self.rows, rows), (self.columns, columns)",
     "(self.rows, rows), (columns.view, columns)", LIMITED_RETURN),
    # Factors that are drawn together with values beyond limits.
    ("values beyond limits left behind", FOLLOWERS,
     "store(i, limit_of(i) + away[i - first - n_data + n_padded] / given.unit(row, columns[i]));",
     ";", f"{INTERWOVEN}[L1-{{}}]"),
    ("values that follow stepping over a lower limit", FOLLOWERS, "std::max(lowest, -1.0 / lane_maximum(backward))",
     "lowest", f"{INTERWOVEN}[normal-{{}}]"),
    ("values that follow stepping over an upper limit", FOLLOWERS,
     "1.0 / lane_maximum(broadcast(0.0) - forward), old", "INFINITE, old", f"{INTERWOVEN}[L1-{{}}]"),
    ("sides of limits confused", FOLLOWERS, "above[i] ? 1.0 : -1.0", "above[i] ? -1.0 : 1.0",
     f"{INTERWOVEN}[L1-{{}}]"),
    ("prior at zero instead of at the old value", FOLLOWERS, "lane_sum(slope) - quadratic * w[k]", "lane_sum(slope)",
     f"{INTERWOVEN}[truncated normal-{{}}]"),
    ("residuals of data without the step before", FOLLOWERS,
     "add_product(load(away + i), back, load(before + i))", "load(away + i)",
     "tests/kernels/test_interwoven.py::test_components_are_drawn_one_after_the_other"),
    ("weights of data forgotten beside followers", FOLLOWERS, "(weights == nullptr ? 1.0 : weights[i])", "1.0",
     f"{INTERWOVEN}[L1-{{'has_weights': True}}]"),
    ("gross errors of followers forgotten", FOLLOWERS, "limits[i] - errors[place]", "limits[i]",
     f"{INTERWOVEN}[L1-{{'has_errors': True}}]"),
    ("pairs of the prior forgotten beside followers", FOLLOWERS, "- prior.pairwise * (sum - w[k])", "",
     f"{INTERWOVEN}[L2Squared and L1Squared-{{}}]"),
    ("all entries as data beside followers", FILLED, "follows = np.isinf(upper - lower)",
     "follows = np.isinf(upper - lower) & (upper < lower)",
     "tests/sampler/test_gibbs.py::test_values_beyond_limits_follow_the_factors"),
    ("old sums of squares of latent values", "sampler/gibbs.py", "        _half(half, own, W, Zt)[0].refresh()\n",
     "        pass\n", LIMITED_RETURN),
    ("variance of a column as the precision of its limited entries", LATENT, "1.0 / column_variance[column]",
     "column_variance[column]", f"{LATENT_JOINT}[dense]"),
    ("spread of limited columns from what stands for their entries", "model/units.py",
     "sizes = np.where(np.isnan(mean), sizes, np.sqrt(mean**2 + variance))", "pass",
     "tests/model/test_units.py::test_units_of_limited_columns_are_those_of_their_values"),
    ("data of limited entries shared by chains", "data/views.py", "else self.matrix.copy()", "else self.matrix",
     f"{LATENT_PLACES}[dense]"),
    ("hidden entries keep their limits", LIMITS, "        limited &= ~hidden\n", "        pass\n",
     "tests/data/test_limits.py::test_entries_that_were_not_observed_have_no_limits"),
    ("limits lost when entries are hidden", "data/observed.py", "self.limits.where(~np.isin",
     "self.limits.where(np.isin", "tests/data/test_limits.py::test_other_forms_of_the_data_keep_their_limits"),
    ("limits not shifted", "data/observed.py", "else self.limits.shifted(offset)", "else self.limits",
     "tests/data/test_limits.py::test_other_forms_of_the_data_keep_their_limits"),
    ("limits left out of the fingerprint", "data/identity.py",
     "content += [of_tile.flat, of_tile.lower, of_tile.upper]", "pass",
     "tests/test_limits.py::test_another_limit_is_another_run"),
    ("new rows without their limits", "posterior/new_rows.py", "seed, limits)", "seed, None)",
     "tests/test_limits.py::test_new_rows"),
    ("probability of an interval as a density", "posterior/predictions.py",
     "        terms[:, limited] = self.at(limited).log_probability(lower[limited], upper[limited])\n", "",
     "tests/test_limits.py::test_log_density_of_a_mixture_of_numbers_and_intervals"),
    ("mean of an interval without its upper end", "model/noise.py", "return sides[0] - sides[1]", "return sides[0]",
     "tests/model/test_noise.py::test_noise_between_limits"),
    # Latent values on a cluster.
    ("latent values lost with a worker drawn from later factors", "distributed/sharded.py",
     "scaled.inputs(W.copy(), Z.copy(), None", "scaled.inputs(W, Z, None", "tests/distributed/test_losses.py::"
     "test_latent_values_are_drawn_again_from_the_factors_before_the_sweep[submit]"),
    ("latent values left out of the columns of a cluster", "distributed/blocks.py",
     "numbers[places[places >= 0]] = values[places >= 0]", "pass",
     "tests/distributed/test_same_numbers.py::test_draws_are_those_of_one_process[limits]"),
    ("limits not shifted on a cluster", "distributed/blocks.py", "limits = limits.shifted(offset)", "pass",
     "tests/distributed/test_same_numbers.py::test_draws_are_those_of_one_process[limits, offset]"),
    # Kinds of columns.
    ("cut points without the shares before them", COLUMNS, "ndtri(np.cumsum(counts)[:-1]", "ndtri(counts[:-1]",
     "tests/test_columns.py::test_ordered_categories_are_intervals_between_cut_points"),
    ("limits of the next category", COLUMNS, "cuts[np.maximum(codes, 0) + side]", "cuts[np.maximum(codes, 0) + 1]",
     "tests/test_columns.py::test_any_latent_number_between_the_limits_is_the_value"),
    ("interval one category too far", COLUMNS, "(below < 1.0 - tail)", "(below < 1.0)",
     "tests/test_columns.py::test_ordered_categories_are_intervals_between_cut_points"),
    ("categories asked after the one that it is", COLUMNS, "np.where(codes >= category, codes == category, -1)",
     "np.where(codes >= 0, codes == category, -1)",
     "tests/test_columns.py::test_categories_without_an_order_are_decided_one_after_the_other"),
    ("probabilities that ignore earlier categories", COLUMNS, "            left = left * no\n",
     "            left = no\n",
     "tests/test_columns.py::test_categories_without_an_order_are_decided_one_after_the_other"),
    ("categories drawn from the last question", COLUMNS, "in reversed(list(enumerate(self.cuts)))",
     "in list(enumerate(self.cuts))",
     "tests/test_columns.py::test_categories_without_an_order_are_decided_one_after_the_other"),
    ("mean between bounds without the bounds", COLUMNS, "mean + mass * bound, inside - mass", "mean, inside - mass",
     "tests/test_columns.py::test_numbers_are_cut_at_their_bounds"),
    ("entries at a bound as exact", COLUMNS, "np.where(values == self.low, self.low + half, np.nan)",
     "np.full_like(values, np.nan)", "tests/test_columns.py::test_numbers_are_cut_at_their_bounds"),
    ("latent columns of another column", MIXED, "given.upper[rows, at]), np.full(len(rows), self._first[at])",
     "given.upper[rows, at]), np.full(len(rows), at)",
     "tests/test_columns.py::test_hidden_entries_are_predicted_with_calibrated_probabilities"),
    ("copies of all draws", "imputer.py", "column.draw(draws, rng), n_imputations, chosen",
     "column.draw(draws, rng), n_imputations",
     "tests/test_columns.py::test_a_table_keeps_its_dtypes_and_what_was_observed"),
    ("new rows without their categories", "imputer.py",
     "values if names else values.to_numpy(), lower=low, upper=high)", "values if names else values.to_numpy())",
     "tests/test_columns.py::test_rows_alone_and_new_rows"),
    ("limited entries of a table filled like missing ones", COLUMNS, "(low[at], high[at]) if is_limited else None",
     "None", "tests/test_imputer.py::test_limited_entries_stay_between_their_limits"),
    # The floor of the noise, and the smoothing of densities.
    ("the floor of the noise forgotten", "model/model.py",
     "np.minimum(max_precisions(steps, self.variances), self._precisions_at_the_floor())",
     "max_precisions(steps, self.variances)",
     "tests/model/test_noise.py::test_noise_of_columns_of_their_own_does_not_vanish"),
    ("a fraction of the variance in place of the deviation", "model/model.py", "floor**2 * unexplained",
     "floor * unexplained", "tests/model/test_noise.py::test_precisions_are_bounded_by_it"),
    ("rounding larger than the variance", "model/model.py", "max_precisions(steps, self.variances)",
     "max_precisions(steps)", "tests/model/test_noise.py::test_the_noise_of_rare_values_is_below_that_of_their_step"),
    ("variance of filled entries forgotten", "model/noise.py", "n_missing * left / n_rows + ridge", "ridge",
     "tests/model/test_noise.py::test_missing_entries_are_filled_by_the_regression"),
    ("densities not smoothed", "posterior/predictions.py", "+ bandwidths(self.products) ** 2", "+ 0.0",
     "tests/posterior/test_predictions.py::test_smoothing_mends_the_density_between_few_draws_with_little_noise"),
    ("hidden entries of the calibration seen", "posterior/fitting.py", "build(fold.rest, **", "build(data, **",
     "tests/test_calibration.py::test_the_hidden_entries_are_predicted_without_them"),
    # Entries of both signs.
    ("signs exchanged", TRUNCATED, "x = is_left ? -sign * size : sign * size;",
     "x = is_left ? sign * size : -sign * size;", "tests/kernels/test_truncated_normal.py::test_draw_real"),
    ("signs exchanged in the lanes", LANES, "sign * select(is_left, zero - value, value)",
     "sign * select(is_left, value, zero - value)", f"{CONDITIONAL}[Laplace]"),
    ("the size of a negative entry drawn as that of a positive one", LANES,
     "select(is_left, twice + slope, zero - slope)", "(zero - slope)", SAME_REAL),
    ("no kink in the lanes", LANES, "with_kink = rate > zero", "with_kink = zero > rate", f"{CONDITIONAL}[Laplace]"),
    ("real entries folded", LANES, "Vector value = x * scale + mean;", "Vector value = absolute(x * scale + mean);",
     f"{CONDITIONAL}[normal]"),
    ("sides of zero with each other's rates", TRUNCATED, "uniform(stream) * (rate + rate) < -slope",
     "uniform(stream) * (rate + rate) >= -slope", "tests/kernels/test_truncated_normal.py::test_draw_real"),
    ("a rate in place of two at the kink of |w|", TRUNCATED, "-2.0 * rate * value <= ", "-rate * value <= ",
     "tests/kernels/test_truncated_normal.py::test_draw_real"),
    ("a rate in place of two at the kink of |w| in the lanes", LANES, "(zero - twice) * value > limit",
     "(zero - rate) * value > limit", SAME_REAL),
    ("rates of |w| of the first row for all", ROWS, "    copy(prior.absolute, lanes.absolute);\n", "",
     f"{FROM_SCRATCH}[Laplace and normal by entry]"),
    ("|w| left out of the rescaling", MOVES, "prior.absolute.row(row)[k] * std::fabs(at(row, k))",
     "prior.absolute.row(row)[k] * at(row, k)", PRIOR_INVARIANT),
    ("a real factor sheared only as far as it stays nonnegative", MOVES, "if (lowest < 0.0) return",
     "if (lowest > 0.0) return", PRIOR_INVARIANT),
    ("what a shear makes negative cut in a real factor", MOVES,
     "lowest(prior.absolute.data != nullptr ? -INFINITE : 0.0)", "lowest(0.0)",
     PRIOR_INVARIANT),
    ("the other side of a shear not mirrored", MOVES, "return high - draw_within(p * high - b, p, INFINITE, stream);",
     "return high + draw_within(p * high - b, p, INFINITE, stream);",
     PRIOR_INVARIANT),
    ("a learned precision without the mean", GAMMAS, "w[k] + linear[k] / quadratic[k] : 0.0", "w[k] : 0.0", RATE),
    ("exact draws without a sign", "priors/exact_draws.py", "np.where(is_positive, size, -size)",
     "np.where(is_positive, size, size)", "tests/priors/test_exact_draws.py::test_draws_of_real_entries"),
    ("|w| of a restricted prior forgotten", "priors/base.py",
     "linear = linear + absolute", "linear = linear + 0.0",
     "tests/priors/test_norms.py::test_log_density_is_the_penalty_in_norms"),
    ("signs of components not aligned", "posterior/components.py", "np.where(matched < 0.0, -1.0, 1.0)",
     "np.where(matched < 0.0, 1.0, 1.0)", "tests/posterior/test_components.py::test_signs_are_those_of_the_reference"),
    # What all rows have in common.
    ("sign of λ", ROWS, "- load(lanes.linear + offset)", "+ load(lanes.linear + offset)", f"{CONDITIONAL}[gee]"),
    ("rule of the paper in place of the exact one", ROWS, "if (prior.paper_rule) {", "if (!prior.paper_rule) {",
     f"{CONDITIONAL}[gl22inf]"),
    ("pairwise rate times the wrong sum", ROWS, "broadcast(prior.pairwise) * (progress.total - old)",
     "broadcast(prior.pairwise) * progress.total", f"{CONDITIONAL}[gl12]"),
    ("the old entry left in the residuals", ROWS, "(zr + load(lanes.zz + offset) * old)", "(zr)",
     f"{CONDITIONAL}[gl22]"),
    ("largest of the later entries off by one", ROWS, "            store(lanes.largest_after + k * WIDTH, largest);\n"
     "            largest = larger(largest, load(lanes.w + k * WIDTH));\n",
     "            largest = larger(largest, load(lanes.w + k * WIDTH));\n"
     "            store(lanes.largest_after + k * WIDTH, largest);\n", f"{ANY_RANK}[L2Squared + LInf-missing]"),
    ("largest of the earlier entries not updated", ROWS, "larger(progress.largest, drawn)",
     "larger(progress.largest, old)", f"{FROM_SCRATCH}[gl22inf]"),
    ("rows of W with coefficients of another", ROWS, "    copy(prior.quadratic, lanes.quadratic);\n", "",
     "tests/kernels/test_systems.py::test_matrix_rates_with_shared_systems[quadratic]"),
    ("precision of a row ignored", ROWS, "lanes.precision[lane] = problem.precision[row];",
     "lanes.precision[lane] = problem.precision[0];", VARIANCES),
    # Rows that share their missing entries.
    ("sum of the row not updated in shared rows", ROWS, "    progress.total = progress.total + change;\n", "",
     f"{FROM_SCRATCH}[gl12]"),
    ("missing entries added to the system", SYSTEMS, "chunk.flush(-1.0);", "chunk.flush(1.0);", f"{SYSTEM}[8]"),
    ("a full chunk of missing entries added to the system", SYSTEMS, "chunk.add(-1.0, problem.Z",
     "chunk.add(1.0, problem.Z", f"{SYSTEM}[8]"),
    ("cancelled system believed", SYSTEMS, "system[diagonal] < MIN_REMAINING_FRACTION * gram[diagonal]",
     "system[diagonal] < -gram[diagonal]", f"{SYSTEM}[8]"),
    ("missing entries counted in Σ z² of shared rows", SYSTEMS, "broadcast(system[k * side + k]));",
     "broadcast(problem.gram[k * side + k]));", f"{CONDITIONAL}[gl22]"),
    ("Σ z² of the pattern before", SYSTEMS, "if (is_new || !is_uniform) {", "if (begin == 0 || !is_uniform) {",
     f"{SIZES}[gee-sizes6]"),
    ("rates of the rows before", SYSTEMS, "!(prior.linear.stride || prior.quadratic.stride ||",
     "!(prior.linear.stride ||", "tests/kernels/test_systems.py::test_matrix_rates_with_shared_systems[quadratic]"),
    ("residual product of the next entry not updated in shared rows", SYSTEMS,
     "for (int64_t j = k + 1; j < n_components; ++j)", "for (int64_t j = k + 2; j < n_components; ++j)",
     f"{FROM_SCRATCH}[gee]"),
    ("residual products not kept for the next pass", SYSTEMS, "if (pass + 1 < n_passes)", "if (false)",
     f"{FROM_SCRATCH}[gee]"),
    ("missing factor 2 in the squared error of shared rows", SYSTEMS, "change * (zr + zr - zz * change)",
     "change * (zr - zz * change)", f"{FROM_SCRATCH}[gee]"),
    ("sums of another pattern used", "data/half_sweeps.py",
     "(patterns[rows[1:]] == patterns[rows[:-1]]) & (tiles[rows[1:]]", "(tiles[rows[1:]]",
     "tests/data/test_views.py::test_split_of_any_patterns"),
    ("sums of another tile used", "data/half_sweeps.py", " & (tiles[rows[1:]] == tiles[rows[:-1]])", "",
     "tests/data/test_views.py::test_split_of_any_patterns"),
    # Rows that carry their residuals.
    ("sum of the row not updated in other rows", ROWS, "progress.total = progress.total + change;",
     "progress.total = progress.total - change;", f"{ANY_RANK}[L1Squared + L1-mixed]"),
    ("wrong sign of listed missing entries", RESIDUALS, "is_whole ? -1.0 : 1.0", "is_whole ? 1.0 : 1.0",
     f"{ANY_RANK}[L1-missing]"),
    ("sums of the complete row forgotten", RESIDUALS, " - whole * (before + after)", "", f"{ANY_RANK}[L1-missing]"),
    ("later components forgotten in the sums of the complete row", RESIDUALS, "whole * (before + after)",
     "whole * before", f"{ANY_RANK}[L1-missing]"),
    ("sums of the complete row used for rows that list observed entries", RESIDUALS, " - whole * (before + after)",
     " - (before + after)", f"{ANY_RANK}[L1-mixed]"),
    ("Σ z² of missing entries not subtracted", RESIDUALS, "zz + sign * load(lanes.zz + k * WIDTH)",
     "zz + (broadcast(1.0) - whole) * load(lanes.zz + k * WIDTH)", f"{ANY_RANK}[L1-missing]"),
    ("last change not subtracted from the residuals", RESIDUALS, "                    store(changes, change);\n", "",
     f"{ANY_RANK}[L1-observed]"),
    ("last change subtracted as one of another component", RESIDUALS, "previous = std::max(k - 1, first)",
     "previous = k", f"{ANY_RANK}[L1-observed]"),
    ("last change of a row subtracted as one of the first component", RESIDUALS,
     "subtract_change<true>(last - 1 - first,", "subtract_change<true>(0,", f"{ANY_RANK}[L1-observed]"),
    ("last change of a panel lost", RESIDUALS, "            store(e + i, residual);\n",
     "            if (!SQUARES) store(e + i, residual);\n", f"{PANELS}[observed-1]"),
    ("last change of a pass lost", RESIDUALS, "            store(e + i, residual);\n",
     "            if (!SQUARES) store(e + i, residual);\n", f"{PASSES}[L1-observed-2]"),
    ("first change of a panel subtracted again", RESIDUALS, "                store(changes, broadcast(0.0));\n", "",
     f"{PANELS}[observed-1]"),
    ("components of another panel", RESIDUALS, "w + (panel.first + k) * WIDTH + lane", "w + k * WIDTH + lane",
     f"{PANELS}[observed-1]"),
    ("later entries of the pass before", RESIDUALS, "            begin_pass<E>(n_components, lanes, progress);\n",
     "            if (pass == 0) begin_pass<E>(n_components, lanes, progress);\n"
     "            progress.largest = broadcast(0.0);\n", f"{PASSES}[L2Squared + LInf-mixed-2]"),
    ("one pass in place of two", RESIDUALS, "pass < problem.n_passes", "pass < 1", f"{PASSES}[L1-mixed-2]"),
    ("lists padded with the first row of Z", RESIDUALS, "offsets[n] = problem.n_columns * side;", "offsets[n] = 0;",
     f"{ANY_RANK}[L1-missing]"),
    ("scale of a column ignored", RESIDUALS, "(problem.entry_scale[column] * scale)", "(1.0 * scale)", VARIANCES),
    ("scale of a row ignored", RESIDUALS, "scale = problem.row_scale[row];", "scale = problem.row_scale[0];",
     VARIANCES),
    ("missing factor 2 in the squared error of other rows", RESIDUALS, "whole * of_gram - product - product",
     "whole * of_gram - product", f"{ANY_RANK}[L1-missing]"),
    ("missing factor 2 in the square of the fit", RESIDUALS, "of_gram = before + before + drawn",
     "of_gram = before + drawn", f"{ANY_RANK}[L1-missing]"),
    ("cancelled sums believed", RESIDUALS, "if (any(cancelled)) {", "if (false) {", CANCEL),
    ("complement drawn as if it were the list", RESIDUALS, "is_whole = lists_missing && !is_complement",
     "is_whole = lists_missing", CANCEL),
    ("data of a complement forgotten", RESIDUALS, "lists_missing ? product[k] : 0.0", "is_whole ? product[k] : 0.0",
     CANCEL),
    ("squares of a complement forgotten", RESIDUALS, "lists_missing ? problem.squares[row] : 0.0",
     "is_whole ? problem.squares[row] : 0.0", CANCEL),
    ("missing entry in a complement", ROWS, "                ++i;\n            else",
     "                i += 2;\n            else", CANCEL),
    ("complements of rows not yet drawn left to others", RESIDUALS,
     "        for (bool& is_complement : lists.is_complement)  // complements may be so long that not "
     "all of these were drawn\n" "            is_complement = false;\n",
     "        std::fill_n(lists.is_complement, n_lanes, false);\n",
     "tests/kernels/test_residuals.py::test_complements_of_which_few_fit[4]"),
    # Sums, vectors and draws of eight rows.
    ("lower half of ZᵀZ forgotten", DRAW, "gram[k * side + j] = gram[j * side + k]", "gram[k * side + j] = 0.0",
     f"{ANY_RANK}[L1-missing]"),
    ("first chunk of Z used for all of the data", PRODUCTS, "const double* z = problem.scaled + begin * side;",
     "const double* z = problem.scaled;", f"{EVERY_RANK}[200-0.6]"),
    ("scale of a row ignored in a product", PRODUCTS, "broadcast(problem.row_scale[row])",
     "broadcast(problem.row_scale[0])", VARIANCES),
    ("deviation of a column forgotten in the scaled factor", DRAW, "s[k] = z[k] * problem.entry_scale[row]",
     "s[k] = given[row * n_components + k] * problem.entry_scale[row]", VARIANCES),
    ("factor of a tile ignored", PRODUCTS, "broadcast_register<N>(factor)", "broadcast_register<N>(1.0)",
     f"{SYSTEM}[8]"),
    ("components of the odd half of a vector forgotten", "kernels/rows.hpp", "(length + HALF - 1) / HALF * HALF",
     "length / HALF * HALF", f"{EVERY_RANK}[200-0.6]"),
    ("a line too few in a tile", PRODUCTS, "for (int64_t i = 0; i < n; ++i) {\n" "        Register",
     "for (int64_t i = 0; i + 1 < n; ++i) {\n" "        Register", f"{SYSTEM}[8]"),
    ("a line in an empty tile", PRODUCTS, "for (int64_t i = 0; i < n; ++i) {\n" "        Register",
     "for (int64_t i = 0; i == 0 || i < n; ++i) {\n" "        Register", f"{SYSTEM}[8]"),
    ("transposition without its last step", VECTORS, "    exchange_submatrices<1>(rows);\n", "",
     f"{ANY_RANK}[L1-observed]"),
    ("sums of rows exchanged", VECTORS, "        exchange<D>(rows[i], rows[i + D]);\n" "        rows[i] =",
     "        exchange<D>(rows[i + D], rows[i]);\n" "        rows[i] =", f"{ANY_RANK}[L1-observed]"),
    ("arrays that are not contiguous accepted", ARRAYS, "nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>",
     "nb::ndarray<T, nb::ndim<N>, nb::device::cpu>",
     "tests/kernels/test_arguments.py::test_arguments_of_other_types_are_refused"),
    ("more registers assumed than there are", VECTORS, TILE, TILE[:-2] + "16,",
     "tests/kernels/test_lanes.py::test_tile_fits_the_registers"),
    ("missing factor 2 in the acceptance of vector draws", LANES, "p * x * x > height + height, rejected",
     "p * x * x > height, rejected", SAME_DRAWS),
    ("missing factor 2 in the acceptance of real draws", LANES, "in_tail & (p * x * x > height + height)",
     "in_tail & (p * x * x > height)", SAME_REAL),
    ("stream not advanced over a comparison with the kink", LANES,
     "compared, streams);\n            rejected = rejected | (compared & (rates",
     "no_lane, streams);\n            rejected = rejected | (compared & (rates", f"{SAME_WITH_KINK}[3.0]"),
    ("rejected proposals compared with the kink", LANES,
     "compared = select(rejected, no_lane, pending & (excess > zero))", "compared = pending & (excess > zero)",
     f"{SAME_WITH_KINK}[3.0]"),
    ("stream not advanced over a height", LANES,
     "height = propose(exponentials(), pending_tail, streams);\n            x = x / (zero - b)",
     "height = propose(exponentials(), value > value, streams);\n            x = x / (zero - b)", SAME_DRAWS),
    ("proposals beyond the kink where the mode is below it", LANES, "beyond = select(below, no_lane, (one >=",
     "beyond = select(below, below, (one >=", f"{SAME_WITH_KINK}[3.0]"),
    ("every number accepted at the end of a strip", LANES, "low + height * rise < density", "low < density",
     SAME_DRAWS),
    ("wrong exponent at the end of a strip", LANES, "broadcast(-0.5) * x * x", "zero - x * x", SAME_DRAWS),
    ("fewer terms of the exponential function", LANES, "Vector total = broadcast(1.0 / 5040.0);",
     "Vector total = broadcast(0.0);", "tests/kernels/test_lanes.py::test_exponential_function"),
    ("base strip finished like the others", LANES, "            at_edge = select(at_base, no_lane, at_edge);\n", "",
     SAME_DRAWS),
    ("stream of a lane advanced after acceptance", LANES, "s0 = select(where, s0 ^ t3, s0);", "s0 = s0 ^ t3;",
     SAME_DRAWS),
    ("every proposal accepted next to a kink", LANES, "(compared & (rates * excess > limit))",
     "(compared & (limit < zero))", f"{SAME_WITH_KINK}[3.0]"),
    ("rate ignored above the kink", LANES, "select(beyond, kink - value, value - kink)",
     "select(beyond, kink - value, zero)", f"{SAME_WITH_KINK}[3.0]"),
    ("proposal of the other piece", LANES, "density(select(beyond, b - rates, b), p",
     "density(select(beyond, b, b - rates), p", f"{SAME_WITH_KINK}[3.0]"),
    ("lanes without a row drawn", VECTORS, "return load(lanes + WIDTH - (n < 0 ? 0 : n > WIDTH ? WIDTH : n));",
     "return load(lanes + 0 * n);", "tests/kernels/test_lanes.py::test_lanes_that_are_not_active_read_nothing"),
    ("padding of a factor with what was there", DRAW,
     "        for (int64_t k = n_components; k < side; ++k) z[k] = s[k] = 0.0;\n", "", f"{EVERY_RANK}[200-0.6]"),
    ("no row of zeros after a factor", DRAW, "    std::fill_n(Z + n_rows * side, side, 0.0);\n", "", VARIANCES),
    ("memory of a factor used for something else", SWEEP, "require(memory_->n_uses == n_uses_,",
     "require(memory_ != nullptr,", "tests/kernels/test_arguments.py::test_a_factor_that_is_gone_is_noticed"),
    # The shear move.
    ("slope of the shear with the wrong sign", MOVES, "b = slope_Z - slope_W", "b = slope_W - slope_Z",
     f"{SHEAR_CONDITIONAL}[l1-steep]"),
    ("one factor not sheared", MOVES, "    Z.add_column(k, j, -epsilon);\n", "",
     "tests/kernels/test_moves.py::test_product_is_unchanged[shear-gee]"),
    ("curvature of one factor forgotten", MOVES, "p = curvature_W + curvature_Z", "p = curvature_Z",
     f"{SHEAR_CONDITIONAL}[truncated-normal]"),
    ("missing ½ of the curvature along the shear", MOVES, "(b - 0.5 * p * x) * x", "(b - p * x) * x",
     f"{SHEAR_CONDITIONAL}[truncated-normal-linf]"),
    ("a shear that is NaN sets columns to zero", MOVES, "changed = select(changed < bound, bound, changed);",
     "changed = larger(changed, bound);",
     "tests/kernels/test_moves.py::test_a_density_beyond_the_range_of_floating_point_gives_no_numbers"),
    # Numbers beyond the range of floating point.
    ("a lane without an accepted proposal keeps the last one", LANES, "        if (!any(pending)) return drawn;\n"
     "    }\n" "    return select(pending, broadcast(NOT_A_NUMBER), drawn);",
     "        if (!any(pending)) return drawn;\n" "    }\n" "    return drawn;", "tests/kernels/test_lanes.py::"
     "test_a_lane_beyond_the_range_of_floating_point_is_no_number_and_leaves_the_others_alone"),
    ("a scale without an accepted proposal is 1", MOVES, "    return NOT_A_NUMBER;\n", "    return 0.0;\n",
     "tests/kernels/test_moves.py::test_a_density_beyond_the_range_of_floating_point_gives_no_numbers"),
    ("last components of a product of draws forgotten", ERRORS, "for (; k < n; ++k) sums[0] += double(",
     "for (; k < n; ++k) sums[0] += 0.0 * double(",
     "tests/kernels/test_errors.py::test_products_of_any_strides"),
    ("infinite factors not noticed", ERRORS, "std::fabs(numbers[i]) < INFINITE", "!(numbers[i] != numbers[i])",
     "tests/kernels/test_errors.py::test_numbers_that_are_not_finite_are_found_wherever_they_are"),
    ("one factor not checked", "sampler/gibbs.py", "all_finite(W) and all_finite(Zt)", "all_finite(W)",
     "tests/sampler/test_run.py::test_a_state_that_is_not_finite_is_an_error"),
    # The model and the sampler.
    ("missing ½ of the squared error", "model/noise.py", "0.5 * np.add.reduce(errors)", "np.add.reduce(errors)",
     "tests/model/test_noise.py"),
    ("missing ½ of the count", "model/noise.py", "0.5 * np.add.reduce(counts)", "np.add.reduce(counts)",
     "tests/model/test_noise.py"),
    ("noise counted over M·N", "data/views.py", "self.n_columns - n_listed, n_listed)",
     "self.n_columns, self.n_columns)", f"{RETURN}[gee]"),
    ("mask ignored in one half", "data/views.py", "view(filled.T, mask.T)", "view(filled.T, mask.T | True)",
     f"{RETURN}[gl22]"),
    ("mask ignored in one view", "data/views.py", "view(filled.T, mask.T)", "view(filled.T, mask.T | True)",
     "tests/data/test_observed.py::test_dense_containers"),
    ("priors of W and Z exchanged", "sampler/gibbs.py", "    prior_W, prior_Z = workers.coefficients(model, state",
     "    prior_Z, prior_W = workers.coefficients(model, state", f"{ALL_OBSERVED}[gee and gl22inf]"),
    ("cancelled squared error believed", "data/half_sweeps.py",
     "not all_above(squared_error, self.trusted_errors):", "False:",
     f"{GIBBS}::test_squared_error_of_a_state_is_that_of_its_factors"),
    ("large noise in the warm-up", "sampler/gibbs.py",
     "np.minimum(getattr(noise, side), WARM_UP_VARIANCE * model.mean_square)", "getattr(noise, side)",
     f"{GIBBS}::test_noise_is_small_in_the_warm_up_and_only_there[contaminated]"),
    ("little noise right after the warm-up", "sampler/gibbs.py",
     "state._replace(noise=_settling(model, state.noise))", "state",
     f"{GIBBS}::test_two_equal_columns_do_not_change_the_noise_of_others"),
    ("half-sweeps in the other order in one call", "sampler/gibbs.py",
     'columns_first = model.noise_model.halves[0] == "Z"', 'columns_first = model.noise_model.halves[0] == "W"',
     f"{GIBBS}::test_one_call_draws_what_two_half_sweeps_do"),
    ("sweeps share one stream", "sampler/streams.py", "self.chain, sweep, part)", "self.chain, 0, part)",
     f"{GIBBS}::test_sweeps_of_one_chain_use_different_streams"),
    ("rows share one stream", RANDOM, "high = key.high + row * GOLDEN_GAMMA", "high = key.high + 0 * row",
     "tests/kernels/test_random.py::test_neighbouring_rows_follow_the_distribution_and_are_independent"),
    ("normal tail without acceptance", RANDOM, "if (2.0 * height >= x * x) return start + x;",
     "if (height >= 0.0) return start + x;", "tests/kernels/test_random.py::test_normal_tail"),
    ("normal accepted at the end of every strip", RANDOM,
     "if (low + height * (high - low) < TABLE.density(x)) return", "if (height + low + high >= 0.0) return",
     "tests/kernels/test_random.py::test_one_stream_follows_the_distribution"),
    ("missing factor 2 in the acceptance", TRUNCATED, "return p * x * x <= 2.0 * exponential(stream);",
     "return p * x * x <= exponential(stream);", "tests/kernels/test_truncated_normal.py::test_draw_positive"),
    ("tail draw without acceptance", TRUNCATED, "return p * x * x <= 2.0 * exponential(stream);",
     "return exponential(stream) >= 0.0;", "tests/kernels/test_truncated_normal.py::test_draw_positive"),
    ("max_rate ignored beyond the kink", TRUNCATED, "beyond = b - max_rate - p * kink", "beyond = b - p * kink",
     "tests/kernels/test_truncated_normal.py::test_draw_two_piece"),
    ("wrong power in the rescaling move", MOVES, "double(W.n_rows - Z.n_rows)", "double(Z.n_rows - W.n_rows)",
     PRIOR_INVARIANT),
    ("rescaling move given the old scales", MOVES, "others += scales[j] * at(row, j)", "others += at(row, j)",
     "tests/kernels/test_moves.py::test_scales_are_drawn_given_the_new_scales_of_other_components[pairwise]"),
    ("kinks of the rescaling move with the old scales", MOVES, "        W.set_scale(k, std::exp(u));\n",
     "        W.scales[k] = std::exp(u);\n",
     "tests/kernels/test_moves.py::test_scales_are_drawn_given_the_new_scales_of_other_components[max]"),
    ("kinks of the rescaling move with the component itself", MOVES, "if (k != j) kink", "if (k >= 0) kink",
     PRIOR_INVARIANT),
    ("coefficients of another column in the shear", MOVES, "quadratic.data + j * quadratic.stride",
     "quadratic.data + j * length", PRIOR_INVARIANT),
    ("padding of columns with what was there", MOVES, "columns[k * length + row] = 0.0;", "(void)columns;",
     "tests/kernels/test_moves.py::test_product_is_unchanged[shear-gee]"),
    ("missing ½ of the tangent", "priors/exact_draws.py", "0.5 * pairwise * distance**2", "pairwise * distance**2",
     "tests/priors/test_exact_draws.py::test_row_sum_under_l1_squared_is_chi"),
    ("λ of a product taken twice", "priors/terms.py", '"pairwise": self.rate',
     '"pairwise": 2.0 * self.rate', "tests/priors/test_norms.py"),
    ("root of the variance forgotten", SWEEP, "1.0 / std::sqrt(entry_variance[column])", "1.0 / entry_variance[column]",
     VARIANCES),
    ("missing ½ of the counts of a column", GAMMAS, "strength + 0.5 * double(n_entries[i])",
     "strength + double(n_entries[i])", f"{HIERARCHY}[columns of given strength]"),
    ("missing ½ of the errors of a row", GAMMAS, "strength * scale + 0.5 * squared_error",
     "strength * scale + squared_error", "tests/model/test_noise.py::test_variances_follow_their_conditional"),
    ("strength forgotten in the scale of the variances", GAMMAS, "gamma(0.5 + strength * double(n), stream)",
     "gamma(0.5 + double(n), stream)", f"{HIERARCHY}[columns]"),
    ("normalising constant of one precision in the strength", GAMMAS, "+ n * of_each", "+ of_each", PRECISIONS),
    ("power of the precisions forgotten in the strength", GAMMAS, "(a - 1.0) * total_log", "total_log", PRECISIONS),
    ("small shapes of gamma draws without their power", GAMMAS, "std::exp(-exponential(stream) / shape)",
     "std::exp(-exponential(stream))", GAMMA),
    ("squeeze of gamma draws too wide", GAMMAS, "0.0331 * square", "0.00331 * square", GAMMA),
    ("acceptance of gamma draws without the normal", GAMMAS, "< 0.5 * square + d *", "< d *", GAMMA),
    ("bound of the precisions forgotten", GAMMAS, "return x <= bound;", "return true;", BOUNDED),
    ("all precisions along the tangent accepted", GAMMAS, "at_bound * (std::expm1(-t) + t) <=", "0.0 <=", BOUNDED),
    ("tangent of precisions below a bound too steep", GAMMAS, "exponential(stream) / (shape - at_bound)",
     "exponential(stream) / shape", BOUNDED),
    ("rate drawn from the wrong factor", "model/model.py", "if factor in factors else", "if factor not in factors else",
     f"{HIERARCHY}[rate of W alone]"),
    ("degree of a penalty off by a factor 2", GAMMAS, "double(n_rows) / degree", "double(n_rows)",
     f"{HIERARCHY}[rate of L2Squared]"),
    ("rate of a component drawn from all of them", GAMMAS, "penalty[by_component ? k : 0] += of_entry;",
     "penalty[0] += of_entry;", f"{HIERARCHY}[rates of L1 by component]"),
    ("products of components counted twice in a rate", GAMMAS, "0.5 * prior.pairwise * (sum", "prior.pairwise * (sum",
     "tests/kernels/test_gammas.py::test_rate_of_a_norm_of_rows_follows_its_conditional"),
    ("units forgotten in one half", "model/model.py",
     "return self.data.columns.scaled(row_scale=1.0 / self.units.scale)", "return self.data.columns.scaled()",
     f"{HIERARCHY}[columns in other units]"),
    # Components that are fixed in a factor, and the choice of K.
    ("fixed components drawn", ROWS, "if (k < problem.first_drawn || k >= problem.end_drawn) {", "if (false) {",
     "tests/model/test_fixed.py::test_what_is_fixed_stays_and_keeps_its_place"),
    ("fixed components moved", "sampler/moves.py", "if end - first < W.shape[1]:\n", "if False:\n",
     "tests/model/test_fixed.py::test_what_is_fixed_stays_and_keeps_its_place"),
    ("fixed components in units of the data", "model/fixed.py", "(self.components / scale).T", "self.components.T",
     "tests/model/test_fixed.py::test_what_is_fixed_stays_and_keeps_its_place"),
    ("fixed components scaled when aligned", "posterior/components.py",
     "factor[:, :, free], similarity[:, free] = found.scale[:, :, by_size], found.similarity[:, by_size]",
     "factor[:] = found.scale[:, :, by_size[:1]]",
     "tests/model/test_fixed.py::test_known_signatures_beside_an_unknown_one"),
    ("importance weights of the wrong sign", "selection.py", "array_stats.psislw(terms[varies]",
     "array_stats.psislw(-terms[varies]",
     "tests/test_selection.py::test_leave_one_out_densities_agree_with_hidden_entries"),
    ("folds that hide whole columns", "data/folds.py", "    turn[first[loses_all]] = -1\n", "",
     "tests/data/test_folds.py::test_columns_of_two_entries_keep_one"),
    # What keeps files and results safe.
    ("checksum not compared", CHECKSUMS, "if checksum != expected:", "if False:",
     f"{CHECKPOINT}::test_a_changed_number_is_found"),
    ("checksum of any run", CHECKSUMS, 'f"{self._identity} {chain} {name} {first} {last}"',
     'f"{name} {first} {last}"',
     "tests/sampler/test_checkpoint.py::test_files_of_other_runs_and_chains_are_found"),
    ("checksums of draws by sweeps", CHECKSUMS, "        if name != SWEEPS:\n", "        if False:\n",
     f"{CHECKPOINT}::test_another_length_draws_what_is_missing_and_loses_nothing"),
    ("state written before its draws", "sampler/checkpoint.py",
     "            array.flush()  # type: ignore[attr-defined]\n", "            pass\n",
     f"{CHECKPOINT}::test_draws_are_on_disk_before_their_state"),
    ("room not reserved", "sampler/checkpoint.py", "            files.reserve(temporary)\n", "",
     f"{CHECKPOINT}::test_the_room_of_every_file_is_reserved"),
    ("fills of whole numbers cut", "tables/arrays.py", 'if len(fills.values) and filled.dtype.kind != "f":',
     "if False:", "tests/tables/test_files.py::test_array_fills_keep_the_precision"),
    ("room not looked for", "utils/files.py", "if shutil.disk_usage(directory).free < needed:", "if False:",
     f"{CHECKPOINT}::test_a_disk_without_room_is_refused_before_the_first_file"),
    ("full disk not explained", "utils/files.py", "if error.errno not in NO_ROOM:", "if True:",
     "tests/utils/test_files.py::test_errors_of_a_full_disk_are_explained"),
    ("file that was cut off filled with zeros", "sampler/checkpoint.py", 'open_memmap(path, mode="r")',
     'open_memmap(path, mode="r+")', f"{CHECKPOINT}::test_a_file_that_was_cut_off_is_not_filled_with_zeros"),
    ("foreign temporary files removed", "sampler/checkpoint.py", "ABANDONED.fullmatch(path.name)",
     'path.name.endswith(".tmp")', f"{CHECKPOINT}::test_foreign_files_are_left_alone"),
    ("foreign files overwritten", "sampler/checkpoint.py", "    if found:\n        raise CheckpointError(",
     "    if False:\n        raise CheckpointError(",
     f"{CHECKPOINT}::test_a_directory_with_files_of_these_names_is_refused"),
    ("draws on disk writable", "sampler/checkpoint.py", "array.flags.writeable = False", "pass",
     f"{CHECKPOINT}::test_a_finished_run_is_read_and_not_sampled_again"),
    ("long run not announced", "sampler/chains.py", "if left > LONG_RUN_SECONDS:", "if False:",
     "tests/sampler/test_run.py::test_a_long_run_is_announced_once"),
    ("infinite variances accepted", "sampler/chains.py", "if not (smallest > 0.0 and largest < LARGEST_SQUARE):",
     "if False:", "tests/sampler/test_run.py::test_a_state_that_is_not_finite_is_an_error"),
    ("estimator not restored after a failed fit", "inputs.py", "        vars(estimator).update(before)\n", "",
     "tests/test_refit.py::test_a_failed_refit_changes_nothing"),
    ("data read before standard errors are checked", "estimator.py",
     "        check_known_noise(self.noise, noise_scale, sample_weight)\n", "",
     "tests/test_estimator.py::test_wrong_arguments_are_found_before_the_data_are_touched"),
    ("seed of the estimator ignored in a selection", "selection.py",
     "as_seed(estimator.random_state if random_state is None else random_state)", "as_seed(random_state)",
     "tests/test_selection.py::test_random_state_and_progress"),
    ("attributes of a failed fit left", "inputs.py", "        vars(estimator).clear()\n", "",
     "tests/test_refit.py::test_a_failed_first_fit_leaves_nothing"),
    ("results larger than memory", "utils/memory.py", "    if free is not None and needed > free:\n", "    if False:\n",
     "tests/utils/test_memory.py::test_results_that_do_not_fit_are_refused_with_another_way"),
    ("positions of sparse data not checked", "data/containers.py", "    check_positions(X)\n", "",
     "tests/data/test_containers.py::test_positions_outside_are_refused"),
    ("data that cannot be squared", "data/containers.py", "    if max(-lowest, highest) > LARGEST:\n",
     "    if False:\n", "tests/data/test_observed.py::test_bad_input"),
    ("columns that cannot be squared", "model/units.py", "    if len(tiny):\n", "    if False:\n",
     "tests/model/test_units.py::test_columns_that_cannot_be_squared"),
    ("noise beyond single precision", "posterior/predictions.py",
     "        largest = np.maximum(largest, noise.largest_deviations())\n", "        pass\n",
     "tests/posterior/test_predictions.py::test_quantiles_of_noise_that_is_far_larger_than_the_signal"),
    ("lost arrays of a file taken for none", ARCHIVE,
     'raise ValueError("its arrays are not those that were saved together")', "pass",
     "tests/posterior/test_archive.py::test_files_that_were_put_together_otherwise"),
    ("pickles in a file run", ARCHIVE, "np.load(content, allow_pickle=False)", "np.load(content, allow_pickle=True)",
     "tests/posterior/test_archive.py::test_nothing_in_a_file_is_run"),
    ("a useless fit not noted", "posterior/notes.py", "if error[is_exact].sum() > WORSE * trivial[is_exact].sum():",
     "if False:", "tests/posterior/test_notes.py::test_a_fit_that_explains_nothing"),
    ("a useless column not noted", "posterior/notes.py", "if len(worse):", "if False:",
     "tests/posterior/test_notes.py::test_a_column_that_is_not_explained_is_named"),
    ("a constant column noted", "posterior/notes.py", "np.maximum(by_column[1], least)", "by_column[1]",
     "tests/posterior/test_notes.py::test_errors_that_are_small_beside_the_column_are_not_noted"),
    ("one prediction that is far off taken for a column", "posterior/verdict.py", "and difference.mean() > chance)",
     ")", "tests/posterior/test_verdict.py::test_predictions_that_are_worse_than_the_mean_of_a_column"),
    ("learned offsets counted among the components", "model/build.py", "n_components += n_fixed - sum(given.counts)",
     "pass", "tests/model/test_fixed.py::test_offsets_of_columns_are_learned[2]"),
    ("a component as weak as noise called good", "posterior/verdict.py", "GOOD if is_active and n_found",
     "GOOD if n_found", "tests/report/test_report.py::test_components_are_judged_by_the_verdict_alone"),
    ("a method with hardly smaller errors called better", "posterior/verdict.py",
     "own.mean() > ratio * others.mean() and", "", "tests/posterior/test_verdict.py::test_which_method_is_best"),
    ("an outlier not noted", "posterior/notes.py", "np.flatnonzero(gaps > WIDEST_GAP)", "np.flatnonzero(gaps > np.inf)",
     "tests/posterior/test_notes.py::test_an_outlier_is_named"),
    # Entries with individual precisions.
    ("root of a weight forgotten", "model/model.py", "root = np.sqrt(self.weights(noise))",
     "root = self.weights(noise)", f"{WEIGHTS}[gee-known]"),
    ("weights of columns in the order of rows", "model/model.py", "root[self.data.column_order]", "root",
     "tests/model/test_model.py::test_roots_of_weights"),
    ("data not multiplied by the roots of their weights", RESIDUALS, "residuals[i] *= root;", "residuals[i] *= 1.0;",
     f"{ANY_RANK}[L1-weighted]"),
    ("rows of Z not multiplied by the roots of weights in all lanes", RESIDUALS,
     "for (Vector& numbers : z) numbers = numbers * root;", "for (int j = 1; j < N; ++j) z[j] = z[j] * root;",
     f"{ANY_RANK}[L1-weighted]"),
    ("a component beyond half a vector not gathered", RESIDUALS, "n_components - panel.first - k <= HALF",
     "n_components - panel.first - k <= HALF + 1", f"{ANY_RANK}[L1-observed]"),
    ("factor 2 in the shape of the factors of entries", "model/student_t.py",
     "rng.standard_gamma(0.5 * (df + 1.0), size=squares.size)", "rng.standard_gamma(df + 1.0, size=squares.size)",
     "tests/model/test_noise.py::test_factors_follow_their_conditional"),
    ("factors of entries forgotten in the variances", "sampler/gibbs.py", "            if is_used:\n",
     "            if is_used:\n                errors = view.squared_errors(given, other, workers)\n",
     f"{HIERARCHY}[Student's t]"),
    ("log density with the degrees of freedom before", "sampler/gibbs.py", "model.log_likelihood_of(residuals, noise)",
     "model.log_likelihood_of(residuals, noise._replace(df=state.noise.df))",
     f"{GIBBS}::test_log_likelihood_of_every_state"),
    ("degrees of freedom forgotten in predictions", "posterior/base.py", "return Law.of(vars(self))", "return Law()",
     "tests/posterior/test_predictions.py::test_moments_and_densities"),
    ("variance of Student's t taken for its squared scale", "posterior/predictions.py",
     "self.column * self.law.variance", "self.column",
     "tests/posterior/test_predictions.py::test_moments_and_densities"),
    ("known noise of new rows not squared", "posterior/new_rows.py", "factor[row_of, view.indices] ** 2",
     "factor[row_of, view.indices]",
     "tests/posterior/test_new_rows.py::test_draws_follow_the_conditional"),
    ("standard errors in the user's units", "model/build.py", "_errors_of_entries(noise_scale, data) / units.scale",
     "_errors_of_entries(noise_scale, data)", "tests/test_entry_noise.py::test_known_noise_is_that_of_the_predictions"),
]]  # fmt: skip


# An editable installation would come before PYTHONPATH. Python runs this at its start, in every process of a copy.
FIRST_OF_ALL = """import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "bnmf" not in getattr(finder, "known_packages", ())]
"""


def copied(folder: Path) -> None:
    """Copy the package, with its compiled modules, and the tests to a folder."""
    build = shutil.ignore_patterns("CMake*", "*.a", "*.ninja", ".ninja*", "*.cmake", "__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=build)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=build)
    shutil.copy(ROOT / "src" / "bnmf" / "kernels" / "CMakeLists.txt", folder / "src" / "bnmf" / "kernels")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "src" / "sitecustomize.py").write_text(FIRST_OF_ALL, encoding="utf-8")


def compiled(folder: Path, **options: str) -> None:
    """Compile the kernels of a copy, for the level of this processor only, as far as a source has changed."""
    import nanobind  # only developers who compile the kernels have it

    kernels, build = folder / "src" / "bnmf" / "kernels", folder / "build"
    if not build.exists():
        settings = {
            "BNMF_LEVELS": LEVEL, "CMAKE_LIBRARY_OUTPUT_DIRECTORY": kernels, "CMAKE_BUILD_TYPE": "Fast",
            "CMAKE_CXX_FLAGS_FAST": "-O1", "Python_EXECUTABLE": sys.executable, "nanobind_DIR": nanobind.cmake_dir(),
        }  # fmt: skip
        definitions = [f"-D{name}={value}" for name, value in (settings | options).items()]
        run(["cmake", "-S", kernels, "-B", build, "-G", "Ninja", *definitions])
    run(["cmake", "--build", build, "--target", f"_{LEVEL}"])
    for module in kernels.glob("*.so"):
        module.touch()


def run(command: list[str | Path]) -> None:
    """Run a command of the environment, and raise an error with its output if it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed\n{done.stdout}{done.stderr}")


# Errors of a mutation that is no program: the test would fail whatever it asserts.
NOT_CAUGHT = ("NameError: ", "SyntaxError: ", "UnboundLocalError: ")


def caught(mutation: Mutation, folder: Path) -> bool:
    """Return whether the test fails in a copy of the package while it has the mutation."""
    file = folder / "src" / "bnmf" / mutation.file
    source = file.read_text(encoding="utf-8")
    if mutation.right not in source:
        raise ValueError(f"{mutation.file} no longer has {mutation.right!r}")
    file.write_text(source.replace(mutation.right, mutation.wrong), encoding="utf-8")
    try:
        if file.suffix in (".hpp", ".cpp"):
            compiled(folder)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutation.test]
        environment = os.environ | {"PYTHONPATH": str(folder / "src")}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
    finally:
        file.write_text(source, encoding="utf-8")
    if done.returncode not in (0, 1) or any(error in done.stdout for error in NOT_CAUGHT):
        raise RuntimeError(f"{mutation.name}: the test did not run\n{done.stdout}{done.stderr}")
    return done.returncode == 1


def check() -> int:
    """Print the mutations that no longer fit the code or name no test, and return how many there are."""
    wrong = []
    for mutation in MUTATIONS:
        path, _, function = mutation.test.partition("::")
        source = (ROOT / "src" / "bnmf" / mutation.file).read_text(encoding="utf-8")
        if source.count(mutation.right) != 1 or mutation.wrong == mutation.right:
            wrong.append(
                f"{mutation.name}: {mutation.file} has {mutation.right!r} {source.count(mutation.right)} times"
            )
        if f"def {function.partition('[')[0]}" not in (ROOT / path).read_text(encoding="utf-8"):
            wrong.append(f"{mutation.name}: there is no {mutation.test}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return len(wrong)


def main(words: list[str]) -> int:
    """Try every mutation whose name holds all the words, and return the number that nothing caught."""
    survivors = 0
    chosen = [mutation for mutation in MUTATIONS if all(word in mutation.name for word in words)]
    # Those of Python come first: the modules of the copy are then still those without a mutation.
    chosen.sort(key=lambda mutation: not mutation.file.endswith(".py"))
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        for mutation in chosen:
            found = caught(mutation, Path(folder))
            survivors += not found
            print(f"{'caught  ' if found else 'SURVIVED'}  {mutation.name}", flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else main(sys.argv[1:]))
