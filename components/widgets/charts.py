"""Plotly figures built from plain data: agents, learning, calibration, models of debate."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from streamlit.elements.lib.streamlit_plotly_theme import configure_streamlit_plotly_theme

from core.learning.data_quality import LearningCurve
from core.learning.track_record import MIN_CASES, WilsonShare

configure_streamlit_plotly_theme()  # launch.py keeps plotly out of Streamlit's own start
# Plotly knows no CSS variables: these hues of assets/app.css are visible in both themes.
HALLUCINATED_COLOR = "#d9540b"
SUPPORTED_COLOR = "#0284c7"
NEUTRAL_COLOR = "#7d8793"
SYSTEM_COLORS = (SUPPORTED_COLOR, HALLUCINATED_COLOR, NEUTRAL_COLOR)
SYSTEM_SYMBOLS = ("circle", "diamond", "square", "cross", "x", "triangle-up", "star")
# Plotly's toolbar covers the title, on a phone permanently: only full screen stays in it.
MODEBAR = {"remove": ["toImage", "zoom", "pan", "zoomIn", "zoomOut", "autoScale", "resetScale"]}
# Layout of figures with a row for each agent, in pixels.
ROW_PIXELS = 34  # each row
HEAD_PIXELS = 88  # the title and up to two lines of legend
FOOT_PIXELS = 50
PAIR_COLORSCALE = ((0.0, "#eef2f6"), (1.0, "#0369a1"))
SHARE_RANGE = (-0.03, 1.03)  # of an axis of shares, so that points at 0 and 1 are whole
MATRIX_COLORSCALE = (
    (0.0, "#eaf4fb"),
    (1.0, "#7cc3e8"),
)  # light in both themes, so that INK is legible
MATRIX_TEXT_COLOR = "#10202e"
MATRIX_KEYS = (("true_hallucinated", "missed_hallucinated"), ("false_alarms", "true_supported"))
MATRIX_LABELS = ("Hallucinated", "Supported")
CurvePoints = Sequence[tuple[float, float]]


def threshold_figure(
    taus: Sequence[float], iou: Sequence[float], levels: Mapping[str, float]
) -> go.Figure:
    """Plot mean IoU by threshold, with a line at each named level; equal levels share one."""
    figure = go.Figure()
    points = list(zip(taus, iou, strict=True))
    _add_line(figure, "", points, color=SUPPORTED_COLOR, showlegend=False)
    names_by_level: dict[float, list[str]] = {}
    for name, level in levels.items():
        names_by_level.setdefault(level, []).append(name)
    low, high = min(iou), max(iou)
    for number, (level, names) in enumerate(sorted(names_by_level.items())):
        is_new = "proposed" in names
        style = {
            "color": HALLUCINATED_COLOR if is_new else NEUTRAL_COLOR,
            "dash": ("dot", "dash")[number % 2],
        }
        _add_line(
            figure, f"{', '.join(names)}: {level:.2f}", [(level, low), (level, high)], **style
        )
    figure.update_layout(title="IoU with people's marks, by threshold")
    figure.update_xaxes(title="threshold: words are marked from this probability on")
    top = min(SHARE_RANGE[1], 1.2 * max(*iou, 0.05))
    figure.update_yaxes(title="mean IoU", range=[-0.03 * top, top])
    return style_figure(figure)


def _add_line(
    figure: go.Figure, name: str, points: Sequence[Any], about: str = "", **options: Any
) -> None:
    """Add points, by default as a line; `about` is the hover template."""
    style = {key: options.pop(key) for key in ("color", "dash") if key in options}
    options.setdefault("mode", "lines")
    if style:
        options["line"] = style
    hover = {"hovertemplate": f"{about}<extra></extra>"} if about else {}
    xs, ys = [x for x, _ in points], [y for _, y in points]
    figure.add_scatter(name=name, x=xs, y=ys, **hover, **options)


def style_figure(figure: go.Figure, height: int = 320) -> go.Figure:
    """Give the figure the margins and the legend that all figures have."""
    figure.update_layout(
        margin={"l": 40, "r": 10, "t": 40, "b": 40},
        height=height,
        legend={"orientation": "h", "y": -0.3},
        modebar=MODEBAR,
    )
    return figure


@dataclass(frozen=True)
class AccuracyInterval:
    """A row of a forest plot: shares in [0, 1]; `always` is the constant answer's share."""

    name: str
    mean: float
    low: float
    high: float
    n: int
    always: float | None


