"""The documentation: its pages are listed, its links lead somewhere, its code runs and its commands exist."""

import importlib
import inspect
import os
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys

import click
import numpy as np
import pytest
import typer
from docs.make_cli import write_tables
from matplotlib import pyplot
from numpydoc.validate import validate
from typer.testing import CliRunner

import bnmf
from bnmf import cli, noise, report
from tests.conftest import GDSC
from tests.pages import DOCS, ROOT, all_pages, anchors, blocks, commands, links, name_of, pages_of_the_site, toctree

# Packages whose names are not for users, or are those of `bnmf` itself.
INTERNAL = {"bnmf.data", "bnmf.model", "bnmf.posterior"}
PROGRAM = typer.main.get_command(cli.app)


def read(page):
    return page.read_text(encoding="utf-8")


def test_the_start_page_lists_every_page_once():
    listed = toctree()
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages_of_the_site()}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages - {"index"} | {"gallery/index"}


def test_links_lead_to_files_and_headings():
    for page in all_pages():
        for path, anchor in links(read(page)):
            target = (page.parent / path).resolve() if path else page
            if target == DOCS / "gallery" / "index.rst":  # made by the build from the scripts and this file
                target = ROOT / "examples" / "README.rst"
            assert target.exists(), f"{path} does not exist"
            if anchor:
                assert anchor in anchors(read(target)), f"{path} has no heading {anchor}"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Run in an empty directory, draw without a screen, and find real data only where tests may."""
    monkeypatch.chdir(tmp_path)
    home = GDSC.parents[1] if GDSC.exists() else tmp_path
    monkeypatch.setenv("BNMF_DATA", os.environ.get("BNMF_DATA", str(home)))
    pyplot.switch_backend("Agg")
    yield tmp_path
    pyplot.close("all")


def pages_with_code():
    """Return the pages whose examples run; that of a cluster, which starts one, is for the proofs."""
    pages = [page for page in pages_of_the_site() if blocks(read(page), "python")]
    return [pytest.param(page, marks=[pytest.mark.proof] * (page.stem == "cluster")) for page in pages]


@pytest.mark.parametrize("page", pages_with_code(), ids=name_of)
def test_examples_of_a_page_run(page, elsewhere):
    names = {}
    for block in blocks(read(page), "python"):
        exec(block, names)


def test_the_example_of_the_readme_runs(elsewhere):
    (example,) = blocks(read(ROOT / "README.md"), "python")
    names = {}
    exec(example, names)
    assert (elsewhere / "report.html").exists()
    assert names["model"].posterior_.summary().verdict.startswith("Predictions: good")
    assert not names["imputer"].transform(names["table"]).isna().to_numpy().any()


def test_tables_of_benchmarks_and_of_the_paper_are_current():
    for mark, page in {
        "comparison": "README.md",
        "benchmarks": "docs/benchmarks.md",
        "results": "docs/paper.md",
    }.items():
        # Without its marks a table would not be checked.
        assert re.search(rf"<!-- {mark} -->\n\n.*?\| .*?\n\n<!-- /{mark} -->", read(ROOT / page), re.DOTALL)
    command = [sys.executable, "-m", "docs.update_readme", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


@pytest.mark.proof  # the documentation runs them too
@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=name_of)
def test_scripts_of_the_gallery_run(script, elsewhere, capsys):
    names = runpy.run_path(str(script))
    predicted, truth = names["predicted"], names["truth"]
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.95 * truth.std()
    assert "root mean squared error" in capsys.readouterr().out


def test_commands_exist():
    for page in [page for page in all_pages() if commands(read(page))]:
        makefile = read(ROOT / "Makefile")
        for command in commands(read(page)):
            for part in re.split(r"[|;]|&&", command):
                program, *rest = shlex.split(part)
                if program == "make":
                    assert all(re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE) for target in rest), command
                elif program == "bnmf":
                    assert_is_a_command(rest, command)
                elif program == "python" and rest:
                    file = rest[1].replace(".", "/") if rest[0] == "-m" else rest[0].removesuffix(".py")
                    places = [ROOT / f"{file}.py", ROOT / file / "__main__.py", ROOT / "src" / file / "__main__.py"]
                    assert any(place.exists() for place in places), command


def assert_is_a_command(arguments, line):
    """Check that a command of `bnmf` exists, and has the options that it is given."""
    options = {option for option in arguments if re.match(r"--?[a-z]", option)}
    known = {"--help", "--version", "--install-completion"}
    if arguments and not arguments[0].startswith("-"):
        command = PROGRAM.get_command(click.Context(PROGRAM), arguments[0])
        assert command is not None, line
        known |= {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    assert options <= known, line


def test_promises_name_the_tests_that_hold_them():
    page = read(DOCS / "promises.md")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert [(file, test) for file, test in named if f"def {test}" not in read(ROOT / file)] == []
    tables = [line for line in page.split("## Checks")[0].splitlines() if re.match(r"\| [a-z]", line)]
    assert tables
    assert [line for line in tables if "held by" not in line and "`tests/" not in line] == []


@pytest.mark.proof  # each command has its own tests
def test_commands_of_the_page_on_the_command_line_run(elsewhere, monkeypatch):
    monkeypatch.setattr(report, "write_report", lambda fit, path, *_, **more: path.write_text("report"))
    write_tables(elsewhere)
    shown = "".join(blocks(read(DOCS / "cli.md"), "console"))
    runs = re.findall(r"^\$ bnmf ([^|\n]*)\n((?:(?!\$ ).*\n)*)", shown, re.MULTILINE)
    assert len(runs) >= 8  # with those of which only the options are checked
    for command, output in runs:
        if command.split()[0] in ("demo", "rank"):  # take long, and have their own tests
            continue
        done = CliRunner().invoke(cli.app, shlex.split(command), prog_name="bnmf")
        assert done.exit_code == (2 if output.startswith("Error: ") else 0), done.output
        assert output.splitlines()[0] in done.output


def public_names():
    """Return the full names in `__all__` of `bnmf`, of its packages for users, and of `bnmf.noise`."""
    packages = (info.name for info in pkgutil.iter_modules(bnmf.__path__, "bnmf.") if info.ispkg)
    modules = [bnmf, noise, *(importlib.import_module(name) for name in packages if name not in INTERNAL)]
    found = {f"{module.__name__}.{name}" for module in modules for name in getattr(module, "__all__", ())}
    return {name for name in found if not name.rpartition(".")[2].startswith("_")}


def named_in_the_reference():
    return re.findall(r"^   (bnmf\.[\w.]+)$", read(DOCS / "api.md"), re.MULTILINE)


def test_the_reference_lists_all_public_names_once():
    """It also lists what users meet as arguments or results."""
    listed = named_in_the_reference()
    assert len(listed) == len(set(listed))
    assert public_names() <= set(listed)


def test_modules_of_the_reference_are_there_without_an_import():
    modules = re.findall(r"^## `bnmf\.(\w+)`$", read(DOCS / "api.md"), re.MULTILINE)
    code = f"import bnmf; print(*(getattr(bnmf, name).__name__ for name in {modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"bnmf.{name}" for name in modules]


@pytest.mark.parametrize("name", named_in_the_reference())
def test_docstrings_are_numpydoc_and_agree_with_signatures(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    own = [method for method, value in vars(thing).items() if inspect.isfunction(value) and value.__doc__]
    for full in [name, *(f"{name}.{method}" for method in own if method[0] != "_")]:
        described = validate(full)
        # Unknown parameters, their order, and a summary that ends with a full stop. Where some are documented, all are.
        checked = {"PR02", "PR03", "SS03", "GL08"} | ({"PR01"} if "Parameters\n" in described["docstring"] else set())
        assert [text for code, text in described["errors"] if code in checked] == []
