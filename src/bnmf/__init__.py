"""bnmf."""
