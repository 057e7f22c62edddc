// SPDX-License-Identifier: BSD-3-Clause
// Assembles the page from its parts, and offers `window.moscope` to tests and to the browser's console.
import { AccessesView } from "./accesses.js";
import { App } from "./app.js";
import { byId } from "./dom.js";
import { Header } from "./header.js";
import { History } from "./history.js";
import { bindKeys, Keys } from "./keys.js";
import { MachineView } from "./machine_view.js";
import { Player } from "./player.js";
import { StateView } from "./state_view.js";
import { Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { Transport } from "./transport.js";

function json(id) {
  return JSON.parse(byId(id).textContent);
}

function start() {
  const settings = json("settings");
  const app = new App(new History(json("history-document")), settings);
  const player = new Player(app);
  const page = { app, player };
  page.header = new Header(page);
  page.transport = new Transport(app, player, byId("transport"));
  page.timeline = new Timeline(app, byId("timeline"));
  page.accesses = new AccessesView(app, byId("accesses"));
  page.machine = new MachineView(app, byId("machine"));
  page.state = new StateView(app, byId("state"));
  page.stage = new Tabs(
    byId("stage-tabs"),
    [
      ["machine", "Machine", 1],
      ["sequence", "Sequence", 2],
    ],
    () => page.machine.draw(),
  );
  page.side = new Tabs(
    byId("side-tabs"),
    [
      ["state", "State", 3],
      ["protocol", "Protocol", 4],
      ["filters", "Filters and breakpoints", 5],
    ],
    () => app.changed("position"),
  );
  page.keys = new Keys(byId("keys"));
  bindKeys(page.keys, page);
  page.stage.select("machine");
  page.side.select("state");
  app.changed("history");
  app.seek(0);
  window.moscope = {
    app,
    page,
    length: app.history.moments.length,
    state: () => app.fold.plain(),
    seek: (k) => app.seek(k),
    step: (kind, dir) => app.step(kind, dir),
  };
}

start();
