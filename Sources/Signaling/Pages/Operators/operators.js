// The operators' page: channels, their members, and what became of each connection.

import { clock, level, levelClass, lines, percent, phases, rate, strips } from './timeline.js';
import { findings, headline, meaning } from './verdict.js';

const ui = Object.fromEntries([...document.querySelectorAll('[id]')].map((one) => [one.id, one]));
ui.node.textContent = location.host;
const REFRESH_MS = 3000;
let timer = 0;
let shown = 0;
let widthDrawn = 0;

// MARK: The API

class Refused extends Error {}

async function call(path, parameters = {}, body = undefined) {
  // `null`: a request that changes something, and has no body.
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  const token = sessionStorage.getItem('nagare.admin');
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  if (body) headers['content-type'] = 'application/json';
  const response = await fetch(`/v1/${path}${query.size ? `?${query}` : ''}`, {
    headers, method: body === undefined ? 'GET' : 'POST', body: body ? JSON.stringify(body) : undefined,
  });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) throw new Refused(token ? 'This is not the admin token.' : '');
  if (!response.ok) {
    const error = new Error(answer.detail ?? answer.title ?? `The node answered ${response.status}.`);
    throw Object.assign(error, { status: response.status });
  }
  return answer;
}

/** The most pages of a list that is shown whole. */
const PAGES_MAX = 10;

/** The items of a list, with `isCut` when there are more than are shown. */
async function list(path, name, parameters = {}) {
  const items = [];
  let after;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await call(path, { ...parameters, limit: 100, after });
    items.push(...answer[name]);
    after = answer.next;
    if (!after) break;
  }
  return Object.assign(items, { isCut: Boolean(after) });
}

ui.login.addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('nagare.admin', ui.token.value);
  ui.token.value = '';
  show();
});

function complain(text) {
  ui.problem.textContent = text;
  ui.problem.hidden = !text;
}

// MARK: Elements

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Says that a list goes on. */
const cut = (items, name) => items.isCut
  ? [element('p', { className: 'quiet', textContent: `Only the first ${items.length} ${name} are shown. GET /v1 has all.` })] : [];

const link = (path, text) => element('a', { href: `#/${path}`, textContent: text });
const time = (milliseconds) => new Date(milliseconds).toLocaleString();
/** The time for which the history is kept, in words after "the last". */
function span(hours) {
  const [count, unit] = hours % 24 ? [hours, 'hour'] : [hours / 24, 'day'];
  return count === 1 ? unit : `${count} ${unit}s`;
}
const bytes = (count) => count >= 1e9 ? `${(count / 1e9).toFixed(2)} GB` : `${(count / 1e6).toFixed(1)} MB`;

/** A table. A column has a name, a function that makes a cell of a row, and whether its cells are numbers. */
function table(caption, columns, rows, empty) {
  if (!rows.length) return element('p', { className: 'empty', textContent: empty });
  const head = element('tr', {}, ...columns.map(({ name, isNumber }) =>
    element('th', { scope: 'col', textContent: name, className: isNumber ? 'number' : '' })));
  const body = rows.map((row) => element('tr', {}, ...columns.map(({ name, cell, isNumber }) => {
    const td = element('td', { className: isNumber ? 'number' : '' }, cell(row) || '–');
    td.dataset.name = name;
    return td;
  })));
  return element('table', { className: 'stacks' },
    element('caption', { textContent: caption }), element('thead', {}, head), element('tbody', {}, ...body));
}

/** From this level on the quality of a network is bad. */
const BAD = 4;
/** The worse direction, with both in the title. */
function quality(uplink, downlink) {
  const worse = Math.max(uplink, downlink);
  const title = `from it: ${level(uplink)}; to it: ${level(downlink)}`;
  return element('span', { className: levelClass(worse), textContent: level(worse), title });
}

/** What became of a connection, in words, with what the word means in the title. */
function outcome({ outcome: word, reason }) {
  const shown = word === 'live' ? 'live' : reason ?? word;
  return element('span', {
    className: word === 'failed' ? 'bad' : word === 'live' ? 'good' : '', textContent: shown,
    title: meaning(shown) ?? '',
  });
}
const loss = (share) => element('span', {
  className: share >= 0.05 ? 'bad' : share >= 0.01 ? 'warn' : '', textContent: percent(share),
});

