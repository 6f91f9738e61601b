"""What commands say: advice of the verdict names their options, not the parameters of Python."""

import ast
import inspect
import re

import pytest
import typer
from tests.report.fits import fake, with_effects

from bnmf import cli
from bnmf.cli.screen import Screen, as_options, components_of, wrapped
from bnmf.posterior import notes, verdict
from bnmf.posterior.verdict import Finding, Verdict
from bnmf.tables import read_table

# A fit of the command line keeps its draws.
FOR_PYTHON_ONLY = ("fit with keep_draws=True",)


def texts():
    """Return the texts of the verdict and its notes, with 7 in place of numbers that are filled in."""
    found = set()

    def visit(node):
        if isinstance(node, ast.JoinedStr):
            found.add("".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # a docstring
            for child in ast.iter_child_nodes(node):
                visit(child)

    for module in (verdict, notes):
        visit(ast.parse(inspect.getsource(module)))
    return sorted(text for text in found - set(FOR_PYTHON_ONLY) if " " in text)


@pytest.mark.parametrize("text", texts())
def test_advice_names_options(text):
    shown = as_options(text.replace("bnmf.limits(X, 7=", "bnmf.limits(X, capped="))
    assert not re.search(r"\w=|`|_\w|'\w+'|bnmf\.|NMFImputer", shown)
    known = {option for each in typer.main.get_command(cli.app).commands["fit"].params for option in each.opts}
    assert set(re.findall(r"--[\w-]+", shown)) <= known


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('or use noise="student-t" (7%)', "or use --noise student-t (7%)"),
        ("double `burn_in`.", "double --burn-in."),
        ("a smaller `n_components`", "a smaller --components"),
        ('fit with n_draws="auto".', "fit with --draws auto."),
        ("say so with bnmf.limits(X, capped=-2.5e+03).", "say so with --capped -2.5e+03."),
        ("NMFImputer or fewer", "bnmf impute or fewer"),
    ],
)
def test_as_options(text, shown):
    assert as_options(text) == shown


def test_lines_are_broken_at_blanks_and_wide_signs_take_two_cells():
    assert wrapped("  the half-normal prior", 13, "    ") == "  the\n    half-normal\n    prior"
    assert wrapped("東京, 大阪", 10) == "東京, 大阪"
    assert wrapped("東京, 大阪", 9) == "東京,\n大阪"


def test_effects_are_not_counted_as_components():
    assert components_of(fake()) == "K = 3"
    assert components_of(with_effects(fake())) == "K = 1, row effects and an offset"


def test_names_in_the_data_stay_as_they_are(capsys):
    Screen().judge(Verdict((Finding("fit", "poor", "column 'a=b' is far off", 'try offset="learned"'),)))
    assert capsys.readouterr().out == "Column 'a=b' is far off. Try --offset learned.\n"


def test_intervals_that_were_not_measured_are_unknown(capsys):
    predictions, intervals = Finding("predictions", "good", "they agree"), Finding("intervals", "good", "they hold")
    for findings in ([predictions], [predictions, intervals]):
        Screen().judge(Verdict(tuple(findings)))
        assert ("Intervals: unknown. No entries were hidden" in capsys.readouterr().out) == (len(findings) == 1)


ZEROS = "a,b\n" + "0,3\n2,0\n1,1\n" * 4


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("n,[red]a,:cat:,é\n[bold]x,1,2,3\n:smile:,3,4,5\n", {}, "([bold]x, :smile:) x 3 columns ([red]a, :cat:, é)"),
        ("a,b,c\n1,2,3\n", {}, "1 row without names"),
        ("n,a,b\nx,1,\ny,2,\nz,,\n", {}, "2 entries observed"),
        (ZEROS, {}, "33% of them are zero. Zeros are data: if they mean missing, use --missing 0."),
        (ZEROS, {"missing": ["0"]}, "16 entries observed, 8 missing"),
        ("a,b\n1,\n2,\n", {"words": ["b"]}, "1 column of words: b"),  # without any
    ],
)
def test_tables_of_any_form_are_described(capsys, tmp_path, text, options, words):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    Screen().describe(read_table(tmp_path / "x.csv", **options), "x.csv")
    shown = capsys.readouterr().out
    assert words in shown
    assert ("Zeros are data" in shown) == ("Zeros are data" in words)
