"""Helpers for all other packages; none of them is specific to recommenders."""
