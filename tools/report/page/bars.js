// Static pictures as SVG: the waterfall of the step and the memory of every rank, each with its table.
'use strict';
k3.draw.waterfall = (box, data) => {
  const parts = data.parts.filter(p => p.mean_s > 1e-6 * data.step_s);
  const narrow = box.clientWidth < 560, width = narrow ? 380 : 1140, left = narrow ? 84 : 110, right = 132, line = 26;
  const scale = (width - left - right) / data.step_s, height = parts.length * line + 24;
  const svg = k3.el('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', width,
    'aria-label': 'Waterfall of the step: ' + parts.map(p => `${p.key} ${k3.seconds(p.mean_s)}`).join(', ') });
  let at = 0;
  parts.forEach((p, i) => {
    const y = i * line + 4, x = left + at * scale, w = Math.max(1, p.mean_s * scale);
    svg.append(k3.el('text', { x: left - 8, y: y + 14, 'text-anchor': 'end' }, p.key),
      k3.el('rect', { x, y, width: w, height: line - 8, fill: k3.colour(k3.partColour, p.key, i), stroke: 'currentColor',
                      'stroke-opacity': .35 }, k3.el('title', {}, `${p.what}: ${k3.seconds(p.mean_s)}`)),
      k3.el('text', { x: x + w + 6, y: y + 14 }, `${k3.seconds(p.mean_s)}, ${k3.share(p.mean_s / data.step_s)}`));
    if (i + 1 < parts.length) svg.append(k3.el('line', { class: 'axis', x1: x + w, x2: x + w, y1: y + line - 8, y2: y + line }));
    at += p.mean_s;
  });
  svg.append(k3.el('line', { class: 'axis', x1: left, x2: left, y1: 0, y2: height - 20 }),
    k3.el('text', { x: left, y: height - 4 }, '0 s'),
    k3.el('text', { x: left + data.step_s * scale, y: height - 4, 'text-anchor': 'end' }, k3.seconds(data.step_s) + ' (step)'));
  box.append(svg);
  k3.table(box, {
    id: 'breakdown', caption: 'Mean over pipeline ranks; the parts of every rank add up to the step time', source: 'prediction',
    columns: [{ key: 'part', title: 'part', text: true }, { key: 's', title: 'time', unit: 's' }, { key: 'pct', title: 'share', unit: '%', bar: true },
              { key: 'what', title: 'what it is', text: true }],
    rows: parts.map(p => [p.key, p.mean_s, Number((100 * p.mean_s / data.step_s).toPrecision(4)), p.what]) });
  const details = k3.el('details', {}, k3.el('summary', {}, 'Every pipeline rank'));
  box.append(details);
  k3.table(details, {
    id: 'ranks', caption: 'Seconds of the step by pipeline rank', source: 'prediction (ranks.csv)',
    columns: [{ key: 'rank', title: 'rank', unit: '1' }, ...data.parts.map(p => ({ key: p.key, title: p.key, unit: 's', what: p.what }))],
    rows: data.ranks.map((r, i) => [i, ...r]) });
};

k3.memoryBars = (box, data) => {
  const gpu = data.parts.map((p, i) => ({ ...p, i })).filter(p => !p.host);
  const narrow = box.clientWidth < 560, width = narrow ? 380 : 1140, height = narrow ? 240 : 320, left = 46, bottom = 36, top = 16;
  const totals = data.ranks.map(r => gpu.reduce((sum, p) => sum + r.parts[p.i], 0));
  const most = Math.max(data.capacity, ...totals) * 1.05, y = v => top + (height - top - bottom) * (1 - v / most);
  const slot = (width - left - 8) / data.ranks.length;
  const svg = k3.el('svg', { viewBox: `0 0 ${width} ${height}`, width, role: 'img',
    'aria-label': `Peak memory by pipeline rank in GiB, capacity ${k3.number(data.capacity, 4)} GiB` });
  for (let k = 0; k <= 4; ++k) {
    const v = most * k / 4;
    svg.append(k3.el('line', { class: 'axis', x1: left, x2: width - 8, y1: y(v), y2: y(v) }),
      k3.el('text', { x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, k3.number(v, 3)));
  }
  data.ranks.forEach((r, n) => {
    let sum = 0;
    gpu.forEach((p, k) => {
      const v = r.parts[p.i];
      if (v <= 0) return;
      svg.append(k3.el('rect', { x: left + n * slot + slot * .12, width: slot * .76, y: y(sum + v), height: y(sum) - y(sum + v),
        fill: k3.colour(k3.memoryColour, p.key, k), stroke: 'currentColor', 'stroke-opacity': .35 },
        k3.el('title', {}, `rank ${r.rank}: ${p.key} ${k3.number(v, 4)} GiB`)));
      sum += v;
    });
    if (data.ranks.length <= 32 || n % 8 === 0)
      svg.append(k3.el('text', { x: left + (n + .5) * slot, y: height - bottom + 15, 'text-anchor': 'middle' }, r.rank));
  });
  svg.append(k3.el('line', { class: 'limit', x1: left, x2: width - 8, y1: y(data.capacity), y2: y(data.capacity) }),
    k3.el('text', { x: width - 10, y: y(data.capacity) - 4, 'text-anchor': 'end' }, `capacity ${k3.number(data.capacity, 4)} GiB`),
    k3.el('text', { x: (left + width) / 2, y: height - 4, 'text-anchor': 'middle' }, 'pipeline rank (peak of each, GiB)'));
  box.append(svg, k3.legend(gpu.map((p, k) => [p.key.replace('_', ' '), k3.colour(k3.memoryColour, p.key, k)])));
};
