"""Small helpers that every layer may use: types, digests, atomic files, memory, progress, random seeds."""