const connectionColumns = [
  { name: 'Joined', cell: (one) => link(`connections/${one.connection_id}`, time(one.created_at)) },
  { name: 'Channel', cell: (one) => link(`channels/${encodeURIComponent(one.channel)}`, one.channel) },
  { name: 'User', cell: (one) => one.display_name ?? one.user_id },
  { name: 'Protocol', cell: (one) => one.signaling },
  { name: 'Lasted', cell: (one) => clock(one.duration_s), isNumber: true },
  { name: 'Loss from it', cell: (one) => loss(one.received_loss), isNumber: true },
  { name: 'Loss to it', cell: (one) => loss(one.sent_loss), isNumber: true },
  { name: 'Quality', cell: (one) => quality(one.worst_uplink, one.worst_downlink) },
  { name: 'No picture', cell: (one) => withoutPicture(one), isNumber: true },
  { name: 'End', cell: outcome },
];

/** How long a client had no moving picture, which only those that receive know. */
function withoutPicture({ role, without_picture_ms: milliseconds, freezes }) {
  if (role === 'sendonly') return null;
  const title = `${freezes} ${freezes === 1 ? 'freeze' : 'freezes'}, and the time in which none of its videos was sent`;
  return element('span', { className: milliseconds > 1000 ? 'bad' : '', textContent: clock(milliseconds / 1000), title });
}

const isBad = (one) => one.outcome === 'failed' || Math.max(one.worst_uplink, one.worst_downlink) >= BAD
  || one.role !== 'sendonly' && one.without_picture_ms > 1000;

/** A box that limits a list to what is bad. `get` and `set` keep its state over the refreshes of a view. */
function badOnly(get, set) {
  const box = element('input', { type: 'checkbox', checked: get(), id: 'bad-only' });
  box.addEventListener('change', () => { set(box.checked); show(); });
  return element('label', { className: 'check' }, box, 'Bad only');
}

/** The words of a list's last column, and what they mean. */
function legend(rows) {
  const words = [...new Set(rows.map((one) => one.outcome === 'live' ? 'live' : one.reason ?? one.outcome))]
    .filter((word) => meaning(word));
  if (!words.length) return [];
  return [element('details', { className: 'legend' }, element('summary', { textContent: 'What the words under “End” mean' }),
    element('dl', {}, ...words.map((word) =>
      element('div', {}, element('dt', { textContent: word }), element('dd', { textContent: meaning(word) })))))];
}

// MARK: Views

async function channelsView() {
  const [channels, { connections, hours }] = await Promise.all([
    list('channels', 'channels'), call('connections', { limit: 10, outcome: 'failed' }),
  ]);
  return [
    element('h1', { textContent: 'Channels' }),
    table('Channels with members now', [
      { name: 'Channel', cell: (one) => link(`channels/${encodeURIComponent(one.channel)}`, one.channel) },
      { name: 'Members', cell: (one) => String(one.members), isNumber: true },
      { name: 'Connections', cell: (one) => String(one.connections), isNumber: true },
      { name: 'Publishers', cell: (one) => String(one.publishers), isNumber: true },
    ], channels, 'Nobody is in any channel.'),
    ...cut(channels, 'channels'),
    ...(connections.length ? [
      element('h2', { textContent: 'Connections that failed' }),
      table(`The latest of the last ${span(hours)}`, connectionColumns, connections, ''),
      ...legend(connections),
    ] : []),
  ];
}

/** What the token permits; `null` before it is known. */
let operator = null;
let badMembersOnly = false;

/** Does something with a member, and shows what became of it. */
async function act(button, path, body) {
  button.disabled = true;
  try {
    await call(path, {}, body);
    await show();
  } catch (error) {
    button.disabled = false;
    complain(error.message);
  }
}