@dataclass(frozen=True)
class AgentPairCell:
    """A square of the heat map between two agents; `words` are shown on hover."""

    one: str
    other: str
    value: float | None
    words: str


def forest_figure(lines: Sequence[AccuracyInterval], title: str) -> go.Figure:
    """Plot means with 95% intervals, the first on top."""
    names = [_escape_name(line.name) for line in lines]
    figure = go.Figure()
    figure.add_scatter(
        name="right, with 95% interval",
        x=[line.mean for line in lines],
        y=names,
        mode="markers",
        marker={"color": SUPPORTED_COLOR, "size": 10, "symbol": "circle"},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [line.high - line.mean for line in lines],
            "arrayminus": [line.mean - line.low for line in lines],
            "color": SUPPORTED_COLOR,
        },
        text=[f"{line.mean:.2f} ({line.low:.2f} to {line.high:.2f}), n={line.n}" for line in lines],
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure.add_scatter(
        name="always saying hallucinated",
        x=[line.always for line in lines],
        y=names,
        mode="markers",
        marker={"color": HALLUCINATED_COLOR, "size": 9, "symbol": "x"},
        hovertemplate="always hallucinated: %{x:.2f}<extra></extra>",
    )
    figure.update_xaxes(range=list(SHARE_RANGE), title="share right")
    return _lay_out_rows(figure, title, len(lines))


def pair_heatmap_figure(names: Sequence[str], cells: Sequence[AgentPairCell]) -> go.Figure:
    """Plot a heat map of pairs of agents, symmetric; undefined squares stay empty."""
    place = {name: number for number, name in enumerate(names)}
    values: list[list[float | None]] = [[None] * len(names) for _ in names]
    words = [[""] * len(names) for _ in names]
    for cell in cells:
        for i, j in ((cell.one, cell.other), (cell.other, cell.one)):
            values[place[i]][place[j]] = cell.value
            words[place[i]][place[j]] = cell.words
    shown = [["" if v is None else f"{v:.2f}" for v in row] for row in values]
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=list(map(_escape_name, names)),
            y=list(map(_escape_name, names)),
            text=shown,
            texttemplate="%{text}",
            customdata=words,
            hovertemplate="%{customdata}<extra></extra>",
            colorscale=[list(step) for step in PAIR_COLORSCALE],
            zmin=0,
            zmax=1,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            showscale=False,  # squares show their numbers; on a phone the scale takes a third
        )
    )
    figure.update_xaxes(tickangle=-35, showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_layout(
        title="The better one's errors that the other makes up for",
        height=200 + 46 * len(names),
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        modebar=MODEBAR,
    )
    return figure


def answer_weights_figure(
    names: Sequence[str], wrong: Sequence[float], right: Sequence[float]
) -> go.Figure:
    """Plot what each agent's answer adds to the log-odds of hallucinated, a row an agent."""
    figure = go.Figure()
    for name, added, colour, pattern in (
        ("when it says hallucinated", wrong, HALLUCINATED_COLOR, ""),
        ("when it says supported", right, SUPPORTED_COLOR, "/"),
    ):
        figure.add_bar(
            name=name,
            x=list(added),
            y=[_escape_name(agent) for agent in names],
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern}},
            hovertemplate="%{y}: %{x:+.2f}<extra></extra>",
        )
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(title="towards supported (below 0) or hallucinated (above 0)")
    return _lay_out_rows(figure, "How much each agent's word counts", len(names))


def _lay_out_rows(figure: go.Figure, title: str, many: int) -> go.Figure:
    """Give names on the left the room they need and put the first row on top."""
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(
        title={"text": title, "y": 0.99, "yanchor": "top", "yref": "container"},
        height=HEAD_PIXELS + FOOT_PIXELS + ROW_PIXELS * many,
        margin={"l": 10, "r": 10, "t": HEAD_PIXELS, "b": FOOT_PIXELS},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        modebar=MODEBAR,
    )
    return figure


