// SPDX-License-Identifier: BSD-3-Clause
// Places of the machine in a drawing of a given size: chips on a grid or, for a ring, around it; in each chip a row of cores, the
// crossbar, and below it the L3, the home with its probe filter, and DRAM. Messages follow the crossbars and links.

const GAP_X = 64;
const MARGIN = 8;
const APART = 5; // between the two directions of a link

export function layoutOf(history, width, height) {
  const { chips, links } = history.machine;
  const { columns, order } = arranged(
    chips.map((c) => c.chip),
    links,
    width / Math.max(1, height),
  );
  const rows = Math.ceil(order.length / columns);
  const gapY = Math.max(14, Math.min(28, height / 20)); // between rows
  const w = Math.max(120, Math.min(430, (width - 2 * MARGIN - (columns - 1) * GAP_X) / columns));
  const h = Math.max(72, Math.min(190, (height - 2 * MARGIN - (rows - 1) * gapY) / rows));
  const left = Math.max(MARGIN, (width - columns * w - (columns - 1) * GAP_X) / 2);
  const top = Math.max(MARGIN, (height - rows * h - (rows - 1) * gapY) / 2);
  const needed = top + rows * h + (rows - 1) * gapY + MARGIN; // more than the height of a low window
  const layout = { width, height: Math.max(height, needed), chips: new Map(), places: new Map(), links: new Map() };
  for (const [slot, chip] of order.entries()) {
    if (chip === null) continue;
    const x = left + (slot % columns) * (w + GAP_X);
    const y = top + Math.floor(slot / columns) * (h + gapY);
    placeChip(
      history,
      layout,
      chips.find((c) => c.chip === chip),
      { x, y, w, h },
    );
  }
  for (const [a, b] of links)
    for (const [from, to] of [
      [a, b],
      [b, a],
    ])
      layout.links.set(`${from}-${to}`, linkBetween(layout, from, to));
  return layout;
}

/** Columns, and the chip in each slot (row by row). A ring goes down one column and up the other. */
function arranged(chips, links, aspect) {
  const count = chips.length;
  const degree = new Map(chips.map((chip) => [chip, new Set()]));
  for (const [a, b] of links) {
    degree.get(a)?.add(b);
    degree.get(b)?.add(a);
  }
  if (count > 4 && [...degree.values()].every((near) => near.size === 2)) {
    const way = [chips[0]];
    while (way.length < count) {
      const next = [...degree.get(way.at(-1))].find((chip) => !way.includes(chip));
      if (next === undefined) break;
      way.push(next);
    }
    if (way.length === count) {
      const rows = Math.ceil(count / 2);
      return { columns: 2, order: Array.from({ length: 2 * rows }, (_, i) => (i % 2 ? way[count - 1 - (i >> 1)] : way[i >> 1])) };
    }
  }
  if (count <= 2) return { columns: aspect > 1 ? count : 1, order: chips };
  if (count <= 8 && aspect > 1.9) {
    // two rows: chips 0 and 1 above each other
    const columns = Math.ceil(count / 2);
    return {
      columns,
      order: Array.from({ length: 2 * columns }, (_, i) => chips[(i % columns) * 2 + Math.floor(i / columns)] ?? null),
    };
  }
  return { columns: count <= 8 ? 2 : Math.ceil(Math.sqrt(count)), order: chips };
}

function placeChip(history, layout, chip, box) {
  const inner = 8;
  const low = box.h < 92; // a core then has its number above one state, with nothing to spare
  const unit = low ? 17 : 28; // height of L3, home, DRAM
  const narrow = box.w < 200;
  const bar = box.y + box.h - unit - (low ? 11 : 13);
  layout.chips.set(chip.chip, { ...box, low, bar, centre: { x: box.x + box.w / 2, y: bar } });
  const cores = [...chip.cores].sort((a, b) => a - b);
  const cellW = (box.w - 2 * inner) / Math.max(1, cores.length);
  const of = [...history.controllers.values()].filter((c) => c.chip === chip.chip);
  const cellTop = box.y + (low ? 14 : 18);
  for (const [i, core] of cores.entries()) {
    const cell = {
      x: box.x + inner + i * cellW + 1.5,
      y: cellTop,
      w: Math.min(cellW - 3, 64),
      h: bar - cellTop - (low ? 5 : 6),
      core,
      chip: chip.chip,
      low,
      narrow,
    };
    layout.places.set(`core ${core}`, cell);
    for (const c of of.filter((one) => one.core === core)) layout.places.set(c.name, cell);
  }
  const others = of.filter((c) => c.core === null);
  const kinds = [
    ...new Set([...history.controllers.values()].filter((c) => c.core === null && history.drawn(c)).map((c) => c.machine)),
  ].sort(byRole);
  const plain = (kind) => kind === "DRAM" || kind === "DMA"; // no states; a home has states of many lines
  const weight = (kind) => (plain(kind) ? 0.7 : history.isHome(`${kind}-${chip.chip}`) ? 1.4 : 1);
  const unitW =
    (box.w - 2 * inner) /
    Math.max(
      1,
      kinds.reduce((sum, kind) => sum + weight(kind), 0),
    );
  let x = box.x + inner;
  for (const kind of kinds) {
    const w = unitW * weight(kind);
    const cell = { x: x + 1.5, y: bar + (low ? 5 : 6), w: w - 3, h: unit, core: null, chip: chip.chip, kind, low, narrow };
    x += w;
    layout.places.set(`${kind} ${chip.chip}`, cell);
    for (const c of others.filter((one) => one.machine === kind)) layout.places.set(c.name, cell);
  }
}

