// The elements of the page, and what it says beside the pictures.

import { fillTexts, language, t } from './words.js';

fillTexts(document);
document.documentElement.lang = language;

export const ui = Object.fromEntries([...document.querySelectorAll('[id]')].map((one) => [one.id, one]));

export const remembered = {
  get(key) { try { return localStorage.getItem('nagare.' + key) ?? ''; } catch { return ''; } },
  set(key, value) { try { localStorage.setItem('nagare.' + key, value); } catch { /* Private mode: forget. */ } },
};

export function say(text) { ui.status.textContent = text; }

/** Shows a problem, with a button that may help; without a text, takes the last one away. */
export function complain(text = '', remedy = null) {
  ui.problem.textContent = text;
  ui.problem.hidden = !text;
  ui.remedy.hidden = !remedy;
  ui.remedy.textContent = remedy?.label ?? '';
  ui.remedy.onclick = remedy ? () => { complain(); remedy.act(); } : null;
}

export function presence(state, text) {
  ui.presence.dataset.state = state;
  ui['presence-text'].textContent = text;
}

const barsOfLevel = [0, 4, 3, 2, 1, 1, 0];
/** The signal icon: the worse of the two levels, 1 best … 6; with both unknown (0) there is none. */
export function showQuality({ uplink, downlink }, text) {
  const level = Math.min(6, Math.max(uplink || 0, downlink || 0));
  ui.quality.hidden = !level;
  ui.quality.dataset.bars = barsOfLevel[level];
  if (ui.quality.title === text) return;
  ui.quality.title = text;
  ui.quality.setAttribute('aria-label', text);
}

export function showView(view) {
  document.body.dataset.view = view;
  ui.lobby.hidden = view !== 'form';
  ui.room.hidden = view === 'form';
  if (view !== 'form') return;
  presence('idle', t('state.idle'));
  showQuality({}, '');
}
