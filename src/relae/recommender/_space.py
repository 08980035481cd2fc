"""Ranges of parameters to search."""

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
        """Return the range scaled to end at `most`; the range itself if it ends before that, or cannot be scaled."""
        if not 0 < most < self.high:
            return self
        return replace(self, low=self.low * most / self.high, high=most)
