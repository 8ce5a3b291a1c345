// What every section uses: elements, numbers, colours, and the list of section drawers.
'use strict';
const k3 = { data: JSON.parse(document.getElementById('data').textContent), draw: {}, errors: [], later: [] };
window.k3 = k3;

// Element with attributes; on* attributes are listeners, children are elements or text.
k3.el = (tag, attributes, ...children) => {
  const e = /^(svg|g|rect|line|text|path|title|desc)$/.test(tag)
    ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
};

// Up to `digits` significant digits without a tail of zeros; thousands set apart from five digits on.
k3.number = (value, digits = 6) => {
  if (typeof value !== 'number') return value === null || value === undefined ? '' : String(value);
  if (value === 0) return '0';
  const rounded = Number.isInteger(value) && Math.abs(value) < 1e15 ? value : Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size >= 1e15 || size < 1e-5) return rounded.toExponential();
  const [whole, fraction] = (size >= 1 ? String(rounded) : rounded.toFixed(Math.min(12, digits + 4)).replace(/0+$/, '')).split('.');
  const grouped = whole.replace('-', '').length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') : whole;
  return fraction ? grouped + '.' + fraction : grouped;
};

// The unit to show beside a number: none for counts and ratios, the row's own where rows differ (column `unit`).
k3.unitOf = (column, table, row) => column.unit === 'mixed' ? (row ? k3.unitOf({ unit: row[table.columns.findIndex(c => c.key === 'unit')] }) : '')
  : column.unit === '1' || !column.unit ? '' : column.unit;
k3.titled = c => c.title + (k3.unitOf(c) && k3.unitOf(c) !== c.title ? ` (${k3.unitOf(c)})` : '');

// A share of the whole in per cent, as far as it matters.
k3.share = v => v > 0 && v < 1e-4 ? '<\u200a0.01\u00a0%' : (100 * v).toFixed(v < .1 ? 2 : 1) + '\u00a0%';

// For axes: 12 M, 3.4 k.
k3.short = v => {
  for (const [size, letter] of [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (Math.abs(v) >= size * (size === 1e3 ? 10 : 1)) return k3.number(v / size, 5) + '\u00a0' + letter;
  return k3.number(v, 4);
};

// A number of a table with its unit, or without when the heading names it: large bytes as 3.79 P, what is no error at all as 0 %.
k3.amount = (v, unit, bare) => {
  const text = unit === '%' && Math.abs(v) < 1e-9 ? '0' : unit === 'byte' && Math.abs(v) >= 1e12 ? k3.short(v) : k3.number(v, 5);
  return bare || !unit || unit === '1' ? text : text + '\u00a0' + unit;
};

// A time with the unit that fits it.
k3.seconds = s => {
  const size = Math.abs(s);
  if (size >= 1 || size === 0) return k3.number(s, 4) + ' s';
  return size >= 1e-3 ? k3.number(s * 1e3, 4) + ' ms' : k3.number(s * 1e6, 4) + ' µs';
};

// Okabe-Ito based, ordered so that neighbours differ in lightness.
k3.partColour = {
  compute: '#0072b2', recompute: '#56b4e9', tp: '#e69f00', cp: '#f0e442', ep: '#d55e00', pp: '#cc79a7', dp: '#117733',
  offload: '#8c8c1a', bubble: '#c8ccd0', host: '#882255', optimizer: '#44aa99', wait: '#7a7f85' };
k3.kindColour = {
  F: '#0072b2', B: '#e69f00', I: '#e69f00', W: '#009e73', FB: '#cc79a7', optimizer: '#44aa99', forward: '#0072b2',
  backward: '#e69f00', weight_grad: '#009e73', recompute: '#56b4e9', tp_comm: '#f0e442', cp_comm: '#8c8c1a', ep_comm: '#d55e00',
  transfer: '#cc79a7', param_gather: '#44aa99', grad_reduce: '#117733', host: '#882255', offload: '#8c8c1a', onload: '#b8b84d' };
k3.kindName = {
  F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient', FB: 'forward and backward, overlapped' };
k3.memoryColour = {
  weights: '#0072b2', gradients: '#56b4e9', optimizer: '#009e73', activations: '#e69f00', transient: '#d55e00',
  staging: '#cc79a7', fragmentation: '#c8ccd0', outside_allocator: '#7a7f85', 'activation gradients': '#f0e442', workspace: '#882255',
  'weight gradients': '#117733', 'gathered parameters': '#44aa99', exchange: '#cc79a7', 'kept for another rank': '#8c8c1a', remote_pool: '#8c8c1a' };
k3.spare = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#882255'];
k3.colour = (table, key, index) => table[key] || k3.spare[index % k3.spare.length];
k3.css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

k3.legend = entries => k3.el('ul', { class: 'legend' }, ...entries.map(([name, colour]) =>
  k3.el('li', {}, k3.el('i', { style: 'background:' + colour }), name)));

k3.select = (label, options, chosen, onChange) => {
  const select = k3.el('select', { onchange: () => onChange(select.value) },
    ...options.map(([value, text]) => k3.el('option', { value, selected: String(value) === String(chosen) }, text)));
  return k3.el('label', {}, label + ' ', select);
};

// Redraws canvases when size, colour scheme or medium changes.
k3.redraws = [];
k3.redraw = () => k3.redraws.forEach(f => f());
window.addEventListener('resize', () => requestAnimationFrame(k3.redraw));
window.addEventListener('beforeprint', k3.redraw);
window.addEventListener('afterprint', k3.redraw);

// Charts of the library: [its element, () => graph]. On paper they are scaled as they are: resized then, they come out empty.
k3.charts = [];
const paperWidth = 700;
window.addEventListener('beforeprint', () => k3.charts.forEach(([chart]) => { chart.style.zoom = Math.min(1, paperWidth / (chart.clientWidth || 1)); }));
window.addEventListener('afterprint', () => k3.charts.forEach(([chart]) => { chart.style.zoom = ''; }));
k3.redraws.push(() => { if (!window.matchMedia('print').matches) k3.charts.forEach(([, graph]) => graph() && graph().resize()); });
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', k3.redraw);
window.matchMedia('print').addEventListener('change', k3.redraw);
window.addEventListener('error', e => k3.errors.push(e.message));

// Sizes a canvas for the screen's pixels; its context draws in CSS pixels afterwards.
k3.context = (canvas, height) => {
  const width = canvas.clientWidth || canvas.parentElement.clientWidth || 600, ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext('2d');
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  return [c, width];
};

k3.source = text => k3.el('p', { class: 'source' }, 'Source: ' + text);

// Large figures in millions and more: the exact number stands in the files.
k3.figure = v => Math.abs(v) >= 1e7 ? k3.short(v) : k3.number(v, 5);

k3.draw.figures = (box, figures) => box.append(k3.el('dl', { class: 'figures' }, ...figures.map(f =>
  k3.el('div', {}, k3.el('dt', {}, f.label),
    k3.el('dd', { 'data-key': f.key, 'data-value': f.value,
                  class: (f.key === 'fits' && f.value === 'no') || (f.key === 'short_by_gib' && f.value > 0) ? 'bad' : null },
      (f.unit === '%' ? k3.amount(f.value, '%', true) : k3.figure(f.value)) + (k3.unitOf(f) ? '\u00a0' + f.unit : '')),
    k3.el('dd', { class: 'source' }, f.source)))));

k3.draw.note = (box, note) => {
  note.paragraphs.forEach(p => box.append(/^k3sim (?!\d)/.test(p) ? k3.el('pre', {}, p) : k3.el('p', {}, p)));
  if (note.literal) box.append(k3.el('pre', {}, note.literal));
};
