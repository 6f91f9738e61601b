"""
Ratings
=======

A sparse matrix of users by items, of which a few percent are known. MovieLens may not be redistributed and no set of
real ratings comes with a package, so this page uses MovieLens 100K if you have downloaded it
(``fetch_movielens_100k()``), and synthetic ratings otherwise.
"""

import numpy as np
from matplotlib import pyplot
from scipy import sparse

from bnmf import BayesianNMF
from bnmf.datasets import DatasetError, fetch_movielens_100k, make_ratings

made = None
try:
    ratings = sparse.csr_array(fetch_movielens_100k(download_if_missing=False).data)
    print("Data: MovieLens 100K.")
except DatasetError:
    made = make_ratings(600, 400, 20_000, random_state=0)
    ratings = made.data
    print("Data: synthetic ratings by make_ratings, because MovieLens 100K was not found.")
print(f"{ratings.shape[0]} users, {ratings.shape[1]} items, {ratings.nnz:,} ratings")

# %%
# Entries that are not stored are missing
# ---------------------------------------
# By default a sparse matrix has zeros where nothing is stored. Ratings need ``unstored="missing"``. The other settings
# suit ratings as well: an effect of each user and each item, noise of each user and each item, one scale for all items,
# and components of both signs.

held_out = np.random.default_rng(0).random(ratings.nnz) < 0.1
users, items = ratings.tocoo().coords
values = ratings.tocoo().data
seen = users[~held_out], items[~held_out]
known = sparse.csr_array((values[~held_out], seen), shape=ratings.shape)
model = BayesianNMF(
    5,
    prior="normal",
    offset="both",
    noise="both",
    scale="matrix",
    unstored="missing",
    burn_in=150,
    n_draws=50,
    thinning=2,
    random_state=0,
).fit(known)
print(model.posterior_.summary().verdict)

# %%
# Errors on the ratings that were held out
# ----------------------------------------
# Positions are given as pairs, so that no dense matrix is made. The baseline is the sum of the mean of the user and
# that of the item, less the overall mean. bnmf learns these effects together with the components, and has a
# distribution for each rating. For synthetic ratings the last line is the error of the true W Z.


def means(positions, size):
    """Return the mean rating of each user or item, and the overall mean of those without any."""
    total = np.bincount(positions, values[~held_out], size) + values[~held_out].mean()
    return total / (np.bincount(positions, minlength=size) + 1)


users_out, items_out, truth = users[held_out], items[held_out], values[held_out]
by_user, by_item = means(seen[0], ratings.shape[0]), means(seen[1], ratings.shape[1])
baseline = by_user[users_out] + by_item[items_out] - values[~held_out].mean()
predicted = model.posterior_.mean(users_out, items_out)
guesses = {"user and item means": baseline, "bnmf": predicted}
if made is not None:
    guesses["the true W Z"] = np.einsum("pk,kp->p", made.W[users_out], made.Z[:, items_out])
for name, guess in guesses.items():
    error = np.sqrt(np.mean((guess - truth) ** 2))
    print(f"{name:20} root mean squared error {error:.3f}")

# %%
# Recommendations by a quantile
# -----------------------------
# For one user: the items with the highest predictions, and those whose rating is *likely* to be high. The second
# list leaves out items that few people rated.

user = 0
candidates = np.setdiff1d(np.arange(ratings.shape[1]), items[users == user])
draws = model.posterior_.draws_of(np.full(candidates.size, user), candidates, noise=False)
draws = draws.reshape(-1, candidates.size)
n_ratings = np.bincount(items[~held_out], minlength=ratings.shape[1])
lists = {"by the mean": draws.mean(axis=0), "by the 10% quantile": np.quantile(draws, 0.1, axis=0)}
for name, score in lists.items():
    best = candidates[np.argsort(score)[::-1][:5]]
    print(f"{name:20} items {best.tolist()}, with {n_ratings[best].tolist()} ratings")

# %%
# The fewer ratings an item has, the larger is the standard deviation of its predicted rating.

figure, ax = pyplot.subplots(figsize=(5.2, 3.4), layout="constrained")
ax.plot(n_ratings[candidates], draws.std(axis=0), "o", markersize=3, alpha=0.6, color="#1f3a5f")
ax.set(xscale="symlog", xlabel="ratings of the item", ylabel="sd of the predicted rating", ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
