"""
Drug response of cancer cell lines
==================================

Rows are cell lines, columns are drugs, an entry is the concentration that halves the growth (IC50, capped at 100). A
fifth of the table was never measured. We predict these entries, and ask which of the predictions are precise.
"""

import warnings

import numpy as np
from matplotlib import pyplot
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF
from bnmf.datasets import DatasetError, fetch_gdsc_ic50, make_drug_response
from bnmf.plots import plot_calibration

try:
    table = fetch_gdsc_ic50(download_if_missing=False).data
    print("Data: GDSC, as published.")
except DatasetError:
    import pandas as pd

    table = pd.DataFrame(make_drug_response(random_state=0).data)
    print("Data: a synthetic table of the same shape by make_drug_response, because GDSC was not found.")
known = table.notna().to_numpy()
print(f"{table.shape[0]} cell lines, {table.shape[1]} drugs, {known.mean():.0%} observed")

# %%
# Hide what is known
# ------------------
# To see how good predictions of unknown entries are, we hide a tenth of the known ones. The default noise learns a
# variance for each drug, because the response to some drugs is nearly constant, and allows for rare gross errors.
#
# The verdict is by purpose: predictions can be good while the noise is not, because the chains have found different
# factorisations, each with its own noise, and predictions are averaged over all of them.

hidden = known & (np.random.default_rng(0).random(table.shape) < 0.1)
model = BayesianNMF(n_components=10, burn_in=200, n_draws=100, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict says the same
    model.fit(table.mask(hidden))
print(model.posterior_.summary().verdict)

# %%
# Are the intervals right?
# ------------------------
# The curve shows how many of the hidden entries lie in intervals of each probability. On GDSC it lies above the
# diagonal in the middle, because responses pile up at 0 and at 100, unlike normal noise: these intervals are wide.

rows, columns = np.nonzero(hidden)
truth = table.to_numpy()[hidden]
figure, ax = pyplot.subplots(figsize=(4.4, 3.8), layout="constrained")
plot_calibration(model.posterior_, rows, columns, truth, ax)

# %%
# Which predictions are useful?
# -----------------------------
# Sorted by the predictive standard deviation, the most certain fifth has much smaller errors than the rest. So the
# standard deviation tells which imputed responses to use, and which to measure.

sd = model.posterior_.std(rows, columns, noise=True)
predicted = model.posterior_.mean(rows, columns)
order = np.argsort(sd)
for part, entries in enumerate(np.array_split(order, 5), start=1):
    error = np.sqrt(np.mean((predicted[entries] - truth[entries]) ** 2))
    print(f"fifth {part}: sd up to {sd[entries].max():5.1f}, root mean squared error {error:5.1f}")

# %%
# What to measure next
# --------------------
# Of the entries that were never measured, those of which the model is least sure, noise left out. A standard
# deviation beyond the range of the data is that of a cell line with hardly any measurement: it comes from the
# prior, which does not know that responses end at 100.

unknown = np.argwhere(~known)
doubt = model.posterior_.std(*unknown.T, noise=False)
for position in np.argsort(doubt)[::-1][:5]:
    row, column = unknown[position]
    print(f"{table.index[row]} with {table.columns[column]}: sd {doubt[position]:.1f}")
