"""The experiments of the paper, what they are compared with, and the numbers it printed."""
