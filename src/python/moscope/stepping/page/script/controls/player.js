// SPDX-License-Identifier: BSD-3-Clause
// Plays simulated time. A stretch in which no message is under way and nothing happens passes in a third of a second.

import { grouped } from "../model/app.js";

const SPEEDS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000]; // cycles per second
const IDLE_SECONDS = 0.33;

export class Player {
  constructor(app) {
    this.app = app;
    this.speed = 3;
    this.last = 0;
  }

  get text() {
    return `${grouped(SPEEDS[this.speed])} cycles/s`;
  }

  faster(by) {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed + by));
    this.app.changed("show");
  }

  toggle(on = !this.app.playing) {
    const { app } = this;
    if (on === app.playing) return;
    if (on && app.time >= app.history.end) app.seek(0);
    app.playing = on;
    app.changed("show");
    if (!on) return;
    this.last = performance.now();
    requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    const { app } = this;
    if (!app.playing) return;
    const seconds = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    let forward = seconds * SPEEDS[this.speed] * app.history.period;
    const next = app.history.moments[app.k];
    const previous = app.history.timeAt(app.k);
    if (next && !Object.keys(app.fold.state.flight).length)
      forward = Math.max(forward, ((next.at - previous) * seconds) / IDLE_SECONDS);
    const target = app.time + forward;
    const stop = app.stopBetween?.(app.k, app.history.countAt(target)) ?? null;
    if (stop !== null) {
      app.seek(stop);
      this.toggle(false);
      return;
    }
    app.moveTo(target);
    if (app.time >= app.history.end) this.toggle(false);
    else requestAnimationFrame((later) => this.frame(later));
  }
}
