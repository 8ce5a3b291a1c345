// Memory: peak of every rank, memory over time of one rank (chart with zoom), and who is alive at its peak.
'use strict';

// [time in s, ...GiB per series] rows of one rank: what is allocated by category before and after every action, and what
// the running action takes on top of it (transient).
k3.memoryCurve = (memory, index, timeline) => {
  const rank = memory.ranks[index], { live, peak } = rank.curve, tick = timeline.tick_s, bars = timeline.ranks[index].bars;
  const part = key => rank.parts[memory.parts.findIndex(p => p.key === key && !p.host)];
  const fixed = ['outside_allocator', 'fragmentation'], held = fixed.map(part);
  // The chart stacks from the last series upwards: what never changes lies at the bottom, weights first.
  const still = Object.keys(live).filter(n => typeof live[n] === 'number').reverse(), moving = Object.keys(live).filter(n => typeof live[n] !== 'number');
  const level = i => moving.map(n => (i < 0 ? 0 : live[n][i]) / 1024), base = [...held, ...still.map(n => live[n] / 1024)];
  const total = base.slice(held.length).reduce((a, b) => a + b, 0);
  const rows = [];
  let at = 0, before = level(-1);
  rows.push([0, 0, ...before, ...base]);
  for (let i = 0; i * 5 < bars.length; ++i) {
    const start = at + bars[i * 5], end = start + bars[i * 5 + 1];
    at = end;
    if (peak[i] < 0) continue;
    const sum = before.reduce((a, b) => a + b, total);
    rows.push([start * tick, Math.max(0, peak[i] / 1024 - sum), ...before, ...base]);
    before = level(i);
    rows.push([end * tick, 0, ...before, ...base]);
  }
  rows.push([timeline.step * tick, 0, ...before, ...base]);
  return { labels: ['s', 'transient', ...moving, ...fixed, ...still], rows };
};

// Capacity as a dashed line and the highest point with its action, under the curves.
k3.markMemory = (memory, index, rows, c, area, graph) => {
  const total = r => r.slice(1).reduce((a, b) => a + b, 0), top = rows.reduce((best, r) => total(r) > total(best) ? r : best);
  const y = graph.toDomYCoord(memory.capacity), x = graph.toDomXCoord(top[0]);
  c.save();
  c.strokeStyle = c.fillStyle = k3.css('--bad');
  c.lineWidth = 2;
  c.setLineDash([6, 4]);
  c.beginPath();
  c.moveTo(area.x, y);
  c.lineTo(area.x + area.w, y);
  c.stroke();
  c.font = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
  c.textAlign = 'right';
  c.fillText(`capacity ${k3.number(memory.capacity, 4)} GiB`, area.x + area.w - 4, Math.max(11, y - 5));
  if (x >= area.x && x <= area.x + area.w) {
    const text = `peak ${k3.number(total(top), 4)} GiB at ${memory.ranks[index].peak}`, half = c.measureText(text).width / 2;
    c.setLineDash([]);
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(x, graph.toDomYCoord(total(top)));
    c.lineTo(x, y + 20);
    c.stroke();
    c.textAlign = 'center';
    c.fillText(text, Math.max(area.x + half + 2, Math.min(area.x + area.w - half - 2, x)), y + 17);
  }
  c.restore();
};

k3.drawCurve = (chart, memory, index) => {
  const timeline = k3.data.sections.find(s => s.type === 'timeline').data;
  const { labels, rows } = k3.memoryCurve(memory, index, timeline);
  if (chart.k3graph) chart.k3graph.destroy();
  if (typeof Dygraph === 'undefined') {
    chart.style.height = 'auto';
    chart.replaceChildren(k3.el('p', {}, 'The chart of memory over time needs libjs-dygraphs when k3sim is built; the tables hold the peaks.'));
    return [];
  }
  const top = Math.max(memory.capacity, ...rows.map(r => r.slice(1).reduce((a, b) => a + b))) * 1.12;
  const colours = labels.slice(1).map((k, i) => k3.colour(k3.memoryColour, k, i));
  chart.k3graph = new Dygraph(chart, rows, {
    labels, stackedGraph: true, stepPlot: true, fillAlpha: .85, strokeWidth: .5, legend: 'follow', labelsSeparateLines: true,
    valueRange: [0, top], includeZero: true, xlabel: 'time in the step (s)', ylabel: 'GiB', animatedZooms: false,
    colors: colours, axisLineColor: k3.css('--soft'), gridLineColor: k3.css('--line'),
    axes: { y: { valueFormatter: v => k3.number(v, 4) + ' GiB' }, x: { valueFormatter: v => k3.number(v, 6) + ' s' } },
    underlayCallback: (c, area, graph) => k3.markMemory(memory, index, rows, c, area, graph),
  });
  return labels.slice(1).map((name, i) => [name.replace('_', ' '), colours[i]]);
};