/** The buttons of one connection's user. Those who may only read have none. */
function actions(channel, { member, role, muted, audio, video }) {
  const path = `channels/${encodeURIComponent(channel)}/members/${encodeURIComponent(member.user_id)}`;
  const user = member.display_name ?? member.user_id;
  const button = (text, label, run) => {
    const made = element('button', { type: 'button', className: 'small', textContent: text, title: label });
    made.setAttribute('aria-label', `${label}: ${user}`);
    made.addEventListener('click', () => run(made));
    return made;
  };
  const isHost = role !== 'recvonly';
  const buttons = [];
  // A kind that the client muted itself can be muted by an operator, too.
  if (audio || video || muted.length) {
    buttons.push(button('Mute', 'Stop forwarding the media', (made) => act(made, `${path}/mute`, { muted: true })));
  }
  if (muted.length) {
    buttons.push(button('Unmute', 'Forward the media again', (made) => act(made, `${path}/mute`, { muted: false })));
  }
  buttons.push(
    button(isHost ? 'Make audience' : 'Make host', isHost ? 'Let it only receive' : 'Let it publish',
      (made) => act(made, `${path}/role`, { role: isHost ? 'audience' : 'host' })),
    button('Remove', 'Remove from the channel; it may join again', (made) => {
      if (confirm(`Remove ${user} from ${channel}?`)) act(made, `${path}/kick`, null);
    }),
  );
  return element('div', { className: 'actions' }, ...buttons);
}

async function channelView(name) {
  let problem;
  operator ??= await call('operator');
  const members = await list(`channels/${encodeURIComponent(name)}/members`, 'members').catch((error) => {
    if (error instanceof Refused || error instanceof TypeError) throw error;
    // A channel without members does not exist.
    if (error.status !== 404) problem = error.message;
    return [];
  });
  const { connections, hours, node } = await call('connections', { channel: name, limit: 50 });
  // Only its own node knows a connection.
  const user = (one) => {
    const text = one.member.display_name || one.member.user_id;
    return hours && one.node === node ? link(`connections/${one.connection_id}`, text) : text;
  };
  // The worst first; those of the same quality as the node lists them.
  const badness = (one) => one.state === 'interrupted' ? 7 : Math.max(one.network.uplink, one.network.downlink);
  const all = members.flatMap((member) => member.connections.map((one) => ({ ...one, member })))
    .sort((first, second) => badness(second) - badness(first));
  const rows = badMembersOnly ? all.filter((one) => badness(one) >= BAD) : all;
  const none = all.length ? 'No connection is bad now.' : 'Nobody is in this channel now.';
  return [
    element('h1', { textContent: name }),
    ...(all.length ? [badOnly(() => badMembersOnly, (value) => { badMembersOnly = value; })] : []),
    table('Members now, the worst first', [
      { name: 'User', cell: user },
      { name: 'Quality', cell: (one) => quality(one.network.uplink, one.network.downlink) },
      { name: 'Role', cell: (one) => element('span', { textContent: one.role === 'recvonly' ? 'audience' : 'host', title: one.role }) },
      { name: 'State', cell: (one) => one.muted.length ? `${one.state}, ${one.muted.join(' and ')} muted` : one.state },
      { name: 'Protocol', cell: (one) => one.signaling },
      { name: 'Node', cell: (one) => one.node },
      ...(operator.role === 'operate' ? [{ name: 'Actions', cell: (one) => actions(name, one) }] : []),
    ], rows, problem ? `The members cannot be shown: ${problem}` : none),
    ...cut(members, 'members'),
    element('h2', { textContent: historyTitle(hours) }),
    table('The latest first, of this node', connectionColumns, connections, hours ? 'There were none at this node.' : NO_HISTORY),
    ...legend(connections),
  ];
}

const NO_HISTORY = 'This node keeps no history of connections: see --history-hours.';
const historyTitle = (hours) => hours ? `Connections of the last ${span(hours)}` : 'Connections';

let filter = {};
let badConnectionsOnly = false;

/** The connections of the filter. Which of them were bad, this page finds out. */
async function filtered() {
  if (!badConnectionsOnly) return call('connections', { ...filter, limit: 50 });
  const { hours } = await call('connections', { ...filter, limit: 1 });
  const all = await list('connections', 'connections', filter);
  return { hours, connections: Object.assign(all.filter(isBad), { isCut: all.isCut }) };
}

