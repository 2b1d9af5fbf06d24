// Keys go to the terminal as soon as it draws, and whenever the window comes back.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
const begun = () => document.body.classList.contains("-first-byte") && focus();
new MutationObserver(begun).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", focus);
