// SPDX-License-Identifier: BSD-3-Clause
// Tabs after the ARIA pattern: one tab stop, arrow keys within, each tab controls a panel.
import { fill, h } from "../dom.js";

export class Tabs {
  /** `tabs`: [id of the panel, label]. `shown` is called with the id of the panel that appears. */
  constructor(list, tabs, shown) {
    this.tabs = tabs;
    this.shown = shown;
    this.buttons = tabs.map(([id, label, key]) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${id}`,
          "aria-controls": id,
          title: `${label} (${key})`,
          on: { click: () => this.select(id) },
        },
        label,
      ),
    );
    fill(list, this.buttons);
    list.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const at = tabs.findIndex(([id]) => id === this.current);
      const next = (at + by + tabs.length) % tabs.length;
      this.select(tabs[next][0]);
      this.buttons[next].focus();
    });
  }

  select(id) {
    this.current = id;
    for (const [i, [other]] of this.tabs.entries()) {
      this.buttons[i].setAttribute("aria-selected", String(other === id));
      this.buttons[i].tabIndex = other === id ? 0 : -1;
      document.getElementById(other).hidden = other !== id;
    }
    this.shown(id);
  }
}
