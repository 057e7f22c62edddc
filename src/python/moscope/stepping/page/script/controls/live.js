// SPDX-License-Identifier: BSD-3-Clause
// A live session: the server of `moscope step` runs a changed spec, and the answer is a further history. The first history stays as it
// is; changes apply to a fork. A fork keeps what was added or delayed up to its moment.
import { byId, fill, h } from "../dom.js";
import { History } from "../model/history.js";
import { messageName, opName } from "../model/words.js";

const OPERATIONS = ["ld", "st", "rmw", "flush", "if", "nt", "ldu"];

export class Live {
  constructor(page) {
    this.page = page;
    this.app = page.app;
    this.dialog = byId("ask");
    page.machine.onCore = (core) => this.askAccess(core);
    page.machine.traffic.onMessage = (message) => this.askDelay(message);
  }

  /** The spec with what has been changed up to the present moment. */
  specHere() {
    const { app } = this;
    const { history } = app;
    const now = Math.round(app.time);
    const sent = new Set(
      history.moments
        .slice(0, app.k)
        .filter((m) => m.kind === "send")
        .map((m) => m.message),
    );
    return {
      ...history.spec,
      added: (history.spec.added || []).filter((one) => one.at <= now),
      delays: (history.spec.delays || []).filter((one) => sent.has(one.message) && (one.after ?? 0) <= now),
    };
  }

  /** Runs a spec; answers the new history, or says what is wrong with it. */
  async ask(spec) {
    try {
      const answer = await fetch("history", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(spec),
      });
      const body = await answer.json();
      if (body.error) throw new Error(body.error);
      return new History(body);
    } catch (error) {
      this.refused(error.message);
      return null;
    }
  }

  /** A fork with a change: shows it at the moment of the change, beside the history that it comes from. */
  async change(spec, name) {
    const { app } = this;
    const { time, branch } = app;
    const history = await this.ask(spec);
    if (!history) return false;
    app.branches.push({ name, history, from: branch, at: time });
    app.other = branch;
    app.show(app.branches.length - 1, time);
    app.say(`Compare shows “${name}” beside “${app.branches[branch].name}”.`);
    return true;
  }

  /** Shows a history in place of all others. */
  replace(history) {
    const { app } = this;
    app.branches = [{ name: "first", history, from: 0, at: history.start }];
    app.other = 0;
    app.show(0, history.start);
    app.seek(0);
    return true;
  }

  /** Runs a script with what else an address names; false if the server refuses it. */
  async runScript(script, changes) {
    const history = await this.ask({ script, ...changes });
    return history ? this.replace(history) : false;
  }

  /** Runs an example of the server; false, with a notice or the reason in the dialog, if there is none of the name. */
  async openExample(name) {
    const body = await (await fetch(`examples/${encodeURIComponent(name)}`)).json();
    if (!body.error) return this.replace(new History(body));
    this.refused(body.error);
    return false;
  }

  refused(reason) {
    const inDialog = this.dialog.open && this.dialog.querySelector(".error");
    if (inDialog) inDialog.textContent = reason;
    else this.app.say(reason);
  }

  askAccess(core) {
    const { app } = this;
    const { lines } = app.history;
    const op = h(
      "select",
      { name: "op", autofocus: true },
      OPERATIONS.map((one) => h("option", { value: one }, opName(one))),
    );
    const address = h("input", { name: "address", value: lines[0]?.name || "A@n0", list: "lines", required: true, size: 16 });
    this.show(
      `Core ${core}: add an access at ${app.now(app.time)}`,
      [
        h("label", { class: "field" }, "access", op),
        h(
          "label",
          { class: "field" },
          "address",
          address,
          h(
            "datalist",
            { id: "lines" },
            lines.map((line) => h("option", { value: line.name })),
          ),
        ),
      ],
      () => {
        const spec = this.specHere();
        spec.added.push({ at: Math.round(app.time), core, op: op.value, address: address.value.trim() });
        return this.change(spec, `c${core} ${op.value} ${address.value.trim()} at ${app.now(app.time)}`);
      },
    );
  }

  askDelay(message) {
    const { app } = this;
    if (!delayable(message)) {
      app.say("A core's request to its own caches and a message from DRAM cannot be delayed.");
      return;
    }
    const max = Math.floor(app.settings.longest_delay_fs / app.history.period); // the server takes no longer one
    const cycles = h("input", { name: "cycles", type: "number", min: "1", max, value: "100", required: true, autofocus: true });
    this.show(`Delay ${messageName(message)} from ${message.from}`, [h("label", { class: "field" }, "by cycles", cycles)], () => {
      const spec = this.specHere();
      const extra = Math.round(Number(cycles.value) * app.history.period);
      spec.delays.push({ message: message.id, extra_fs: extra, after: Math.round(app.time) });
      return this.change(spec, `${messageName(message)} delayed by ${cycles.value} cycles`);
    });
  }

  /** The messages under way, for the keyboard: the first, or a choice among them. */
  askDelays() {
    const { app } = this;
    const ids = Object.keys(app.fold.state.flight)
      .map(Number)
      .filter((id) => delayable(app.history.trace.messages[id]));
    if (!ids.length) return app.say("No message is under way on the network.");
    if (ids.length === 1) return this.askDelay(app.history.trace.messages[ids[0]]);
    const which = h(
      "select",
      { autofocus: true },
      ids.map((id) => {
        const m = app.history.trace.messages[id];
        return h("option", { value: id }, `${messageName(m)} from ${m.from}`);
      }),
    );
    const next = async () => {
      setTimeout(() => this.askDelay(app.history.trace.messages[which.value]));
      return true;
    };
    return this.show("Delay a message", [h("label", { class: "field" }, "message", which)], next, "Next");
  }

  askCore() {
    const core = h("input", {
      type: "number",
      min: "0",
      max: String(Math.max(...this.app.history.machine.chips.flatMap((c) => c.cores))),
      value: "0",
      required: true,
      autofocus: true,
    });
    const next = async () => {
      setTimeout(() => this.askAccess(Number(core.value)));
      return true;
    };
    this.show("Add an access", [h("label", { class: "field" }, "core", core)], next, "Next");
  }

  /** The examples that the server has; the chosen one takes the place of all histories. */
  async askExample() {
    const examples = await (await fetch("examples")).json();
    examples.sort((a, b) => a.title.localeCompare(b.title, "en", { numeric: true }));
    const which = h(
      "select",
      { name: "example", autofocus: true },
      examples.map((one) => h("option", { value: one.name }, `${one.title} (${one.name})`)),
    );
    const open = () => this.openExample(which.value);
    this.show("Open an example", [h("label", { class: "field" }, "example", which)], open, "Open");
  }

  fork() {
    const { app } = this;
    return this.change(this.specHere(), `fork at ${app.now(app.time)}`);
  }

  show(title, fields, done, label = "Apply") {
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", null, title),
      fields,
      h("p", { class: "error", role: "alert" }),
      h(
        "div",
        { class: "group" },
        h("button", { type: "submit" }, label),
        h("button", { type: "button", on: { click: () => this.dialog.close() } }, "Cancel (Esc)"),
      ),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await done()) this.dialog.close();
    });
    fill(this.dialog, form);
    this.dialog.showModal();
    this.dialog.querySelector("input[autofocus]")?.select(); // typing replaces the value
  }
}

function delayable(message) {
  return message.structure !== "RubyRequest" && !message.from.startsWith("DRAM");
}
