// Bars on lanes, drawn on a canvas: zoom with wheel, buttons or keys, pan by dragging, hover for what a bar is. Only what
// is visible is drawn, and bars thinner than a pixel are drawn once per pixel, so that 200,000 bars stay smooth.
'use strict';

// lanes: [{label, start, length, colour, hatch?}] with typed arrays (colour: index into palette). describe(lane, i) -> text.
k3.Lanes = class {
  constructor(box, options) {
    Object.assign(this, { from: 0, to: options.length, rowHeight: 20, lanes: [], palette: [], left: 92 }, options);
    this.canvas = k3.el('canvas', { tabindex: 0, role: 'img', 'aria-label': options.label, id: options.id });
    this.tip = k3.el('div', { class: 'tip', hidden: true });
    this.detail = k3.el('p', { class: 'detail', 'aria-live': 'polite' }, 'Click a bar to keep its description here.');
    const button = (text, label, f) => k3.el('button', { type: 'button', 'aria-label': label, onclick: f }, text);
    this.controls = k3.el('div', { class: 'controls' }, button('+', 'zoom in', () => this.zoom(.5)), button('−', 'zoom out', () => this.zoom(2)),
      button('◀', 'earlier', () => this.pan(-.3)), button('▶', 'later', () => this.pan(.3)), button('all', 'show the whole', () => this.reset()),
      this.range = k3.el('span', { class: 'range' }));
    box.append(this.controls, k3.el('div', { class: 'lanes' }, this.canvas, this.tip), this.detail);
    this.listen();
    k3.redraws.push(() => this.draw());
  }
  listen() {
    const c = this.canvas;
    c.addEventListener('wheel', e => { e.preventDefault(); this.zoom(e.deltaY > 0 ? 1.25 : .8, this.timeAt(e.offsetX)); }, { passive: false });
    c.addEventListener('pointerdown', e => { this.drag = { x: e.offsetX, from: this.from, to: this.to, moved: false }; c.setPointerCapture(e.pointerId); });
    c.addEventListener('pointermove', e => this.moved(e));
    c.addEventListener('pointerup', e => { if (this.drag && !this.drag.moved) this.click(e); this.drag = null; });
    c.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    c.addEventListener('dblclick', () => this.reset());
    c.addEventListener('keydown', e => {
      const act = { '+': () => this.zoom(.5), '=': () => this.zoom(.5), '-': () => this.zoom(2), ArrowLeft: () => this.pan(-.2),
                    ArrowRight: () => this.pan(.2), Home: () => this.reset(), ArrowDown: () => this.walk(1, 0), ArrowUp: () => this.walk(-1, 0),
                    '.': () => this.walk(0, 1), ',': () => this.walk(0, -1), Enter: () => this.open() }[e.key];
      if (act) { e.preventDefault(); act(); }
    });
  }
  width() { return this.canvas.clientWidth || 600; }
  timeAt(x) { return this.from + (x - this.left) / (this.width() - this.left) * (this.to - this.from); }
  show(from, to) {
    const span = Math.min(this.length, Math.max(20, to - from));
    this.from = Math.max(0, Math.min(from, this.length - span));
    this.to = this.from + span;
    this.schedule();
  }
  zoom(factor, around = (this.from + this.to) / 2) { this.show(around - (around - this.from) * factor, around + (this.to - around) * factor); }
  pan(share) { const d = share * (this.to - this.from); this.show(this.from + d, this.to + d); }
  reset() { this.show(0, this.length); }
  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }
  moved(e) {
    if (this.drag && Math.abs(e.offsetX - this.drag.x) > 3) {
      this.drag.moved = true;
      const d = (this.drag.x - e.offsetX) / (this.width() - this.left) * (this.drag.to - this.drag.from);
      this.show(this.drag.from + d, this.drag.to + d);
      return;
    }
    const hit = this.hit(e.offsetX, e.offsetY);
    this.tip.hidden = !hit;
    if (!hit) return;
    this.tip.textContent = this.describe(hit.lane, hit.index);
    this.tip.style.left = Math.max(0, Math.min(e.offsetX + 12, this.width() - this.tip.offsetWidth - 4)) + 'px';
    this.tip.style.top = e.offsetY + 16 + 'px';
  }
  click(e) {
    const hit = this.hit(e.offsetX, e.offsetY);
    if (!hit) return;
    this.detail.textContent = this.describe(hit.lane, hit.index);
    if (this.onClick) this.onClick(hit.lane, hit.index);
  }
  // By keyboard: the next lane at about the same time, or the next bar of the lane; moves the view along.
  walk(lanes, bars) {
    const at = this.at || { lane: -1, index: 0 }, row = Math.max(0, Math.min(this.lanes.length - 1, at.lane + lanes)), lane = this.lanes[row];
    if (!lane.start.length) { this.at = { lane: row, index: 0 }; return; }
    const time = at.lane >= 0 && this.lanes[at.lane] && this.lanes[at.lane].start[at.index] !== undefined ? this.lanes[at.lane].start[at.index] : this.from;
    const index = bars ? at.index + bars : k3.Lanes.find(lane, time);
    this.at = { lane: row, index: Math.max(0, Math.min(lane.start.length - 1, index)) };
    const start = lane.start[this.at.index], span = this.to - this.from;
    if (start < this.from || start > this.to) this.show(start - span / 2, start + span / 2);
    this.detail.textContent = this.describe(lane, this.at.index);
    this.schedule();
  }
  open() { if (this.at && this.onClick) this.onClick(this.lanes[this.at.lane], this.at.index); }
  // First bar of a lane that ends after t.
  static find(lane, t) {
    let low = 0, high = lane.start.length;
    while (low < high) {
      const mid = low + high >> 1;
      if (lane.start[mid] + lane.length[mid] > t) high = mid; else low = mid + 1;
    }
    return low;
  }
  hit(x, y) {
    const lane = this.lanes[Math.floor(y / this.rowHeight)];
    if (!lane || x < this.left) return null;
    const pixel = (this.to - this.from) / (this.width() - this.left), t = this.timeAt(x);
    const index = k3.Lanes.find(lane, t - pixel);
    return index < lane.start.length && lane.start[index] <= t + pixel ? { lane, index } : null;
  }
  draw() {
    const height = this.lanes.length * this.rowHeight + 22, [c, width] = k3.context(this.canvas, height);
    const ink = k3.css('--ink'), soft = k3.css('--soft'), line = k3.css('--line');
    const scale = (width - this.left) / (this.to - this.from);
    let drawn = 0;
    this.axis(c, width, height - 22, scale, soft, line);
    this.lanes.forEach((lane, row) => {
      const y = row * this.rowHeight, h = this.rowHeight - 3;
      c.fillStyle = lane.minor ? soft : ink;
      c.textAlign = 'right';
      c.fillText(lane.label, this.left - 6, y + h - 4, this.left - 8);
      let last = -1;
      for (let i = k3.Lanes.find(lane, this.from); i < lane.start.length && lane.start[i] < this.to; ++i) {
        const x0 = Math.max(this.left, this.left + (lane.start[i] - this.from) * scale);
        const x1 = Math.min(width, this.left + (lane.start[i] + lane.length[i] - this.from) * scale);
        if (x1 <= last) continue;  // this pixel is taken
        const w = Math.max(.6, x1 - x0 - (x1 - x0 > 3 ? 1 : 0));
        c.fillStyle = this.palette[lane.colour[i]];
        c.fillRect(x0, y + 1, w, lane.minor ? h - 4 : h);
        if (this.text && w > 26) this.write(c, this.text(lane, i), x0, y, w, h);
        last = Math.max(x1, Math.floor(x0) + 1);
        ++drawn;
      }
    });
    this.drawn = drawn;
    const at = this.at, lane = at && this.lanes[at.lane];
    if (lane && lane.start[at.index] !== undefined) {  // the bar that the keyboard stands on
      c.strokeStyle = k3.css('--bad');
      c.lineWidth = 2;
      const x0 = Math.max(this.left, this.left + (lane.start[at.index] - this.from) * scale);
      c.strokeRect(x0, at.lane * this.rowHeight + 1, Math.max(3, lane.length[at.index] * scale), this.rowHeight - 3);
      c.lineWidth = 1;
    }
    this.range.textContent = `${k3.seconds(this.from * this.tick)} to ${k3.seconds(this.to * this.tick)}`;
  }
  write(c, text, x, y, w, h) {
    if (!text || c.measureText(text).width > w - 4) return;
    c.fillStyle = '#000';
    c.textAlign = 'center';
    c.fillText(text, x + w / 2, y + h - 4);
  }
  axis(c, width, y, scale, soft, line) {
    const wish = (this.to - this.from) * 90 / (width - this.left), power = 10 ** Math.floor(Math.log10(wish));
    const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= wish);
    c.textAlign = 'center';
    c.strokeStyle = line;
    c.fillStyle = soft;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.left + (t - this.from) * scale;
      c.beginPath();
      c.moveTo(x, 0);
      c.lineTo(x, y + 4);
      c.stroke();
      if (x > this.left + 16 && x < width - 16) c.fillText(k3.seconds(t * this.tick), x, y + 17);
    }
  }
};

