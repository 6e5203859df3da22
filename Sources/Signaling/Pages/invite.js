// Invitations: links that lead others to a channel, and what the link that opened this page says.

import { readToken } from './token.js';
import { say, ui } from './ui.js';
import { t, timeOfDay } from './words.js';

/** The ways of the form that a link can name, as `how` or, of a broadcast, as `role`. */
const roles = ['host', 'audience'];

/**
 * What the page's address says: `channel`, `how` and `token`. The token is in the fragment, which browsers send to no server.
 * It is taken out of the address, so that it is neither in the history nor in what people copy.
 */
export function readAddress() {
  const query = new URLSearchParams(location.search);
  // A plus sign of Base64 is none of a space.
  const token = new URLSearchParams(location.hash.slice(1)).get('token')?.replaceAll(' ', '+') ?? '';
  if (token) history.replaceState(history.state, '', location.pathname + location.search);
  return { channel: query.get('channel')?.trim() ?? '', how: query.get('role') ?? query.get('how') ?? '', token };
}

/** The link to a channel. `how` is a way of the form; `token` is for whoever opens the link. */
export function linkTo({ channel, how = 'member', token = '' }) {
  const address = new URL(location.pathname, location.href);
  address.searchParams.set('channel', channel);
  if (roles.includes(how)) address.searchParams.set('role', how);
  else if (how === 'call') address.searchParams.set('how', how);
  if (token) address.hash = new URLSearchParams({ token }).toString();
  return address.href;
}

/** Keeps the channel in the page's address, so that a reload asks for it again. */
export function showAddress({ channel, how }) {
  const address = new URL(linkTo({ channel, how: how === 'watch' ? 'member' : how }));
  const lang = new URLSearchParams(location.search).get('lang');
  if (lang) address.searchParams.set('lang', lang);
  if (how === 'watch') address.searchParams.set('how', how);
  history.replaceState(history.state, '', address);
}

// ---- inviting others ------------------------------------------------------------------------------------------------

let current = { channel: '', how: 'member', token: '' };

const isBroadcast = () => roles.includes(current.how);
const link = () => linkTo({
  channel: current.channel, how: isBroadcast() ? document.querySelector('input[name=invite-role]:checked').value : current.how,
  token: ui['invite-token'].checked ? current.token : '',
});

async function copy() {
  try {
    await navigator.clipboard.writeText(link());
    say(t('invite.copied'));
    ui['invite-dialog'].close();
  } catch {
    // A link with a token is for the clipboard, and not for those who see the screen.
    if (ui['invite-dialog'].open) ui['invite-link'].select();
    else say(t('invite.byHand', { link: link() }));
  }
}

function draw() {
  const { endsAt, isPersonal } = readToken(current.token);
  const isIncluded = ui['invite-token'].checked;
  ui['invite-link'].value = link();
  ui['invite-note'].hidden = !current.token;
  ui['invite-note'].textContent = isPersonal ? t('invite.ownNote') : !isIncluded ? t('invite.withoutNote')
    : endsAt ? t('invite.withNoteUntil', { time: timeOfDay(endsAt) }) : t('invite.withNote');
}

/** Copies the link to what is open, or asks first what it says where the user has a choice. `how` is the way of the form. */
export function invite({ channel, how, token }) {
  current = { channel, how, token: token.trim() };
  ui['invite-roles'].hidden = !isBroadcast();
  ui['invite-access'].hidden = !current.token || readToken(current.token).isPersonal;
  ui['invite-token'].checked = false;
  ui['invite-send'].hidden = !navigator.share;
  if (!isBroadcast() && !current.token) {
    copy();
    return;
  }
  draw();
  ui['invite-dialog'].showModal();
  ui['invite-copy'].focus();
}

ui['invite-dialog'].addEventListener('change', draw);
ui['invite-link'].addEventListener('focus', () => ui['invite-link'].select());
ui['invite-copy'].addEventListener('click', copy);
ui['invite-send'].addEventListener('click', () => navigator.share({ url: link() }).catch(() => {}));
