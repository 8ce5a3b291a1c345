"""The picture of the K3 headline as SVG: MFU and GPU-hours per trillion tokens against GPUs with error bars, what each
mechanism contributes, and what 10 % on each input does. Fixed layout, fixed digits: the same input gives the same bytes."""
import math

WIDTH, PANEL, TOP = 640, 200, 70
COLOURS = {"h800": "#0072b2", "h100": "#d55e00", "h200": "#009e73"}
GOOD, BAD, INK, FAINT = "#0072b2", "#d55e00", "#222", "#ccc"
ROW = 20
SHORT = {  # what `ablate` calls them -> what the picture has room for
    "activation manager -> full recompute": "activation manager → full recompute",
    "pipeline ZeRO-2 -> ZeRO-1 on the GPU": "gradients in host memory → on the GPU",
}


class Picture:
    def __init__(self):
        self.parts = []

    def text(self, x, y, words, anchor="start", colour=INK, weight="normal", size=13):
        words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}" '
                          f'font-size="{size}">{words}</text>')

    def line(self, x1, y1, x2, y2, colour=FAINT, width=1.0):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height}" fill="{colour}"/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')

    def path(self, points, colour):
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')

    def svg(self, height):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">\n'
                f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def steps_of(most):
    """Round distances of grid lines, at most five of them."""
    for unit in (10 ** e * f for e in range(-2, 7) for f in (1, 2, 5)):
        if most / unit <= 5:
            return unit
    return most


def curves(p, left, title, found, value, low, high):
    """One panel from zero: a line for each GPU type over the number of GPUs, bars from low to high."""
    sizes = sorted({size for _, size in found})
    most = 1.05 * max(high(a) for a in found.values())
    x = lambda size, gpu: (left + 60 + 200 * math.log2(size / sizes[0]) / math.log2(sizes[-1] / sizes[0])
                           + 5 * (list(COLOURS).index(gpu) - 1))
    y = lambda v: TOP + PANEL * (1 - v / most)
    p.text(left, TOP - 14, title, weight="bold")
    unit = steps_of(most)
    for i in range(int(most / unit) + 1):
        p.line(left + 40, y(i * unit), left + 280, y(i * unit))
        p.text(left + 35, y(i * unit) + 4, f"{i * unit:g}", "end")
    for size in sizes:
        p.text(x(size, "h100"), TOP + PANEL + 18, f"{size:,}", "middle")
    for gpu, colour in COLOURS.items():
        points = [(x(size, gpu), found[gpu, size]) for size in sizes]
        p.path([(px, y(value(a))) for px, a in points], colour)
        for px, a in points:
            p.line(px, y(low(a)), px, y(high(a)), colour, 1.5)
            p.dot(px, y(value(a)), colour)


def bars(p, top, title, rows, digits):
    """Signed bars from a zero line; the rest of the page's width is names."""
    names, room = 300, 250
    least, most = min(0, *(v for _, v in rows)), max(0, *(v for _, v in rows))
    scale = room / (most - least)
    zero = names + 25 - least * scale
    p.text(0, top, title, weight="bold")
    for i, (name, v) in enumerate(rows):
        y = top + 10 + ROW * i
        p.text(names, y + 14, name, "end")
        p.bar(zero + min(0, v) * scale, y + 3, abs(v) * scale, 13, GOOD if v >= 0 else BAD)
        p.text(zero + max(0, v) * scale + 5, y + 14, f"{v:+.{digits}f} %")
    p.line(zero, top + 8, zero, top + 12 + ROW * len(rows), INK)
    return top + 10 + ROW * len(rows)


def shown(rows, least, most):
    big = sorted((r for r in rows if abs(r["step_pct"]) >= least), key=lambda r: (-r["step_pct"], r["name"]))
    return [(SHORT.get(r["name"], r["name"].replace("->", "→")) + ("" if r.get("fits", True) else " *"), r["step_pct"])
            for r in big][:most]


def draw(found, kept):
    p = Picture()
    p.text(0, 18, "Kimi K3, 8K context, 64M tokens a step, best layout found", weight="bold", size=15)
    for i, (gpu, colour) in enumerate(COLOURS.items()):
        p.bar(10 + 90 * i, 28, 14, 14, colour)
        p.text(30 + 90 * i, 40, gpu.upper())
    p.text(290, 40, "bars: where 80 % of published MoE runs lie")
    curves(p, 0, "MFU in % over GPUs", found, lambda a: a["mfu"], lambda a: a["mfu"] / a["interval"][1],
           lambda a: a["mfu"] / a["interval"][0])
    curves(p, 330, "1,000 GPU-hours per trillion tokens", found, lambda a: a["hours"] / 1e3,
           lambda a: a["hours"] / 1e3 * a["interval"][0], lambda a: a["hours"] / 1e3 * a["interval"][1])
    gpu, size = kept["scenario"].split("_")
    where = f"{int(size):,} {gpu.upper()}"
    below = bars(p, TOP + PANEL + 52, f"Step on {where} with one mechanism off", shown(kept["off"], 0.2, 12), 1)
    if any(not r["fits"] for r in kept["off"]):
        p.text(WIDTH - 4, TOP + PANEL + 52, "* no longer fits", "end")
    below = bars(p, below + 30, f"Step on {where} with one input 10 % worse", shown(kept["ten_pct_worse"], 0.05, 8), 1)
    return p.svg(below + 12)
