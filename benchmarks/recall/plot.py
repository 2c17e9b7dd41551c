"""Recall against budget as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.recall.builders import OURS
from benchmarks.recall.measure import Curve

_GREY = ("#39424f", "#5d6b7c", "#7f8c9c", "#6e5433", "#97743f", "#ad8b52")
_STYLES: Mapping[str, Mapping[str, Any]] = {
    OURS: {"color": "#0b5cad", "linewidth": 2.6, "zorder": 5},
    "our counts + breadth first": {"color": "#5f93c4"},
    "oracle": {"color": "#c0392b", "linewidth": 1.4, "linestyle": "--"},
    "bound": {"color": "#c0392b", "linewidth": 1.0, "linestyle": ":"},
}
_LEAST_APART = 0.037
"""Of the height: labels nearer than this would overlap."""


def draw(curves: Mapping[str, Curve], file: Path) -> None:
    """Draw one panel for each group of projects, every line labelled at its end."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"font.family": "sans-serif", "font.size": 10, "svg.hashsalt": "foreword"})
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(curves), figsize=(7.6 * len(curves), 5.2), squeeze=False, layout="constrained"
    )
    for panel, (title, curve) in zip(panels[0], curves.items(), strict=True):
        _draw_panel(panel, title, curve)
    # Without a date, the same measurements are the same file.
    figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def _draw_panel(panel: Any, title: str, curve: Curve) -> None:
    greys = iter(_GREY * 3)
    ends = {}
    for name, points in curve.items():
        style = {"linewidth": 1.3, **_STYLES.get(name, {})}
        style.setdefault("color", next(greys))
        panel.plot(*zip(*points, strict=True), **style)
        ends[name] = (points[-1][1], style["color"])
    last = max(points[-1][0] for points in curve.values())
    for (name, (_, colour)), height in zip(_from_below(ends), _apart(ends), strict=True):
        panel.annotate(
            name,
            (last, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            weight="bold" if name == OURS else "normal",
        )
    panel.set(title=title, xlabel="budget, tokens", ylabel="recall of the required facts", ylim=(0, 1.03))
    panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    panel.grid(axis="y", color="#e6e8eb", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlim(right=last)


_Ends = Mapping[str, tuple[float, str]]


def _from_below(ends: _Ends) -> list[tuple[str, tuple[float, str]]]:
    return sorted(ends.items(), key=lambda end: end[1][0])


def _apart(ends: _Ends) -> list[float]:
    """Heights of the labels from below, pushed apart: up first, then down from the top."""
    heights = [height for _, (height, _) in _from_below(ends)]
    for at in range(1, len(heights)):
        heights[at] = max(heights[at], heights[at - 1] + _LEAST_APART)
    ceiling = 1.02
    for at in range(len(heights) - 1, -1, -1):
        heights[at] = ceiling = min(heights[at], ceiling)
        ceiling -= _LEAST_APART
    return heights
