// SPDX-License-Identifier: BSD-3-Clause
// The page's address names script and position, so that a link opens where it was copied: #script=..&moment=..&access=..&view=..
const WAIT_MS = 300;

export class Link {
  constructor(page) {
    this.page = page;
    this.timer = 0;
    page.app.on((what) => {
      if (what === "time") return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.write(), WAIT_MS);
    });
    addEventListener("hashchange", () => this.read());
  }

  text() {
    const { app, stage, side } = this.page;
    const fields = new URLSearchParams({ script: app.history.trace.script, moment: String(app.k) });
    if (app.access !== null) fields.set("access", String(app.access));
    if (stage.current !== "machine") fields.set("view", stage.current);
    if (side.current !== "state") fields.set("side", side.current);
    return `#${fields}`;
  }

  write() {
    if (this.page.app.playing || location.hash === this.text()) return;
    history.replaceState(null, "", this.text());
  }

  /** Goes to what the address names. */
  read() {
    const { app, stage, side, live } = this.page;
    const fields = new URLSearchParams(location.hash.slice(1));
    const script = fields.get("script");
    if (script && script !== app.history.trace.script) {
      if (live) live.runScript(script, Number(fields.get("moment") || 0));
      else app.say(`The address names another script: ./moscope step '${script}' opens it.`);
      return;
    }
    if (stage.tabs.some(([id]) => id === fields.get("view"))) stage.select(fields.get("view"));
    if (side.tabs.some(([id]) => id === fields.get("side"))) side.select(fields.get("side"));
    const access = fields.get("access");
    app.access = access !== null && app.history.trace.accesses[access] ? Number(access) : null;
    app.changed("show");
    app.seek(Number(fields.get("moment") || 0));
  }

  copy() {
    this.write();
    const address = location.href.split("#")[0] + this.text();
    navigator.clipboard?.writeText(address).then(
      () => this.page.app.say("The link is on the clipboard."),
      () => this.page.app.say("The browser refuses the clipboard: the address bar holds the link."),
    );
  }
}
