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
// A click on a bar of a flame graph makes it fill the width; bars beside it leave the picture.
for (const graph of document.querySelectorAll(".flames")) {
  const bars = [...graph.children].map(bar => ({bar, x: +bar.dataset.x, w: +bar.dataset.w}));
  graph.addEventListener("click", event => {
    const chosen = bars.find(one => one.bar === event.target);
    if (!chosen) return;
    for (const {bar, x, w} of bars) {
      const first = Math.max((x - chosen.x) / chosen.w, 0), end = Math.min((x + w - chosen.x) / chosen.w, 1);
      bar.style.left = 100 * first + "%";
      bar.style.width = 100 * Math.max(end - first, 0) + "%";
      bar.hidden = end - first <= 1e-4;
    }
  });
}
