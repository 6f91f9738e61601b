"""``bnmf rank``: the table and the choice of select_rank."""

import re

import numpy as np

from bnmf import BayesianNMF, select_rank
from bnmf.cli.rank import numbers_to_try

SHORT = ("--draws", "20", "--burn-in", "20", "--folds", "2", "--jobs", "1")


def test_choice_of_select_rank(program, table, small):
    result = program("rank", table, "--ks", "1,2", *SHORT)
    model = BayesianNMF(n_chains=2, burn_in=20, n_draws=20)
    choice = select_rank(small, [1, 2], estimator=model, n_folds=2, random_state=0)
    assert choice.sentence in " ".join(result.stdout.split())
    for density in choice.table["log_density"]:
        assert f"{density:.4f}" in result.stdout
    assert "4/4 fits" in result.stderr
    assert "RMSE" not in result.stdout  # each column has a unit of its own
    result = program("rank", table, "--ks", "1", *SHORT, "--scale", "matrix")
    assert re.search(r"RMSE *\n─+\n1 .* best +[\d.]+ *$", result.stdout, re.MULTILINE)


def test_negative_numbers_with_an_offset_and_limits(program, small, tmp_path):
    np.save(tmp_path / "x.npy", small - 1)
    result = program("rank", tmp_path / "x.npy", "--ks", "2", *SHORT, "--offset", "min", "--capped", "3=0.5")
    assert "K = 2 is the only number of components that was tried" in result.stdout


def test_numbers_suit_the_table_and_no_warning_of_python_is_shown(program, table):
    assert [numbers_to_try(None, shape) for shape in ((500, 8), (500, 80))] == [[1, 2, 3, 4, 7], [2, 5, 10, 20]]
    result = program("rank", table, "--draws", "5", "--burn-in", "5", "--folds", "2", "--jobs", "1")
    assert re.findall(r"^(\d+) +-?\d", result.stdout, re.MULTILINE) == ["1", "2", "3", "4"]
    assert set(re.findall(r"^[A-Z]\w+|Warning", result.stderr, re.MULTILINE)) == set()
