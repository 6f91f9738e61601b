"""
Digits with hidden pixels
=========================

The data are the first 600 handwritten digits of 8 x 8 pixels that come with scikit-learn. We hide half of the pixels,
restore them, and look at the errors, the coverage of the intervals and the components.
"""

import warnings

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer

from bnmf import BayesianNMF

pixels = load_digits().data[:600]
hidden = np.random.default_rng(0).random(pixels.shape) < 0.5
seen = np.where(hidden, np.nan, pixels)
model = BayesianNMF(n_components=20, random_state=0)
with warnings.catch_warnings():
    # About pixels at the border, which are nearly always zero; the verdict names them too.
    warnings.simplefilter("ignore", ConvergenceWarning)
    model.fit(seen)
print(model.posterior_.summary().verdict)

# %%
# Errors and intervals
# --------------------
# A pixel is a number from 0 to 16. The baseline is the mean of each pixel over all digits. KNNImputer, which looks
# for similar digits, does well here, because a digit has many close neighbours; bnmf adds an interval for each pixel.

truth = pixels[hidden]
predicted = model.reconstruct()[hidden]
low, high = (end[hidden] for end in model.interval(0.9))
guesses = {
    "mean of the pixel": np.broadcast_to(np.nanmean(seen, axis=0), hidden.shape)[hidden],
    "KNNImputer": KNNImputer(keep_empty_features=True).fit_transform(seen)[hidden],
    "bnmf": predicted,
}
for name, guess in guesses.items():
    error = np.sqrt(np.mean((guess - truth) ** 2))
    print(f"{name:18} root mean squared error {error:.2f}")
inside = np.mean((low <= truth) & (truth <= high))
print(f"in their 90% intervals: {inside:.1%} of the hidden pixels")

# %%
# Restored digits
# ---------------

shown = slice(10, 20)
rows = {"observed": seen, "restored": model.impute(), "truth": pixels}
figure, axes = pyplot.subplots(3, 10, figsize=(8, 2.6), layout="constrained")
colours = pyplot.get_cmap("gray_r").with_extremes(bad="#f2b8a2")
for (name, images), line in zip(rows.items(), axes, strict=True):
    for image, ax in zip(images[shown], line, strict=True):
        ax.imshow(image.reshape(8, 8), cmap=colours, vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)

# %%
# Components
# ----------
# Each is a nonnegative picture, and a digit is a sum of them. The verdict above says how many of them all chains
# have found. The others are one of several ways to write the same digits, and should not be interpreted.

figure, axes = pyplot.subplots(2, 10, figsize=(8, 1.9), layout="constrained")
for component, ax in zip(model.components_, axes.flat, strict=True):
    ax.imshow(component.reshape(8, 8), cmap="gray_r")
    ax.set(xticks=[], yticks=[])
