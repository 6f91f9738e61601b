"""Type aliases of the arrays that the package passes around."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
Positions = NDArray[np.uint32]
"""Column numbers in the form that the kernels read."""
Words = NDArray[np.uint64]
"""64-bit words: keys and states of random streams, row identities."""
Shape = tuple[int, int]
Key = tuple[int, int]
"""128-bit key of a random stream, as two words."""
