// The test pattern: a picture and a tone for devices without a camera.

const framesPerSecond = 30;

/** A moving picture with a clock and a frame counter, and a tone that beeps with each white flash. */
export function openPattern([width, height]) {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const pen = canvas.getContext('2d', { alpha: false, willReadFrequently: true });
  let frame = 0;
  paint(pen, frame);
  const stream = canvas.captureStream();
  const audio = new AudioContext();
  const [tone, level, out] = [audio.createOscillator(), audio.createGain(), audio.createMediaStreamDestination()];
  tone.frequency.value = 330;
  level.gain.value = 0.03;
  tone.connect(level).connect(out);
  tone.start();
  audio.resume().catch(() => {});
  stream.addTrack(out.stream.getAudioTracks()[0]);
  let second = 0;
  const clock = new Worker(new URL('clock.js', import.meta.url));
  clock.onmessage = () => {
    paint(pen, ++frame);
    const now = Math.floor(Date.now() / 1000);
    if (now === second) return;
    second = now;
    level.gain.setValueAtTime(0.25, audio.currentTime);
    level.gain.setTargetAtTime(0.03, audio.currentTime + 0.1, 0.03);
  };
  clock.postMessage(1000 / framesPerSecond);
  return { tracks: stream.getTracks(), close() {
    clock.terminate();
    stream.getTracks().forEach((track) => track.stop());
    audio.close();
  } };
}

const night = ['#0c2028', '#123a45'];
function paint(pen, frame) {
  const { width, height } = pen.canvas;
  const now = Date.now();
  const phase = now / 1000;
  const sky = pen.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, night[0]);
  sky.addColorStop(1, night[1]);
  pen.fillStyle = sky;
  pen.fillRect(0, 0, width, height);
  for (let wave = 0; wave < 4; wave += 1) {
    pen.beginPath();
    pen.moveTo(0, height);
    for (let step = 0; step <= 48; step += 1) {
      const x = step * width / 48;
      const swing = Math.sin(x / width * (5 + wave) + phase * (1.1 - wave * 0.2) + wave * 1.7);
      pen.lineTo(x, height * (0.58 + wave * 0.1) + swing * height * 0.05);
    }
    pen.lineTo(width, height);
    pen.fillStyle = `hsl(${190 - wave * 6} 55% ${24 + wave * 9}% / 70%)`;
    pen.fill();
  }
  pen.textAlign = 'center';
  pen.fillStyle = '#f2fafa';
  pen.font = `600 ${height / 7}px ui-monospace, "DejaVu Sans Mono", monospace`;
  const time = new Date(now);
  const two = (number) => String(number).padStart(2, '0');
  pen.fillText(`${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.` +
    String(time.getMilliseconds()).padStart(3, '0'), width / 2, height * 0.34);
  pen.font = `${height / 20}px ui-monospace, "DejaVu Sans Mono", monospace`;
  pen.fillText(`frame ${frame}`, width / 2, height * 0.45);
  // The dot turns once a second. The disc is white for the first tenth of a second, with the beep.
  const angle = (now % 1000) / 1000 * 2 * Math.PI - Math.PI / 2;
  const [x, y, radius] = [width * 0.9, height * 0.16, height * 0.08];
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = now % 1000 < 100 ? '#ffffff' : 'rgb(255 255 255 / 12%)';
  pen.fill();
  pen.beginPath();
  pen.arc(x + Math.cos(angle) * radius, y + Math.sin(angle) * radius, radius * 0.2, 0, 2 * Math.PI);
  pen.fillStyle = '#ffd479';
  pen.fill();
}
