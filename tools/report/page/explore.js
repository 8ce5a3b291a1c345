// Many configurations at once: scatter with Pareto front, parallel coordinates with ranges, the table, and the details of
// the chosen one. All four show the same choice.
'use strict';

// Rows that no other row beats in both directions, by the first axis.
k3.pareto = (rows, x, y, xLarger, yLarger) => {
  const sign = (v, larger) => larger ? -v : v;
  const order = rows.map((_, i) => i).filter(i => rows[i][x] !== null && rows[i][y] !== null)
    .sort((a, b) => sign(rows[a][x], xLarger) - sign(rows[b][x], xLarger) || sign(rows[a][y], yLarger) - sign(rows[b][y], yLarger) || a - b);
  let best = Infinity;
  return order.filter(i => { const v = sign(rows[i][y], yLarger); if (v < best) { best = v; return true; } return false; });
};

k3.Scatter = class {
  constructor(box, table, axes, onPick) {
    this.chart = k3.el('div', { class: 'chart', id: 'scatter' });
    this.note = k3.el('p', { class: 'source' });
    box.append(this.chart, this.note);
    Object.assign(this, { table, axes, onPick, shown: table.rows.map((_, i) => i), chosen: -1 });
  }
  column(key) { return this.table.columns.findIndex(c => c.key === key); }
  label(k) { const c = this.table.columns[k]; return c.title + (c.unit ? ` (${c.unit})` : ''); }
  draw() {
    const rows = this.table.rows, x = this.column(this.axes.x.key), y = this.column(this.axes.y.key);
    const ok = this.shown.filter(i => typeof rows[i][x] === 'number' && typeof rows[i][y] === 'number');
    const visible = ok.map(i => rows[i]);
    this.front = k3.pareto(visible, x, y, this.axes.x.larger, this.axes.y.larger).map(i => ok[i]);
    const onFront = new Set(this.front);
    this.points = ok.slice().sort((a, b) => rows[a][x] - rows[b][x] || a - b);
    this.note.textContent = `${ok.length} points, ${this.front.length} on the Pareto front (line; ` +
      `${this.axes.x.larger ? 'larger' : 'smaller'} ${this.label(x)} and ${this.axes.y.larger ? 'larger' : 'smaller'} ${this.label(y)} are better). ` +
      'Click a point for its configuration, drag to zoom, double click for all.';
    if (typeof Dygraph === 'undefined' || !this.points.length) {
      this.chart.style.height = 'auto';
      if (this.points.length) this.note.textContent = 'The scatter needs libjs-dygraphs when k3sim is built; the table holds every point.';
      return;
    }
    const data = this.points.map(i => [rows[i][x], rows[i][y], onFront.has(i) ? rows[i][y] : null, i === this.chosen ? rows[i][y] : null]);
    const options = { labels: [this.label(x), this.label(y), 'Pareto front', 'chosen'], xlabel: this.label(x), ylabel: this.label(y), legend: 'never',
      drawPoints: true, strokeWidth: 0, pointSize: this.points.length > 2000 ? 1.5 : 3, connectSeparatedPoints: true, animatedZooms: false,
      colors: ['#56b4e9', '#d55e00', k3.css('--ink')], axisLineColor: k3.css('--soft'), gridLineColor: k3.css('--line'), xRangePad: 12, yRangePad: 12,
      series: { 'Pareto front': { strokeWidth: 2, pointSize: 4 }, chosen: { pointSize: 7 } },
      axes: { x: { axisLabelFormatter: v => k3.number(v, 4) }, y: { axisLabelFormatter: v => k3.number(v, 4), axisLabelWidth: 64 } },
      clickCallback: e => { const i = this.nearest(e); if (i >= 0) this.onPick(i); } };
    if (this.points.length > 2000)  // a circle for each of many points is slow
      options.drawPointCallback = (g, name, c, x, y, colour, size) => { c.fillStyle = colour; c.fillRect(x - size, y - size, 2 * size, 2 * size); };
    if (this.graph) this.graph.destroy();
    this.graph = new Dygraph(this.chart, data, options);
  }
  nearest(e) {
    const area = this.graph.graphDiv.getBoundingClientRect(), px = e.clientX - area.left, py = e.clientY - area.top;
    const rows = this.table.rows, x = this.column(this.axes.x.key), y = this.column(this.axes.y.key);
    let best = -1, distance = 400;
    for (const i of this.points) {
      const [qx, qy] = this.graph.toDomCoords(rows[i][x], rows[i][y]), d = (qx - px) ** 2 + (qy - py) ** 2;
      if (d < distance) { distance = d; best = i; }
    }
    return best;
  }
};

