from typing import Any, SupportsIndex

from bnmf.utils.typing import Array, Floats, Ints, Key, Positions, Words

LEVEL: str
LEVELS: tuple[str, ...]
ROWS_PER_TILE: int
"""Rows in one unit of work. It does not depend on the number of threads, so neither does the rounding of sums."""

testing: Any
"""Parts of the kernels, for the tests."""

class Data:
    """Rows of the data: see `Stored`, whose fields these are. Everything is checked here, once."""

    def __init__(
        self, *, indptr: Ints, indices: Positions, values: Floats, lists_missing: Array, n_columns: int,
        dense: Floats | None = None, stored_indptr: Ints | None = None, stored_indices: Positions | None = None,
        stored_values: Floats | None = None,
    ) -> None: ...  # fmt: skip

class Prior:
    """Coefficients of a prior: see `Coefficients`, whose fields these are."""

    def __init__(
        self, linear: Floats, quadratic: Floats, pairwise: float, max_rate: float, paper_rule: bool,
        absolute: Floats | None, /,
    ) -> None: ...  # fmt: skip

class Memory:
    """Memory of one thread, which grows on demand."""

class Rows:
    """What the half-sweeps of one factor read of the data in all sweeps: see `Split`, whose fields these are, too.

    `row_scale` has one number for all rows or one for each, and `entry_scale` one for each column. `squares` are Σ a²
    of the rows, with all scales. Each row reads the stream of its id.
    """

    def __init__(
        self, *, data: Data, indptr: Ints, rows: Ints, n_sharing: Ints, repeats: Array, entry_scale: Floats | None,
        row_scale: Floats, squares: Floats, ids: Words,
    ) -> None: ...  # fmt: skip

class HalfSweep:
    """A half-sweep that is ready to draw W (rows, K) given Z (columns, K).

    Variances are one number for all or one for each row or column. `roots` are roots of the weights of the listed
    entries. Components before drawn[0] and from drawn[1] on stay as they are.
    """

    def __init__(
        self, rows: Rows, W: Floats, Z: Floats, prior: Prior, memory: Memory, row_variance: Floats,
        entry_variance: Floats, key: Key, n_passes: int, drawn: tuple[int, int], squared_error: Floats,
        squares: Floats | None = None, roots: Floats | None = None, ids: Words | None = None,
    ) -> None: ...  # fmt: skip
    def draw(self, first: int, end: int, memory: Memory, /) -> None:
        """Draw the rows of tiles `first` to `end` - 1 in place, and write the squared error of each row."""

def draw_both(
    rows: Rows, columns: Rows, W: Floats, Z: Floats, prior_W: Prior, prior_Z: Prior, memory: Memory,
    row_variance: Floats, column_variance: Floats, key_W: Key, key_Z: Key, n_passes: int, drawn_W: tuple[int, int],
    drawn_Z: tuple[int, int], columns_first: bool, errors_of_rows: Floats, errors_of_columns: Floats, /,
) -> None:  # fmt: skip
    """Run both half-sweeps, one after the other, in the calling thread."""

class Given:
    """What latent values are drawn given: W (rows, K), Z (columns, K), scales of the data, variances, and streams.

    In addition `weight` has factors of the precisions of entries, `log_odds` those of a gross error in each column and
    `factor` the variance with one over that without, and `prior` and `drawn` are those of the components of W that are
    drawn together with values.
    """

    def __init__(
        self, *, W: Floats, Z: Floats, entry_scale: Floats | None, row_scale: Floats, row_variance: Floats,
        column_variance: Floats, ids: Words, key: Key, weight: Floats | None = None, log_odds: Floats | None = None,
        factor: float | None = None, prior: Prior | None = None, drawn: tuple[int, int] | None = None,
    ) -> None: ...  # fmt: skip

class EntryList:
    """Some entries of a matrix, row by row, and the arrays and places that hold their values; a place of -1 is none.

    `sums` has two numbers for each tile of rows and each column: gross errors, and their squares in units of the model.
    """

    def draw(self, given: Given, start: int, stop: int, /) -> None:
        """Draw the values of rows `start` to `stop`, each row from its stream."""

class Latent(EntryList):
    """Entries that are known to lie between two limits. Gross errors are added to the sums of `Outliers`."""

    def __init__(
        self, *, n_columns: int, indptr: Ints, columns: Positions, targets: list[tuple[Floats, Ints]], lower: Floats,
        upper: Floats, sums: Floats | None = None, errors: Floats | None = None,
    ) -> None: ...  # fmt: skip

