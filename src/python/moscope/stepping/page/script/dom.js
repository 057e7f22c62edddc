// SPDX-License-Identifier: BSD-3-Clause
// Elements of HTML and SVG from a tag, attributes and children. An attribute `on` holds listeners; null and false are left out.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style" && typeof value === "object")
      for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Replaces an element's children; the element that has the focus keeps it if its `data-key` is among the new ones. */
export function fill(element, ...children) {
  const active = document.activeElement;
  const key = active && element.contains(active) ? active.getAttribute("data-key") : null;
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (key !== null) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** Scrolls only the panel that contains the element, and only if the element is out of sight; once the page has its layout. */
export function reveal(panel, element) {
  if (element) requestAnimationFrame(() => scrollInto(panel, element));
}

function scrollInto(panel, element) {
  const outer = panel.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  if (inner.top < outer.top) panel.scrollTop += inner.top - outer.top - 8;
  else if (inner.bottom > outer.bottom) panel.scrollTop += Math.min(inner.bottom - outer.bottom + 8, inner.top - outer.top - 8);
  if (inner.left < outer.left || inner.right > outer.right) {
    panel.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }
}
