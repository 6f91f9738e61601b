"""BayesianNMF: the sampler as a scikit-learn transformer."""

from __future__ import annotations

import os
import time
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bnmf.data.folds import folds
from bnmf.data.observed import ObservedMatrix
from bnmf.inputs import all_or_nothing, in_memory, of_fit, refuse_other_labels
from bnmf.model.build import check_known_noise, check_offset
from bnmf.model.fixed import Fixed
from bnmf.posterior import fitting, new_rows
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.posterior import Posterior
from bnmf.priors.names import allows_negative, as_pair
from bnmf.sampler.checkpoint import stored_seed
from bnmf.sampler.run import Ending, InterruptedRunWarning
from bnmf.sampler.stores import Schedule
from bnmf.sampler.until_converged import N_FIRST_DRAWS
from bnmf.utils import arguments
from bnmf.utils.arguments import as_seed
from bnmf.utils.typing import Floats

# Number of turns in which `score` hides the observed entries.
N_SCORE_FOLDS = 5
# Observed entries for which calibrate="auto" measures the calibration.
CALIBRATED = (500, 2_000_000)


class BayesianNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Bayesian nonnegative matrix factorisation of a matrix with missing entries.

    X is modelled as W Z plus noise, with nonnegative W and Z whose prior acts as a norm penalty. The whole posterior is
    sampled, so every prediction has an uncertainty. NaN is missing; zero is not.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components K, fixed ones included. "auto" takes 20 in addition to fixed ones, or the smaller side of X
        if that is less: superfluous components vanish under the default prior.
    prior : str, Prior or pair of them, default="ard"
        "exponential" and "half-normal" are for nonnegative factors, "normal" and "laplace" for factors that may be
        negative, as the data may be then; they learn a rate for each component. "ard" is "exponential". "gee", "gl12",
        "gl22", "glinf" and "gl22inf" are the models of the paper with its λ = 0.1. Or a prior from :mod:`bnmf.priors`,
        or a pair for W and for Z: ``("ard", "normal")`` for nonnegative W alone.
    noise : {"auto", "contaminated", "column", "row", "both", "common", "student-t", "known"} or noise model, \
