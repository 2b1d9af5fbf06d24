"""The keys at the bottom."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey


class KeyFooter(Footer):
    """Textual's makes its two dozen widgets anew at every change, four times before the first
    paint. This one does when other keys are alive, and else repaints those that become grey. It is
    there in a browser window behind another, too."""

    _made_of: object = None

    def bindings_changed(self, screen: Screen[object]) -> None:
        if not (self.is_attached and screen is self.screen):
            return
        if self._made_of is not None and not screen.app.app_focus:
            return
        shown = [active for active in screen.active_bindings.values() if active.binding.show]
        made_of = [(active.binding.key, active.binding.description) for active in shown]
        if made_of != self._made_of:
            self._made_of = made_of
            self._bindings_ready = True
            self.call_after_refresh(self.recompose)
            return
        enabled = {active.binding.action: active.enabled for active in shown}
        for key in self.query(FooterKey):
            key._disabled = not enabled.get(key.action, True)  # a click asks for it
            key.set_class(key._disabled, "-disabled")

    async def recompose(self) -> None:
        await super().recompose()
        # Textual forgets widgets that are gone from those that follow `compact` when it is set.
        self.mutate_reactive(KeyFooter.compact)
