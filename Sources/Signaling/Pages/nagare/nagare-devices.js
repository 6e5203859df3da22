// Camera and microphone of this device.

import { NagareError, mediaError } from './nagare-errors.js';

export const isTrack = (one) => typeof MediaStreamTrack !== 'undefined' && one instanceof MediaStreamTrack;
const constraintDefaults = {
  audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
  video: { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 30 } },
};

/** The constraints of getUserMedia for `true`, for a device identifier or for constraints. */
function constraintsOf(kind, wanted) {
  const given = typeof wanted === 'string' ? { deviceId: { exact: wanted } } : wanted === true ? {} : wanted;
  return { ...constraintDefaults[kind], ...given };
}

/** Opens what is wanted of `audio` and `video`. */
export async function capture(wanted) {
  if (!navigator.mediaDevices?.getUserMedia) throw mediaError({ name: 'SecurityError' });
  const constraints = Object.fromEntries(Object.entries(wanted).map(([kind, one]) => [kind, constraintsOf(kind, one)]));
  return (await navigator.mediaDevices.getUserMedia(constraints)).getTracks();
}

/** Opens both at once, with one question to the user. When one of the two is missing or in use, the other alone. */
export async function captureEach(wanted, failed) {
  try {
    return await capture(wanted);
  } catch (error) {
    if (!['NotFoundError', 'OverconstrainedError', 'NotReadableError'].includes(error.name)) throw error;
    if (Object.keys(wanted).length < 2) throw error;
    for (const [kind, other] of [['video', 'microphone'], ['audio', 'camera']]) {
      const found = await capture({ [kind]: wanted[kind] }).catch(() => null);
      if (!found) continue;
      const text = kind === 'video' ? 'No microphone was found: video only.' : 'No camera was found: audio only.';
      failed(new NagareError(`${other.toUpperCase()}-MISSING`, text));
      return found;
    }
    throw error;
  }
}

/** The devices of this browser. Their names are empty before a permission was given. */
export async function devices() {
  const all = await navigator.mediaDevices?.enumerateDevices?.() ?? [];
  const of = (kind) => all.filter((one) => one.kind === kind).map(({ deviceId, label }) => ({ deviceId, label }));
  return { cameras: of('videoinput'), microphones: of('audioinput'), speakers: of('audiooutput') };
}
