// SPDX-License-Identifier: BSD-3-Clause
// Search over all moments by the words of their sentences: several words must all occur.
import { byId } from "../dom.js";
import { grouped } from "../model/app.js";
import { brief, sentence } from "../model/words.js";

export class Search {
  constructor(app) {
    this.app = app;
    this.input = byId("search");
    this.count = byId("search-count");
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.go(event.shiftKey ? -1 : 1);
      }
    });
    app.on((what) => {
      if (what === "history") {
        this.texts = null;
        if (this.input.value) this.find();
      } else if (what === "position") this.say();
    });
  }

  find() {
    const { app } = this;
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length)
      this.texts ??= app.history.moments.map((moment) => `${brief(app, moment)} ${sentence(app, moment)}`.toLowerCase());
    app.hits = words.length ? this.texts.flatMap((text, i) => (words.every((word) => text.includes(word)) ? [i] : [])) : null;
    app.changed("show");
    this.say();
  }

  go(dir) {
    const { app } = this;
    const hits = app.hits || [];
    const next = dir > 0 ? hits.find((index) => index >= app.k) : hits.findLast((index) => index < app.k - 1);
    if (next !== undefined) app.seek(next + 1);
    this.say();
  }

  say() {
    const hits = this.app.hits;
    const at = hits ? hits.indexOf(this.app.k - 1) + 1 : 0;
    const of = hits?.length ? `${at ? grouped(at) : "–"} of ${grouped(hits.length)}${at ? "" : ": Enter"}` : "none";
    this.count.textContent = hits && this.input.value ? of : "";
  }
}
