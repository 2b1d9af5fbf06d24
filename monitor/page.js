// Keys go to the terminal as soon as it draws, and whenever the window comes back.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
const begun = () => document.body.classList.contains("-first-byte") && focus();
new MutationObserver(begun).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", focus);
// The first fit to a smaller window counts with the rows that no longer fit; the second with none.
window.addEventListener("resize", (event) => {
  if (event.isTrusted) requestAnimationFrame(() => window.dispatchEvent(new Event("resize")));
});