k3.Parallel = class {
  constructor(box, table, keys, onBrush, onPick) {
    this.canvas = k3.el('canvas', { class: 'parallel', id: 'parallel', role: 'img', 'aria-label': 'Parallel coordinates of ' + keys.join(', ') });
    box.append(this.canvas, k3.el('p', { class: 'source' }, 'Drag along an axis to keep a range, click the axis to drop it.'));
    this.keys = keys.map(k => table.columns.findIndex(c => c.key === k)).filter(k => k >= 0);
    Object.assign(this, { table, onBrush, brushes: new Map(), chosen: -1 });
    this.extent = this.keys.map(k => {
      const values = table.rows.map(r => r[k]).filter(v => typeof v === 'number');
      const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
      return low < high ? [low, high] : [low - 1, low + 1];
    });
    this.canvas.addEventListener('pointerdown', e => { this.drag = { axis: this.axisAt(e.offsetX), y: e.offsetY }; });
    this.canvas.addEventListener('pointerup', e => this.brush(e));
  }
  x(a) { const w = this.canvas.clientWidth; return this.keys.length < 2 ? w / 2 : 46 + a * (w - 92) / (this.keys.length - 1); }
  y(a, v) { const [low, high] = this.extent[a]; return 34 + (1 - (v - low) / (high - low)) * (this.height - 56); }
  value(a, y) { const [low, high] = this.extent[a]; return low + (1 - (y - 34) / (this.height - 56)) * (high - low); }
  axisAt(x) { let best = 0; this.keys.forEach((_, a) => { if (Math.abs(this.x(a) - x) < Math.abs(this.x(best) - x)) best = a; }); return best; }
  brush(e) {
    if (!this.drag) return;
    const { axis, y } = this.drag;
    this.drag = null;
    if (Math.abs(e.offsetY - y) < 4) this.brushes.delete(axis);
    else this.brushes.set(axis, [this.value(axis, Math.max(y, e.offsetY)), this.value(axis, Math.min(y, e.offsetY))]);
    this.onBrush(this.brushes.size ? i => this.passes(i) : null);
  }
  passes(i) {
    for (const [axis, [low, high]] of this.brushes) {
      const v = this.table.rows[i][this.keys[axis]];
      if (typeof v !== 'number' || v < low || v > high) return false;
    }
    return true;
  }
  path(c, i) {
    const row = this.table.rows[i];
    let pen = false;
    this.keys.forEach((k, a) => {
      if (typeof row[k] !== 'number') { pen = false; return; }
      pen ? c.lineTo(this.x(a), this.y(a, row[k])) : c.moveTo(this.x(a), this.y(a, row[k]));
      pen = true;
    });
  }
  draw(order) {
    this.order = order || this.order || this.table.rows.map((_, i) => i);
    this.height = 260;
    const [c] = k3.context(this.canvas, this.height);
    c.globalAlpha = Math.max(.04, Math.min(.8, 120 / this.order.length));
    c.strokeStyle = '#2f8fd0';
    // Sixteen rows per stroke: thousands of single strokes would take most of a second.
    this.order.forEach((i, n) => {
      if (n % 16 === 0) c.beginPath();
      this.path(c, i);
      if (n % 16 === 15 || n + 1 === this.order.length) c.stroke();
    });
    c.globalAlpha = 1;
    if (this.chosen >= 0) { c.strokeStyle = '#d55e00'; c.lineWidth = 3; c.beginPath(); this.path(c, this.chosen); c.stroke(); c.lineWidth = 1; }
    c.textAlign = 'center';
    this.keys.forEach((k, a) => {
      const x = this.x(a), column = this.table.columns[k], room = Math.max(40, (this.canvas.clientWidth - 92) / this.keys.length - 4);
      c.strokeStyle = c.fillStyle = k3.css('--ink');
      c.beginPath();
      c.moveTo(x, 34);
      c.lineTo(x, this.height - 22);
      c.stroke();
      c.fillText(column.title, x, 13, room);
      c.fillText(k3.number(this.extent[a][1], 4) + (column.unit ? ' ' + column.unit : ''), x, 28, room);
      c.fillText(k3.number(this.extent[a][0], 4), x, this.height - 7, room);
      const b = this.brushes.get(a);
      if (b) { c.fillStyle = 'rgba(213,94,0,.35)'; c.fillRect(x - 7, this.y(a, b[1]), 14, this.y(a, b[0]) - this.y(a, b[1])); }
    });
  }
};

k3.draw.explore = (box, data) => {
  const { table } = data, numeric = table.columns.filter(c => !c.text), axes = { x: { ...data.x }, y: { ...data.y } };
  const chosen = k3.el('div', { id: 'chosen', 'aria-live': 'polite' }, k3.el('p', {}, 'No configuration chosen.'));
  const better = key => key === data.x.key ? data.x.larger : key === data.y.key ? data.y.larger : /mfu|hfu|tokens|tflops|goodput|fits/.test(key);
  const pick = index => {
    scatter.chosen = parallel.chosen = index;
    const name = table.columns.findIndex(c => c.key === data.name);
    chosen.replaceChildren();
    k3.table(chosen, { id: 'chosen-row', caption: 'Chosen: ' + (name >= 0 ? table.rows[index][name] : 'row ' + (index + 1)), source: table.source,
      columns: [{ title: 'what', text: true }, { title: 'value', text: true }, { title: 'unit', text: true }],
      rows: table.columns.map((c, k) => [c.title, k3.number(table.rows[index][k]), c.unit]).filter(r => r[1] !== '').slice(0, 60) });
    chosen.querySelectorAll('tr.filters').forEach(e => e.remove());
    scatter.draw();
    parallel.draw();
    list.choose(index);
  };
  const axis = which => k3.select(which === 'x' ? 'across' : 'up', numeric.map(c => [c.key, c.title]), axes[which].key, v => {
    axes[which] = { key: v, larger: better(v) };
    scatter.draw();
  });
  box.append(k3.el('div', { class: 'controls' }, axis('x'), axis('y')));
  const scatter = k3.scatter = new k3.Scatter(box, table, axes, pick);
  const parallel = k3.parallel = new k3.Parallel(box, table, data.parallel, test => list.limit(test), pick);
  box.append(chosen);
  const list = k3.table(box, table, { onRow: pick, onOrder: order => { scatter.shown = order; scatter.draw(); parallel.draw(order); } });
  k3.later.push(() => scatter.draw(), () => parallel.draw());  // the table answers before the charts are there
  k3.redraws.push(() => { if (scatter.graph) scatter.graph.resize(); parallel.draw(); });
};
