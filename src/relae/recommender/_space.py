"""What is worth tuning of a model."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Range:
    """Values of a parameter to search among: from `low` to `high`, by their logarithm or not, whole numbers or not."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a range goes up{', from above 0 if it is logarithmic' * self.log}, got {self!r}")

    def up_to(self, most: float) -> "Range":
        """Return the range between the same proportions that ends at `most`; itself if it ends before, or cannot."""
        if not 0 < most < self.high:
            return self
        return replace(self, low=self.low * most / self.high, high=most)
