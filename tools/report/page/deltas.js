// Gains and losses as bars: around zero, or following each other from a level (waterfall). The table below holds the numbers.
'use strict';
k3.gainColour = '#0072b2';
k3.lossColour = '#d55e00';

// Ticks at 1, 2 or 5 times a power of ten, about `wanted` of them.
k3.ticks = (low, high, wanted) => {
  const raw = (high - low) / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= raw * .999), out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) out.push(Number((k * step).toPrecision(12)));
  return out;
};

k3.signed = (v, unit) => (v > 0 ? '+' : v < 0 ? '\u2212' : '') + k3.number(Math.abs(v), 3) + (unit === '%' ? '\u00a0%' : unit ? '\u00a0' + unit : '');

// Where the bars lie and how wide the picture is.
k3.deltaLayout = (box, data) => {
  const narrow = box.clientWidth < 640, width = narrow ? 380 : 980, two = Boolean(data.second);
  const longest = Math.max(...data.rows.map(r => r[0].length));
  const left = narrow ? 8 : Math.min(430, 20 + longest * 7.3), line = (narrow ? 42 : 26) + (two ? 14 : 0);
  const from = [], to = [];
  let at = data.waterfall ? data.from : 0;
  for (const [, v] of data.rows) { from.push(data.waterfall ? at : 0); at = data.waterfall ? at + v : 0; to.push(data.waterfall ? at : v); }
  const all = [...from, ...to, ...(two ? data.rows.map(r => r[2]) : [])];
  let low = Math.min(...all), high = Math.max(...all);
  const before = low < 0 || data.waterfall ? 84 : 4, behind = high > 0 || data.waterfall ? 84 : 4, room = width - left - 12;
  const perPixel = (high - low || Math.abs(high) || 1) / (room - before - behind);  // numbers stand beside the bars
  low -= before * perPixel;
  high += behind * perPixel;
  return { narrow, width, two, left, line, from, to, low, high, at, x: v => left + (v - low) / (high - low) * (width - left - 12) };
};

k3.deltaBar = (svg, layout, data, from, to, y, height, name, plain) => {
  const x0 = layout.x(Math.min(from, to)), w = Math.max(1, layout.x(Math.max(from, to)) - x0), v = to - from;
  const fill = v === 0 ? k3.css('--soft') : (v < 0) !== data.larger ? k3.gainColour : k3.lossColour, text = k3.signed(v, data.unit);
  const bar = k3.el('rect', { x: x0, y, width: w, height, fill: v === 0 ? 'none' : fill, 'fill-opacity': plain ? .45 : 1, stroke: fill,
                              class: 'delta' }, k3.el('title', {}, `${name}: ${text}`));
  const right = v >= 0;
  svg.append(bar, k3.el('text', { x: right ? x0 + w + 5 : x0 - 5, y: y + height / 2 + 4, 'text-anchor': right ? 'start' : 'end', class: 'value' }, text));
};

k3.draw.deltas = (box, data) => {
  if (!data.rows.length) { box.append(k3.el('p', {}, 'No change.')); return k3.table(box, data.table); }
  box.append(k3.el('p', { class: 'caption' }, data.table.caption));
  const l = k3.deltaLayout(box, data), top = 6, bottom = top + data.rows.length * l.line, height = bottom + 24;
  const svg = k3.el('svg', { viewBox: `0 0 ${l.width} ${height}`, width: l.width, role: 'img', class: 'deltas', 'data-unit': data.unit,
    'aria-label': data.table.caption + ': ' + data.rows.map(r => `${r[0]} ${k3.signed(r[1], data.unit)}`).join(', ') });
  for (const t of k3.ticks(l.low, l.high, l.narrow ? 4 : 8))
    svg.append(k3.el('line', { class: t === 0 && !data.waterfall ? 'zero' : 'axis', x1: l.x(t), x2: l.x(t), y1: 0, y2: bottom }),
      k3.el('text', { x: l.x(t), y: height - 7, 'text-anchor': 'middle', class: 'tick' }, k3.amount(t, l.narrow ? '' : data.unit)));
  data.rows.forEach(([label, value, second], i) => {
    const y = top + i * l.line, bar = l.narrow ? y + 18 : y + 3, thick = l.two ? 15 : 17;
    svg.append(l.narrow ? k3.el('text', { x: l.left, y: y + 12 }, label)
      : k3.el('text', { x: l.left - 10, y: y + l.line / 2 + 2, 'text-anchor': 'end' }, label));
    k3.deltaBar(svg, l, data, l.from[i], l.to[i], bar, thick, `${label}, ${data.first}`, false);
    if (l.two) k3.deltaBar(svg, l, data, 0, second, bar + thick + 2, thick, `${label}, ${data.second}`, true);
    if (data.waterfall && i + 1 < data.rows.length)
      svg.append(k3.el('line', { class: 'zero', x1: l.x(l.to[i]), x2: l.x(l.to[i]), y1: bar, y2: bar + l.line + thick }));
  });
  box.append(svg);
  const unit = data.unit ? ' ' + data.unit : '';
  const what = data.waterfall ? `From ${k3.number(data.from, 5)}${unit} to ${k3.number(l.at, 5)}${unit}; the axis does not begin at zero.`
    : l.two ? `Full bars: ${data.first}; pale bars: ${data.second}.` : `Bars: ${data.first}, in${unit || ' numbers'}.`;
  box.append(k3.el('p', { class: 'source' }, `${what} Blue: ${data.less}, orange: ${data.more}.`, ` Source: ${data.table.source}.`));
  if (data.table.columns.length) k3.table(box, data.table);
};