// Delta-coded bars of `width` numbers each: typed arrays of start and length, and the other numbers as they are.
k3.bars = (numbers, width) => {
  const n = numbers.length / width, start = new Float64Array(n), length = new Float64Array(n);
  let at = 0;
  for (let i = 0; i < n; ++i) {
    start[i] = at + numbers[i * width];
    length[i] = numbers[i * width + 1];
    at = start[i] + length[i];
  }
  return { start, length, numbers, width, at: (i, k) => numbers[i * width + k] };
};

// Actions and the gaps between them on one lane.
k3.rankLane = (data, rank, label) => {
  const bars = k3.bars(rank.bars, 5), gaps = k3.bars(rank.gaps, 4), items = [];
  let at = 0;
  for (let i = 0; i < bars.start.length; ++i) {
    const n = rank.idle[at], idle = rank.idle.slice(at + 1, at + 1 + 2 * n);
    at += 1 + 2 * n;
    items.push({ start: bars.start[i], length: bars.length[i], kind: bars.at(i, 2), stage: bars.at(i, 3), microbatch: bars.at(i, 4), idle });
  }
  for (let i = 0; i < gaps.start.length; ++i)
    items.push({ start: gaps.start[i], length: gaps.length[i], cause: gaps.at(i, 2), what: gaps.at(i, 3) });
  items.sort((a, b) => a.start - b.start);
  return { label, items, start: Float64Array.from(items, i => i.start), length: Float64Array.from(items, i => i.length),
           colour: Uint16Array.from(items, i => i.cause === undefined ? i.kind : data.kinds.length + i.cause) };
};

