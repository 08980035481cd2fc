"""What every room may use: it knows nothing of recommenders."""
