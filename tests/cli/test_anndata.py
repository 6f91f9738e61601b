"""AnnData: files, and objects with the package anndata, which needs an older pandas than other tests."""

import io

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from bnmf import BayesianNMF, fit_anndata
from bnmf.tables import TableError, read_table
from bnmf.tables.arrays import with_elements

FEW = {"n_components": 2, "n_chains": 1, "burn_in": 20, "n_draws": 20, "random_state": 0, "calibrate": False}
CELLS, GENES = [f"cell {i}" for i in range(8)], ["a", "b", "c", "d", "e"]
X = np.random.default_rng(0).exponential(size=(8, 2)) @ np.random.default_rng(1).exponential(size=(2, 5))


def h5ad(matrix, **layers):
    """Return an AnnData file, as the format describes it."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        for side, names in (("obs", CELLS), ("var", GENES)):
            group = file.create_group(side)
            group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            group.attrs["column-order"] = np.array([], dtype="S1")
            index = group.create_dataset("_index", data=names, dtype=h5py.string_dtype())
            index.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
        file.create_group("layers").attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
    return with_elements(buffer.getvalue(), {"X": matrix} | {f"layers/{name}": each for name, each in layers.items()})


@pytest.fixture
def path(tmp_path):
    holes = np.where(np.arange(40).reshape(8, 5) % 7 == 3, np.nan, X)
    path = tmp_path / "cells.h5ad"
    path.write_bytes(h5ad(sp.csr_array(np.round(X)), holes=holes))
    return path


def test_rows_are_observations_and_columns_variables(path):
    table = read_table(path)
    assert (table.row_names, table.column_names, table.has_implicit_zeros) == (CELLS, GENES, True)
    assert np.array_equal(table.values.toarray(), np.round(X))
    path.write_bytes(with_elements(path.read_bytes(), {"X": sp.csr_array(np.round(X.T))}))
    with h5py.File(path, "r+") as file:  # columns instead of rows
        file["X"].attrs.update({"encoding-type": "csc_matrix", "shape": X.shape})
    assert np.array_equal(read_table(path).values.toarray(), np.round(X))


def test_a_layer_is_read(path, tmp_path):
    table = read_table(path, layer="holes")
    assert not table.is_sparse
    assert np.array_equal(~np.isnan(table.values), np.arange(40).reshape(8, 5) % 7 != 3)
    assert table.layout.description == "AnnData file, layer holes of obs x var"
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = X
    for file, layer, message in (
        (path, "counts", "there is no layers/counts: its layers are holes"),
        (tmp_path / "a.csv", "holes", "--layer is for AnnData files"),
        (tmp_path / "a.h5", None, "not one of AnnData"),
    ):
        with pytest.raises(TableError, match=message):
            read_table(file, layer=layer)


def test_the_command_line_adds_the_results_to_a_copy(program, reports, path, tmp_path):
    out = tmp_path / "out"
    program("fit", path, "--layer", "holes", "--out", out, "-k", 2, "--chains", 1, "--draws", 20)
    with h5py.File(out / "fit.h5ad") as file:
        W, Z = file["obsm/X_bnmf"][()], file["varm/bnmf"][()]
        assert file["uns/bnmf/n_draws"][()] == 20
        assert "predictions" in file["uns/bnmf/verdict"]
        assert set(file["layers"]) == {"holes"}
    assert W.shape == (8, 2)
    assert Z.shape == (5, 2)
    assert np.corrcoef((W @ Z.T).ravel(), X.ravel())[0, 1] > 0.9


def test_missing_entries_of_a_layer_are_filled(program, short, path, tmp_path):
    out = tmp_path / "filled.h5ad"
    program("impute", path, "--layer", "holes", "-o", out)
    before, after = read_table(path, layer="holes").values, read_table(out, layer="holes").values
    assert np.isfinite(after).all()
    assert np.array_equal(after[~np.isnan(before)], before[~np.isnan(before)])
    assert np.array_equal(read_table(out).values.toarray(), np.round(X))


# --- with the package


@pytest.fixture
def adata(path):
    return pytest.importorskip("anndata", reason="anndata is not installed").read_h5ad(path)


@pytest.mark.parametrize("layer", [None, "holes"])
def test_results_are_kept_in_an_anndata(adata, layer):
    model = fit_anndata(adata, BayesianNMF(**FEW), layer=layer)
    assert np.array_equal(adata.varm["bnmf"], model.components_.T)
    assert np.corrcoef((adata.obsm["X_bnmf"] @ adata.varm["bnmf"].T).ravel(), X.ravel())[0, 1] > 0.8
    assert model.posterior_.row_names.tolist() == CELLS
    assert model.posterior_.column_names.tolist() == GENES
    assert adata.uns["bnmf"]["verdict"].keys() >= {"predictions", "components"}
    with pytest.raises(ValueError, match="layer must be one of 'holes', got 'counts'"):
        fit_anndata(adata, layer="counts")


def test_an_anndata_is_fitted_as_its_matrix(adata):
    model = BayesianNMF(**FEW).fit(adata)
    same = BayesianNMF(**FEW).fit(adata.X)
    assert np.array_equal(model.components_, same.components_)
    assert sp.issparse(model.impute())


def test_what_is_written_can_be_read_by_anndata(adata, path, program, reports, tmp_path):
    import anndata

    program("fit", path, "--layer", "holes", "--out", tmp_path / "out", "-k", 2, "--chains", 1, "--draws", 20)
    fitted = anndata.read_h5ad(tmp_path / "out" / "fit.h5ad")
    assert fitted.obsm["X_bnmf"].shape == (8, 2)
    assert fitted.varm["bnmf"].shape == (5, 2)
    assert fitted.uns["bnmf"]["n_chains"] == 1
    adata.write_h5ad(tmp_path / "again.h5ad")
    assert read_table(tmp_path / "again.h5ad").column_names == GENES
