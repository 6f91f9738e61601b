"""Data sets: published matrices, and synthetic matrices with their true factors.

The published data are not part of the package. Each ``fetch_*`` function reads them from a directory, by default the
user's cache directory, and downloads missing files, which requires ``pip install 'bnmf[data]'``. Each ``make_*``
function draws a matrix from a seed.

Examples
--------
>>> from bnmf.datasets import make_low_rank
>>> made = make_low_rank(6, 4, 2, noise=0.1, missing=0.25, random_state=0)
>>> made.data.shape, int(made.observed.sum())
((6, 4), 18)
"""

from bnmf.datasets.published import (
    DatasetError,
    data_directory,
    fetch_gdsc_ic50,
    fetch_gene_body_methylation,
    fetch_movielens_100k,
)
from bnmf.datasets.synthetic import make_drug_response, make_low_rank, make_ratings

__all__ = [
    "DatasetError",
    "data_directory",
    "fetch_gdsc_ic50",
    "fetch_gene_body_methylation",
    "fetch_movielens_100k",
    "make_drug_response",
    "make_low_rank",
    "make_ratings",
]
