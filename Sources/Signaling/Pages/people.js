// The list of people: who is there, whose hand is raised, and what a moderator can do with each.

import { icon, setBadge } from './controls.js';
import { initialsOf } from './tiles.js';
import { ui } from './ui.js';
import { t } from './words.js';

const make = (tag, className, textContent = '') => Object.assign(document.createElement(tag), { className, textContent });

/** Key → `{ root, signature }` of the rows that are shown. */
let rows = new Map();

/**
 * Shows the people. Each has `key`, `name`, `face` (the name whose letters stand for it), `note`, `hasHand` and `actions`. Each
 * action has `key`, `label`, `icon` or a visible `text`, `confirm` where a second press is to confirm it, and `act()`. Rows that
 * stay the same stay in place, with the focus in them.
 */
export function showPeople(people, isModerator = false) {
  const count = people.filter((one) => !one.isOutside).length;
  ui['people-title'].textContent = count > 1 ? t('people.titleCount', { count }) : t('people.title');
  ui['mute-others'].hidden = !isModerator || count < 2;
  const hands = people.filter((one) => one.hasHand && !one.isOwn).length;
  setBadge(ui['hands-count'], hands);
  ui.people.setAttribute('aria-label', [t('people.title'), ...(hands ? [t('people.handsRaised', { count: hands })] : [])].join(', '));
  const sorted = [...people].sort((a, b) => Number(b.hasHand ?? false) - Number(a.hasHand ?? false));
  const next = new Map();
  for (const person of sorted) {
    const signature = JSON.stringify([person.name, person.note, person.hasHand, person.actions?.map((one) => one.label)]);
    const known = rows.get(person.key);
    next.set(person.key, known?.signature === signature ? known : { root: row(person), signature });
  }
  const focused = rows.size && ui['people-list'].contains(document.activeElement) ? document.activeElement : null;
  const roots = [...next.values()].map((one) => one.root);
  const shown = [...ui['people-list'].children];
  if (roots.length !== shown.length || roots.some((one, index) => one !== shown[index])) {
    ui['people-list'].replaceChildren(...roots);
    restoreFocus(focused);
  }
  rows = next;
}

/** The same button of the row that took a row's place, or the list's own close button. */
function restoreFocus(former) {
  if (!former || document.activeElement === former || !ui['people-dialog'].open) return;
  const same = former.isConnected ? former : [...ui['people-list'].querySelectorAll('button')]
    .find((one) => one.dataset.focus === former.dataset.focus);
  (same ?? ui['people-dialog'].querySelector('.plain')).focus();
}

function row({ key, name, face: owner = name, note = '', hasHand = false, actions = [] }) {
  const root = make('li', 'person');
  root.dataset.key = key;
  const face = make('span', 'face', initialsOf(owner));
  face.setAttribute('aria-hidden', 'true');
  const about = make('div', 'about');
  about.append(make('bdi', 'name', name));
  if (hasHand) note = note ? `${t('people.hand')} · ${note}` : t('people.hand');
  if (note) about.append(make('span', 'note', note));
  root.append(face, about);
  if (hasHand) face.replaceChildren(icon('hand'));
  root.classList.toggle('asks', hasHand);
  if (actions.length) {
    const list = make('div', 'actions');
    list.append(...actions.map((one) => button(key, one)));
    root.append(list);
  }
  return root;
}

function button(key, { key: action, icon: name, label, text, confirm, act }) {
  const element = make('button', text ? 'button primary' : 'plain', text ?? '');
  element.type = 'button';
  element.dataset.focus = `${action} ${key}`;
  element.dataset.action = action;
  const reset = () => {
    element.classList.remove('asks-again');
    if (!text) element.replaceChildren(icon(name));
    element.title = label;
    element.setAttribute('aria-label', label);
  };
  reset();
  element.onclick = () => {
    if (confirm && !element.classList.contains('asks-again')) {
      element.classList.add('asks-again');
      element.replaceChildren(confirm);
      element.removeAttribute('aria-label');
      return;
    }
    reset();
    act();
  };
  if (confirm) element.onblur = reset;
  return element;
}

/** Forgets all. */
export function closePeople() {
  rows = new Map();
  ui['people-list'].replaceChildren();
  setBadge(ui['hands-count'], 0);
}
