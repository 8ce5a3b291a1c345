// Memory: peak of every rank, memory over time of one rank (chart with zoom), and who is alive at its peak.
'use strict';

// [time in s, ...GiB per part] rows of one rank: the level before, during and after every action.
k3.memoryCurve = (memory, index, timeline) => {
  // The chart stacks from the last series upwards: what changes over time comes first and lies on top.
  const rank = memory.ranks[index], names = ['outside_allocator', 'fragmentation', 'staging', 'optimizer', 'gradients', 'weights'];
  const part = key => rank.parts[memory.parts.findIndex(p => p.key === key && !p.host)];
  const fixed = names.map(part), tick = timeline.tick_s, bars = timeline.ranks[index].bars, rows = [[0, 0, 0, ...fixed]];
  let at = 0, kept = 0;
  for (let i = 0; i * 5 < bars.length; ++i) {
    const start = at + bars[i * 5], end = start + bars[i * 5 + 1];
    at = end;
    const after = rank.curve[i * 2], during = rank.curve[i * 2 + 1];
    if (after < 0) continue;
    rows.push([start * tick, Math.max(0, during - kept) / 1024, kept / 1024, ...fixed]);
    kept = after;
    rows.push([end * tick, 0, kept / 1024, ...fixed]);
  }
  rows.push([timeline.step * tick, 0, kept / 1024, ...fixed]);
  return { labels: ['s', 'transient', 'activations', ...names], rows };
};

k3.drawCurve = (chart, memory, index) => {
  const timeline = k3.data.sections.find(s => s.type === 'timeline').data;
  const { labels, rows } = k3.memoryCurve(memory, index, timeline);
  if (chart.k3graph) chart.k3graph.destroy();
  if (typeof Dygraph === 'undefined') {
    chart.style.height = 'auto';
    chart.replaceChildren(k3.el('p', {}, 'The chart of memory over time needs libjs-dygraphs when k3sim is built; the tables hold the peaks.'));
    return;
  }
  const capacity = memory.capacity, top = Math.max(capacity, ...rows.map(r => r.slice(1).reduce((a, b) => a + b))) * 1.05;
  chart.k3graph = new Dygraph(chart, rows, {
    labels, stackedGraph: true, stepPlot: true, fillAlpha: .85, strokeWidth: .5, legend: 'follow', labelsSeparateLines: true,
    valueRange: [0, top], includeZero: true, xlabel: 'time in the step (s)', ylabel: 'GiB', animatedZooms: false,
    colors: labels.slice(1).map((k, i) => k3.colour(k3.memoryColour, k, i)), axisLineColor: k3.css('--soft'), gridLineColor: k3.css('--line'),
    axes: { y: { valueFormatter: v => k3.number(v, 4) + ' GiB' }, x: { valueFormatter: v => k3.number(v, 6) + ' s' } },
    underlayCallback: (c, area, g) => {
      const y = g.toDomYCoord(capacity);
      c.save();
      c.strokeStyle = k3.css('--bad');
      c.lineWidth = 2;
      c.setLineDash([6, 4]);
      c.beginPath();
      c.moveTo(area.x, y);
      c.lineTo(area.x + area.w, y);
      c.stroke();
      c.restore();
    },
  });
};

k3.draw.memory = (box, data) => {
  k3.memoryBars(box, data);
  const chart = k3.el('div', { class: 'chart', id: 'memory-curve' }), why = k3.el('div', { id: 'memory-peak', 'aria-live': 'polite' });
  const show = index => {
    const r = data.ranks[index], timeline = k3.data.sections.find(s => s.type === 'timeline');
    if (timeline) k3.drawCurve(chart, data, index);
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
      columns: [{ key: 'stage', title: 'stage' }, { key: 'microbatches', title: 'micro-batches' }, { key: 'first', title: 'first' }, { key: 'last', title: 'last' },
                { key: 'gpu_gib', title: 'kept on the GPU', unit: 'GiB' }, { key: 'host_gib', title: 'kept in host memory', unit: 'GiB' }],
      rows: r.alive });
  };
  box.append(k3.el('h3', {}, 'Over time'),
    k3.el('div', { class: 'controls' }, k3.select('pipeline rank', data.ranks.map((r, i) => [i, r.rank]), data.worst, v => show(+v)),
      k3.el('span', {}, 'drag to zoom, double click for all; the dashed line is the capacity')), chart,
    k3.el('h3', {}, 'The peak explained'), why);
  show(data.worst);
  k3.charts.push([chart, () => chart.k3graph]);
};
