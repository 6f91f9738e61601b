"""A report of a fit for people who did not run it: one HTML file that needs nothing else."""

from bnmf.report.writer import write_report

__all__ = ["write_report"]
