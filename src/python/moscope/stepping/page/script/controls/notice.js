// SPDX-License-Identifier: BSD-3-Clause
// A short notice above the time line, which goes away by itself.
const SHOWN_MS = 5000;

export class Notice {
  constructor(app, element) {
    let timer = 0;
    app.on((what) => {
      if (what === "history") element.replaceChildren();
    });
    app.notice = (text) => {
      element.textContent = text;
      clearTimeout(timer);
      timer = setTimeout(() => element.replaceChildren(), SHOWN_MS);
    };
  }
}
