"""Every key of the lists and of the detail; a form has its own beside it.

Each has an id, so that it can be remapped, and a tooltip: the footer, the help and the command
palette are made from those that are alive, in this order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate, groupby
from math import inf
from typing import Any

from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from interventions.errors import SettingsError


def key(keys: str, action: str, name: str, tooltip: str, **options: Any) -> Binding:
    """The options of a Binding: `show` in the footer, where those of a `group` stand together;
    `priority` also where something is typed."""
    return Binding(keys, action, name, tooltip=tooltip, **options)


hidden_key = partial(key, show=False)
HELP = key("question_mark", "app.help", "Help", "What every key does", id="leave.help")

COPY, TABS, SORT, MATCH, PART, GO = (
    Binding.Group(name, compact=True) for name in ("Copy", "Tab", "Sort", "Match", "Part", "Go to")
)

MOVING = (
    hidden_key("j,down", "move(1)", "Down", "One down", id="move.down"),
    hidden_key("k,up", "move(-1)", "Up", "One up", id="move.up"),
    hidden_key("g,home", "first", "First", "To the first", id="move.first"),
    hidden_key("G,end", "last", "Last", "To the last", id="move.last"),
    hidden_key("ctrl+d", "move_pages(0.5)", "Half down", "Half a page down", id="move.half-down"),
    hidden_key("ctrl+u", "move_pages(-0.5)", "Half up", "Half a page up", id="move.half-up"),
    hidden_key("pagedown", "move_pages(1)", "Page down", "A page down", id="move.page-down"),
    hidden_key("pageup", "move_pages(-1)", "Page up", "A page up", id="move.page-up"),
)
CHOOSING = (key("enter", "choose", "Detail", "Everything about it", id="open.detail"), *MOVING)
READING = (
    key("f", "fold", "Fold", "Show everything, or fold what is long", id="read.fold"),
    key("slash", "search", "Search", "Look for words in it", id="read.search"),
    key("right_curly_bracket", "part(1)", "Next part", "The next", id="read.part", group=PART),
    key("left_curly_bracket", "part(-1)", "Part before", "Back", id="read.part-up", group=PART),
    hidden_key("n", "match(1)", "Next match", "Where the words are again", id="read.match"),
    hidden_key("N", "match(-1)", "Match before", "Where they were before", id="read.match-up"),
    *MOVING,
)

TRIAGE = (
    # First, so that they are in sight on the narrowest terminal.
    HELP,
    key("q", "leave('back')", "Back", "One level back", id="leave.quit"),
    key("q", "leave('quit')", "Quit", "End the monitor", id="leave.quit"),
    hidden_key("escape", "back", "Back", "One level back", id="leave.back"),
    key("r", "form('resolve')", "Resolve", "Close it as solved, with a note", id="act.resolve"),
    key("t", "form('retry')", "Retry", "Resume the turn; resolve it if that works", id="act.retry"),
    key("s", "form('snooze')", "Snooze", "Hear nothing of it for a while", id="act.snooze"),
    key("d", "form('dismiss')", "Dismiss", "Close it as not worth a fix", id="act.dismiss"),
    key("slash", "filter", "Filter", "sev:critical phase:planner age:>1h text", id="list.filter"),
    key("space", "mark", "Mark", "Mark it for a change of many", id="list.mark"),
    key("z", "undo", "Undo", "Take back the last change", id="act.undo"),
    key("p", "pause", "Pause", "Hold the list still and count what comes", id="live.pause"),
    key("y", "copy('id')", "Copy id", "Copy the id", id="copy.id", group=COPY),
    key("Y", "copy('all')", "Copy", "Copy everything as Markdown", id="copy.markdown", group=COPY),
    key("e", "edit", "Editor", "Source line, recipe or configuration", id="open.editor"),
    key("c", "commands", "Commands", "The commands to go on with", id="open.commands"),
    key("X", "form('export')", "Export", "Write it into a file", id="act.export"),
    key("a", "form('assign')", "Assign", "Say who looks into it", id="act.assign"),
    key("o", "form('reopen')", "Reopen", "Open a closed one again", id="act.reopen"),
    key("T", "go('turns')", "Turns", "Its turns", id="go.turns", group=GO),
    key("E", "go('entry')", "Entry", "The entry of a turn, or of a line", id="go.entry", group=GO),
    key("L", "go('log')", "Log", "Its lines of the log", id="go.log", group=GO),
    key("equals_sign", "go('alike')", "Alike", "What is alike", id="go.alike", group=GO),
    key("left_square_bracket", "tab(-1)", "Left", "The tab before", id="tab.previous", group=TABS),
    key("right_square_bracket", "tab(1)", "Right", "The next tab", id="tab.next", group=TABS),
    key("S", "sort('severity')", "By severity", "The worst first", id="sort.severity", group=SORT),
    key("A", "sort('last')", "By time", "Last seen; again: first", id="sort.time", group=SORT),
    key("O", "sort('count')", "By count", "The most frequent first", id="sort.count", group=SORT),
    key("n", "next_match(1)", "Next match", "The next that matches", id="list.next", group=MATCH),
    key("N", "next_match(-1)", "Match before", "The one before", id="list.previous", group=MATCH),
    key("ctrl+a", "mark_all", "Mark all", "Mark all shown, or none", id="list.mark-all"),
    key("W", "window", "Window", "Trends: hour, day, week, month", id="trends.window"),
    key("f", "fold", "Fold", "A cause in one row, or with its entries", id="list.fold"),
    key("R", "refresh", "Refresh", "Read everything again", id="live.refresh"),
    hidden_key("1", "tab_to('open')", "Open", "Open interventions", id="tab.open"),
    hidden_key("2", "tab_to('history')", "History", "Closed interventions", id="tab.history"),
    hidden_key("3", "tab_to('turns')", "Live turns", "Turns as they run", id="tab.turns"),
    hidden_key("4", "tab_to('log')", "Log", "The error log as it grows", id="tab.log"),
    hidden_key("5", "tab_to('trends')", "Trends", "Failures over time", id="tab.trends"),
)


def keymap(text: str) -> dict[str, str]:
    """`act.resolve=x move.down=n,down` as Textual takes it. Raises SettingsError for an id that is
    not there, and for a key that another of the same list has."""
    chosen = dict(pair.partition("=")[::2] for pair in text.split())
    for name, keys in chosen.items():
        if name not in _PLACES or not keys:
            what = f"[monitor] keys: {name} is no ID, or has no KEY"
            raise SettingsError(what, hint="the ids stand in the help: ? then /")
    for group in _GROUPS if chosen else ():
        taken: dict[str, str | None] = {}
        for one in group:
            for each in chosen.get(one.id or "", one.key).split(","):
                if taken.setdefault(each, one.id) != one.id:
                    what = f"[monitor] keys: {each} is the key of {taken[each]} and of {one.id}"
                    raise SettingsError(what, hint="give one of them another")
    return chosen


_GROUPS = ((*CHOOSING, *TRIAGE), READING)
_PLACES = {one.id: place for place, one in enumerate((*CHOOSING, *READING, *TRIAGE))}


def in_order(active: Mapping[str, ActiveBinding]) -> dict[str, ActiveBinding]:
    """Textual puts remapped keys last, where the footer cuts them off."""
    return dict(sorted(active.items(), key=lambda pair: _PLACES.get(pair[1].binding.id, inf)))


class KeyBar(Widget):
    """What the keys do, in one line: whole ones, as many as there is room for, and then where there
    are more. Those that do not apply now are grey; a click presses a key."""

    auto_links = False  # they look as they are styled here
    active: reactive[Mapping[str, ActiveBinding]] = reactive(dict)  # painted when it differs

    def on_mount(self) -> None:
        self._show(self.screen)
        self.screen.bindings_updated_signal.subscribe(self, self._show)

    def _show(self, screen: Screen[Any]) -> None:
        self.active = in_order(screen.active_bindings)

    def render(self) -> Content:
        return self._fitting(list(self._names()))

    def _names(self) -> Iterator[tuple[Content, Content]]:
        """(keys, name); the keys of a group stand together, and the help is last."""
        shown: dict[str, ActiveBinding] = {}
        for active in self.active.values():
            if active.binding.show:
                shown.setdefault(active.binding.action, active)
        last = shown.pop(HELP.action, None)
        ordered = [*shown.values(), *([last] if last else [])]
        for group, found in groupby(ordered, lambda a: a.binding.group or a.binding.description):
            alike = list(found)
            name = group if isinstance(group, str) else group.description
            style = "" if any(active.enabled for active in alike) else "dim"
            yield Content("").join(map(self._key, alike)), Content.styled(f" {name}", style)

    def _key(self, active: ActiveBinding) -> Content:
        style = "bold $text-accent" if active.enabled else "dim"
        press = f" @click=app.simulate_key('{active.binding.key}')"
        return Content.styled(self.app.get_key_display(active.binding), style + press)

    def _fitting(self, names: list[tuple[Content, Content]]) -> Content:
        whole = [Content.assemble(*each) for each in names]
        *others, last = whole or [Content("")]
        ends = list(accumulate(each.cell_length + 1 for each in others))
        count = bisect_right(ends, self.size.width - last.cell_length)
        if count < len(others) and last.plain.endswith(HELP.description):
            last = Content.assemble(names[-1][0], " more")
        return Content(" ").join([*others[:count], last])
