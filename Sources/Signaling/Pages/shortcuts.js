// Keys for what the bar does, and the list of them.

import { session } from './stage.js';
import { remembered, ui } from './ui.js';
import { t } from './words.js';

/** Each key with the button that it presses, and what it does in words. */
const shortcuts = [
  ['m', 'mute', 'keys.microphone'], ['v', 'camera-off', 'keys.camera'], ['s', 'screen', 'keys.screen'],
  ['h', 'hand', 'keys.hand'], ['c', 'chat', 'keys.chat'], ['p', 'people', 'keys.people'], ['l', 'layout', 'keys.layout'],
  ['f', 'full', 'keys.full'], ['?', 'keys', 'keys.help'],
];

// Single keys disturb who steers a browser by voice, so that they can be switched off.
ui['keys-on'].checked = remembered.get('keys') !== 'off';
ui['keys-on'].addEventListener('change', () => remembered.set('keys', ui['keys-on'].checked ? '' : 'off'));

ui['keys-list'].append(...shortcuts.map(([key, , what]) => {
  const line = document.createElement('div');
  const [name, text] = [document.createElement('dt'), document.createElement('dd')];
  const cap = Object.assign(document.createElement('kbd'), { textContent: key.toUpperCase() });
  name.append(cap);
  text.textContent = t(what);
  line.append(name, text);
  return line;
}));

ui.keys.addEventListener('click', () => ui['keys-dialog'].showModal());

const isWriting = (element) => Boolean(element.closest?.('input:not([type="checkbox"]), textarea, select, [contenteditable]'));

document.addEventListener('keydown', (event) => {
  if (!session || !ui['keys-on'].checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  if (document.querySelector('dialog[open]') || isWriting(event.target)) return;
  const found = shortcuts.find(([key]) => key === event.key.toLowerCase());
  const button = found && ui[found[1]];
  if (!button || button.hidden || button.disabled) return;
  event.preventDefault();
  button.click();
});
