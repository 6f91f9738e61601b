"""The directory of a fit: its settings, its data, its checkpoint and its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnmf.cli.outcome import WrongUse
from bnmf.cli.screen import in_options

if TYPE_CHECKING:
    from bnmf.posterior import Posterior
    from bnmf.tables import Table

ANNDATA = "fit.h5ad"
"""A copy of an AnnData file, with the results of its fit."""
RESULTS = ("posterior.npz", "W.csv", "Z.csv", "report.html", ANNDATA)


class FitDirectory:
    """Where `bnmf fit` keeps everything of one fit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = path / "checkpoint"

    # --- the beginning of a fit

    def check_unused(self) -> None:
        """Raise an error if the directory holds a fit, or files that a fit would replace."""
        if (self.path / "settings.json").exists():
            raise WrongUse(
                f"{self.path} holds a fit: continue it with --resume, or choose another directory with --out"
            )
        if self.path.exists() and not self.path.is_dir():
            raise WrongUse(f"--out is a directory, and {self.path} is a file")
        taken = [name for name in RESULTS if (self.path / name).exists()]
        if taken:
            raise WrongUse(f"{self.path} has a file {taken[0]}, which the fit would replace: choose another --out")

    def begin(self, table: Table, settings: dict[str, Any]) -> None:
        """Create the directory with the data and the settings of a fit, the settings last."""
        from bnmf.tables.arrays import AnnDataFile, table_bytes
        from bnmf.utils.files import write_bytes

        self.path.mkdir(parents=True, exist_ok=True)
        write_bytes(self.path / "data.npz", table_bytes(table))
        if isinstance(table.layout, AnnDataFile):  # all of its variables were fitted
            write_bytes(self.path / ANNDATA, table.layout.content)
        self.write_settings(settings)

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Replace the settings."""
        from bnmf.utils.files import write_bytes

        self.path.mkdir(parents=True, exist_ok=True)
        write_bytes(self.path / "settings.json", (json.dumps(settings, indent=2) + "\n").encode())

    # --- what is there

    def settings(self) -> dict[str, Any]:
        """Return the settings of the fit."""
        try:
            settings = json.loads((self.path / "settings.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise WrongUse(f"{self.path} holds no fit: there is no settings.json") from None
        except ValueError:
            settings = None
        if not isinstance(settings, dict) or "data" not in settings:
            raise WrongUse(f"{self.path} holds no fit: its settings.json is damaged, or not one of bnmf")
        return settings

    def table(self) -> Table:
        """Return the data of the fit."""
        from bnmf.tables import read_table

        return read_table(self.path / "data.npz", unstored=self.settings()["unstored"])

    def posterior(self) -> Posterior:
        """Return the posterior of a finished fit."""
        from bnmf.posterior import Posterior

        self.settings()
        if not (self.path / "posterior.npz").exists():
            raise WrongUse(f"the fit in {self.path} is not finished: bnmf fit --resume --out {self.path} continues it")
        return Posterior.load(self.path / "posterior.npz")

    # --- the end of a fit

    def finish(self, posterior: Posterior) -> None:
        """Write the posterior, the factors with names, and the report."""
        from bnmf.tables.frames import grid_bytes
        from bnmf.utils.files import write_bytes

        posterior.save(self.path / "posterior.npz")
        W, Z = posterior.factor_means()
        names = component_names(posterior.n_components)
        write_bytes(self.path / "W.csv", grid_bytes(W, names_of(posterior.row_names, len(W)), names))
        write_bytes(self.path / "Z.csv", grid_bytes(Z, names, names_of(posterior.column_names, Z.shape[1])))
        if (self.path / ANNDATA).exists():
            from bnmf.annotated import results
            from bnmf.tables.arrays import with_elements

            content = with_elements((self.path / ANNDATA).read_bytes(), results(posterior))
            write_bytes(self.path / ANNDATA, content)

    def report(self, posterior: Posterior) -> Path:
        """Write the report of a finished fit, and return its path."""
        from bnmf import report

        settings, path = self.settings(), self.path / "report.html"
        title = f"Fit of {Path(settings['data']).name}"
        settings["missing"] = (settings.pop("reading", None) or {}).get("missing")
        given = {name.replace("_", "-"): value for name, value in settings.items() if value is not None}
        of_command: dict[str, Any] = {"settings": given, "verdict": in_options(posterior.verdict)}
        report.write_report(posterior, path, self.table().observed(), title=title, **of_command)
        return path


def component_names(number: int) -> list[str]:
    """Return the names of the components, with their numbers in `components_`."""
    return [f"component {k}" for k in range(number)]


def names_of(names: Any, size: int) -> list[str]:
    """Return names as text, numbers from 1 on if there are none."""
    return [str(number) for number in range(1, size + 1)] if names is None else [str(name) for name in names]
