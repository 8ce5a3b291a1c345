// Many rows at once: scatter with Pareto front, parallel coordinates with ranges (parallel.js), the table, and the details
// of the chosen one. All four show the same choice.
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
  label(k) { return k3.titled(this.table.columns[k]) + (this.table.columns[k].unit === 'mixed' ? ' (unit of the case)' : ''); }
  // False only where a column says that the row does not fit.
  fits(i) { return this.fitColumn < 0 || this.table.rows[i][this.fitColumn] !== 'false'; }
  draw() {
    const rows = this.table.rows, x = this.column(this.axes.x.key), y = this.column(this.axes.y.key);
    this.fitColumn = this.column('fits');
    const ok = this.shown.filter(i => typeof rows[i][x] === 'number' && typeof rows[i][y] === 'number');
    const candidates = ok.filter(i => this.fits(i)), visible = candidates.map(i => rows[i]);
    this.front = this.axes.front ? k3.pareto(visible, x, y, this.axes.x.larger, this.axes.y.larger).map(i => candidates[i]) : [];
    const onFront = new Set(this.front);
    this.points = ok.slice().sort((a, b) => rows[a][x] - rows[b][x] || a - b);
    this.note.textContent = `${ok.length} points. ` + (this.axes.front ? `${this.front.length} on the Pareto front (line; ${this.axes.x.larger ? 'larger' : 'smaller'} ${this.label(x)} and ${this.axes.y.larger ? 'larger' : 'smaller'} ${this.label(y)} are better). ` : '') +
      (candidates.length < ok.length ? `Hollow: ${ok.length - candidates.length} that do not fit into memory. ` : '') +
      'Click a point for its configuration, drag to zoom, double click for all.';
    if (typeof Dygraph === 'undefined' || !this.points.length) {
      this.chart.style.height = 'auto';
      if (this.points.length) this.note.textContent = 'The scatter needs libjs-dygraphs when k3sim is built; the table holds every point.';
      return;
    }
    const data = this.points.map(i => [rows[i][x], this.fits(i) ? rows[i][y] : null, onFront.has(i) ? rows[i][y] : null,
                                       i === this.chosen ? rows[i][y] : null, this.fits(i) ? null : rows[i][y]]);
    const options = { labels: [this.label(x), this.label(y), 'Pareto front', 'chosen', 'does not fit'], xlabel: this.label(x), ylabel: this.label(y), legend: 'never',
      drawPoints: true, strokeWidth: 0, pointSize: this.points.length > 2000 ? 1.5 : 3.5, connectSeparatedPoints: true, animatedZooms: false,
      colors: ['#56b4e9', '#d55e00', k3.css('--ink'), k3.css('--soft')], axisLineColor: k3.css('--soft'), gridLineColor: k3.css('--line'), xRangePad: this.axes.x.log ? 0 : 12, yRangePad: 12,
      series: { 'Pareto front': { strokeWidth: 2, pointSize: 4 }, chosen: { pointSize: 7 },
                'does not fit': { drawPointCallback: (g, name, c, px, py, colour, size) => { c.strokeStyle = colour; c.strokeRect(px - size, py - size, 2 * size, 2 * size); } } },
      axes: { x: { axisLabelFormatter: v => (this.axes.x.log ? k3.short(v) : k3.number(v, 4)), pixelsPerLabel: 70, logscale: Boolean(this.axes.x.log) && ok.every(i => rows[i][x] > 0) }, y: { axisLabelFormatter: v => k3.number(v, 4), axisLabelWidth: 64 } },
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

// Columns that are the same in every row would only widen the table: they become a list of their own.
k3.splitColumns = (table, keep) => {
  const varying = [], same = [];
  table.columns.forEach((c, k) => {
    const first = table.rows[0][k];
    (table.rows.length > 1 && !keep.has(c.key) && table.rows.every(r => r[k] === first) ? same : varying).push(k);
  });
  return { varying, same: same.filter(k => table.rows[0][k] !== null) };
};

// The command that runs one row alone.
k3.rowCommand = (data, index) => {
  const cell = key => data.table.rows[index][data.table.columns.findIndex(c => c.key === key)];
  if (cell('policy_searched') === 'true') return `k3sim run plan-${cell('rank')}.yaml`;  // more than settings of the space
  const { table } = data, quote = s => /^[\w.,:=+/-]+$/.test(s) ? s : `'${s.replace(/'/g, `'\\''`)}'`;
  const sets = data.settings.flatMap(key => {
    const text = k3.cellText(table.rows[index][table.columns.findIndex(c => c.key === key)]);
    const known = (data.assignments[key] || {})[text];
    return known || [`${key}=${text}`];
  });
  return [data.command, ...sets.map(s => '--set ' + quote(s))].join(' ');
};
k3.cellText = v => v === null || v === undefined ? '' : String(v);

k3.showRow = (box, data, index) => {
  const { table } = data, name = table.columns.findIndex(c => c.key === data.name), settings = new Set(data.settings);
  const rows = table.columns.map((c, k) => [c, table.rows[index][k]]).filter(([, v]) => v !== null && v !== '');
  const line = ([c, v]) => k3.el('tr', {}, k3.el('th', { scope: 'row', title: c.what || null }, c.title),
    k3.el('td', { class: c.text ? null : 'n', 'data-key': c.key, 'data-value': v }, c.text ? String(v) : k3.number(v)),
    k3.el('td', {}, k3.unitOf(c, table, table.rows[index])), k3.el('td', { class: 'source' }, c.source || table.source));
  const part = (title, list) => list.length ? k3.el('div', { class: 'scroll' }, k3.el('table', {}, k3.el('caption', {}, title),
    k3.el('thead', {}, k3.el('tr', {}, ...['what', 'value', 'unit', 'source'].map((t, i) => k3.el('th', { scope: 'col', class: i === 1 ? 'n' : null }, t)))),
    k3.el('tbody', {}, ...list.map(line)))) : null;
  const title = 'Chosen: ' + (name >= 0 ? table.rows[index][name] : 'row ' + (index + 1));
  box.replaceChildren(k3.el('h3', {}, title));
  if (data.command) box.append(k3.el('p', {}, 'Runs alone with:'), k3.el('pre', { id: 'chosen-command' }, k3.rowCommand(data, index)));
  box.append(k3.el('div', { class: 'charts' }, ...[part('Settings', rows.filter(([c]) => settings.has(c.key))),
    part(settings.size ? 'Prediction' : 'All values', rows.filter(([c]) => !settings.has(c.key) && c.key !== data.name))].filter(Boolean)));
};

k3.draw.explore = (box, data) => {
  const { table } = data, numeric = table.columns.filter(c => !c.text), axes = { x: { ...data.x }, y: { ...data.y }, front: data.front };
  const chosen = k3.el('div', { id: 'chosen', 'aria-live': 'polite' }, k3.el('p', {}, 'No row chosen: click a point, or the name of a row in the table.'));
  const better = key => key === data.x.key ? data.x.larger : key === data.y.key ? data.y.larger : /mfu|hfu|tokens|tflops|goodput|fits/.test(key);
  const { varying, same } = k3.splitColumns(table, new Set([data.name, data.x.key, data.y.key]));
  const shown = { ...table, columns: varying.map(k => table.columns[k]), rows: table.rows.map(r => varying.map(k => r[k])) };
  let ready = false;
  const pick = index => {
    scatter.chosen = parallel.chosen = index;
    k3.showRow(chosen, data, index);
    scatter.draw();
    parallel.draw();
    list.choose(index);
  };
  const axis = which => k3.select(which === 'x' ? 'across' : 'up', numeric.map(c => [c.key, c.title]), axes[which].key, v => {
    axes[which] = { key: v, larger: better(v), log: v === data[which].key && data[which].log };
    scatter.draw();
  });
  box.append(k3.el('div', { class: 'controls' }, axis('x'), axis('y')));
  const scatter = k3.scatter = new k3.Scatter(box, table, axes, pick);
  const parallel = k3.parallel = new k3.Parallel(box, table, data.parallel, test => list.limit(test), pick);
  box.append(chosen);
  const list = k3.table(box, shown, { onRow: pick, tools: true, sort: shown.columns.findIndex(c => c.key === data.sort),
    onOrder: order => { scatter.shown = parallel.order = order; if (ready) { scatter.draw(); parallel.draw(); } } });
  if (same.length) box.append(k3.el('details', {}, k3.el('summary', {}, 'The same in every row'),
    k3.el('dl', { class: 'same' }, ...same.flatMap(k => [k3.el('dt', {}, table.columns[k].title),
      k3.el('dd', {}, k3.number(table.rows[0][k]) + (k3.unitOf(table.columns[k]) ? ' ' + table.columns[k].unit : ''))]))));
  k3.later.push(() => scatter.draw(), () => { parallel.draw(); ready = true; });  // the table answers before the charts are there
  k3.charts.push([scatter.chart, () => scatter.graph]);
  k3.redraws.push(() => parallel.draw());
};
