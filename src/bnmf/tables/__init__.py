"""Tables in files: delimited text, triples, GCT, NumPy, SciPy, Matrix Market, Parquet, Excel, AnnData."""

from bnmf.tables.files import read_table
from bnmf.tables.table import Table, TableError

__all__ = ["Table", "TableError", "read_table"]
