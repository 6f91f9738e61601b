"""AnnData: a fit of its matrix or of a layer, with the results where scanpy's tools keep theirs."""

from __future__ import annotations

from typing import Any

from bnmf.estimator import BayesianNMF
from bnmf.posterior import Posterior


def fit_anndata(
    adata: Any, estimator: BayesianNMF | None = None, *, layer: str | None = None, key_added: str = "bnmf"
) -> BayesianNMF:
    """Fit the matrix of an AnnData (``pip install 'bnmf[anndata]'``), and keep the results in it.

    Rows are observations and columns are variables. What a sparse matrix does not store are zeros, unless the estimator
    has ``unstored="missing"``.

    Parameters
    ----------
    adata : AnnData
        The data. It gains ``obsm["X_bnmf"]``, the weights of the observations; ``varm["bnmf"]``, the profiles of the
        components over the variables; and ``uns["bnmf"]``, the verdict on the fit.
    estimator : BayesianNMF, optional
        The model; by default ``BayesianNMF()``.
    layer : str, optional
        The layer to fit; ``X`` by default.
    key_added : str, default="bnmf"
        The name of the results, in place of bnmf.

    Returns
    -------
    BayesianNMF
        The estimator, fitted.
    """
    model = BayesianNMF() if estimator is None else estimator
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer must be one of {', '.join(map(repr, adata.layers)) or 'no layers'}, got {layer!r}")
    X = adata if layer is None else type(adata)(adata.layers[layer], obs=adata.obs[[]], var=adata.var[[]])
    model.fit(X)
    for place, value in results(model.posterior_, key_added).items():
        part, _, name = place.partition("/")
        getattr(adata, part)[name] = value
    return model


def results(posterior: Posterior, key: str = "bnmf") -> dict[str, Any]:
    """Return the results of a fit by their places in an AnnData."""
    W, Z = posterior.factor_means()
    verdict = {finding.purpose: str(finding) for finding in posterior.verdict}
    facts = {"n_chains": posterior.n_chains, "n_draws": posterior.n_draws, "verdict": verdict}
    return {f"obsm/X_{key}": W, f"varm/{key}": Z.T, f"uns/{key}": facts}
