// SPDX-License-Identifier: GPL-2.0-or-later
// Flame graphs: drawn as SVG, zoomed by a click or Enter, walked through by the arrow keys.
"use strict";
(() => {
  const place = document.querySelector(".flame");
  const source = document.getElementById("flame-data");
  if (!place || !source) {
    performance.mark("kdelta-ready");
    return;
  }
  const { names, graphs } = JSON.parse(source.textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = matchMedia("(pointer: coarse)").matches ? 26 : 19;
  const CHAR = 6.7;
  const LEAST = 1;
  const [GROUP, REST] = [4, 5];
  const KINDS = ["kernel", "module", "user", "vdso", "task or region", "smaller ones"];
  const ENTRIES = {
    2: "by a jump", 3: "a system call", 4: "an exception", 5: "an interrupt",
    6: "a signal's handler", 7: "what was not followed",
  };
  const FIGURES = {
    insns: "instructions", loads: "loads", stores: "stores", string_bytes: "string bytes",
  };
  const ready = new Map();
  let graph, shown, zoom = 0, current = 0, drawn = [], query = "";

  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const drawnAs = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const figure = (value) =>
    value.toLocaleString("en", { maximumFractionDigits: value >= 1e6 ? 0 : 2 }).replaceAll(",", "\u202f");
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + figure(Math.abs(value));
  const percent = (part) => `${(100 * part).toFixed(part >= 0.1 || !part ? 1 : 2)} %`;

  const expand = (sparse, count) => {
    const column = new Float64Array(count);
    for (let at = 0, node = 0; at < sparse.length; at += 2) {
      node += sparse[at];
      column[node++] = sparse[at + 1];
    }
    return column;
  };
  const inclusive = (parent, own) => {
    const total = Float64Array.from(own);
    for (let node = total.length - 1; node > 0; node--) total[parent[node]] += total[node];
    return total;
  };

  // What of a graph does not depend on how it is shown; made when it is first looked at.
  const prepared = (at) => {
    if (ready.has(at)) return ready.get(at);
    const one = graphs[at];
    const count = one.up.length;
    const parent = Int32Array.from(one.up, (up, node) => node - up);
    const depth = new Int32Array(count);
    const children = Array.from({ length: count }, () => []);
    for (let node = 1; node < count; node++) {
      depth[node] = depth[parent[node]] + 1;
      children[parent[node]].push(node);
    }
    const own = {};
    for (const [name, columns] of Object.entries(one.own)) {
      own[name] = columns.map((column, side) =>
        expand(column, count).map((value) => value / one.iterations[side]));
    }
    const found = { ...one, count, parent, depth, children, own };
    ready.set(at, found);
    return found;
  };

  // The values of the chosen figure, and how wide each frame is by them.
  const measured = () => {
    const own = graph.own[controls.figure.value] || graph.sides.map(() => new Float64Array(graph.count));
    const sides = own.map((column) => inclusive(graph.parent, column));
    const by = controls.width ? controls.width.value : "0";
    const wide = by === "larger"
      ? inclusive(graph.parent, own[0].map((value, node) => Math.max(value, own[1][node])))
      : sides[Number(by)];
    const change = own.length > 1 ? own[0].map((value, node) => own[1][node] - value) : null;
    let most = 0;
    if (change) for (const value of change) most = Math.max(most, Math.abs(value));
    for (const list of graph.children) {
      list.sort((one, other) =>
        (graph.kind[one] === REST) - (graph.kind[other] === REST) || wide[other] - wide[one]);
    }
    return { own, sides, wide, change, most };
  };

  const nameOf = (node) => names[graph.name[node]][1];
  const originOf = (node) => names[graph.name[node]][0];
  const mark = (node) => {
    if (!shown.change || !shown.change[node]) return "";
    return shown.change[node] > 0 ? "+" : "\u2212";
  };
  const styleOf = (node) => {
    if (!shown.change) return `k${graph.kind[node]}`;
    const change = shown.change[node];
    if (!change) return "even";
    const level = Math.max(1, Math.ceil(5 * Math.sqrt(Math.abs(change) / shown.most)));
    return (change > 0 ? "more" : "less") + level;
  };

  const told = (node) => {
    const origin = originOf(node);
    const entry = ENTRIES[graph.entry[node]];
    const lines = [nameOf(node) + (origin && origin !== "kernel" ? ` ${origin}` : "") +
      (entry ? ` (${entry})` : "")];
    const unit = FIGURES[controls.figure.value];
    const per = Math.max(...graph.iterations) > 1 ? " an iteration" : "";
    shown.sides.forEach((values, side) => {
      const who = graph.sides.length > 1 ? `${graph.sides[side]}: ` : "";
      const part = values[0] ? ` (${percent(values[node] / values[0])})` : "";
      lines.push(`${who}${figure(values[node])} ${unit}${per}${part}, ` +
        `${figure(shown.own[side][node])} its own`);
    });
    if (shown.sides.length > 1) {
      const [base, other] = shown.sides.map((values) => values[node]);
      const part = base ? ` (${signed(100 * (other - base) / base)} %)` : other ? " (new)" : "";
      lines.push(`difference: ${signed(other - base)}${part}, ${signed(shown.change[node])} its own`);
    }
    return lines.join("\n");
  };

  const controls = {};
  const field = (label, element) => made("label", {}, label, element);
  const tools = made("div", { className: "tools" });
  const choice = (pairs) =>
    made("select", {}, ...pairs.map(([value, text]) => made("option", { value, textContent: text })));
  controls.region = choice(graphs.map((one, at) => [String(at), one.region]));
  controls.figure = choice(Object.entries(FIGURES));
  const held = graphs.some((one) => one.sides.length > 1);
  tools.append(field("Operation", controls.region), field("Width by", controls.figure));
  if (held) {
    const [base, other] = graphs.find((one) => one.sides.length > 1).sides;
    controls.width = choice([["larger", "the larger of both"], ["0", base], ["1", other]]);
    tools.append(field("of", controls.width));
  }
  controls.search = made("input", { type: "search", autocomplete: "off" });
  controls.back = made("button", { type: "button", textContent: "Show all" });
  tools.append(field("Find function", controls.search), controls.back);
  const svg = drawnAs("svg", { role: "tree", "aria-label": "Flame graph" });
  const status = made("p", { className: "status" });
  status.setAttribute("role", "status");
  const tip = made("div", { className: "tip", hidden: true });
  tip.setAttribute("aria-hidden", "true");
  const note = made("p", { className: "quiet" });
  const help = made("p", { className: "quiet", textContent:
    "Click or Enter: zoom. Arrow keys: caller, callee, neighbours. Escape: back. Home: all." });
  const legend = made("ul", { className: "legend" });
  const entry = (style, text) => {
    const key = drawnAs("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
    key.append(drawnAs("rect", { class: style, width: 10, height: 10 }));
    return made("li", {}, key, text);
  };
  legend.append(...(held
    ? [entry("more4", "+ more itself"), entry("less4", "\u2212 less itself"), entry("even", "the same")]
    : KINDS.map((text, kind) => entry(`k${kind}`, text))));
  place.replaceChildren(tools, svg, tip, status, legend, help, note);

  const path = (node) => {
    const found = [];
    for (let at = graph.parent[node]; ; at = graph.parent[at]) {
      if (at === node || at < 0) break;
      found.unshift(at);
      if (at === 0) break;
    }
    return node === 0 ? [] : found;
  };

  // The frames that are wide enough to be seen, each with its place.
  const laidOut = (width) => {
    const whole = shown.wide[zoom];
    const found = path(zoom).map((node, row) => ({ node, x: 0, width, row, above: true }));
    if (!whole) return [...found, { node: zoom, x: 0, width, row: found.length }];
    const first = found.length;
    const waiting = [{ node: zoom, x: 0, width, row: first }];
    while (waiting.length) {
      const frame = waiting.pop();
      found.push(frame);
      let x = frame.x;
      const below = [];
      for (const node of graph.children[frame.node]) {
        const wide = width * shown.wide[node] / whole;
        if (wide >= LEAST) below.push({ node, x, width: wide, row: frame.row + 1 });
        x += wide;
      }
      waiting.push(...below.reverse());
    }
    return found;
  };

  const hits = (node) => query && nameOf(node).toLowerCase().includes(query);

  const draw = () => {
    const width = Math.max(280, Math.floor(place.clientWidth));
    drawn = laidOut(width);
    const rows = 1 + Math.max(...drawn.map((frame) => frame.row));
    svg.setAttribute("viewBox", `0 0 ${width} ${rows * ROW}`);
    svg.setAttribute("aria-label", `Flame graph of ${graph.region}`);
    svg.dataset.zoom = nameOf(zoom);
    if (!drawn.some((frame) => frame.node === current)) current = zoom;
    svg.replaceChildren(...drawn.map(drawnFrame));
  };
  const drawnFrame = (frame) => {
    const { node } = frame;
    const group = drawnAs("g", {
      role: "treeitem", tabindex: node === current ? 0 : -1, "data-node": node,
      "aria-level": graph.depth[node] + 1, "aria-label": told(node).replaceAll("\n", "; "),
      transform: `translate(${frame.x.toFixed(2)},${frame.row * ROW})`,
    });
    if (graph.children[node].length) group.setAttribute("aria-expanded", String(!frame.above));
    if (frame.above) group.classList.add("above");
    if (query) group.classList.add(hits(node) ? "hit" : "dim");
    group.append(drawnAs("rect", {
      class: styleOf(node), width: frame.width.toFixed(2), height: ROW - 1,
    }));
    const room = Math.floor((frame.width - 6) / CHAR);
    const label = mark(node) + nameOf(node);
    if (room >= 3) {
      const text = drawnAs("text", { x: 3, y: ROW - 6 });
      text.textContent = label.length <= room ? label : `${label.slice(0, room - 1)}\u2026`;
      group.append(text);
    }
    return group;
  };

  const element = (node) => svg.querySelector(`[data-node="${node}"]`);
  const go = (node) => {
    element(current)?.setAttribute("tabindex", "-1");
    current = node;
    const found = element(node);
    found?.setAttribute("tabindex", "0");
    found?.focus({ preventScroll: false });
    status.textContent = told(node);
  };
  const zoomTo = (node) => {
    zoom = current = node;
    draw();
    status.textContent = told(node);
  };
  const besides = (step) => {
    const row = drawn.find((frame) => frame.node === current).row;
    const level = drawn.filter((frame) => frame.row === row).sort((one, other) => one.x - other.x);
    return level[level.findIndex((frame) => frame.node === current) + step]?.node;
  };
  const below = () => {
    const there = new Set(drawn.map((frame) => frame.node));
    return graph.children[current].find((node) => there.has(node));
  };
  const KEYS = {
    ArrowUp: () => (current ? graph.parent[current] : undefined),
    ArrowDown: below,
    ArrowLeft: () => besides(-1),
    ArrowRight: () => besides(1),
  };
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    let zoomed = true;
    if (event.key === "Enter" || event.key === " ") zoomTo(current);
    else if (event.key === "Escape") zoomTo(zoom ? graph.parent[zoom] : 0);
    else if (event.key === "Home") zoomTo(0);
    else if (event.key in KEYS) zoomed = false;
    else return;
    event.preventDefault();
    const next = zoomed ? current : KEYS[event.key]();
    if (next !== undefined) go(next);
  });
  const frameOf = (event) => event.target.closest?.("[data-node]");
  svg.addEventListener("click", (event) => {
    const found = frameOf(event);
    if (!found) return;
    zoomTo(Number(found.dataset.node));
    go(current);
  });
  svg.addEventListener("pointermove", (event) => {
    const found = event.pointerType === "mouse" && frameOf(event);
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = told(Number(found.dataset.node));
    const box = place.getBoundingClientRect();
    const left = event.clientX - box.left + 12;
    tip.style.left = `${Math.max(0, Math.min(left, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${event.clientY - box.top + 16}px`;
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });

  const search = () => {
    query = controls.search.value.trim().toLowerCase();
    draw();
    if (!query) {
      status.textContent = told(current);
      return;
    }
    let count = 0, value = 0;
    const inside = new Uint8Array(graph.count);
    const values = shown.sides.at(-1);
    for (let node = 0; node < graph.count; node++) {
      const hit = hits(node);
      count += hit ? 1 : 0;
      const covered = node > 0 && inside[graph.parent[node]];
      if (hit && !covered) value += values[node];
      inside[node] = hit || covered ? 1 : 0;
    }
    const who = graph.sides.length > 1 ? ` of ${graph.sides.at(-1)}` : "";
    status.textContent = `${count} ${count === 1 ? "frame" : "frames"} found, with ${percent(values[0] ? value / values[0] : 0)} ` +
      `of the ${FIGURES[controls.figure.value]}${who}`;
  };

  const show = () => {
    shown = measured();
    draw();
    status.textContent = told(current);
  };
  const choose = () => {
    graph = prepared(Number(controls.region.value));
    for (const option of controls.figure.options) option.disabled = !(option.value in graph.own);
    if (!(controls.figure.value in graph.own)) controls.figure.value = "insns";
    zoom = current = 0;
    const [count, share] = graph.cut;
    note.textContent = count
      ? `${count} smaller frames, which themselves executed ${percent(share)} of the ` +
        "instructions, are summed up."
      : "";
    show();
  };
  controls.region.addEventListener("change", choose);
  controls.figure.addEventListener("change", show);
  controls.width?.addEventListener("change", show);
  controls.search.addEventListener("input", search);
  controls.back.addEventListener("click", () => {
    controls.search.value = query = "";
    zoomTo(0);
  });
  let wide = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth === wide) return;
    wide = place.clientWidth;
    draw();
  }).observe(place);
  // What changed most is looked at first.
  const changeOf = (one) => {
    const totals = one.own.insns.map((column, side) =>
      column.reduce((sum, value, at) => sum + (at % 2 ? value : 0), 0) / one.iterations[side]);
    return totals.length > 1 && totals[0] ? Math.abs(totals[1] / totals[0] - 1) : 0;
  };
  const changes = graphs.map((one) => (one.own.insns ? changeOf(one) : 0));
  controls.region.value = String(changes.indexOf(Math.max(...changes)));
  choose();
  performance.mark("kdelta-ready");
})();
