// The bar below the pictures, and its dialogs.

import { setControl } from './controls.js';
import { cameraConstraints, microphoneConstraints, refreshDevices } from './form.js';
import { invite } from './invite.js';
import { end, session, tilesOf } from './stage.js';
import { complain, say, ui } from './ui.js';
import { errorText, t } from './words.js';

/** Performs what a button says, and shows the result. */
export async function act(perform) {
  const room = session;
  if (!room) return;
  try {
    await perform(room);
  } catch (error) {
    if (session === room && error.reason !== 'SCREEN-REFUSED') complain(errorText(error));
  }
  if (session === room) room.draw();
}

// ---- what the buttons say -------------------------------------------------------------------------------------------

/** Shows what the buttons do next. */
export function drawControls({ isSilent, isCameraOff, isSharing }) {
  setControl(ui.mute, isSilent ? { icon: 'microphone-off', label: t('call.unmute'), tone: 'off' }
    : { icon: 'microphone', label: t('call.mute') });
  setControl(ui['camera-off'], isCameraOff ? { icon: 'camera-off', label: t('call.cameraOn'), tone: 'off' }
    : { icon: 'camera', label: t('call.cameraOff') });
  setControl(ui.screen, isSharing ? { icon: 'screen-off', label: t('call.stopScreen'), tone: 'on' }
    : { icon: 'screen', label: t('call.shareScreen') });
}

function drawFull() {
  setControl(ui.full, { icon: 'full', label: t(document.fullscreenElement ? 'call.leaveFullScreen' : 'call.fullScreen') });
}

// ---- the bar --------------------------------------------------------------------------------------------------------

ui.mute.addEventListener('click', () => act((room) => room.toggle('audio')));
ui['camera-off'].addEventListener('click', () => act((room) => room.toggle('video')));
ui.screen.addEventListener('click', () => act((room) => room.toggleScreen()));
ui.hand.addEventListener('click', () => act(({ channel }) => channel.raiseHand(!channel.handIsRaised)));
ui.role.addEventListener('click', () => act(({ channel }) => channel.setRole(channel.role === 'host' ? 'audience' : 'host')));
ui['mute-others'].addEventListener('click', () => act(({ channel }) => channel.muteOthers('audio')));
ui.share.addEventListener('click', () => invite({ channel: session.name, how: ui.how.value, token: ui.token.value }));
ui.people.addEventListener('click', () => ui['people-dialog'].showModal());
ui.leave.addEventListener('click', () => end());
ui.full.addEventListener('click', () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => say(t('call.fullScreenRefused')));
});
document.addEventListener('fullscreenchange', drawFull);
if (!document.fullscreenEnabled) ui.full.hidden = true;
// A click outside of a dialog closes it.
for (const dialog of document.querySelectorAll('dialog')) {
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
}

// ---- devices --------------------------------------------------------------------------------------------------------

ui['call-camera'].addEventListener('change', () =>
  act((room) => room.switchTo('video', cameraConstraints(ui['call-camera'].value))));
ui['call-microphone'].addEventListener('change', () =>
  act((room) => room.switchTo('audio', microphoneConstraints(ui['call-microphone'].value))));
ui.speaker.addEventListener('change', () => {
  for (const tile of tilesOf()) tile.video.setSinkId?.(ui.speaker.value).catch((error) => say(errorText(error)));
});
ui.devices.addEventListener('click', async () => {
  await refreshDevices();
  ui['devices-dialog'].showModal();
});

// ---- the menu of what does not fit ----------------------------------------------------------------------------------

const isOpen = () => ui.more.getAttribute('aria-expanded') === 'true';

function setOpen(isOpening) {
  ui.more.setAttribute('aria-expanded', String(isOpening));
  ui.bar.classList.toggle('is-open', isOpening);
}

const isShown = (one) => one.checkVisibility?.() ?? one.offsetParent !== null;

ui.more.addEventListener('click', () => {
  setOpen(!isOpen());
  if (!isOpen()) return;
  // In a wide window only some of the buttons are in the menu.
  const menu = getComputedStyle(ui.extra).display === 'contents' ? ui.extra.querySelector('.rest') : ui.extra;
  [...menu.querySelectorAll('button')].find(isShown)?.focus();
});
ui.extra.addEventListener('click', (event) => {
  if (!isOpen() || !event.target.closest('button')) return;
  const hadFocus = ui.extra.contains(document.activeElement);
  setOpen(false);
  // A dialog returns the focus to what is shown.
  if (hadFocus && !isShown(document.activeElement)) ui.more.focus();
}, true);
document.addEventListener('pointerdown', (event) => { if (isOpen() && !ui.bar.contains(event.target)) setOpen(false); });
ui.bar.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !isOpen()) return;
  event.preventDefault();
  setOpen(false);
  ui.more.focus();
});
