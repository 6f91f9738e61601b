"""Cross-validation over entries of GDSC drug responses: our models, baselines, and published results."""
