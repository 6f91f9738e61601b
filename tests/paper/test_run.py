"""Running many fits: each once, with progress, and saved at once."""

import threading

import numpy as np
import pytest

from bnmf.paper import run as module
from bnmf.paper.finished import FinishedFits, data_fingerprint
from bnmf.paper.fits import Fit
from bnmf.paper.run import Interrupted, run_fits
from bnmf.utils import progress

X = np.random.default_rng(0).exponential(2.0, (10, 8))
FOUR_FITS = [Fit("made", model, 2, repeat, n_sweeps=25, burn_in=5) for model in ("gee", "gl22") for repeat in range(2)]


@pytest.fixture
def finished(tmp_path):
    return FinishedFits(tmp_path, {"made": data_fingerprint(X)})


def test_results_are_in_the_order_of_the_fits():
    results = run_fits([*FOUR_FITS, FOUR_FITS[0]], {"made": X})
    assert list(results) == FOUR_FITS
    assert all(len(result["train_mse"]) == 25 for result in results.values())


def test_two_processes_give_the_same_results(finished):
    one, two = run_fits(FOUR_FITS, {"made": X}), run_fits(FOUR_FITS, {"made": X}, n_jobs=2, finished=finished)
    for fit in FOUR_FITS:
        np.testing.assert_allclose(one[fit]["train_mse"], two[fit]["train_mse"])


def test_finished_fits_are_not_run_again(finished, monkeypatch):
    first = run_fits(FOUR_FITS[:3], {"made": X}, finished=finished)
    ran = []
    original = module.run_fit
    monkeypatch.setattr(module, "run_fit", lambda fit, X: ran.append(fit) or original(fit, X))
    results = run_fits(FOUR_FITS, {"made": X}, finished=finished)
    assert ran == FOUR_FITS[3:]
    np.testing.assert_array_equal(results[FOUR_FITS[0]]["train_mse"], first[FOUR_FITS[0]]["train_mse"])
    ran.clear()
    run_fits(FOUR_FITS, {"made": X}, finished=finished)
    assert ran == []


def test_an_interrupted_run_keeps_its_results(finished, monkeypatch, capsys):
    original, ran = module.run_fit, []

    def interrupted(fit, X):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(fit)
        return original(fit, X)

    monkeypatch.setattr(module, "run_fit", interrupted)
    with pytest.raises(Interrupted, match="2 of 4 fits are done") as interrupt:
        run_fits(FOUR_FITS, {"made": X}, finished=finished)
    assert isinstance(interrupt.value, KeyboardInterrupt)
    assert (interrupt.value.done, interrupt.value.total) == (2, 4)
    assert sum(finished.load(fit) is not None for fit in FOUR_FITS) == 2
    monkeypatch.setattr(module, "run_fit", original)
    run_fits(FOUR_FITS, {"made": X}, finished=finished, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["4 fits, 2 of them already finished", "4/4 fits, all done"]


def test_progress_counts_and_estimates(monkeypatch):
    # The time left is the time so far, times the cost of the missing fits relative to that of the finished ones.
    seconds, shown = [0.0], []

    class Recorder(progress.Silent):
        def __init__(self, totals, done, *, unit):
            shown.append((totals, done, unit))

        def update(self, task, done, facts):
            shown.append((task, done, facts()))

    def one_minute(fit, X):
        seconds[0] += 60.0
        return {}

    monkeypatch.setattr(module, "Display", Recorder)
    monkeypatch.setattr(module, "run_fit", one_minute)
    monkeypatch.setattr(module, "_shuffled", list)
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    fits = [Fit("made", "gee", k, 0, n_sweeps=100, burn_in=0) for k in (2, 4, 8, 10)]  # costs 4 : 6 : 10 : 12
    run_fits(fits, {"made": X}, progress=True)
    assert shown == [
        ({"fits": 4}, {"fits": 0}, "fits"),
        ("fits", 1, "7 min 0 s left"),
        ("fits", 2, "4 min 24 s left"),
        ("fits", 3, "1 min 48 s left"),
        ("fits", 4, "all done"),
    ]


def test_progress_is_a_bar_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run_fits(FOUR_FITS, {"made": X}, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "4/4" in shown.err
    assert "all done" in shown.err
    assert "━" in shown.err


def test_no_progress_by_default(capsys):
    run_fits(FOUR_FITS[:1], {"made": X})
    assert capsys.readouterr() == ("", "")


def test_only_the_error_of_a_shutdown_is_hidden(monkeypatch):
    shown = []
    monkeypatch.setattr(threading, "excepthook", lambda error: shown.append((error.thread.name, error.exc_type)))

    def fail(error):
        raise error

    cases = [("ExecutorManagerThread", KeyError), ("ExecutorManagerThread", ValueError), ("another", KeyError)]
    with module._quiet_shutdown():
        for name, error in cases:
            thread = threading.Thread(target=fail, args=(error(),), name=name)
            thread.start()
            thread.join()
    assert shown == cases[1:]
