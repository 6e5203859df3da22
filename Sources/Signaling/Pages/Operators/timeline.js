// The pictures of one connection: how its media was over time.

const svg = (name, attributes = {}, text = '') => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const LEFT = 64, RIGHT = 16, TOP = 14, HEIGHT = 130;
/** So wide that text has its usual size. */
const width = () => Math.min(Math.max(innerWidth - 60, 300), 1080);

/** Minutes and seconds, with hours when there are any. */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  const pair = (number) => String(number).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${pair(minutes)}:${pair(whole % 60)}` : `${minutes}:${pair(whole % 60)}`;
}

export function rate(bitsPerSecond) {
  if (bitsPerSecond >= 1e6) return `${(bitsPerSecond / 1e6).toFixed(1)} Mbit/s`;
  return `${Math.round(bitsPerSecond / 1e3)} kbit/s`;
}

export const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

/** A number of the kind 1, 2 or 5 times a power of ten, not below the given one. */
function roundedUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999) ?? value;
}

function frame(end, height, label) {
  const right = width() - RIGHT;
  const chart = svg('svg', { viewBox: `0 0 ${width()} ${height + 34}`, class: 'chart', role: 'img', 'aria-label': label });
  const x = (seconds) => LEFT + (right - LEFT) * Math.min(seconds / end, 1);
  const step = roundedUp(end / (right > 600 ? 6 : 3));
  for (let at = 0; at <= end; at += step) {
    chart.append(
      svg('line', { x1: x(at), x2: x(at), y1: TOP, y2: TOP + height, class: 'grid' }),
      svg('text', { x: x(at), y: height + 30, 'text-anchor': at ? 'middle' : 'start' }, clock(at)),
    );
  }
  return { chart, x, right };
}

function marks(chart, x, events, height) {
  for (const event of events) {
    const line = svg('line', { x1: x(event.at), x2: x(event.at), y1: TOP, y2: TOP + height, class: 'mark' });
    line.append(svg('title', {}, `${event.name} at ${clock(event.at)}`));
    chart.append(line);
  }
}

function figure(title, names, chart) {
  const element = document.createElement('figure');
  const caption = document.createElement('figcaption');
  caption.append(Object.assign(document.createElement('b'), { textContent: title }));
  names.forEach((name, index) => caption.append(
    Object.assign(document.createElement('span'), { textContent: name, className: ['one', 'two', 'three'][index] }),
  ));
  element.append(caption, chart);
  return element;
}

/** Lines over time. A series has a name and a value for each sample. */
export function lines({ title, series, at, end, events, text, least = 0 }) {
  const most = roundedUp(Math.max(least, ...series.flatMap((one) => one.values)));
  const label = `${title}. ${series.map((one) => `${one.name}: at most ${text(Math.max(0, ...one.values))}`).join('; ')}.`;
  const { chart, x, right } = frame(end, HEIGHT, label);
  const y = (value) => TOP + HEIGHT * (1 - Math.min(value / most, 1));
  for (const value of [0, most / 2, most]) {
    chart.append(
      svg('line', { x1: LEFT, x2: right, y1: y(value), y2: y(value), class: 'grid' }),
      svg('text', { x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' }, text(value).replace('bit/s', '')),
    );
  }
  marks(chart, x, events, HEIGHT);
  series.forEach(({ values }, index) => {
    // The first sample covers the time before it.
    const points = [[0, values[0] ?? 0], ...at.map((seconds, sample) => [seconds, values[sample]])];
    chart.append(svg('polyline', {
      class: ['one', 'two', 'three'][index],
      points: points.map(([seconds, value]) => `${x(seconds).toFixed(1)},${y(value).toFixed(1)}`).join(' '),
    }));
  });
  return figure(title, series.map((one) => one.name), chart);
}

const LEVELS = ['unknown', 'excellent', 'good', 'poor', 'bad', 'very bad', 'disconnected'];
export const level = (number) => LEVELS[number] ?? LEVELS[0];
export const levelClass = (number) => ['quiet', 'good', 'good', 'warn', 'warn', 'bad', 'bad'][number] ?? 'quiet';

/** One strip of colour for each direction. */
export function strips({ title, series, at, end, events }) {
  const height = 22 * series.length;
  const worst = ({ name, values }) => `${name}: at worst ${level(Math.max(0, ...values))}`;
  const { chart, x } = frame(end, height, `${title}. ${series.map(worst).join('; ')}.`);
  series.forEach(({ name, values }, row) => {
    const y = TOP + row * 22;
    chart.append(svg('text', { x: LEFT - 6, y: y + 14, 'text-anchor': 'end' }, name));
    values.forEach((value, index) => {
      const from = x(at[index - 1] ?? 0);
      const bar = svg('rect', { x: from, y, width: Math.max(x(at[index]) - from, 1), height: 18, class: `level${value}` });
      bar.append(svg('title', {}, `${clock(at[index])}: ${name} ${level(value)}`));
      chart.append(bar);
    });
  });
  marks(chart, x, events, height);
  return figure(title, [], chart);
}

/** One bar for each phase of the set-up, in milliseconds since the request. */
export function phases({ title, steps, names }) {
  const row = 18, left = 170, right = width() - 76;
  const end = Math.max(1, ...steps.map((step) => step.start_ms + step.duration_ms));
  const text = (step) => `${names[step.phase] ?? step.phase}: ${step.duration_ms} ms`;
  const chart = svg('svg', {
    viewBox: `0 0 ${width()} ${row * steps.length + 6}`, class: 'chart', role: 'img',
    'aria-label': `${title}. ${steps.map(text).join('; ')}.`,
  });
  const x = (milliseconds) => left + (right - left) * (milliseconds / end);
  steps.forEach((step, index) => {
    const y = index * row;
    const bar = svg('rect', {
      x: x(step.start_ms), y: y + 2, width: Math.max(x(step.start_ms + step.duration_ms) - x(step.start_ms), 2), height: row - 5,
      class: 'phase',
    });
    bar.append(svg('title', {}, `${text(step)}, from ${step.start_ms} ms on`));
    chart.append(
      svg('text', { x: left - 8, y: y + 13, 'text-anchor': 'end' }, names[step.phase] ?? step.phase), bar,
      svg('text', { x: x(step.start_ms + step.duration_ms) + 6, y: y + 13 }, `${step.duration_ms} ms`),
    );
  });
  return figure(title, [], chart);
}
