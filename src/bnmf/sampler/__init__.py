"""The Gibbs sampler: state in, state out; chains, stores of draws and checkpoints."""