def _escape_name(name: str) -> str:
    short = name if len(name) <= 44 else name[:43] + "…"
    return html.escape(short, quote=False)


def confusion_matrix_figure(counts: Mapping[str, Any], title: str) -> go.Figure:
    """Plot people's labels (rows) by a version's (columns), tinted by share of the row."""
    pairs = zip(MATRIX_LABELS, MATRIX_KEYS, strict=True)
    return label_matrix_figure(
        {
            label: {m: int(counts.get(k) or 0) for m, k in zip(MATRIX_LABELS, keys, strict=True)}
            for label, keys in pairs
        },
        title,
    )


def label_matrix_figure(counts: Mapping[str, Mapping[str, int]], title: str) -> go.Figure:
    """Plot counts by people's label, then by what the machine says, tinted by share of the row."""
    labels, columns = list(counts), list(next(iter(counts.values())))
    rows = [list(row.values()) for row in counts.values()]
    shares = [[value / (sum(row) or 1) for value in row] for row in rows]
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=columns,
            y=labels,
            zmin=0,
            zmax=1,
            showscale=False,
            colorscale=[list(tint) for tint in MATRIX_COLORSCALE],
            xgap=3,
            ygap=3,
            customdata=rows,
            hovertemplate="people say %{y}, it says %{x}: %{customdata}<extra></extra>",
        )
    )
    font = {"color": MATRIX_TEXT_COLOR, "size": 14}
    for label, row, row_shares in zip(labels, rows, shares, strict=True):
        for column, value, share in zip(columns, row, row_shares, strict=True):
            words = f"<b>{value}</b><br>{share:.0%}"
            figure.add_annotation(x=column, y=label, text=words, showarrow=False, font=font)
    figure.update_layout(title=title)
    figure.update_xaxes(title="it says", side="bottom")
    figure.update_yaxes(title="people say", autorange="reversed", tickangle=-90)
    return style_figure(figure, height=120 + 70 * len(rows))


def reliability_figure(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> go.Figure:
    """Plot the share of right verdicts by confidence with Wilson's intervals.

    Bins of fewer than `MIN_CASES` are left out, and no line joins the points: between them nothing
    was measured.
    """
    figure = go.Figure()
    for name, bins, colour, symbol in (
        (names[0], before, NEUTRAL_COLOR, "diamond"),
        (names[1], after, SUPPORTED_COLOR, "circle"),
    ):
        filled = [entry for entry in bins if entry.get("n", 0) >= MIN_CASES]
        shares = [WilsonShare(int(entry["right"]), int(entry["n"])) for entry in filled]
        figure.add_scatter(
            name=name,
            x=[(entry["low"] + entry["high"]) / 2 for entry in filled],
            y=[share.value for share in shares],
            text=[f"n={share.n}" for share in shares],
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 9},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [share.interval[1] - share.value for share in shares],
                "arrayminus": [share.value - share.interval[0] for share in shares],
                "color": colour,
            },
            hovertemplate=f"about %{{x:.2f}}: %{{y:.0%}} right, %{{text}}<extra>{name}</extra>",
        )
    low = min([entry["low"] for entry in (*before, *after)], default=0.0)
    line = {"color": NEUTRAL_COLOR, "dash": "dot", "width": 1}
    figure.add_shape(type="line", x0=low, y0=low, x1=1, y1=1, line=line)
    words = f"Confidence against right verdicts (from {MIN_CASES} cases a point)"
    figure.update_layout(title=words)
    figure.update_xaxes(title="confidence", range=[low - 0.03, 1.03])
    figure.update_yaxes(title="share that was right", range=list(SHARE_RANGE))
    return style_figure(figure)


