// SPDX-License-Identifier: BSD-3-Clause
// Assembles the page from its parts, and offers `window.moscope` to tests and to the browser's console.
import { AccessesView } from "./accesses.js";
import { App } from "./app.js";
import { CompareView } from "./compare_view.js";
import { byId } from "./dom.js";
import { FiltersView } from "./filters_view.js";
import { Header } from "./header.js";
import { History } from "./history.js";
import { bindKeys, Keys } from "./keys.js";
import { Link } from "./link.js";
import { Live } from "./live.js";
import { MachineView } from "./machine_view.js";
import { Notice } from "./notice.js";
import { Notes } from "./notes.js";
import { Player } from "./player.js";
import { ProtocolView } from "./protocol_view.js";
import { Search } from "./search.js";
import { SequenceView } from "./sequence_view.js";
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
  page.sequence = new SequenceView(app, byId("sequence"));
  page.state = new StateView(app, byId("state"));
  page.protocol = new ProtocolView(app, byId("protocol"));
  page.filters = new FiltersView(app, byId("filters"));
  page.search = new Search(app);
  page.notes = new Notes(app, byId("note"));
  page.compare = new CompareView(app, byId("compare"));
  page.live = settings.live ? new Live(page) : null;
  page.link = new Link(page);
  const shown = () => app.changed("show");
  page.stage = new Tabs(
    byId("stage-tabs"),
    [
      ["machine", "Machine", 1],
      ["sequence", "Sequence", 2],
      ["compare", "Compare", 3],
    ],
    shown,
  );
  page.side = new Tabs(
    byId("side-tabs"),
    [
      ["state", "State", 4],
      ["protocol", "Protocol", 5],
      ["filters", "Filters and breakpoints", 6],
    ],
    shown,
  );
  page.keys = new Keys(byId("keys"));
  bindKeys(page.keys, page);
  page.notice = new Notice(app, byId("notice"));
  page.stage.select("machine");
  page.side.select("state");
  app.changed("history");
  page.link.read();
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
