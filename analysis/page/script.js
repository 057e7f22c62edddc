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
