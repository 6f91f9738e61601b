"""``python -m bnmf`` runs the command line."""

from bnmf.cli import app

if __name__ == "__main__":
    app()