def cost_accuracy_figure(
    points: Sequence[tuple[str, float, tuple[float, ...]]], cost: str, accuracy: str
) -> go.Figure:
    """Plot (name, cost, (accuracy, low, high)); the line joins what nothing cheaper reaches.

    Low and high may be missing.
    """
    figure = go.Figure()
    frontier: list[tuple[float, float]] = []
    for _, spent, (value, *_) in sorted(points, key=lambda point: (point[1], -point[2][0])):
        if not frontier or value > frontier[-1][1]:
            frontier.append((spent, value))
    style = {"color": NEUTRAL_COLOR, "dash": "dot"}
    _add_line(figure, "best for its cost", frontier, **style)
    for number, (name, spent, (value, *bounds)) in enumerate(points):
        low, high = bounds or (value, value)
        colour = SYSTEM_COLORS[number % len(SYSTEM_COLORS)]
        figure.add_scatter(
            name=_escape_name(name),
            x=[spent],
            y=[value],
            mode="markers",
            marker={
                "color": colour, "size": 11, "symbol": SYSTEM_SYMBOLS[number % len(SYSTEM_SYMBOLS)]
            },
            error_y={
                "type": "data", "symmetric": False, "array": [high - value],
                "arrayminus": [value - low], "color": colour,
            },
            hovertemplate=f"{accuracy} %{{y:.2f}} for %{{x:.4g}} {cost}",
        )  # fmt: skip
    highest = max([spent for _, spent, _ in points], default=1.0) or 1.0
    figure.update_layout(title=f"{accuracy.capitalize()} against cost")
    figure.update_xaxes(title=cost, range=[-0.05 * highest, 1.1 * highest])
    figure.update_yaxes(title=accuracy, range=list(SHARE_RANGE))
    return style_figure(figure, height=340 + 12 * len(points))


def write_figures_html(figures: Sequence[go.Figure]) -> str:
    """Return a page with the figures, which needs no network and saves each as SVG."""
    config = {"toImageButtonOptions": {"format": "svg"}, "displaylogo": False}
    parts = []
    for number, figure in enumerate(figures):
        shown = go.Figure(figure).update_layout(template="plotly_white", modebar={"remove": []})
        page = shown.to_html(full_html=False, include_plotlyjs=not number, config=config)
        parts.append(page)
    return f"<!doctype html><meta charset='utf-8'>{''.join(parts)}"


def loss_figure(losses: Sequence[Sequence[float]], steps: int = 0) -> go.Figure:
    """Plot the training loss at each step so far; `steps` is where the axis ends."""
    figure = go.Figure()
    style = {
        "mode": "lines+markers",
        "marker": {"color": SUPPORTED_COLOR, "size": 6},
        "color": SUPPORTED_COLOR,
    }
    points = [(entry[0], entry[1]) for entry in losses]
    _add_line(figure, "loss", points, "step %{x}: %{y:.3f}", **style)
    figure.update_layout(title="Loss: how far pairs of texts still lie wrong", showlegend=False)
    figure.update_xaxes(title="step", range=[0, steps] if steps else None)
    figure.update_yaxes(rangemode="tozero")
    return style_figure(figure, height=240)


def reward_figure(own: Sequence[float], held: Sequence[float]) -> go.Figure:
    """Plot a policy's mean reward after each update, on training and held-out debates."""
    figure = go.Figure()
    for name, rewards, dash in (("trained on", own, "dot"), ("held out", held, "solid")):
        _add_line(figure, name, list(enumerate(rewards)), "update %{x}: %{y:.3f}", dash=dash)
    figure.update_xaxes(title="updates")
    figure.update_yaxes(title="mean reward")
    return style_figure(figure)


def learning_curve_figure(curve: LearningCurve) -> go.Figure:
    """Plot quality by number of cases learned from, up to twice as many, beside chance."""
    figure = go.Figure()
    x = [point.cases for point in curve.points]
    balanced = [point.balanced for point in curve.points]
    auroc = [point.auroc for point in curve.points]
    errors = {
        "type": "data",
        "symmetric": False,
        "color": SUPPORTED_COLOR,
        "array": [point.balanced_high - point.balanced for point in curve.points],
        "arrayminus": [point.balanced - point.balanced_low for point in curve.points],
    }
    series: Sequence[tuple[str, Sequence[float], str, str, dict[str, Any]]] = (
        ("balanced accuracy", balanced, SUPPORTED_COLOR, "circle", {"error_y": errors}),
        ("AUROC", auroc, HALLUCINATED_COLOR, "x", {"dash": "dash"}),
    )
    for name, values, colour, symbol, style in series:
        style |= {"marker": {"color": colour, "symbol": symbol, "size": 8}, "color": colour}
        points = list(zip(x, values, strict=True))
        _add_line(figure, name, points, mode="lines+markers", **style)
    ahead = [round(x[-1] + (2 * curve.cases - x[-1]) * step / 8) for step in range(9)]
    if curve.law is not None:
        law = [(cases, curve.expected(cases)) for cases in ahead]
        _add_line(figure, "expected", law, color=NEUTRAL_COLOR, dash="dot")
    figure.add_hline(
        y=0.5, line={"color": NEUTRAL_COLOR, "width": 1}, annotation_text="always the same"
    )
    figure.update_layout(title="Quality against corrected cases")
    figure.update_xaxes(title="cases learned from", type="log", tickvals=[*x, 2 * curve.cases])
    lowest = min([0.35, *auroc, *(point.balanced_low - 0.03 for point in curve.points)])
    figure.update_yaxes(range=[lowest, SHARE_RANGE[1]])
    return style_figure(figure)


