"""The picture of docs/samplers.md: what each sampler leaves of random search's regret, by function."""
import html
import math

CELL, LEFT, TOP, HIGH = 78, 150, 64, 26  # widths and heights in pixels
BEST, WORST = (28, 107, 72), (250, 246, 236)  # colours of a thousandth and of all
LEAST = 1e-3


def colour(share):
    """By the logarithm of the share, between those of a thousandth and of all."""
    toward = min(max(-math.log(max(share, LEAST)) / -math.log(LEAST), 0), 1)
    return tuple(round(w + toward * (b - w)) for w, b in zip(WORST, BEST)), toward > 0.55


def share_text(share):
    if share < 5e-4:
        return "0"
    return f"{share:.1g}" if share < 0.0095 else f"{share:.2g}"


def text(x, y, content, extra=""):
    return f'<text x="{x:g}" y="{y:g}" {extra}>{html.escape(content)}</text>'


def draw(shares, title):
    """SVG of shares[function][sampler]; the least of each function is in bold."""
    samplers = list(next(iter(shares.values())))
    width, height = max(LEFT + CELL * len(samplers) + 16, 600), TOP + HIGH * len(shares) + 14
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="system-ui, sans-serif" font-size="12" fill="#222">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           text(12, 22, title, 'font-size="13" font-weight="600"')]
    for column, sampler in enumerate(samplers):
        out.append(text(LEFT + CELL * (column + 0.5), TOP - 10, sampler, 'text-anchor="middle"'))
    for row, (function, of_samplers) in enumerate(shares.items()):
        middle = TOP + HIGH * row + HIGH / 2 + 4
        out.append(text(LEFT - 10, middle, function, 'text-anchor="end"'))
        for column, sampler in enumerate(samplers):
            share = of_samplers[sampler]
            fill, dark = colour(share)
            x, y = LEFT + CELL * column, TOP + HIGH * row
            out.append(f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{HIGH - 2}" rx="3" '
                       f'fill="rgb{fill}"/>')
            weight = 700 if share == min(of_samplers.values()) else 400
            out.append(text(x + CELL / 2, middle, share_text(share),
                            f'text-anchor="middle" font-weight="{weight}" fill="{"#fff" if dark else "#222"}"'))
    return "\n".join([*out, "</svg>"]) + "\n"
