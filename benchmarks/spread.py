"""A distribution of seconds, as loads, storms and the torture test tell it."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How many, and of them the middle one, one of the last twentieth and of the last hundredth, and the last."""

    number: int
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    worst: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Of any values, none included."""
        ordered = sorted(values)
        if not ordered:
            return cls(number=0)
        p50, p95, p99, worst = (ordered[round((len(ordered) - 1) * share)] for share in (0.5, 0.95, 0.99, 1))
        return cls(number=len(ordered), p50=p50, p95=p95, p99=p99, worst=worst)

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f}  p99 {self.p99:.2f}  worst {self.worst:.2f}  (n {self.number})"
