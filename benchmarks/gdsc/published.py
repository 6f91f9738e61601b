"""Published results on the same file, by 5-fold cross-validation over entries.

T. Brouwer and P. Lió, Prior and Likelihood Choices for Bayesian Matrix Factorisation on Small Datasets, 2017
(arXiv:1712.00288), show them as a figure. The numbers are those of the last version of the result files that the figure
is drawn from, in the folder experiments/cross_validation/drug_sensitivity_gdsc/results of their repository
ThomasBrouwer/BMF_Priors.
"""

from typing import NamedTuple


class Published(NamedTuple):
    """A model of theirs, its folder among the results, and mean squared error and R² of each fold."""

    name: str
    factors: str
    folder: str
    commit: str
    mse: tuple[float, ...]
    r2: tuple[float, ...]


PUBLISHED = (
    Published(
        "GLLI", "Laplace, rates learned", "gaussian_laplace_ig", "c7be30e",
        (701.245, 673.468, 715.560, 693.730, 687.496), (0.63509, 0.64774, 0.62662, 0.63904, 0.64269),
    ),
    Published(
        "GVnG", "one Gaussian, one nonnegative with volume prior", "gaussian_gaussian_volumeprior_nonnegative",
        "a6b84dd", (686.435, 692.010, 701.274, 706.532, 692.220), (0.64157, 0.64015, 0.63701, 0.63095, 0.63780),
    ),
    Published(
        "GLL", "Laplace", "gaussian_laplace", "c7be30e",
        (717.801, 698.298, 687.856, 700.352, 692.960), (0.62360, 0.63633, 0.64217, 0.63528, 0.64027),
    ),
    Published(
        "GVG", "Gaussian, one with volume prior", "gaussian_gaussian_volumeprior", "a6b84dd",
        (701.360, 712.163, 694.467, 705.723, 694.210), (0.63515, 0.62922, 0.63801, 0.63420, 0.63560),
    ),
    Published(
        "GGGA", "Gaussian, a rate for each component", "gaussian_gaussian_ard", "a6b84dd",
        (689.043, 694.830, 705.069, 718.880, 713.819), (0.64432, 0.63611, 0.63000, 0.62772, 0.62666),
    ),
    Published(
        "GGG", "Gaussian", "gaussian_gaussian", "a6b84dd",
        (716.575, 715.037, 716.547, 692.861, 706.562), (0.62721, 0.62859, 0.62669, 0.63624, 0.63285),
    ),
    Published(
        "GEG", "one Gaussian, one exponential", "gaussian_gaussian_exponential", "a6b84dd",
        (712.404, 701.505, 723.265, 706.530, 714.641), (0.62861, 0.63380, 0.62139, 0.63173, 0.63033),
    ),
    Published(
        "GGGW", "Gaussian with a Wishart prior", "gaussian_gaussian_wishart", "a6b84dd",
        (713.175, 728.401, 710.118, 723.047, 710.268), (0.62609, 0.62432, 0.62864, 0.62366, 0.62930),
    ),
    Published(
        "GEE", "exponential", "gaussian_exponential", "a6b84dd",
        (711.595, 719.725, 730.178, 719.807, 708.890), (0.62940, 0.62538, 0.61894, 0.62382, 0.63173),
    ),
    Published(
        "GTT", "truncated normal", "gaussian_truncatednormal", "a6b84dd",
        (717.652, 712.660, 704.328, 734.031, 725.587), (0.62654, 0.62856, 0.63292, 0.61777, 0.62143),
    ),
    Published(
        "GEEA", "exponential, a rate for each component", "gaussian_exponential_ard", "a6b84dd",
        (712.048, 716.543, 709.177, 737.129, 726.328), (0.62717, 0.62725, 0.63164, 0.61493, 0.62255),
    ),
    Published(
        "GGGU", "Gaussian, entry by entry", "gaussian_gaussian_univariate", "a6b84dd",
        (714.627, 716.561, 720.010, 732.995, 722.903), (0.62673, 0.62924, 0.62499, 0.61705, 0.62239),
    ),
    Published(
        "GTTN", "truncated normal, means and variances learned", "gaussian_truncatednormal_hierarchical", "a6b84dd",
        (712.801, 730.180, 719.936, 717.701, 732.509), (0.62989, 0.62051, 0.62257, 0.62717, 0.61716),
    ),
    Published(
        "GL21", "L2,1 norm, nonnegative", "gaussian_l21", "c3da6b0",
        (724.326, 731.967, 733.232, 718.276, 731.542), (0.62261, 0.62051, 0.61755, 0.62328, 0.61963),
    ),
    Published(
        "PGGG", "Poisson data, Gamma, rates learned", "poisson_gamma_gamma", "a6b84dd",
        (762.038, 761.101, 754.660, 752.044, 729.891), (0.60145, 0.60219, 0.60696, 0.60963, 0.62068),
    ),
    Published(
        "NMF-NP", "NMF by divergence, no prior", "baseline_mf_nonprobabilistic", "8a6396e",
        (759.759, 746.685, 754.005, 738.381, 770.760), (0.60236, 0.61128, 0.60669, 0.61507, 0.60043),
    ),
    Published(
        "PGG", "Poisson data, Gamma", "poisson_gamma", "a6b84dd",
        (758.926, 756.700, 741.174, 753.062, 773.337), (0.60378, 0.60555, 0.61425, 0.60813, 0.59705),
    ),
    Published(
        "column mean", "", "baseline_average_column", "6f968ab",
        (912.049, 905.772, 918.340, 913.683, 937.058), (0.52635, 0.52998, 0.52106, 0.52347, 0.50901),
    ),
)  # fmt: skip
