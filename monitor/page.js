// Keys go to the terminal as soon as it draws, and whenever the window comes back.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
const begun = () => document.body.classList.contains("-first-byte") && focus();
new MutationObserver(begun).observe(document.body, { attributeFilter: ["class"] });
window.addEventListener("focus", focus);
// The first fit to a smaller window counts with the rows that no longer fit; the second with none.
window.addEventListener("resize", (event) => {
  if (event.isTrusted) requestAnimationFrame(() => window.dispatchEvent(new Event("resize")));
});
// What was copied is known here alone: the browser may refuse it.
const tell = (text) => {
  const told = document.querySelector(".told");
  told.textContent = text;
  setTimeout(() => told.textContent === text && (told.textContent = ""), 4000);
};
const write = navigator.clipboard?.writeText.bind(navigator.clipboard);
if (write) {
  navigator.clipboard.writeText = (text) =>
    write(text).then(() => tell("copied"), (refusal) => tell(`not copied: ${refusal.message}`));
}
