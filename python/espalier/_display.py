"""What `espalier.tune` shows of a study while it runs, and what a notebook shows of its result."""
import html
import math
import os
import sys
import urllib.parse

from espalier import _record
from espalier._rows import has_ended, plain_state

_MOST_ROWS = 15  # of the live table
_MOST_WHY = 120  # characters of a failed trial's output
_ROUTINE = ("trial", "state", "slots", "step")


def display_for(shown):
    """By where the output goes; `shown` False: nothing is shown."""
    if not shown:
        return _Display()
    if in_notebook():
        return _Notebook()
    if sys.stdout is not None and sys.stdout.isatty():
        try:
            return _Table()
        except ImportError:
            pass
        try:
            return _Bar()
        except ImportError:
            pass
    return _Lines()


def in_notebook():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def figure(value):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def metric_of(study):
    """The name of its metric, or the names of all."""
    return ", ".join(study["metrics"]) or study["metric"]


def values_of(trial):
    """Its value, or the values of all metrics."""
    return ", ".join(figure(value) for value in (trial["value"], *trial["other_values"]) if value is not None)


def front(details):
    """The complete trials that no other one dominates, of a study of several metrics."""
    signs = [-1 if word == "maximize" else 1 for word in details["study"]["directions"]]
    complete = [(trial, [sign * value for sign, value in zip(signs, (trial["value"], *trial["other_values"]))])
                for trial in details["trials"]
                if trial["state"] == "TRIAL_COMPLETE" and not trial["infeasible"] and len(trial["other_values"]) + 1 == len(signs)]
    # In this order a trial is dominated by one before it, if at all, and then by one of the front so far.
    in_order = sorted({tuple(costs) for _, costs in complete if not any(math.isnan(cost) for cost in costs)})
    undominated = []
    for costs in in_order:
        rivals = undominated[-1:] if len(signs) <= 2 else undominated  # of two metrics the last has the least second one
        if not any(all(x <= y for x, y in zip(other, costs)) for other in rivals):
            undominated.append(costs)
    best = set(undominated)
    return [trial for trial, costs in complete if tuple(costs) in best]


def broken(details):
    """How many trials break a constraint of the study; empty: it has none."""
    constraints = ", ".join(details["study"]["constraints"])
    count = sum(trial["infeasible"] for trial in details["trials"])
    return f"; {count} of {len(details['trials'])} trials not within {constraints}" if constraints else ""


def headline(details):
    study = details["study"]
    counts = {state.lower(): count for state, count in study["trials_by_state"].items() if count}
    told = ", ".join(f"{count} {state}" for state, count in counts.items()) or "no trial yet"
    if study["max_trials"]:
        told = f"{sum(has_ended(trial) for trial in details['trials'])} of {study['max_trials']} ended: {told}"
    if study["metrics"]:
        numbers = ", ".join(str(trial["number"]) for trial in front(details))
        best = f"; Pareto front of {metric_of(study)}: trials {numbers}" if numbers else ""
        return f"{study['name']}: {plain_state(study['state']).lower()}, {told}{best}{broken(details)}"
    best = "" if study["best_trial"] is None else \
        f"; best {study['metric']} {figure(study['best_value'])} of trial {study['best_trial']}"
    return f"{study['name']}: {plain_state(study['state']).lower()}, {told}{best}{broken(details)}"


def why(trial):
    """Why it has failed, or was ended: the reason and, of a failed one, the last line of its output that tells it."""
    if trial["state"] not in ("TRIAL_FAIL", "TRIAL_PRUNED"):
        return ""
    told = _telling_line(trial["last_output"].splitlines()) if trial["state"] == "TRIAL_FAIL" else ""
    told = told if len(told) <= _MOST_WHY else told[:_MOST_WHY - 3] + "..."
    return ": ".join(part for part in (trial["reason"], told) if part)


def _telling_line(lines):
    """Of the last traceback the line with the error, else the last one that says something."""
    heads = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    within = lines[heads[-1] + 1:] if heads else []
    error = next((line for line in within if line.strip() and not line[0].isspace()), "")
    return error or next((line.strip() for line in reversed(lines) if line.strip()), "")


def table(details, most=_MOST_ROWS):
    """Its heading and rows, as texts: what lives first, then the best."""
    study, trials = details["study"], details["trials"]
    sign = -1 if study["maximize"] else 1

    def place(trial):
        value = trial["value"]
        if not has_ended(trial):
            return 0, 0, trial["number"]
        if value is None or not math.isfinite(value):
            return 4, 0, trial["number"]
        if trial["infeasible"]:
            return 3, sign * value, trial["number"]
        return 1 if trial["state"] == "TRIAL_COMPLETE" else 2, sign * value, trial["number"]

    shown = sorted(trials, key=place)[:most]
    names = list(dict.fromkeys(name for trial in shown for name in trial["parameters"]))
    rows = [[str(trial["number"]), plain_state(trial["state"]).lower(), str(trial["slots"] or ""),
             str(trial["step"] or ""), values_of(trial), *(figure(trial["parameters"].get(n)) for n in names)]
            for trial in shown]
    reasons = [why(trial) if trial["state"] == "TRIAL_FAIL" else "" for trial in shown]
    if any(reasons):
        return [*_ROUTINE, metric_of(study), *names, "why"], [[*row, reason] for row, reason in zip(rows, reasons)]
    return [*_ROUTINE, metric_of(study), *names], rows


