"""Tables in files: delimited text, triples, GCT, NumPy, SciPy and Matrix Market files, Parquet, Excel workbooks."""

from bnmf.tables.files import read_table
from bnmf.tables.table import Table, TableError

__all__ = ["Table", "TableError", "read_table"]