default="auto"
        Whether the variance of the noise is learned for each column, each row, each of both, once for all entries, or
        given to :meth:`fit` as `noise_scale`. "contaminated" is "column" with rare gross errors, and "student-t" has
        still heavier tails. "auto" is "contaminated" for tables, "student-t" if some of their entries are extremely far
        off, and "column" for sparse or mostly missing data, more than two million entries, limits of half of the
        entries, `noise_scale` or `sample_weight`. Or a noise model from :mod:`bnmf.noise`.
    scale : {"column", "matrix", None}, default="column"
        Unit in which the model works, and which priors refer to: the root mean square of the observed entries of each
        column, or of all of them; None keeps the units of X. Results are in the units of X.
    offset : {"auto", "learned", "both", "min", "mean", None}, default="auto"
        "learned" learns an offset of each column, above zero or, for priors of factors that may be negative, around the
        mean: one component more than `n_components`, the last, whose weights are 1. "auto" is that with
        ``n_components="auto"`` and priors that learn a rate for each component, unless components are fixed or a sparse
        X has zeros that are not stored; and None otherwise. "both" adds an effect of each row, for ratings: one
        component more, the first. "min" subtracts the smallest observed entry of each column, so that negative data
        are allowed, and adds it to predictions; "mean" the mean, for priors of factors that may be negative.
    n_chains : int, default=4
        Number of chains, each with its own start.
    burn_in : int, default=300
        Sweeps discarded at the start of each chain.
    n_draws : int or "auto", default=200
        Draws kept of each chain. "auto" continues until the predictions are good or `max_time` is over: with longer
        chains, or with more of them where longer ones would still disagree.
    thinning : int, default=1
        Sweeps from one kept draw to the next.
    init : "random" or pair of arrays, default="random"
        Draws from the prior, or starting values W0 (rows, K) and Z0 (K, columns), so that W0 Z0 is in the units of X.
    fixed_components : array-like of shape (n, n_features), optional
        The first n rows of Z, which stay as given, in the units of X: known signatures.
    fixed_weights : array-like of shape (n_samples, n), optional
        The last n columns of W, which stay as given. A column of ones gives each column of X an offset that is learned.
    unstored : {"zero", "missing"}, default="zero"
        Meaning of the entries that a sparse X does not store.
    checkpoint : path-like, optional
        A directory that keeps draws and states. The same call continues a fit that was cut off; other values of
        `n_draws` and `n_chains` take what is there and draw only what is not.
    keep_draws : bool, default=True
        If False, keep only means and standard deviations.
    draws_dtype : {"float64", "float32"}, default="float64"
        Precision of the draws that are kept.
    n_jobs : int, optional
        Number of threads; -1 for all cores. By default as many as there are chains or cores, and one where joblib runs
        several fits side by side. The draws do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        An integer makes the draws reproducible.
    progress : bool, default=False
        Show progress on standard error.
    max_time : float, optional
        Seconds after which no more draws are taken; a TimeoutError if there is none by then. By default there is no
        limit, and ``n_draws="auto"`` takes no more draws after 60 seconds, but the first 100 in any case. If the time
        is over, the number of draws depends on the machine; their values do not.
    calibrate : bool or "auto", default="auto"
        Hide a tenth of the observed entries from two more chains and see how well they predict them: `calibration_`,
        and the verdict. "auto" does that for 500 to 2 million observed entries and two or more chains of 100 draws.

    Attributes
    ----------
    posterior_ : Posterior
        The draws and everything computed from them (:class:`bnmf.posterior.base.Moments` with
        ``keep_draws=False``).
    data_ : ObservedMatrix
        The fitted data, in the form of the sampler.
    components_ : ndarray of shape (K, n_features)
        Posterior mean of Z, components aligned between draws and scaled so that columns of W have mean 1.
    n_components_ : int
        Number of components, effects of rows and columns included.
    offset_ : ndarray of shape (n_features,) or None
        What was subtracted from each column, and is added to predictions.
    noise_variance_ : float or ndarray of shape (n_features,)
        Posterior mean of the noise variance, of each column if it differs between columns. With Student's t this is the
        squared scale; with `noise_scale` it multiplies the squares of those, relative ones unless ``noise="known"``.
    n_iter_ : int
        Sweeps of each chain.
    ending_ : {"complete", "interrupted", "max_time", "memory"}
        Why sampling ended: all draws were taken (with ``n_draws="auto"``, as many as good predictions need), Ctrl-C,
        the time was up, or more draws would not fit into memory.
    message_ : str
        The same as a sentence.
    n_features_in_, feature_names_in_
        Number of columns, and their names if X was a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(30, 2)) @ rng.exponential(size=(2, 8)) + 0.3 * rng.random((30, 8))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = BayesianNMF(n_components=2, random_state=0).fit(X)
    >>> model.components_.shape
    (2, 8)
    >>> bool(np.isnan(model.impute()).any())
    False
    """

    _fit_: fitting.Fit

    # scikit-learn checks these when fitting; the others are checked where they are used.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Integral, StrOptions({"auto"})],
        "n_draws": [Integral, StrOptions({"auto"})],
        "scale": [StrOptions({"column", "matrix"}), None],
        "offset": [StrOptions({"auto", "learned", "both", "min", "mean"}), None],
        "init": [StrOptions({"random"}), tuple, list],
        "fixed_components": ["array-like", None],
        "fixed_weights": ["array-like", None],
        "unstored": [StrOptions({"zero", "missing"})],
        "checkpoint": [str, os.PathLike, None],
        "keep_draws": ["boolean"],
        "draws_dtype": [StrOptions({"float64", "float32"})],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
        "progress": ["boolean"],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
        "calibrate": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        prior: Any = "ard",
        noise: Any = "auto",
        scale: str | None = "column",
        offset: str | None = "auto",
        n_chains: int = 4,
        burn_in: int = 300,
        n_draws: int | str = 200,
        thinning: int = 1,
        init: Any = "random",
        fixed_components: Any = None,
        fixed_weights: Any = None,
        unstored: str = "zero",
        checkpoint: Any = None,
        keep_draws: bool = True,
        draws_dtype: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        max_time: float | None = None,
        calibrate: bool | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.noise = noise
        self.scale = scale
        self.offset = offset
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.n_draws = n_draws
        self.thinning = thinning
        self.init = init
        self.fixed_components = fixed_components
        self.fixed_weights = fixed_weights
        self.unstored = unstored
        self.checkpoint = checkpoint
        self.keep_draws = keep_draws
        self.draws_dtype = draws_dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.max_time = max_time
        self.calibrate = calibrate

    # --- fitting

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        observed: Any = None,
        lower: Any = None,
        upper: Any = None,
        noise_scale: Any = None,
        sample_weight: Any = None,
    ) -> BayesianNMF:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Nonnegative data. Or an AnnData, of which ``X`` is fitted (:func:`bnmf.fit_anndata` keeps the results in
            it), or data on a cluster: a `dask.array`, a :class:`bnmf.distributed.RowBlocks` or a list of delayed
            blocks of rows.
        y : None
            Ignored.
        observed : array-like of bool of shape (n_samples, n_features), optional
            True where X was observed. Other entries of X are ignored.
        lower, upper : array-like or DataFrame of shape (n_samples, n_features), optional
            Limits between which the value of an entry is known to lie, whatever X has there: a response capped at 100
            has ``lower=100``, one below a detection limit of 0.01 has ``upper=0.01``. NaN or an infinite number is no
            limit; where both are equal the entry is exact. :func:`bnmf.limits` makes both from caps, detection limits
            and rounding. A sparse X takes sparse limits at entries that it stores. Limits for whole columns (one
            number, one for each column, or a mapping by column name) and rows (n_samples, 1) say where the missing
            entries lie; numbers in X stay exact. Entries that were not `observed` have no limits.
        noise_scale : array-like of shape (n_samples, n_features), (n_features,) or (n_samples, 1), optional
            Known standard error of each entry. Its square is the variance of the noise with ``noise="known"``, and is
            multiplied by a learned one with other noise. NaN, where X was not observed, stands for the median of the
            column.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts: a row of weight 2 has half the variance of the noise. The fit does not see a row
            of weight 0, and :meth:`transform` treats it as a new row.

        Returns
        -------
        BayesianNMF
            This estimator, fitted.
        """
        with all_or_nothing(self):
            self.check_parameters(noise_scale, sample_weight)
            if isinstance(X, pd.DataFrame):
                refuse_other_labels(X, noise_scale=noise_scale)
            seed = self._seed()
            self.fit_observed(of_fit(self, X, observed, lower, upper), seed, noise_scale, sample_weight)
            # A sparse X with implicit zeros has few missing entries, so its completed form is sparse too.
            self._imputes_sparse = sp.issparse(getattr(X, "X", X)) and self.unstored == "zero"
        self._warn_of_problems()
        return self

    def sample_more(self, n_draws: int) -> BayesianNMF:
        """Take `n_draws` more draws of each chain: the result is that of one longer fit, draw for draw.

        Chains that Ctrl-C cut off catch up. Everything but `n_jobs`, `max_time` and `progress` is as it was in
        :meth:`fit`, whatever was set since.
        """
        check_is_fitted(self)
        options: dict[str, Any] = {"n_jobs": self._n_jobs(self.data_), "progress": bool(self.progress)}
        if self.max_time is not None:
            options["deadline"] = time.monotonic() + self.max_time
        with all_or_nothing(self), self.data_.released():
            self._set_fit(self._fit_.extended(n_draws, **options))
        self._warn_of_problems()
        return self

    def _warn_of_problems(self) -> None:
        """Warn, in the line that called a public method, if the run was interrupted or the verdict is poor."""
        if self.ending_ == Ending.INTERRUPTED:
            warnings.warn(str(self.message_), InterruptedRunWarning, stacklevel=3)
        for problem in self.posterior_.problems():
            warnings.warn(problem, ConvergenceWarning, stacklevel=3)

    def check_parameters(self, noise_scale: Any = None, sample_weight: Any = None) -> None:
        """Raise an error if a parameter is not what it may be, before any data are touched."""
        self._validate_params()
        if self.n_components != "auto":
            arguments.whole_number(self.n_components, "n_components", 1)
        if self.checkpoint is not None:
            arguments.checkpoint_directory(self.checkpoint)
        if not self.keep_draws and (self.checkpoint is not None or self.n_draws == "auto"):
            raise ValueError(
                "checkpoint and n_draws='auto' need the draws: they cannot be combined with keep_draws=False"
            )
        self._schedule()
        self._init()
        for prior in as_pair(self.prior):
            _ = prior.learned  # which raises an error in a sum
        check_offset(self.offset, self.prior)
        Fixed.of(self.fixed_components, self.fixed_weights).check(self.n_components, self.prior)
        check_known_noise(self.noise, noise_scale, sample_weight)

    def fit_observed(
        self, data: ObservedMatrix, seed: int, noise_scale: Any = None, sample_weight: Any = None
    ) -> BayesianNMF:
        """Sample data in the form of the sampler, whose parameters :meth:`check_parameters` has checked."""
        names = ("n_components", "prior", "noise", "scale", "offset", "fixed_components", "fixed_weights")
        parameters = {name: getattr(self, name) for name in names}
        with data.released():
            fit = fitting.fit(
                data,
                parameters | {"noise_scale": noise_scale, "sample_weight": sample_weight},
                self._schedule(),
                seed,
                until_converged=self.n_draws == "auto",
                calibrates=self._is_calibrated(data),
                max_time=self.max_time,
                n_jobs=self._n_jobs(data),
                progress=bool(self.progress),
                init=self._init(),
                dtype=np.dtype(self.draws_dtype),
                keep_draws=self.keep_draws,
                checkpoint=self.checkpoint,
            )
        self._set_fit(fit)
        self._seed_, self.data_ = seed, data
        return self

    def _schedule(self) -> Schedule:
        """Return the validated schedule, with "auto" that of its first draws."""
        n_draws: Any = N_FIRST_DRAWS if self.n_draws == "auto" else self.n_draws
        return Schedule(self.n_chains, self.burn_in, n_draws, self.thinning)

    def _is_calibrated(self, data: ObservedMatrix) -> bool:
        """Return whether to hide entries from more chains; "auto" leaves out quick fits and large data."""
        if self.calibrate != "auto" or not data.in_memory:
            return bool(self.calibrate) and data.in_memory
        is_quick = self._schedule().n_draws < N_FIRST_DRAWS or self.n_chains == 1
        return not is_quick and CALIBRATED[0] <= data.n_observed <= CALIBRATED[1]

    def _n_jobs(self, data: ObservedMatrix) -> int:
        """Return the number of threads: by default the cores for chains, but one inside of another joblib worker."""
        if not data.in_memory:  # to hand out the work of each chain
            return self.n_chains
        backend, configured = get_active_backend()
        if self.n_jobs is not None or backend.nesting_level or configured not in (None, 1):
            return int(effective_n_jobs(self.n_jobs))
        return min(self.n_chains, cpu_count())

    def _init(self) -> Any:
        """Return the starting values as arrays, or "random"."""
        if isinstance(self.init, str):
            return self.init
        if len(self.init) != 2:
            raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {len(self.init)} of them")
        return tuple(arguments.floats(x, "init") for x in self.init)

    def _seed(self) -> int:
        stored = None
        if self.random_state is None and self.checkpoint is not None:
            stored = stored_seed(self.checkpoint)
        return as_seed(self.random_state) if stored is None else stored

    def _set_fit(self, fit: fitting.Fit) -> None:
        """Set all attributes that come from the draws."""
        self._fit_, posterior = fit, fit.posterior
        self.ending_, self.message_ = fit.ending, fit.run.message(fit.ending)
        self.offset_ = fit.built.model.units.offset
        self._mean_W, self.components_ = posterior.factor_means()
        self.n_components_ = self._n_features_out = len(self.components_)
        noise_variance = posterior.noise_variance.mean(axis=(0, 1))
        self.noise_variance_ = float(noise_variance) if noise_variance.ndim == 0 else noise_variance
        self.n_iter_ = fit.run.schedule.sweeps_for(posterior.n_draws)

    @property
    def posterior_(self) -> Any:
        """The draws and everything computed from them."""
        check_is_fitted(self)
        return self._fit_.posterior

    @property
    def calibration_(self) -> Calibration | None:
        """Error and coverage of entries that were hidden for this purpose; None if that was not measured."""
        return self.posterior_.calibration

    @property
    def takes_negative(self) -> bool:
        """Whether the data may have negative entries."""
        return self.offset in ("min", "mean") or allows_negative(self.prior)

    @property
    def reconstruction_err_(self) -> float:
        """Root of the squared error of the posterior mean on observed entries; of limited ones, to their interval."""
        check_is_fitted(self)
        return self.posterior_.root_squared_error(self.data_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self.takes_negative
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    # --- the fitted rows

    def reconstruct(self) -> Floats:
        """Return the posterior mean of W Z for the fitted rows, whose uncertainty is ``posterior_.std()``."""
        return self.posterior_.mean()

    def interval(self, prob: float = 0.9, *, noise: bool = True) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of a central interval of probability `prob` for every entry.

        They are those of new data at the entry (a predictive interval), or with ``noise=False`` of W Z.
        """
        return self.posterior_.interval(prob, noise=noise)

    def impute(
        self, X: Any = None, *, observed: Any = None, lower: Any = None, upper: Any = None, out: Any = None
    ) -> Any:
        """Return X, or the fitted data, with missing entries replaced by their posterior mean.

        Observed entries are unchanged. An entry that is only known to lie between limits is replaced by the mean of its
        value, which is between them. Arguments are those of :meth:`fit`, and `out`, an array of floats to write to and
        to return, for instance a memory map (``numpy.lib.format.open_memmap``) of a matrix that does not fit into
        memory. The result is a DataFrame if X is one, and sparse if X is sparse and its unstored entries are zeros.
        """
        check_is_fitted(self)
        data = self.data_ if X is None else in_memory(self, X, observed, lower, upper)
        posterior = self._posterior_of(data)
        is_sparse = self._imputes_sparse if X is None else sp.issparse(X) and self.unstored == "zero"
        return posterior.completed_sparse(data) if is_sparse and out is None else posterior.completed(data, out)

    # --- scikit-learn's methods

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Floats:
        """Fit, and return the weights of the fitted rows as :meth:`transform` does."""
        return self.fit(X, **fit_params)._mean_W

    def transform(self, X: Any, *, observed: Any = None, lower: Any = None, upper: Any = None) -> Floats:
        """Return the posterior mean of W for rows of X, integrating over the draws of Z.

        A row that was fitted gets its fitted weights, and a row without observed entries the mean of the prior. Columns
        are those of `components_`. For the uncertainty use :meth:`posterior_of`. Arguments are those of :meth:`fit`.
        """
        return self.posterior_of(X, observed=observed, lower=lower, upper=upper).factor_means()[0]

    def inverse_transform(self, X: Any) -> Floats:
        """Return weights times `components_`, plus the offset. For predictions use :meth:`reconstruct` instead.

        X are weights as from :meth:`transform`. A prediction is the mean of the products of the draws, which is not the
        product of the means.
        """
        check_is_fitted(self)
        weights = arguments.floats(X, "X")
        if weights.ndim != 2 or weights.shape[1] != len(self.components_):
            raise ValueError(f"X must have shape (n_samples, {len(self.components_)}), got {weights.shape}")
        return weights @ self.components_ + (0.0 if self.offset_ is None else self.offset_)

    def posterior_of(self, X: Any, *, observed: Any = None, lower: Any = None, upper: Any = None) -> Posterior:
        """Return the posterior of other rows: the fitted draws of Z, and draws of W for these rows.

        Arguments are those of :meth:`fit`.
        """
        check_is_fitted(self)
        return self._posterior_of(in_memory(self, X, observed, lower, upper))

    def _posterior_of(self, data: ObservedMatrix) -> Any:
        return self.posterior_ if data is self.data_ else new_rows.posterior_of(self.posterior_, data, self._seed_)

    def score(self, X: Any, y: Any = None, *, observed: Any = None, lower: Any = None, upper: Any = None) -> float:
        """Return the mean log predictive density of the observed entries of X; higher is better.

        Each entry is predicted from others of its row: the observed entries are hidden in five turns. So more
        components score higher only if they predict better, and `GridSearchCV` can choose their number. Of sparse data
        with implicit zeros all other entries and a sample of the zeros are scored. An entry that is only known to lie
        between limits is scored by the log probability of its interval. Arguments are those of :meth:`fit`.
        """
        check_is_fitted(self)
        data = in_memory(self, X, observed, lower, upper)
        if data.n_observed == 0:
            raise ValueError("X has no observed entry to score")
        total = weight = 0.0
        for fold in folds(data, N_SCORE_FOLDS, np.random.default_rng(self._seed_)):
            posterior, at = self._posterior_of(fold.rest), (fold.rows, fold.columns)
            density = posterior.log_predictive_density(*at, fold.values, lower=fold.lower, upper=fold.upper)
            total += fold.weights @ density
            weight += fold.weights.sum()
        return float(total / weight)

    def report(self, path: Any, *, title: str | None = None) -> None:
        """Write an HTML page on the fit: what was fitted, whether it can be used, components and imputed entries."""
        from bnmf.report import write_report

        check_is_fitted(self)
        write_report(self, path, title=title)
