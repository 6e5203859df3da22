// The bar below the pictures, and its dialogs.

import { cameraConstraints, linkTo, microphoneConstraints, refreshDevices } from './form.js';
import { end, session, tilesOf } from './stage.js';
import { complain, press, say, ui } from './ui.js';
import { mediaWords } from './words.js';

/** Performs what a button says, and shows the result. */
async function act(perform) {
  const room = session;
  if (!room) return;
  try {
    await perform(room);
  } catch (error) {
    complain(error.reason ? error.message : mediaWords(error));
  }
  if (session === room) room.draw();
}

ui.mute.addEventListener('click', () => act((room) => room.toggle('audio')));
ui['camera-off'].addEventListener('click', () => act((room) => room.toggle('video')));
ui['call-camera'].addEventListener('change', () =>
  act((room) => room.switchTo('video', cameraConstraints(ui['call-camera'].value))));
ui['call-microphone'].addEventListener('change', () =>
  act((room) => room.switchTo('audio', microphoneConstraints(ui['call-microphone'].value))));
ui.speaker.addEventListener('change', () => {
  for (const tile of tilesOf()) tile.video.setSinkId?.(ui.speaker.value).catch((error) => say(error.message));
});

ui.screen.addEventListener('click', async () => {
  const { channel } = session;
  if (channel.screenTrack) { channel.unpublishScreen(); return; }
  await channel.publishScreen().catch((error) => { if (error.reason !== 'SCREEN-REFUSED') say(error.message); });
});
ui.role.addEventListener('click', async () => {
  const { channel } = session;
  await channel.setRole(channel.role === 'host' ? 'audience' : 'host').catch((error) => complain(error.message));
});

ui.people.addEventListener('click', () => ui['people-dialog'].showModal());
ui.devices.addEventListener('click', async () => {
  await refreshDevices();
  ui['devices-dialog'].showModal();
});
ui.share.addEventListener('click', async () => {
  const link = linkTo(session.name).href;
  try {
    await navigator.clipboard.writeText(link);
    say('The link was copied. Send it to others.');
  } catch {
    say(`Send this link to others: ${link}`);
  }
});
ui.full.addEventListener('click', () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => say('This browser does not allow full screen.'));
});
document.addEventListener('fullscreenchange', () => press(ui.full, Boolean(document.fullscreenElement)));
if (!document.fullscreenEnabled) ui.full.hidden = true;
ui.leave.addEventListener('click', () => end());
