// Draws every section in order; a section that fails says so and leaves the others alone.
'use strict';
// Large sections come as gzip in base64.
k3.unpack = async section => {
  const bytes = Uint8Array.from(atob(section.packed), c => c.charCodeAt(0));
  section.data = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
  delete section.packed;
};

(async () => {
  const failed = new Map(), waiting = k3.data.sections.filter(s => s.packed);
  await Promise.all(waiting.map(s => k3.unpack(s).catch(error => failed.set(s, error))));
  const main = document.getElementById('main'), started = performance.now(), links = [];
  k3.data.sections.forEach((section, i) => {
    const box = k3.el('section', { id: 'section-' + section.type + '-' + i }, section.heading ? k3.el('h2', {}, section.heading) : null);
    main.append(box);
    if (section.heading) links.push(k3.el('a', { href: '#' + box.id }, section.heading));
    try {
      if (failed.has(section)) throw failed.get(section);
      k3.draw[section.type](box, section.data);
    } catch (error) {
      console.error(`section ${section.heading}: ${error.stack || error}`);
      box.append(k3.el('p', {}, 'This section could not be drawn: ' + error));
    }
  });
  if (links.length > 3) main.before(k3.el('nav', { 'aria-label': 'sections' }, ...links));
  k3.drawMs = performance.now() - started;
  k3.interactiveMs = performance.now();
  const rest = () => {
    const task = k3.later.shift();
    if (task) { task(); setTimeout(rest); return; }
    k3.readyMs = performance.now();
    document.documentElement.dataset.ready = 'yes';
  };
  setTimeout(rest);
})();
