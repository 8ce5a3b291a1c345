// Curves over a number, one chart per quantity, and their table.
'use strict';
k3.draw.lines = (box, data) => {
  const column = key => data.table.columns.findIndex(c => c.key === key), x = column(data.x), rows = data.table.rows;
  const label = k => k3.titled(data.table.columns[k]);
  const grid = k3.el('div', { class: 'charts' });
  box.append(grid);
  k3.lineCharts = [];
  const places = data.y.map(key => {
    const y = column(key), chart = k3.el('div', { class: 'chart', id: 'lines-' + key, role: 'img', 'aria-label': `${label(y)} against ${label(x)}; the table below holds the numbers` });
    grid.append(k3.el('figure', {}, k3.el('figcaption', {}, label(y)), chart));
    return [y, chart];
  });
  for (const [y, chart] of places) {  // when all have their place and with it their width
    if (typeof Dygraph === 'undefined') { chart.style.height = 'auto'; chart.textContent = 'The chart needs libjs-dygraphs when k3sim is built.'; continue; }
    const graph = new Dygraph(chart, rows.map(r => [r[x], r[y], r[x] === data.mark ? r[y] : null]), {
      labels: [label(x), label(y), 'answer'], xlabel: label(x), legend: 'follow', animatedZooms: false, drawPoints: true, pointSize: 2, strokeWidth: 2,
      colors: ['#0072b2', '#d55e00'], series: { answer: { pointSize: 6, strokeWidth: 0 } }, xRangePad: 10, yRangePad: 12, includeZero: false,
      axisLineColor: k3.css('--soft'), gridLineColor: k3.css('--line'),
      axes: { x: { axisLabelFormatter: v => k3.number(v, 4), valueFormatter: v => `${k3.number(v)} ${k3.unitOf(data.table.columns[x])}`, pixelsPerLabel: 60 },
              y: { axisLabelFormatter: v => k3.short(v), valueFormatter: v => `${k3.number(v, 5)} ${data.table.columns[y].unit}`, axisLabelWidth: 56 } } });
    k3.lineCharts.push(graph);
    k3.charts.push([chart, () => graph]);
  }
  box.append(k3.el('p', { class: 'source' }, 'The large point is the answer. Drag to zoom, double click for all.'));
  k3.table(box, data.table);
};