def majority_error_figure(
    independent: CurvePoints,
    together: CurvePoints,
    bound: CurvePoints,
    measured: Sequence[tuple[int, float, str]],
) -> go.Figure:
    """Plot error by number of agents; `measured` holds (agents, error, hover text)."""
    figure = go.Figure()
    lines = (
        ("independent agents", independent, SUPPORTED_COLOR, "solid"),
        ("agents that err together", together, HALLUCINATED_COLOR, "dash"),
        ("Hoeffding's bound for the effective number", bound, NEUTRAL_COLOR, "dot"),
    )
    for name, points, colour, dash in lines:
        _add_line(figure, name, points, "%{x} agents: %{y:.3f}", color=colour, dash=dash)
    if measured:
        marker = {"color": NEUTRAL_COLOR, "size": 9, "symbol": "diamond"}
        words = [words for _, _, words in measured]
        majorities = [(k, error) for k, error, _ in measured]
        style = {"mode": "markers", "marker": marker, "text": words}
        _add_line(figure, "majorities of your agents", majorities, "%{text}", **style)
    figure.update_layout(title="How often a majority of n agents is wrong")
    figure.update_xaxes(title="agents", tick0=1)
    drawn = [*(y for _, points, _, _ in lines for _, y in points), *(y for _, y, _ in measured)]
    highest = max([0.1, *drawn])
    figure.update_yaxes(range=[-0.03 * highest, 1.1 * highest])
    return _add_legend_room(style_figure(figure, height=380))


def judge_risk_figure(
    budgets: Sequence[float],
    competing: Sequence[float],
    base: float,
    collaborating: Sequence[float],
    measured: tuple[float, float] | None,
) -> go.Figure:
    """Plot risk by a message's budget; `measured` is (evidence, risk) of the project's debates."""
    figure = go.Figure()
    lines = (
        ("competing, taken for evidence", competing, HALLUCINATED_COLOR, "dash"),
        ("no debate", [base] * len(budgets), NEUTRAL_COLOR, "dot"),
        ("collaborating", collaborating, SUPPORTED_COLOR, "solid"),
    )
    about = "%{x:.2f} nats: %{y:.3f}"
    for name, risks, colour, dash in lines:
        points = list(zip(budgets, risks, strict=True))
        _add_line(figure, name, points, about, color=colour, dash=dash)
    if measured is not None:
        style = {
            "mode": "markers",
            "marker": {"color": NEUTRAL_COLOR, "size": 10, "symbol": "diamond"},
        }
        _add_line(figure, "your debates, if collaborating", [measured], about, **style)
    figure.update_layout(title="The judge's risk by how far a message can move it")
    figure.update_xaxes(title="budget of a message, mean LLR in nats")
    highest = max([base, *competing, *collaborating, measured[1] if measured else 0.0])
    figure.update_yaxes(range=[-0.03 * highest, 1.1 * highest])
    return _add_legend_room(style_figure(figure, height=380))


def _add_legend_room(figure: go.Figure) -> go.Figure:
    """Make room for long legend entries below each other, as on a phone."""
    figure.update_layout(margin={"l": 40, "r": 10, "t": 40, "b": 130}, legend={"y": -0.24})
    return figure
