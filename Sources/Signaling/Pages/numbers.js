// The numbers below each picture, from the browser's statistics.

export const codecLabel = (mimeType) => (mimeType ?? '').replace(/^.*\//, '').replace(/^H264$/i, 'H.264')
  .replace(/^H265$/i, 'H.265').replace(/^opus$/i, 'Opus');

const total = (list, key) => list.reduce((sum, one) => sum + (one[key] ?? 0), 0);
const rate = (now, before, seconds) =>
  (seconds > 0 && before !== undefined ? Math.max(0, now - before) / seconds : undefined);

/** The numbers of getStats reports; rates are relative to `previous`. Times are in ms, bit rates in kbit/s. */
export function summarise(report, previous, publishing) {
  const all = [...report.values()];
  const streams = all.filter((one) => one.type === (publishing ? 'outbound-rtp' : 'inbound-rtp'));
  const video = streams.filter((one) => one.kind === 'video');
  const audio = streams.filter((one) => one.kind === 'audio');
  const remote = all.filter((one) => one.type === (publishing ? 'remote-inbound-rtp' : 'remote-outbound-rtp'));
  // In Chromium the state of the selected pair is not `succeeded` while a check of it is under way.
  const transport = all.find((one) => one.type === 'transport');
  const pair = report.get(transport?.selectedCandidatePairId) ?? all.find((one) =>
    one.type === 'candidate-pair' && (one.selected || (one.nominated && one.state === 'succeeded')));
  const largest = video.toSorted((a, b) => (b.frameWidth ?? 0) - (a.frameWidth ?? 0))[0];
  const codecOf = (one) => codecLabel(report.get(one?.codecId)?.mimeType);
  const receivers = publishing ? remote : streams;
  const numbers = {
    at: Date.now(),
    bytes: total(streams, publishing ? 'bytesSent' : 'bytesReceived'),
    videoBytes: total(video, publishing ? 'bytesSent' : 'bytesReceived'),
    audioBytes: total(audio, publishing ? 'bytesSent' : 'bytesReceived'),
    packets: total(streams, publishing ? 'packetsSent' : 'packetsReceived'),
    packetsLost: total(receivers, 'packetsLost'),
    frames: largest?.[publishing ? 'framesEncoded' : 'framesDecoded'],
    framesReceived: largest?.framesReceived, framesDropped: largest?.framesDropped,
    keyFrames: largest?.[publishing ? 'keyFramesEncoded' : 'keyFramesDecoded'],
    width: largest?.frameWidth, height: largest?.frameHeight,
    freezes: largest?.freezeCount, freezeSeconds: largest?.totalFreezesDuration,
    limit: largest?.qualityLimitationReason,
    codingSeconds: Math.max(0, ...video.map((one) => one[publishing ? 'totalEncodeTime' : 'totalDecodeTime'] ?? 0)),
    nacks: total(streams, 'nackCount'), plis: total(streams, 'pliCount'),
    codec: codecOf(largest), audioCodec: codecOf(audio[0]),
    encoder: largest?.encoderImplementation, decoder: largest?.decoderImplementation,
    audioEnergy: audio[0]?.totalAudioEnergy, audioSamples: audio[0]?.totalSamplesReceived,
    concealedSamples: audio[0]?.concealedSamples,
    layers: publishing ? video.filter((one) => one.active !== false).length : undefined,
  };
  const roundTrip = pair?.currentRoundTripTime ?? remote.find((one) => one.roundTripTime)?.roundTripTime;
  numbers.rtt = roundTrip === undefined ? undefined : roundTrip * 1000;
  const [videoAt, audioAt] = [largest?.estimatedPlayoutTimestamp, audio[0]?.estimatedPlayoutTimestamp];
  if (videoAt && audioAt) numbers.skew = videoAt - audioAt;
  const seconds = previous ? (numbers.at - previous.at) / 1000 : 0;
  const bitrate = rate(numbers.bytes, previous?.bytes, seconds);
  numbers.kbps = bitrate === undefined ? undefined : bitrate * 8 / 1000;
  numbers.fps = rate(numbers.frames ?? 0, previous?.frames, seconds);
  const lost = Math.max(0, numbers.packetsLost - (previous?.packetsLost ?? 0));
  const passed = Math.max(0, numbers.packets - (previous?.packets ?? 0));
  numbers.loss = lost + passed > 0 ? 100 * lost / (publishing ? Math.max(passed, lost) : lost + passed) : 0;
  numbers.isBusy = isBusy(numbers, previous, seconds, publishing);
  return numbers;
}

/** The share of its time that an encoder or decoder needs at most while it keeps up. */
const codingShareMax = 0.85;
/** The share of arrived frames that may be dropped, and how many have to arrive for a judgement. */
const droppedShareMax = 0.15;
const judgedFramesMin = 8;
/** With more loss, in percent, frames are dropped because parts of them are missing. */
const harmlessLossMax = 2;

/** Whether this device does not keep up with a picture, since the `previous` numbers. */
function isBusy(numbers, previous, seconds, publishing) {
  if (publishing && numbers.limit === 'cpu') return true;
  if (!previous || seconds <= 0) return false;
  if ((rate(numbers.codingSeconds, previous.codingSeconds, seconds) ?? 0) > codingShareMax) return true;
  if (publishing || numbers.loss > harmlessLossMax) return false;
  const arrived = (numbers.framesReceived ?? 0) - (previous.framesReceived ?? 0);
  const dropped = (numbers.framesDropped ?? 0) - (previous.framesDropped ?? 0);
  return arrived >= judgedFramesMin && dropped > droppedShareMax * arrived;
}

export const historyMax = 60;

export function drawSpark(canvas, history) {
  const pen = canvas.getContext('2d');
  const { width, height } = canvas;
  pen.clearRect(0, 0, width, height);
  if (!history || history.length < 2) return;
  const top = Math.max(100, ...history) * 1.15;
  const x = (index) => width - (history.length - 1 - index) * width / (historyMax - 1);
  const y = (value) => height - 3 - value / top * (height - 6);
  pen.strokeStyle = pen.fillStyle = getComputedStyle(canvas).color;
  pen.lineWidth = 3;
  pen.lineJoin = 'round';
  pen.beginPath();
  history.forEach((value, index) => pen.lineTo(x(index), y(value)));
  pen.stroke();
  pen.lineTo(width, height);
  pen.lineTo(x(0), height);
  pen.globalAlpha = 0.14;
  pen.fill();
  pen.globalAlpha = 1;
}
