"""Tables in files: delimited text, triples, NumPy, SciPy and Matrix Market files, Parquet."""

from bnmf.tables.read import read_table
from bnmf.tables.table import Table, TableError

__all__ = ["Table", "TableError", "read_table"]