def as_html(details, most=_MOST_ROWS):
    heading, rows = table(details, most)
    best = str(details["study"]["best_trial"])

    def row(cells, kind):
        weight = " style='font-weight:bold'" if kind == "td" and cells[0] == best else ""
        return f"<tr{weight}>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    left_out = len(details["trials"]) - len(rows)
    more = f"<p>and {left_out} more</p>" if left_out > 0 else ""
    return (f"<div><p>{html.escape(headline(details))}</p><table><thead>{row(heading, 'th')}</thead><tbody>"
            + "".join(row(cells, "td") for cells in rows) + f"</tbody></table>{more}</div>")


def _page_html(lines):
    """Its address is a link; the page itself is never shown within a notebook's."""
    if not lines:
        return ""
    address, *more = lines
    links = _link(address)
    below = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
    if below and os.environ.get("ESPALIER_WEB_HOST"):  # or the page would refuse the hub's name
        links += f", by jupyter-server-proxy {_link(f'{below}proxy/{urllib.parse.urlsplit(address).port}/')}"
    return f"<p>page: {links}</p>" + "".join(f"<p><code>{html.escape(line)}</code></p>" for line in more)


def _page_text(lines):
    return "page " + "\n     ".join(lines)


def _link(address):
    text = html.escape(address)
    return f"<a href='{text}' target='_blank' rel='noopener noreferrer'>{text}</a>"


class _Display:
    """Shows nothing."""

    page = ()  # lines: where the study's page is, and how it is reached from another machine; none: it has none now
    _begun = False
    _page_in_table = False

    def begin(self, heading):
        """Says what runs, once it is known."""
        if heading is not None and not self._begun:
            self._begun = True
            self.say(heading)
            if self.page and not self._page_in_table:
                self.say(_page_text(self.page))

    def show(self, details):
        pass

    def leave(self, record):
        """What stays of a study that has ended: `record` is the file of its page, or None."""

    def say(self, text):
        pass

    def finish(self):
        pass


class _Lines(_Display):
    """A line for each trial that has ended."""

    def __init__(self):
        self._told = set()

    def show(self, details):
        for trial in details["trials"]:
            if has_ended(trial) and trial["number"] not in self._told:
                self._told.add(trial["number"])
                self.say(self._line(details, trial))

    @staticmethod
    def _line(details, trial):
        study = details["study"]
        value = f" {metric_of(study)} {values_of(trial)}" if trial["value"] is not None else ""
        given = " ".join(f"{name}={figure(value)}" for name, value in trial["parameters"].items())
        reason = why(trial)
        told = f" ({reason})" if reason else ""
        return f"trial {trial['number']} {plain_state(trial['state']).lower()}{value}  {given}{told}"

    def say(self, text):
        print(text, flush=True)


class _Bar(_Display):
    def __init__(self):
        import tqdm
        self._bar, self._make = None, tqdm.tqdm

    def show(self, details):
        study = details["study"]
        if self._bar is None:
            self._bar = self._make(total=study["max_trials"] or None, unit="trial", desc=study["name"])
        if study["best_trial"] is not None:
            self._bar.set_postfix_str(f"best {study['metric']} {figure(study['best_value'])}", refresh=False)
        self._bar.n = sum(has_ended(trial) for trial in details["trials"])
        self._bar.refresh()

    def say(self, text):
        self._make.write(text)

    def finish(self):
        if self._bar is not None:
            self._bar.close()


class _Table(_Display):
    _page_in_table = True

    def __init__(self):
        import rich.live
        import rich.table
        import rich.text
        self._rich = rich
        self._live = rich.live.Live(auto_refresh=False)
        self._live.start()

    def show(self, details):
        heading, rows = table(details)
        drawn = self._rich.table.Table(title=self._rich.text.Text(headline(details)), title_justify="left",
                                      caption=self._rich.text.Text(_page_text(self.page)) if self.page else None,
                                      caption_justify="left")
        for name in heading:
            drawn.add_column(self._rich.text.Text(name), no_wrap=name in _ROUTINE)
        for cells in rows:
            best = cells[0] == str(details["study"]["best_trial"])
            drawn.add_row(*map(self._rich.text.Text, cells), style="bold cyan" if best else None)
        self._live.update(drawn, refresh=True)

    def say(self, text):
        self._live.console.print(text, markup=False)

    def finish(self):
        self._live.stop()


class _Notebook(_Display):
    _page_in_table = True

    def __init__(self):
        from IPython.display import HTML, display
        self._html, self._display, self._handle = HTML, display, None
        self._shown = None

    def show(self, details):
        self._put(as_html(details) + _page_html(self.page))

    def leave(self, record):
        if record is not None and self._shown is not None:
            self._put(f"<div>{self._shown}{_record.frame(record)}</div>")

    def _put(self, text):
        if text == self._shown:
            return
        self._shown = text
        if self._handle is None:
            self._handle = self._display(self._html(text), display_id=True)
        else:
            self._handle.update(self._html(text))

    def say(self, text):
        print(text, flush=True)
