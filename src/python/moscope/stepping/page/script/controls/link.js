// SPDX-License-Identifier: BSD-3-Clause
// The page's address names script and position, so that a link opens where it was copied: #script=..&moment=..&access=..&view=..
// In a session it also names the example, and what else the history was made from, if that is not what any server takes by itself.
const WAIT_MS = 300;
const USUAL = {
  machine: "opteron48",
  protocol: null,
  set: [],
  seed: 1,
  added: [],
  delays: [],
  cores: null,
  caches: "machine",
  homes: null,
  checked: false,
};

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Link {
  constructor(page) {
    this.page = page;
    this.timer = 0;
    this.known = location.hash; // as last read or written here: another one was set from outside and is to be read, not replaced
    this.reading = 0;
    this.first = page.app.history.spec || {}; // what the server takes where an address is silent
    page.app.on((what) => {
      if (what === "time") return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.write(), WAIT_MS);
    });
    addEventListener("hashchange", () => this.read());
  }

  text() {
    const { app, stage, side, live } = this.page;
    const fields = new URLSearchParams({ script: app.history.trace.script, moment: String(app.k) });
    const example = app.history.document.example?.name;
    const changes = this.changes();
    if (live && example) fields.set("example", example);
    else if (live && Object.keys(changes).length) fields.set("spec", JSON.stringify(changes));
    if (app.access !== null) fields.set("access", String(app.access));
    if (stage.current !== "machine") fields.set("view", stage.current);
    if (side.current !== "state") fields.set("side", side.current);
    return `#${fields}`;
  }

  /** The keys of the shown history's spec that an address has to name. */
  changes() {
    const spec = this.page.app.history.spec || {};
    return Object.fromEntries(
      Object.entries(USUAL)
        .filter(([key, usual]) => key in spec && !(same(spec[key], usual) && same(spec[key], this.first[key])))
        .map(([key]) => [key, spec[key]]),
    );
  }

  write() {
    if (this.page.app.playing || this.reading || location.hash !== this.known || location.hash === this.text()) return;
    history.replaceState(null, "", this.text());
    this.known = location.hash;
  }

  /** Goes to what the address names. Until that is shown, the address is not replaced by what is. */
  async read() {
    this.known = location.hash;
    this.reading += 1;
    try {
      await this.show(new URLSearchParams(this.known.slice(1)), this.known);
    } finally {
      this.reading -= 1;
    }
  }

  async show(fields, address) {
    const { app, live } = this.page;
    const script = fields.get("script");
    const example = fields.get("example");
    if (!live && script && script !== app.history.trace.script) {
      app.say(`The address names another script: ./moscope step '${script}' opens it.`);
      return;
    }
    if (!live && example && example !== app.history.document.example?.name) {
      app.say(`The address names another example: ./moscope step --example ${example} opens it.`);
      return;
    }
    if (live && (script || example || fields.has("spec")) && !(await this.open(script ?? app.history.trace.script, fields))) return;
    if (address === this.known) this.place(fields); // else a later address is on its way
  }

  /** Runs what the address names, if it is not what is shown; false if the server refuses it. */
  async open(script, fields) {
    const { app, live } = this.page;
    const example = fields.get("example");
    if (example) return app.history.document.example?.name === example || live.openExample(example);
    const named = asObject(fields.get("spec") ?? "{}");
    if (!named) {
      app.say("The address's spec is damaged, perhaps cut off: expected a JSON object, as Copy link writes it.");
      return false;
    }
    const changes = { added: [], delays: [], ...named };
    const shown = app.history.spec;
    if (script === app.history.trace.script && Object.entries(changes).every(([key, value]) => same(value, shown[key] ?? [])))
      return true;
    return live.runScript(script, changes);
  }

  /** Goes to the moment, and shows the views, that the address names. */
  place(fields) {
    const { app, stage, side } = this.page;
    if (stage.tabs.some(([id]) => id === fields.get("view"))) stage.select(fields.get("view"));
    if (side.tabs.some(([id]) => id === fields.get("side"))) side.select(fields.get("side"));
    const access = fields.get("access");
    app.access = access !== null && app.history.trace.accesses[access] ? Number(access) : null;
    app.changed("show");
    const moment = Number(fields.get("moment") || 0);
    const last = app.history.moments.length;
    const known = Number.isInteger(moment) && moment >= 0 && moment <= last;
    app.seek(known ? moment : 0);
    if (!known) app.say(`The address's moment: ${fields.get("moment")}: expected a whole number from 0 to ${last}.`);
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

/** The JSON object of a text; null if it is none. */
function asObject(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null; // an address that was cut off
  }
}
