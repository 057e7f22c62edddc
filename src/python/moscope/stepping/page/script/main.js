// SPDX-License-Identifier: BSD-3-Clause
// Assembles the page from its parts, and offers `window.moscope` to tests and to the browser's console.
import { AccessesView } from "./views/accesses.js";
import { App } from "./model/app.js";
import { CompareView } from "./views/compare.js";
import { byId } from "./dom.js";
import { FiltersView } from "./views/filters.js";
import { Header } from "./controls/header.js";
import { History } from "./model/history.js";
import { bindKeys, Keys } from "./controls/keys.js";
import { Link } from "./controls/link.js";
import { Live } from "./controls/live.js";
import { MachineView } from "./views/machine.js";
import { Notice } from "./controls/notice.js";
import { Notes } from "./views/notes.js";
import { Player } from "./controls/player.js";
import { ProtocolView } from "./views/protocol.js";
import { Search } from "./controls/search.js";
import { SequenceView } from "./views/sequence.js";
import { StateView } from "./views/state.js";
import { Tabs } from "./controls/tabs.js";
import { Timeline } from "./views/timeline.js";
import { Transport } from "./controls/transport.js";

function json(id) {
  return JSON.parse(byId(id).textContent);
}

/** Tells the style how much of a narrow page the footer covers. */
function measureFooter() {
  const [footer] = document.getElementsByTagName("footer");
  const measured = () => document.documentElement.style.setProperty("--footer-height", `${footer.offsetHeight}px`);
  new ResizeObserver(measured).observe(footer);
  measured();
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
  let ready = false;
  const shown = () => ready && app.changed("show");
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
  ready = true;
  page.link.read();
  measureFooter();
  window.moscope = {
    app,
    page,
    get length() {
      return app.history.moments.length;
    },
    state: () => app.fold.plain(),
    seek: (k) => app.seek(k),
    seekTime: (fs) => app.seek(app.history.countAt(fs)),
    step: (kind, dir) => app.step(kind, dir),
  };
}

start();
