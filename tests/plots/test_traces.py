"""Traces show what the posterior holds."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from bnmf import Posterior
from bnmf.plots import plot_convergence


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return Posterior(np.ones((3, 5, 4, 2)), np.ones((3, 5, 2, 6)), np.ones((3, 5)), rng.random((3, 9)), n_observed=24)


def test_convergence(posterior):
    ax = Figure().add_subplot()
    assert plot_convergence(posterior, ax) is ax
    assert [line.get_label() for line in ax.lines] == ["chain 0", "chain 1", "chain 2"]
    for line, mse in zip(ax.lines, posterior.train_mse, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 10))
        np.testing.assert_array_equal(line.get_ydata(), mse)
    assert ax.get_xlabel() == "sweep"


def test_current_axes_by_default(posterior):
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    assert plot_convergence(posterior) is ax
    pyplot.close(figure)