k3.streamLanes = (data, rank) => rank.streams.map(([role, numbers]) => {
  const b = k3.bars(numbers, 3);
  return { label: data.roles[role], minor: true, stream: data.roles[role], ...b, busy: i => b.at(i, 2),
           colour: new Uint16Array(b.start.length).fill(data.kinds.length + data.causes.length) };
});

k3.describeBar = (data, lane, i) => {
  const tick = data.tick_s, s = t => k3.seconds(t * tick);
  if (lane.stream) return `${lane.stream}\nfrom ${s(lane.start[i])}, ${s(lane.length[i])}, busy ${s(lane.busy(i))}`;
  const b = lane.items[i];
  if (b.cause !== undefined)
    return `${lane.label} idle for ${s(b.length)} from ${s(b.start)}\ncause: ${data.causes[b.cause][1]}\nmeanwhile: ${data.what[b.what]}`;
  const kind = data.kinds[b.kind], lines = [b.stage < 0 ? kind : `${lane.label}: ${k3.kindName[kind] || kind} of stage ${b.stage}` +
    (b.microbatch >= 0 ? `, micro-batch ${b.microbatch}` : ''), `from ${s(b.start)}, duration ${s(b.length)}`];
  for (let k = 0; k < b.idle.length; k += 2) lines.push(`of it ${s(b.idle[k + 1])}: ${data.causes[b.idle[k]][1]}`);
  return lines.join('\n');
};

k3.draw.timeline = (box, data) => {
  const palette = [...data.kinds.map((k, i) => k3.colour(k3.kindColour, k, i)), ...data.causes.map(([k], i) => k3.colour(k3.partColour, k, i)), '#8f96a0'];
  const ranks = data.ranks.map((r, i) => k3.rankLane(data, r, 'rank ' + i)), shown = new Set();
  const view = new k3.Lanes(box, { id: 'timeline', length: data.step, tick: data.tick_s, palette, rowHeight: ranks.length > 40 ? 14 : 20,
    label: `Timeline of ${ranks.length} pipeline ranks; the table of parts above holds the sums`,
    describe: (lane, i) => k3.describeBar(data, lane, i),
    text: (lane, i) => lane.items && lane.items[i].microbatch >= 0 && lane.items[i].cause === undefined ? String(lane.items[i].microbatch) : '',
    onClick: (lane, i) => { const b = lane.items && lane.items[i]; if (b && b.stage >= 0 && k3.showKernels) k3.showKernels(ranks.indexOf(lane), b.stage, data.kinds[b.kind]); } });
  const layout = () => {
    view.lanes = ranks.flatMap((lane, i) => [lane, ...(shown.has(i) ? k3.streamLanes(data, data.ranks[i]) : [])]);
    view.draw();
  };
  if (data.ranks.some(r => r.streams.length))
    view.controls.append(k3.select('streams of', [[-1, 'no rank'], ...ranks.map((r, i) => [i, r.label]), [-2, 'every rank']], -1, v => {
      shown.clear();
      if (+v >= 0) shown.add(+v);
      if (+v === -2) ranks.forEach((_, i) => shown.add(i));
      layout();
    }));
  const idle = data.causes.map((c, i) => [c, i]).filter(([, i]) => ranks.some(r => r.items.some(b => b.cause === i)));
  box.append(k3.legend([...data.kinds.map((k, i) => [k3.kindName[k] || k, palette[i]]),
    ...idle.map(([c, i]) => ['idle: ' + c[1], palette[data.kinds.length + i]])]),
    k3.source('prediction. Bars are the actions of the schedule on the compute stream, numbers are micro-batches; wheel, + and − zoom, drag or arrows pan; up, down, comma and full stop walk from bar to bar, enter opens one.'));
  k3.timeline = view;
  layout();
};
