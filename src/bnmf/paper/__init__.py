"""The experiments of Lu and Chai (2022), the baselines, and the numbers printed in the paper."""