// Tensors that the fullest rank's request log holds at its peak, equal ones together, and what lies beside the allocator.
k3.peakTensors = (box, memory) => {
  const log = memory.log, sums = new Map();
  for (const [what, category, gib] of log.at_failure || log.at_peak) {
    const key = what + '|' + category, row = sums.get(key) || [what, category, 0, 0];
    row[2] += 1;
    row[3] += gib;
    sums.set(key, row);
  }
  const rows = [...sums.values(), ...log.outside.map(([what, gib]) => [what, 'outside the allocator', 1, gib])]
    .map(r => [r[0], r[1], r[2], Number(r[3].toPrecision(6))]).filter(r => r[3] > 0).sort((a, b) => b[3] - a[3]);
  if (log.out_of_memory) box.append(k3.el('p', { class: 'bad' }, log.out_of_memory));
  for (const knob of log.out_of_memory ? log.knobs : []) box.append(k3.el('p', {}, knob));
  k3.table(box, { id: 'peak-tensors', source: 'prediction; the allocator emulated request by request (memory_peak.csv)',
    caption: `Largest tensors that rank ${log.rank} holds at ${log.out_of_memory ? 'the failure' : log.peak_at}`,
    columns: [{ key: 'what', title: 'tensor or buffer', text: true }, { key: 'category', title: 'category', text: true },
              { key: 'blocks', title: 'blocks', unit: '1' }, { key: 'size_gib', title: 'size', unit: 'GiB', bar: true }], rows });
};

k3.draw.memory = (box, data) => {
  k3.memoryBars(box, data);
  const chart = k3.el('div', { class: 'chart', id: 'memory-curve' }), key = k3.el('div', {}), why = k3.el('div', { id: 'memory-peak', 'aria-live': 'polite' });
  const show = index => {
    const r = data.ranks[index], timeline = k3.data.sections.find(s => s.type === 'timeline');
    if (timeline) key.replaceChildren(k3.legend(k3.drawCurve(chart, data, index)));
    const total = data.parts.reduce((sum, p, i) => sum + (p.host ? 0 : r.parts[i]), 0);
    why.replaceChildren(k3.el('p', {}, `The peak of rank ${r.rank} is at ${r.peak || 'no action'}: ${k3.number(total, 4)} GiB held, ` +
      (r.short_by > 0 ? `${k3.number(r.short_by, 3)} GiB more than there is.` : `${k3.number(data.capacity - total, 3)} GiB free.`)));
    k3.table(why, {
      id: 'peak', caption: `What rank ${r.rank} holds at its peak`, source: 'prediction (memory.csv)',
      columns: [{ key: 'where', title: 'where', text: true }, { key: 'what', title: 'what', text: true }, { key: 'size_gib', title: 'size', unit: 'GiB' },
                { key: 'meaning', title: 'meaning', text: true }],
      rows: data.parts.map((p, i) => [p.host ? 'host' : 'GPU', p.key.replace('_', ' '), r.parts[i], p.what]).filter(x => x[2] > 0) });
    if (r.alive.length) k3.table(why, {
      id: 'alive', caption: `Micro-batches whose tensors rank ${r.rank} holds at its peak`, source: 'prediction',
      columns: [{ key: 'stage', title: 'stage', unit: '1' }, { key: 'microbatches', title: 'micro-batches', unit: '1' }, { key: 'first', title: 'first', unit: '1' },
                { key: 'last', title: 'last', unit: '1' },
                { key: 'gpu_gib', title: 'kept on the GPU', unit: 'GiB' }, { key: 'host_gib', title: 'kept in host memory', unit: 'GiB' }],
      rows: r.alive });
    if (data.log && data.log.rank === r.rank) k3.peakTensors(why, data);
  };
  box.append(k3.el('h3', {}, 'Over time'),
    k3.el('div', { class: 'controls' }, k3.select('pipeline rank', data.ranks.map((r, i) => [i, r.rank]), data.worst, v => show(+v)),
      k3.el('span', {}, 'drag to zoom, double click for all; the dashed line is the capacity')), chart, key, k3.source('prediction (memory_timeline.csv); capacity: profile'),
    k3.el('h3', {}, 'The peak explained'), why);
  show(data.worst);
  k3.charts.push([chart, () => chart.k3graph]);
};
