"""The plots of the page, one for each question."""

from statistics import median

import matplotlib

matplotlib.use("svg")
# The same figures make the same file.
matplotlib.rcParams.update({"svg.hashsalt": "dq", "svg.fonttype": "none", "font.size": 10, "axes.grid": True,
                            "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})

import matplotlib.pyplot as plt  # noqa: E402 - the settings come first

OTHERS = ["tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:olive", "tab:cyan", "tab:pink", "tab:gray"]


def draw(core, opponents, folder):
    subjects = opponents["subjects"]
    save(cost(core["parts"]["sizes"]["curves"]), folder / "cost.svg")
    save(lateness(subjects["lateness"]), folder / "lateness.svg")
    save(memory(subjects["memory"]), folder / "memory.svg")
    save(throughput(subjects["throughput"]), folder / "throughput.svg")


def save(figure, path):
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def style(name, at):
    """dq stands out, whatever it is compared with."""
    if name.lower().startswith("dq"):
        return {"color": "tab:blue", "linewidth": 2.2}
    if name == "floor":
        return {"color": "black", "linestyle": ":"}
    return {"color": OTHERS[at % len(OTHERS)], "linewidth": 1.3}


def lines(axes, curves):
    for at, (name, points) in enumerate(curves.items()):
        xs, ys = zip(*points)
        options = style(name, at)
        if "rising" in name:
            options["linestyle"] = "--"
        axes.plot(xs, ys, label=name, marker="o", markersize=3, **options)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def cost(curves):
    figure, axes = plt.subplots(figsize=(7, 4))
    lines(axes, {name.split(": ", 1)[1]: points for name, points in curves.items()})
    axes.set(xscale="log", xlabel="jobs in the queue", ylabel="server CPU per add, us", ylim=(0, None))
    return figure


def lateness(parts):
    """Of each share of the jobs, the median of the rounds."""
    curves = {}
    for name, samples in parts.items():
        if name in ("dq (Node.js)", "dq (Go)", "dq (Java)") or name.startswith("dq worker"):
            continue
        shares = [share for share, _ in samples[0]["curve"]]
        late = [median(sample["curve"][at][1] for sample in samples) for at in range(len(shares))]
        curves[name] = [(ms, 100 * share) for ms, share in zip(late, shares) if ms > 0]
    figure, axes = plt.subplots(figsize=(7, 4))
    lines(axes, curves)
    axes.set(xscale="log", xlabel="late by, ms", ylabel="share of the jobs, %", ylim=(0, 101))
    return figure


def memory(parts):
    curves = {name: [(int(size), median(each[size] for each in samples)) for size in samples[0]]
              for name, samples in parts.items()}
    figure, axes = plt.subplots(figsize=(7, 4))
    lines(axes, curves)
    axes.set(xscale="log", yscale="log", xlabel="payload, bytes", ylabel="server memory per job, bytes")
    return figure


def throughput(parts):
    names = list(parts)[::-1]
    rates = [median(sample["per_s"] for sample in parts[name]) for name in names]
    figure, axes = plt.subplots(figsize=(7, 0.35 * len(names) + 1))
    colors = ["tab:blue" if name.startswith("dq") else "tab:gray" for name in names]
    bars = axes.barh(names, rates, color=colors)
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=3, fontsize=8)
    axes.set(xlabel="jobs per second, from the add to the worker")
    return figure