class Interwoven(EntryList):
    """Observed entries of rows that are drawn together with the values beyond limits, which follow W.

    Those that are data, with a limit of NaN, come first.
    """

    def __init__(
        self, *, n_columns: int, indptr: Ints, columns: Positions, targets: list[tuple[Floats, Ints]], limit: Floats,
        above: Array, errors: Floats | None, places: Ints | None,
    ) -> None: ...  # fmt: skip

class Outliers(EntryList):
    """Entries that may have gross errors: what was recorded, and places that hold what is drawn.

    Dense rows list all columns, with NaN for entries that are missing or have limits, and a matrix and its transpose
    hold what is drawn.
    """

    def __init__(
        self, *, n_columns: int, indptr: Ints, columns: Positions, targets: list[tuple[Floats, Ints]], values: Floats,
        sums: Floats, matrix: Floats | None, transposed: Floats | None,
    ) -> None: ...  # fmt: skip

def rescale(W: Floats, Z: Floats, prior_W: Prior, prior_Z: Prior, key: Key, memory: Memory, /) -> None:
    """Draw the scale of each component of W (M, K) and Z (N, K), in place."""

def shear(
    W: Floats, Z: Floats, prior_W: Prior, prior_Z: Prior, key: Key, memory: Memory, first: int, end: int, /
) -> None:
    """Shear each component of W and Z with others, `first` to `end` - 1 after it around all others, in place."""

def listed_residuals(W: Floats, Z: Floats, rows: Rows, start: int, stop: int, out: Floats, /) -> None:
    """Write a - w z at every listed position of rows `start` to `stop`, which list what was observed."""

def squared_residuals(W: Floats, Z: Floats, rows: Rows, start: int, stop: int, out: Floats, /) -> None:
    """Write the squared error of rows `start` to `stop`, from the residuals: slow, but nothing cancels."""

def products_of_pairs(W: Array, Z: Array, rows: Ints, columns: Ints, out: Floats, /) -> None:
    """Write draws (S, n) of w z at paired rows and columns of W (S, rows, K) and Z (S, K, columns), of any strides."""

def draw_variances(
    errors: Floats, counts: Ints, bounds: Floats, strength: float, scale: float, has_scale: bool, strengths: Floats,
    key: Key, out: Floats, /,
) -> tuple[float, float]:  # fmt: skip
    """Fill `out` with variances given squared errors and their counts, and return their scale and their strength.

    Precisions below `bounds` have the prior Gamma(strength, strength * scale). The scale is drawn given the precisions
    if `has_scale`, and then the strength, one of `strengths`.
    """

def draw_rate(
    W: Floats, Z: Floats, prior_W: Prior, prior_Z: Prior, drawn_W: tuple[int, int], drawn_Z: tuple[int, int],
    by_component: bool, degree: int, shape: float, rate: float, key: Key, out: Floats, /,
) -> None:  # fmt: skip
    """Draw the rate of a penalty of some degree, or that of each component, given the components that have it.

    Its prior is Gamma(shape, rate), and the priors are those with a rate of 1.
    """

def all_finite(numbers: Floats, /) -> bool:
    """Return whether all numbers of an array are finite."""

def all_above(numbers: Floats, bounds: Floats, /) -> bool:
    """Return whether each number is above its bound."""

def key_of(seed_high: SupportsIndex, seed_low: SupportsIndex, chain: int, sweep: int, part: int, /) -> Key:
    """Return the 128-bit key of one part of one sweep of one chain."""

def draw_gamma(shape: float, rate: float, key: Key, /) -> float:
    """Return a draw from Gamma(shape, rate)."""

def draw_exponential(rate: Floats, key: Key | Words, /) -> Floats:
    """Return draws from exp(-rate w) on w >= 0, entry i from the stream of row i."""

def draw_beta(a: Floats, b: Floats, key: Key, /) -> Floats:
    """Return draws from Beta(a, b), entry i from the stream of row i."""

def draw_within(b: Floats, p: Floats, width: Floats, key: Key | Words, /) -> Floats:
    """Return draws from exp(b w - p w²/2) on [0, width], entry i from the stream of row i."""

def log_mass(b: Floats, p: Floats, width: Floats, /) -> Floats:
    """Return the log of the integral of exp(b w - p w²/2) over [0, width]."""
