// Kernels and collectives of one action in the middle of the step, on all streams of its rank.
'use strict';
k3.draw.kernels = (box, data) => {
  if (!data.actions.length) { box.append(k3.el('p', {}, 'No actions.')); return; }
  const colours = data.names.map((n, i) => k3.colour(k3.kindColour, n, i));
  const name = a => `rank ${a.rank}: ${k3.kindName[a.kind] || a.kind} of stage ${a.stage}`;
  const holder = k3.el('div', {}), table = k3.el('div', {});
  const picker = k3.select('action', data.actions.map((a, i) => [i, name(a)]), 0, v => show(+v));
  let view = null;
  const show = index => {
    const a = data.actions[index], lanes = [], sums = new Map();
    for (const [role, numbers] of a.streams) {
      const b = k3.bars(numbers, 4);
      lanes.push({ label: data.roles[role], ...b, name: i => data.names[b.at(i, 2)], colour: Uint16Array.from(b.start, (_, i) => b.at(i, 3)) });
      for (let i = 0; i < b.start.length; ++i) {
        const key = data.names[b.at(i, 2)] + '|' + data.roles[role], sum = sums.get(key) || [data.names[b.at(i, 2)], data.roles[role], 0, 0];
        sum[2] += 1;
        sum[3] += b.length[i] * data.tick_s * 1e3;
        sums.set(key, sum);
      }
    }
    const length = Math.max(...lanes.map(l => l.start.length ? l.start.at(-1) + l.length.at(-1) : 0), a.length);
    if (!view) view = k3.kernelView = new k3.Lanes(holder, { id: 'kernels', tick: data.tick_s, palette: colours, length, left: 130,
      label: 'Kernels of one action; the table below holds the same times',
      describe: (lane, i) => `${lane.name(i)} on ${lane.label}\nfrom ${k3.seconds(lane.start[i] * data.tick_s)}, ${k3.seconds(lane.length[i] * data.tick_s)}`,
      text: (lane, i) => lane.name(i) });
    Object.assign(view, { lanes, length, from: 0, to: length });
    view.draw();
    table.replaceChildren();
    const details = k3.el('details', {}, k3.el('summary', {}, 'Times by kernel'));
    table.append(details);
    k3.table(details, { id: 'kernel-times', caption: `${name(a)}, micro-batch ${a.microbatch}: ${k3.seconds(a.length * data.tick_s)}`, source: 'prediction',
      columns: [{ key: 'kernel', title: 'kernel', text: true }, { key: 'stream', title: 'stream', text: true }, { key: 'count', title: 'count', unit: '1' },
                { key: 'time_ms', title: 'time', unit: 'ms', bar: true }],
      rows: [...sums.values()].sort((x, y) => y[3] - x[3]).map(r => [r[0], r[1], r[2], Number(r[3].toPrecision(5))]) });
  };
  box.append(k3.el('div', { class: 'controls' }, picker), holder, table);
  k3.showKernels = (rank, stage, kind) => {
    const index = data.actions.findIndex(a => a.rank === rank && a.stage === stage && a.kind === kind);
    if (index < 0) return;
    picker.querySelector('select').value = index;
    show(index);
  };
  show(0);
};
