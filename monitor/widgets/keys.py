"""Every key of the lists and of the detail; a form has its own beside it.

Each has an id, so that it can be remapped, and a tooltip: the help and the command palette are made
from those that are alive.
"""

from __future__ import annotations

from textual.binding import Binding


def key(
    keys: str,
    action: str,
    name: str,
    tooltip: str,
    *,
    id: str,
    show: bool = False,
    priority: bool = False,
) -> Binding:
    """`show`: in the key bar, though not in `BAR`. `priority`: also where something is typed."""
    return Binding(keys, action, name, show=show, tooltip=tooltip, id=id, priority=priority)


MOVING = (
    key("j,down", "move(1)", "Down", "One down", id="move.down"),
    key("k,up", "move(-1)", "Up", "One up", id="move.up"),
    key("g,home", "first", "First", "To the first", id="move.first"),
    key("G,end", "last", "Last", "To the last", id="move.last"),
    key("ctrl+d", "move_pages(0.5)", "Half down", "Half a page down", id="move.half-down"),
    key("ctrl+u", "move_pages(-0.5)", "Half up", "Half a page up", id="move.half-up"),
    key("pagedown", "move_pages(1)", "Page down", "A page down", id="move.page-down"),
    key("pageup", "move_pages(-1)", "Page up", "A page up", id="move.page-up"),
    key("enter", "choose", "Detail", "Everything about it", id="open.detail"),
)

SCROLLING = (
    key("j,down", "scroll_down", "Down", "One line down", id="scroll.down"),
    key("k,up", "scroll_up", "Up", "One line up", id="scroll.up"),
    key("g,home", "scroll_home", "Top", "To the top", id="scroll.home"),
    key("G,end", "scroll_end", "End", "To the end", id="scroll.end"),
    key("ctrl+d", "scroll_half(1)", "Half down", "Half a page down", id="scroll.half-down"),
    key("ctrl+u", "scroll_half(-1)", "Half up", "Half a page up", id="scroll.half-up"),
    key("w", "wrap", "Wrap", "Break long lines, or scroll sideways", id="scroll.wrap"),
    key("h,left", "scroll_sideways(-1)", "Left", "To the left", id="scroll.left"),
    key("l,right", "scroll_sideways(1)", "Right", "To the right", id="scroll.right"),
)

HELP = (key("question_mark", "app.help", "Help", "What every key does", id="leave.help"),)

ENTRY_ACTIONS = (
    key(
        "r", "open_form('resolve')", "Resolve", "Close it as solved, with a note", id="act.resolve"
    ),
    key(
        "t",
        "open_form('retry')",
        "Retry",
        "Resume the turn; resolve it if that works",
        id="act.retry",
    ),
    key("s", "open_form('snooze')", "Snooze", "Hear nothing of it for a while", id="act.snooze"),
    key(
        "d",
        "open_form('dismiss')",
        "Dismiss",
        "Close it as not worth a fix",
        id="act.dismiss",
        show=True,
    ),
    key("a", "open_form('assign')", "Assign", "Say who looks into it", id="act.assign"),
    key("o", "open_form('reopen')", "Reopen", "Open a closed one again", id="act.reopen"),
    key("z", "undo", "Undo", "Take back the last change", id="act.undo"),
    key("y", "copy_id", "Copy id", "Copy the id", id="copy.id"),
    key("Y", "copy_markdown", "Copy", "Copy everything as Markdown", id="copy.markdown"),
    key("e", "edit", "Editor", "Open the source line in $EDITOR", id="open.editor"),
)

MATCHES = (
    key("n", "next_match(1)", "Next match", "The next that matches", id="list.next"),
    key("N", "next_match(-1)", "Previous match", "The one before", id="list.previous"),
)

LIST_ACTIONS = (
    *MATCHES,
    key("slash", "filter", "Filter", "sev:critical phase:planner age:>1h text", id="list.filter"),
    key("space", "mark", "Mark", "Mark it for a change of many", id="list.mark"),
    key("ctrl+a", "mark_all", "Mark all", "Mark all shown, or none", id="list.mark-all"),
    key("S", "sort('severity')", "By severity", "The worst first", id="sort.severity"),
    key("A", "sort('age')", "By age", "The oldest first", id="sort.age"),
    key("O", "sort('count')", "By count", "The most frequent first", id="sort.count"),
    key("f", "fold", "Fold alike", "One row for failures that are alike", id="list.fold"),
    key("p", "pause", "Pause", "Hold the list still and count what comes", id="live.pause"),
    key("R", "refresh", "Refresh", "Read everything again", id="live.refresh"),
    key("left_square_bracket", "tab(-1)", "Tab left", "The tab before", id="tab.previous"),
    key("right_square_bracket", "tab(1)", "Tab right", "The next tab", id="tab.next"),
    key("1", "tab_to('open')", "Open", "Open interventions", id="tab.open"),
    key("2", "tab_to('history')", "History", "Closed interventions", id="tab.history"),
    key("3", "tab_to('turns')", "Live turns", "Turns as they run", id="tab.turns"),
    key("4", "tab_to('log')", "Log", "The error log as it grows", id="tab.log"),
)

LEAVING = (
    key("escape", "back", "Back", "One level back", id="leave.back"),
    key("q", "leave", "Quit", "Back; quit at the root", id="leave.quit"),
)

# The key bar, the most wanted first: (ids, what they do; "" for the binding's name). Where there is
# no room for all, the last are left out, but never those in `ALWAYS`.
BAR = (
    ("open.detail", ""),
    ("act.resolve", ""),
    ("act.retry", ""),
    ("act.snooze", ""),
    ("act.dismiss", ""),
    ("list.filter", ""),
    ("list.mark", ""),
    ("act.undo", ""),
    ("live.pause", ""),
    ("copy.id copy.markdown", "Copy"),
    ("open.editor", ""),
    ("move.down move.up scroll.down scroll.up", "Move"),
    ("scroll.wrap", ""),
    ("tab.previous tab.next", "Tab"),
    ("sort.severity sort.age sort.count", "Sort"),
    ("list.mark-all", ""),
    ("list.fold", "Fold"),
    ("act.assign", ""),
    ("act.reopen", ""),
    ("list.next list.previous", "Match"),
    ("move.first move.last scroll.home scroll.end", "Ends"),
    ("move.half-down move.half-up scroll.half-down scroll.half-up", "Half page"),
    ("scroll.left scroll.right", "Sideways"),
    ("live.refresh", ""),
    ("leave.back", ""),
    ("tab.open tab.history tab.turns tab.log", "Tabs"),
    ("leave.commands", ""),
)
ALWAYS = (("leave.help", ""), ("leave.quit", ""))
