"use strict";
// Shows one point's sections at a time; without scripts the first choice stays.
for (const button of document.querySelectorAll("button[data-point]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("button[data-point]"))
      other.setAttribute("aria-pressed", String(other.dataset.point === button.dataset.point));
    for (const part of document.querySelectorAll(".point"))
      part.hidden = part.dataset.of !== button.dataset.point;
  });
}
// A click on a bar of a flame graph makes it fill the width; bars beside it leave the picture. The graph is one tab stop, within which the
// arrow keys move: to what called a function, to what it called, and to the bars beside it.
for (const graph of document.querySelectorAll(".flames")) {
  const bars = [...graph.children].map(bar => ({bar, x: +bar.dataset.x, w: +bar.dataset.w, depth: parseFloat(bar.style.top)}));
  graph.addEventListener("click", event => {
    const chosen = bars.find(one => one.bar === event.target);
    if (!chosen) return;
    chosen.bar.focus(); // not every browser focuses a button that is clicked
    for (const {bar, x, w} of bars) {
      const first = Math.max((x - chosen.x) / chosen.w, 0), end = Math.min((x + w - chosen.x) / chosen.w, 1);
      bar.style.left = 100 * first + "%";
      bar.style.width = 100 * Math.max(end - first, 0) + "%";
      bar.hidden = end - first <= 1e-4;
    }
  });
  graph.addEventListener("focusin", event => {
    for (const {bar} of bars) bar.tabIndex = bar === event.target ? 0 : -1;
  });
  graph.addEventListener("keydown", event => {
    const at = bars.find(one => one.bar === event.target);
    const shown = bars.filter(one => !one.bar.hidden);
    const near = {
      ArrowUp: () => shown.findLast(one => one.depth < at.depth && one.x <= at.x + 1e-5),
      ArrowDown: () => shown.find(one => one.depth > at.depth && one.x >= at.x - 1e-5 && one.x < at.x + at.w - 1e-5),
      ArrowLeft: () => shown.findLast(one => one.depth === at.depth && one.x < at.x),
      ArrowRight: () => shown.find(one => one.depth === at.depth && one.x > at.x),
    }[event.key];
    if (!at || !near) return;
    event.preventDefault();
    near()?.bar.focus();
  });
}