async function connectionsView() {
  const answer = await filtered();
  const field = (name, label, input) => element('label', { textContent: label }, Object.assign(input, { name }));
  const choice = element('select', {}, ...[['', 'all'], ['live', 'live'], ['ended', 'ended'], ['failed', 'failed']].map(([value, text]) =>
    element('option', { value, textContent: text, selected: value === (filter.outcome ?? '') })));
  const form = element('form', { className: 'filters' },
    field('channel', 'Channel', element('input', { value: filter.channel ?? '' })),
    field('user', 'User', element('input', { value: filter.user ?? '' })),
    field('outcome', 'Outcome', choice),
    element('button', { textContent: 'Filter' }));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    filter = Object.fromEntries(new FormData(form));
    show();
  });
  const rows = element('div', {}, table('The latest first', connectionColumns, answer.connections,
    answer.hours ? 'There were none.' : NO_HISTORY));
  const parts = [element('h1', { textContent: historyTitle(answer.hours) }), form,
    badOnly(() => badConnectionsOnly, (value) => { badConnectionsOnly = value; }), rows, ...legend(answer.connections)];
  if (answer.connections.isCut) {
    parts.push(element('p', { className: 'quiet', textContent: `Only the latest ${PAGES_MAX * 100} connections were looked at.` }));
  }
  if (answer.next) parts.push(moreButton(rows, answer.next));
  return parts;
}

function moreButton(list, first) {
  let after = first;
  const button = element('button', { className: 'more', textContent: 'Older ones' });
  button.addEventListener('click', async () => {
    clearTimeout(timer);
    try {
      const older = await call('connections', { ...filter, limit: 50, after });
      list.append(table('Older ones', connectionColumns, older.connections, 'There are no older ones.'));
      after = older.next;
      button.hidden = !after;
    } catch (error) { complain(error.message); }
  });
  return button;
}

function facts(one) {
  const pairs = [
    ['User', one.display_name ? `${one.display_name} (${one.user_id})` : one.user_id],
    ['Channel', link(`channels/${encodeURIComponent(one.channel)}`, one.channel)],
    ['Role and protocol', `${one.role}, ${one.signaling}`], ['Client', one.environment ?? one.client],
    ['Joined', time(one.created_at)],
    ['Connected after', one.setup_ms === undefined ? undefined : `${one.setup_ms} ms`],
    ['Lasted', clock(one.duration_s)], ['End', one.reason ? outcome(one) : 'still connected'],
    ['Without a picture', one.role === 'sendonly' ? '' : clock(one.without_picture_ms / 1000)],
    ['Media from', one.remote_address && `${one.remote_address} (${one.protocol})`], ['Node', one.node],
    ['From the client', one.role === 'recvonly' ? '' : `${bytes(one.received_bytes)}, ${percent(one.received_loss)} lost`],
    ['To the client', one.role === 'sendonly' ? '' : `${bytes(one.sent_bytes)}, ${percent(one.sent_loss)} lost`],
  ];
  return element('dl', { className: 'facts' }, ...pairs.filter(([, value]) => value !== undefined && value !== '').map(([name, value]) =>
    element('div', {}, element('dt', { textContent: name }), element('dd', {}, value))));
}

const EVENTS = {
  connected: 'connected', interrupted: 'lost', resumed: 'back', ended: 'ended', failed: 'failed', role_changed: 'new role',
  path_changed: 'new address',
};

const PHASES = {
  authorization: 'authorization', reservation: 'place in the channel', negotiation: 'descriptions', first_check: 'first check',
  ice: 'ICE', dtls: 'DTLS', first_packet_received: 'first packet from it', first_frame_received: 'first frame from it',
  first_packet_sent: 'first packet to it', first_frame_sent: 'first frame to it',
};