function byRole(a, b) {
  const role = (kind) => (kind.startsWith("L") ? 0 : kind === "DRAM" ? 2 : kind === "DMA" ? 3 : 1);
  return role(a) - role(b) || a.localeCompare(b);
}

/** One direction of a link: from edge to edge of two chips, beside the line between their crossbars' middles. */
function linkBetween(layout, from, to) {
  const a = layout.chips.get(from);
  const b = layout.chips.get(to);
  if (!a || !b) return null;
  const [p, q] = [a.centre, b.centre];
  const length = Math.hypot(q.x - p.x, q.y - p.y) || 1;
  const [ux, uy] = [(q.x - p.x) / length, (q.y - p.y) / length];
  const [sx, sy] = [-uy * APART, ux * APART];
  const s0 = leaving(a, p, ux, uy);
  const s1 = length - leaving(b, q, -ux, -uy);
  return {
    from,
    to,
    start: { x: p.x + ux * s0 + sx, y: p.y + uy * s0 + sy },
    end: { x: p.x + ux * s1 + sx, y: p.y + uy * s1 + sy },
  };
}

/** The distance from a point in a box to its edge in a direction. */
function leaving(box, point, ux, uy) {
  const along = (u, at, low, high) => (u > 0 ? (high - at) / u : u < 0 ? (low - at) / u : Infinity);
  return Math.min(along(ux, point.x, box.x, box.x + box.w), along(uy, point.y, box.y, box.y + box.h));
}

export function middle(box) {
  return { x: box.x + box.w / 2, y: box.y + box.h / 2 };
}

/** The way of a message to one destination: points, each with the time at which the message is there. */
export function wayOf(layout, message, delivery) {
  const from = layout.places.get(message.from);
  const to = layout.places.get(delivery.to);
  if (!from || !to) return [];
  const start = middle(from);
  const end = middle(to);
  const hops = hopsTo(message, from.chip, to.chip);
  const points = [{ ...start, at: message.sent }];
  if (!hops.length) {
    if (from === to) return [...points, { ...end, at: delivery.at }];
    const { bar } = layout.chips.get(from.chip);
    points.push({ ...start, at: Math.max(message.sent, message.ready) }, { x: start.x, y: bar, at: null });
    if (from.chip === to.chip) points.push({ x: end.x, y: bar, at: null });
    return timed([...points, { ...end, at: delivery.at }]);
  }
  points.push(
    { ...start, at: Math.max(message.sent, message.ready) },
    { x: start.x, y: layout.chips.get(from.chip).bar, at: null },
  );
  for (const hop of hops) {
    const link = layout.links.get(`${hop.from}-${hop.to}`);
    if (!link) continue;
    points.push(onBar(layout.chips.get(hop.from), link.start.x), { ...link.start, at: hop.depart });
    points.push({ ...link.end, at: hop.arrive }, onBar(layout.chips.get(hop.to), link.end.x));
  }
  points.push({ x: end.x, y: layout.chips.get(to.chip).bar, at: null }, { ...end, at: delivery.at });
  return timed(points);
}

function onBar(chip, x) {
  return { x: Math.max(chip.x + 8, Math.min(chip.x + chip.w - 8, x)), y: chip.bar, at: null };
}

/** Of a message to several chips, the hops that lead to one. */
function hopsTo(message, from, to) {
  const way = [];
  let chip = to;
  while (chip !== from) {
    const hop = message.hops.find((one) => one.to === chip);
    if (!hop || way.includes(hop)) break;
    way.unshift(hop);
    chip = hop.from;
  }
  return way;
}

/** Fills in times between points that have one, in proportion to length. */
function timed(points) {
  for (let i = 0; i < points.length; i += 1) {
    if (points[i].at !== null) continue;
    let next = i;
    while (points[next].at === null) next += 1;
    const known = points.slice(i - 1, next + 1);
    const lengths = known.slice(1).map((p, j) => Math.hypot(p.x - known[j].x, p.y - known[j].y));
    const total = lengths.reduce((sum, one) => sum + one, 0) || 1;
    let done = 0;
    for (let j = i; j < next; j += 1) {
      done += lengths[j - i];
      points[j].at = known[0].at + (known.at(-1).at - known[0].at) * (done / total);
    }
  }
  return points;
}

export function placeAt(points, time) {
  if (!points.length) return null;
  let i = 1;
  while (i < points.length - 1 && points[i].at < time) i += 1;
  const [a, b] = [points[i - 1], points[i] ?? points[i - 1]];
  const share = b.at > a.at ? Math.max(0, Math.min(1, (time - a.at) / (b.at - a.at))) : 1;
  return { x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share };
}