async function connectionView(id) {
  const one = await call(`connections/${encodeURIComponent(id)}`);
  const t = one.timeline;
  const found = findings(one);
  const verdict = element('div', { className: 'verdict' }, element('p', { textContent: headline(one, found) }));
  if (found.length) verdict.append(element('ul', {}, ...found.map((text) => element('li', { textContent: text }))));
  const parts = [element('h1', { textContent: `Connection of ${one.display_name ?? one.user_id}` }), verdict, facts(one)];
  if (one.setup?.phases.length) parts.push(phases({ title: 'Set-up', steps: one.setup.phases, names: PHASES }));
  const seconds = (milliseconds) => Math.max((milliseconds - (one.connected_at ?? one.created_at)) / 1000, 0);
  if (t.at_s.length) {
    const events = one.events.filter(({ event }) => !['connected', 'ended'].includes(event))
      .map((event) => ({ name: EVENTS[event.event] ?? event.event, at: seconds(event.at) }));
    const common = { at: t.at_s, end: Math.max(t.at_s.at(-1), one.duration_s, 1), events };
    // A direction without media has no lines.
    const [sends, receives] = [one.role !== 'recvonly', one.role !== 'sendonly'];
    const either = (from, to) => [...(sends ? [from] : []), ...(receives ? to : [])];
    parts.push(
      strips({ title: 'Quality of the network', ...common, series: either(
        { name: 'from it', values: t.uplink }, [{ name: 'to it', values: t.downlink }],
      ) }),
      lines({ title: 'Bit rate', ...common, text: rate, least: 1e5, series: either(
        { name: 'from the client', values: t.received_bps },
        [{ name: 'to the client', values: t.sent_bps }, { name: 'wanted by the client', values: t.demand_bps }],
      ) }),
      lines({ title: 'Lost packets', ...common, text: percent, least: 0.02, series: either(
        { name: 'from the client', values: t.received_loss }, [{ name: 'to the client', values: t.sent_loss }],
      ) }),
      lines({ title: 'Time', ...common, text: (value) => `${Math.round(value)} ms`, least: 50, series: [
        { name: 'round trip', values: t.round_trip_ms }, { name: 'jitter', values: t.jitter_ms },
      ] }),
      ...(receives ? [lines({ title: 'Videos to the client', ...common, text: (value) => String(Math.round(value)), least: 2, series: [
        { name: 'in lower quality', values: t.reduced }, { name: 'not sent', values: t.paused }, { name: 'wanted', values: t.videos },
      ] })] : []),
    );
  }
  parts.push(
    element('h2', { textContent: 'Events' }),
    table('In their order', [
      { name: 'Time', cell: (event) => time(event.at) }, { name: 'Event', cell: (event) => EVENTS[event.event] ?? event.event },
      { name: 'Detail', cell: (event) => event.detail },
    ], one.events, 'None.'),
  );
  // What has ended does not change, and its text can be selected.
  return Object.assign(parts, { isFinal: one.outcome !== 'live' });
}

// MARK: Navigation

function view() {
  const [first = '', second] = location.hash.replace(/^#\//, '').split('/').map(decodeURIComponent);
  if (first === 'channels' && second) return { name: 'channels', make: () => channelView(second), refreshes: true };
  if (first === 'connections' && second) return { name: 'connections', make: () => connectionView(second), refreshes: true };
  if (first === 'connections') return { name: 'connections', make: connectionsView, refreshes: false };
  return { name: 'channels', make: channelsView, refreshes: true };
}

async function show() {
  clearTimeout(timer);
  const number = ++shown;
  let current;
  try { current = view(); } catch { location.hash = '#/'; return; }
  let { refreshes } = current;
  for (const one of document.querySelectorAll('nav a')) {
    if (one.dataset.view === current.name) one.setAttribute('aria-current', 'page');
    else one.removeAttribute('aria-current');
  }
  try {
    const parts = await current.make();
    if (number !== shown) return;
    widthDrawn = innerWidth;
    // What is being read stays where it is, and so does what is about to be pressed.
    const focused = document.activeElement?.getAttribute?.('href');
    const label = document.activeElement?.getAttribute?.('aria-label');
    const { id } = document.activeElement ?? {};
    const isOpen = ui.view.querySelector('details.legend')?.open;
    ui.view.replaceChildren(...parts);
    if (parts.isFinal) refreshes = false;
    if (focused) ui.view.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    else if (label) ui.view.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
    else if (id) ui.view.querySelector(`#${CSS.escape(id)}`)?.focus();
    const opened = ui.view.querySelector('details.legend');
    if (opened && isOpen) opened.open = true;
    ui.login.hidden = true;
    complain('');
  } catch (error) {
    if (number !== shown) return;
    if (error instanceof Refused) {
      ui.view.replaceChildren();
      operator = null;
      ui.login.hidden = false;
      complain(error.message);
      ui.token.focus();
      return;
    }
    complain(error instanceof TypeError ? 'The node does not answer; this page tries again.' : error.message);
  }
  if (refreshes) timer = setTimeout(show, REFRESH_MS);
}

addEventListener('hashchange', () => { ui.view.replaceChildren(); show(); });

// The pictures are drawn for the width of the window.
addEventListener('resize', () => {
  if (innerWidth === widthDrawn || !location.hash.startsWith('#/connections/')) return;
  clearTimeout(timer);
  timer = setTimeout(show, 200);
});
show();
