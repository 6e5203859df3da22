/*
 * WHIP and WHEP sessions of a browser, for the tests: publishes by WHIP (RFC 9725), watches by WHEP, restarts ICE, and measures.
 * One expression, which the tests evaluate. It fills the body of the page on which it runs with a form and with one tile for each
 * session. The test pattern, the tiles and the numbers are those of the node's own page.
 *
 * The parts, in order: small helpers · plain words for failures · SDP fragments · Session (one WHIP or WHEP session with its
 * retries) · sources (camera, synthetic) · codecs · numbers · tiles · channel events · the form · hook.
 */
(async function start() {
  'use strict';
  const [{ codecLabel, summarise }, { openPattern }, { Tile }, { words: pageWords }] = await Promise.all(
    ['/numbers.js', '/pattern.js', '/tiles.js', '/words.js'].map((path) => import(path)));
  const page = new DOMParser().parseFromString(await (await fetch('/')).text(), 'text/html');
  const element = (id) => document.getElementById(id);
  document.body.innerHTML = BODY;
  document.body.append(document.adoptNode(page.getElementById('tile-template')));
  const ui = Object.fromEntries(['channel', 'watch', 'name', 'token', 'codec', 'size', 'simulcast', 'publish', 'mute',
    'camera-off', 'live-controls', 'source-note', 'status', 'problem', 'remedy', 'unmute', 'presence', 'presence-text',
    'tiles', 'channel-form', 'publish-form'].map((id) => [id, element(id)]));

  // ---- small helpers ------------------------------------------------------------------------------------------------

  const sleep = (milliseconds, signal) => new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });

  const backoffSecondsMax = 15;
  /** Backoff before try number `attempt` (from 1), in seconds: exponential, bounded, with jitter. */
  const backoffSeconds = (attempt) =>
    Math.min(backoffSecondsMax, 0.5 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);

  const authorization = () => (ui.token.value ? { Authorization: 'Bearer ' + ui.token.value } : {});

  function say(text) { ui.status.textContent = text; }
  function complain(text, remedy) {
    ui.problem.textContent = text ?? '';
    ui.problem.hidden = !text;
    ui.remedy.hidden = !remedy;
    ui.remedy.textContent = remedy?.label ?? '';
    ui.remedy.onclick = remedy?.act ?? null;
  }

  // ---- error messages -----------------------------------------------------------------------------------------------

  /** How long the server may take to answer a request. */
  const requestMilliseconds = 15_000;
  /** Whether a request failed without an answer: connection refused, or timed out. */
  const isUnreachable = (error) => error instanceof TypeError || error?.name === 'TimeoutError';

  const words = {
    ...pageWords,
    unreachable: () => `The server at ${location.host} does not answer.`,
    ice: (answer = '') => {
      const addresses = [...answer.matchAll(/^a=candidate:\S+ \d+ \S+ \d+ (\S+)/gm)].map((found) => found[1]);
      const loopback = addresses.length > 0 && addresses.every((one) => /^(127\.|::1$)/.test(one));
      if (loopback && /Firefox\//.test(navigator.userAgent)) {
        return 'Firefox sends no media to 127.0.0.1, the only address that the server announced. Start the server ' +
          'with this machine’s network address (--media), or use another browser.';
      }
      return 'No network path to the server was found for media. Every firewall on the way must allow the UDP media port ' +
        '(7000 and up by default), and the server must announce an address that this device can reach.';
    },
    interrupted: () => 'The media connection was lost.',
    refused: () => 'Permission for camera and microphone was refused. Allow it in the address bar and try again, ' +
      'or publish the test pattern instead.',
    missing: () => 'No camera or microphone was found on this device.',
    busy: () => 'The camera is in use by another program, or the system denies access to it.',
    codecAnswer: () => 'The server does not support this codec. Choose Auto or another codec.',
  };

  /** The error message of a failed HTTP answer, and whether a retry can help. */
  async function failureOf(response, session) {
    let detail = '';
    try {
      detail = (await response.text()).trim();
      if (/json/.test(response.headers.get('Content-Type') ?? '')) {
        const problem = JSON.parse(detail);
        detail = problem.detail ?? problem.message ?? problem.title ?? problem.error ?? '';
      } else if (detail.startsWith('<')) {
        detail = '';
      }
    } catch { /* The status says enough. */ }
    detail = String(detail).slice(0, 200);
    const retryAfter = Number(response.headers.get('Retry-After')) || 0;
    const { status } = response;
    const final = (text) => ({ text, final: true, status });
    const again = (text) => ({ text, final: false, status, retryAfter });
    if (status === 401) {
      return final(ui.token.value
        ? 'The server did not accept the access token (401). Correct it under “Name and access”.'
        : 'The server asks for an access token (401). Enter it under “Name and access”.');
    }
    if (status === 403) return final(`The access token does not permit this in this channel (403). ${detail}`);
    if (status === 404) return again(`The server does not know this address (404). ${detail}`);
    if (status === 409) {
      return again(session?.kind === 'publish' ? `The channel does not accept this video now (409). ${detail}`
        : 'Nobody is publishing in this channel (409).');
    }
    if (status === 503 || status === 429) {
      return again(`The server is full, busy or restarting (${status}). ${detail}`);
    }
    if (status >= 500) return again(`The server failed (${status}). ${detail}`);
    const chosen = session?.kind === 'publish' && ui.codec.value;
    const hint = chosen ? ' It may not support this codec: choose Auto.' : '';
    return final(`The server refused the offer (${status}). ${detail}${hint}`);
  }

  // ---- SDP fragments (RFC 8840) -------------------------------------------------------------------------------------

  const linesOf = (sdp) => sdp.split(/\r?\n/).filter(Boolean);
  const firstLine = (lines, prefix) => lines.find((line) => line.startsWith(prefix));

  /** A trickle-ice-sdpfrag of `candidates` under the ICE credentials of the local description `sdp`. */
  function fragmentOf(sdp, candidates, complete) {
    const lines = linesOf(sdp);
    const media = firstLine(lines, 'm=');
    return [firstLine(lines, 'a=group:BUNDLE'), firstLine(lines, 'a=ice-options:'), media,
      firstLine(lines, 'a=mid:'), firstLine(lines, 'a=ice-ufrag:'), firstLine(lines, 'a=ice-pwd:'),
      ...candidates.map((candidate) => 'a=' + candidate), complete ? 'a=end-of-candidates' : null]
      .filter(Boolean).join('\r\n') + '\r\n';
  }

  /** The remote description `sdp` with the credentials and candidates of the restart's answer, `fragment`. */
  function withRestart(sdp, fragment) {
    const fresh = linesOf(fragment);
    const ufrag = firstLine(fresh, 'a=ice-ufrag:');
    const password = firstLine(fresh, 'a=ice-pwd:');
    if (!ufrag || !password) throw new Error('restart answer without credentials');
    const candidates = fresh.filter((line) => line.startsWith('a=candidate:'));
    let sections = 0;
    const result = [];
    for (const line of linesOf(sdp)) {
      if (line.startsWith('a=candidate:') || line.startsWith('a=end-of-candidates')) continue;
      if (line.startsWith('m=') && ++sections === 2) result.push(...candidates, 'a=end-of-candidates');
      result.push(line.startsWith('a=ice-ufrag:') ? ufrag : line.startsWith('a=ice-pwd:') ? password : line);
    }
    if (sections < 2) result.push(...candidates, 'a=end-of-candidates');
    return result.join('\r\n') + '\r\n';
  }

  // ---- one WHIP or WHEP session -------------------------------------------------------------------------------------

  const connectTimeoutMilliseconds = 15000;
  const disconnectedGraceMilliseconds = 1500;

  /**
   * One session: posts an offer, trickles, restarts ICE when the path breaks, starts anew with growing pauses when that
   * does not help, deletes itself at the end. `state` is one of connecting, live, waiting, failed, ended.
   */
  class Session {
    constructor({ kind, url, prepare, answered, changed }) {
      Object.assign(this, { kind, url, prepare, answered, changed, state: 'connecting', text: 'Connecting …' });
      this.attempt = 0;
      this.restarts = 0;
      this.connections = 0;
      this.aborter = new AbortController();
      this.numbers = {};
    }

    /** Runs until `end()`, or until a failure that a retry cannot fix. */
    async run() {
      while (this.state !== 'ended' && this.state !== 'failed') {
        this.attempt += 1;
        const failure = await this.connectOnce();
        this.release();
        if (this.state === 'ended') return;
        if (failure.final) {
          this.become('failed', failure.text);
          return;
        }
        const pause = Math.max(backoffSeconds(this.attempt), failure.retryAfter ?? 0);
        this.become('waiting', `${failure.text} Trying again in ${Math.max(1, Math.round(pause))} s.`);
        await sleep(pause * 1000, this.aborter.signal);
      }
    }

    become(state, text) {
      if (this.state === 'ended') return;
      this.state = state;
      this.text = text;
      this.changed?.(this);
    }

    /** One peer connection from its offer to its end. Returns the failure that ended it. */
    async connectOnce() {
      this.become('connecting', this.attempt > 1 ? 'Connecting again …' : 'Connecting …');
      const connection = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
      const over = new Promise((resolve) => { this.over = resolve; });
      Object.assign(this, { connection, location: null, etag: null, pending: [], gathered: false, restarting: false });
      this.connections += 1;
      this.wasLive = false;
      connection.onicecandidate = ({ candidate }) => this.trickle(candidate);
      connection.onconnectionstatechange = () => this.followConnection(connection);
      try {
        this.prepare(connection);
        await connection.setLocalDescription();
        const response = await this.send('POST', this.url, 'application/sdp', connection.localDescription.sdp);
        if (response.status !== 201) return await failureOf(response, this);
        this.location = new URL(response.headers.get('Location') ?? '', new URL(this.url, location.href)).href;
        this.etag = response.headers.get('ETag');
        const sdp = await response.text();
        if (this.state === 'ended') { this.remove(); return { text: '' }; }
        this.answered?.(response);
        await connection.setRemoteDescription({ type: 'answer', sdp });
        const refused = connection.getTransceivers().some((one) =>
          !one.currentDirection || ['inactive', 'stopped'].includes(one.currentDirection));
        if (this.kind === 'publish' && refused) {
          return { text: words.codecAnswer(), final: true };
        }
        this.flush();
      } catch (error) {
        if (isUnreachable(error)) return { text: words.unreachable() };
        return { text: `The browser rejected the server’s answer: ${error.message}`, final: true };
      }
      this.timer = setTimeout(() => { if (!this.wasLive) this.giveUp(); }, connectTimeoutMilliseconds);
      return over;
    }

    giveUp() {
      this.over({ text: words.ice(this.connection?.remoteDescription?.sdp) });
    }

    followConnection(connection) {
      if (connection !== this.connection || this.state === 'ended') return;
      const { connectionState } = connection;
      clearTimeout(this.graceTimer);
      if (connectionState === 'connected') {
        this.wasLive = true;
        this.attempt = 0;
        this.restarts = 0;
        this.restarting = false;
        clearTimeout(this.restartTimer);
        this.connectedAt ??= Date.now();
        this.become('live', 'Live');
      } else if (connectionState === 'disconnected') {
        this.become('connecting', `${words.interrupted()} Finding a new way …`);
        this.graceTimer = setTimeout(() => this.restart(), disconnectedGraceMilliseconds);
      } else if (connectionState === 'failed') {
        if (this.wasLive) this.restart();
        else this.giveUp();
      } else if (connectionState === 'closed') {
        this.over({ text: words.interrupted() });
      }
    }

    /** ICE restart in place (RFC 9725 section 4.3.3). Closes the connection if the server does not know the session. */
    async restart() {
      const { connection } = this;
      if (!connection || !this.location || this.restarting || this.state === 'ended') return;
      if (this.restarts >= 2) { this.giveUp(); return; }
      this.restarting = true;
      this.restarts += 1;
      this.become('connecting', `${words.interrupted()} Finding a new way …`);
      try {
        this.pending = [];
        this.gathered = false;
        this.holding = true;
        await connection.setLocalDescription(await connection.createOffer({ iceRestart: true }));
        const body = fragmentOf(connection.localDescription.sdp, [], false);
        const response = await this.patch(body, '*');
        if (connection !== this.connection) return;
        if (response.status !== 200) {
          const failure = await failureOf(response, this);
          this.over({ ...failure, final: [401, 403].includes(failure.status) });
          return;
        }
        this.etag = response.headers.get('ETag') ?? this.etag;
        const sdp = withRestart(connection.remoteDescription.sdp, await response.text());
        await connection.setRemoteDescription({ type: 'answer', sdp });
        this.holding = false;
        this.flush();
        // The state can stay `connected` during the whole restart: that event or this timer ends it.
        this.restartTimer = setTimeout(() => {
          if (connection !== this.connection) return;
          this.restarting = false;
          if (connection.connectionState === 'connected') this.followConnection(connection);
          else this.restart();
        }, connection.connectionState === 'connected' ? 1000 : 8000);
      } catch (error) {
        if (connection !== this.connection) return;
        this.over({ text: isUnreachable(error) ? words.unreachable() : words.interrupted() });
      }
    }

    /** Collects candidates. Those gathered before the answer wait for its ETag. */
    trickle(candidate) {
      // All media shares the first line's transport, and RTCP shares RTP's (RFC 9725 section 4.4).
      const usable = candidate?.candidate && (candidate.sdpMLineIndex ?? 0) === 0 && candidate.component !== 'rtcp';
      if (usable) this.pending.push(candidate.candidate);
      if (!candidate) this.gathered = true;
      clearTimeout(this.trickleTimer);
      this.trickleTimer = setTimeout(() => this.flush(), 20);
    }

    /** Sends the gathered candidates. A refusal is no failure: the server also learns addresses from ICE checks. */
    async flush() {
      const { connection } = this;
      if (!this.location || !this.etag || this.holding || (!this.pending.length && !this.gathered)) return;
      const body = fragmentOf(connection.localDescription.sdp, this.pending.splice(0), this.gathered);
      this.gathered = false;
      try {
        await this.patch(body, this.etag);
      } catch { /* Found out by the connection itself. */ }
    }

    patch(body, etag) {
      return this.send('PATCH', this.location, 'application/trickle-ice-sdpfrag', body, { 'If-Match': etag });
    }

    send(method, url, type, body, headers = {}) {
      // Without a limit, the page would try to connect forever on a network that drops packets.
      return fetch(url, {
        method, body, headers: { 'Content-Type': type, ...authorization(), ...headers },
        signal: AbortSignal.timeout(requestMilliseconds),
      });
    }

    /** Ends the session on the server, also while the page unloads. */
    remove() {
      if (!this.location) return;
      fetch(this.location, { method: 'DELETE', keepalive: true, headers: authorization() }).catch(() => {});
      this.location = null;
    }

    release() {
      for (const timer of [this.timer, this.graceTimer, this.restartTimer, this.trickleTimer]) clearTimeout(timer);
      this.holding = false;
      this.remove();
      if (!this.connection) return;
      this.connection.onconnectionstatechange = this.connection.onicecandidate = this.connection.ontrack = null;
      this.connection.close();
      this.connection = null;
      this.previous = null;
    }

    end() {
      if (this.state === 'ended') return;
      this.state = 'ended';
      this.over?.({ text: '' });
      this.release();
      this.aborter.abort();
    }
  }

  // ---- sources ------------------------------------------------------------------------------------------------------

  const [microphoneOptions, framesPerSecond] = [{ echoCancellation: true, noiseSuppression: true }, 30];
  const pictureSize = () => ui.size.value.split('x').map(Number);

  async function openCamera() {
    if (!navigator.mediaDevices?.getUserMedia) throw new DOMException(words.insecure, 'SecurityError');
    const [width, height] = pictureSize();
    const video = { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: framesPerSecond } };
    const open = (constraints) => navigator.mediaDevices.getUserMedia(constraints);
    let stream;
    try {
      stream = await open({ video, audio: microphoneOptions });
    } catch (error) {
      if (!['NotFoundError', 'OverconstrainedError', 'NotReadableError'].includes(error.name)) throw error;
      // One of the two is missing or in use: publish the other alone.
      stream = await open({ video }).catch(() => open({ audio: microphoneOptions })).catch(() => { throw error; });
      const isPicture = stream.getVideoTracks().length > 0;
      say(isPicture ? 'No microphone was found: video only.' : 'No camera was found: audio only.');
    }
    const close = () => stream.getTracks().forEach((track) => track.stop());
    return { stream, mirrored: stream.getVideoTracks().length > 0, close };
  }

  const cameraFailures = {
    NotAllowedError: words.refused, SecurityError: () => words.insecure, NotFoundError: words.missing,
    NotReadableError: words.busy, AbortError: words.busy, OverconstrainedError: words.missing,
  };

  function openSynthetic() {
    const { tracks, close } = openPattern(pictureSize());
    return { stream: new MediaStream(tracks), mirrored: false, close };
  }

  // ---- codecs -------------------------------------------------------------------------------------------------------

  const capabilities = () => RTCRtpSender.getCapabilities?.('video')?.codecs ?? [];
  const isCodec = (name) => (codec) => codec.mimeType.toLowerCase() === 'video/' + name.toLowerCase();

  /** The codec of a publisher's video that was not negotiated, because the browser has no decoder for it. */
  function missingCodec(session, participant) {
    const sent = participant?.tracks?.find((track) => track.kind === 'video' && track.active)?.codec;
    const section = session.connection?.remoteDescription?.sdp.split(/^m=/m).find((one) => one.startsWith('video '));
    if (!sent || !section) return null;
    const agreed = [...section.matchAll(/^a=rtpmap:\d+ ([^/\s]+)/gm)].map((found) => found[1].toUpperCase());
    return agreed.includes(sent.toUpperCase()) ? null : codecLabel(sent);
  }

  /** Restricts the transceiver to the codec `name`, with its most widely supported profile first. */
  function preferCodec(transceiver, name) {
    if (!name || !transceiver.setCodecPreferences) return;
    const isCommon = ({ sdpFmtpLine = '' }) => /packetization-mode=1/.test(sdpFmtpLine) && /42e01f/i.test(sdpFmtpLine);
    const common = (codec) => (isCommon(codec) ? 0 : 1);
    const chosen = capabilities().filter(isCodec(name)).sort((a, b) => common(a) - common(b));
    const helpers = capabilities().filter((codec) => /\/(rtx|red|ulpfec|flexfec-03)$/i.test(codec.mimeType));
    transceiver.setCodecPreferences([...chosen, ...helpers]);
  }

  for (const option of ui.codec.options) {
    if (option.value && capabilities().length && !capabilities().some(isCodec(option.value))) {
      option.disabled = true;
      option.textContent += ' (not in this browser)';
    }
  }

  // ---- numbers ------------------------------------------------------------------------------------------------------

  async function measure(session, publishing) {
    const { connection } = session;
    if (!connection || connection.connectionState === 'closed') return;
    const report = await connection.getStats();
    if (connection !== session.connection) return;
    // Rates over a very short interval are noise: keep the older base.
    const base = session.previous;
    const numbers = summarise(report, base, publishing);
    session.numbers = numbers;
    if (base && numbers.at - base.at < 500) return;
    session.previous = numbers;
  }

  const sendingSecondsMin = 5;
  /** Asks the server now and then what it sends in a watched session, and why not more. */
  async function askSending(session) {
    const { location: address } = session;
    const now = Date.now();
    if (session.state !== 'live' || !address || document.hidden || now < (session.askAt ?? 0)) return;
    session.askAt = now + sendingSecondsMin * 1000;
    const response = await fetch(`${address}/statistics`, {
      headers: authorization(), signal: AbortSignal.timeout(requestMilliseconds),
    });
    if (address !== session.location) return;
    session.sending = response.ok ? (await response.json()).sending : undefined;
  }

  // ---- tiles --------------------------------------------------------------------------------------------------------

  let soundWanted = true;

  class SessionTile extends Tile {
    constructor(title, own) {
      super({ title, owner: title, own, describeWhy: () => this.why ?? '' });
      (own ? ui.tiles.prepend(this.root) : ui.tiles.append(this.root));
    }

    show(stream) {
      super.show(stream);
      this.play();
    }

    /** Plays with sound if the browser allows it; otherwise plays muted and shows the button that turns sound on. */
    async play() {
      this.applySound(soundWanted);
      try {
        await this.video.play();
      } catch (error) {
        if (error.name !== 'NotAllowedError' || this.video.muted) return;
        soundWanted = false;
        for (const tile of tiles()) tile.applySound(soundWanted);
        this.video.play().catch(() => {});
        ui.unmute.hidden = false;
      }
    }

    /** The publisher's codecs, from the channel's events. */
    expect(participant, session) {
      this.participant = participant;
      this.followSession(session);
    }

    followSession(session) {
      this.lacking = missingCodec(session, this.participant);
      const live = this.lacking ? words.cannotPlay(this.lacking) : '';
      this.follow({ hasPicture: session.state === 'live', veil: session.state === 'live' ? live : session.text });
    }

    drawSession(session) {
      this.numbers = session.numbers;
      this.why = session.state === 'live' ? words.sending(session.sending) : '';
      this.draw();
    }
  }

  // ---- watching a channel -------------------------------------------------------------------------------------------

  /** { channel, aborter, participants, viewers, events, peers: Map(id → { session, tile, name }) } */
  let watching = null;
  /** { session, source, tile, id, clickedAt } */
  let publishing = null;
  const ownIdentifiers = new Set();
  const everyone = () => [publishing, ...(watching?.peers.values() ?? [])].filter((one) => one?.session);
  const tiles = () => everyone().map((one) => one.tile);
  const sessions = () => everyone().map((one) => one.session);
  const pathOf = (...parts) => '/' + parts.map(encodeURIComponent).join('/');

  function watch(channel) {
    if (watching?.channel === channel && watching.events !== 'failed') return;
    leave();
    const aborter = new AbortController();
    watching = { channel, aborter, participants: [], viewers: 0, events: 'trying', peers: new Map() };
    ui.watch.textContent = 'Leave';
    followEvents(watching);
  }

  function leave() {
    if (!watching) return;
    watching.aborter.abort();
    for (const id of [...watching.peers.keys()]) drop(watching, id);
    watching = null;
    ui.watch.textContent = 'Watch';
    presence();
    ui.unmute.hidden = true;
  }

  /** Reads the channel's server-sent events. It uses fetch because EventSource cannot send an access token. */
  async function followEvents(room) {
    const { signal } = room.aborter;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      let text = words.unreachable();
      let pause = backoffSeconds(attempt);
      try {
        const response = await fetch(pathOf('api', 'channels', room.channel, 'events'),
          { headers: { Accept: 'text/event-stream', ...authorization() }, signal, cache: 'no-store' });
        if (response.ok && response.body) {
          room.events = 'open';
          presence();
          text = 'The server closed the connection.';
          await readEvents(response.body, (data) => { attempt = 0; occupy(room, data); });
        } else {
          const failure = await failureOf(response);
          text = failure.text;
          pause = Math.max(pause, failure.retryAfter ?? 0);
          if (failure.final) {
            room.events = 'failed';
            presence();
            complain(text);
            return;
          }
        }
      } catch { /* Aborted, or out of reach: said below. */ }
      if (signal.aborted) return;
      room.events = 'trying';
      room.text = text;
      presence();
      await sleep(pause * 1000, signal);
    }
  }

  const silenceMillisecondsMax = 45000;

  async function readEvents(body, take) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = '';
    for (;;) {
      // The server sends a line every 15 s. A stream that broke while this device slept would stay silent forever.
      const silence = new AbortController();
      const silent = sleep(silenceMillisecondsMax, silence.signal).then(() => ({ done: true }));
      const { value, done } = await Promise.race([reader.read(), silent]);
      silence.abort();
      if (done) {
        reader.cancel().catch(() => {});
        return;
      }
      buffer += value;
      const events = buffer.split(/\r?\n\r?\n/);
      buffer = events.pop();
      for (const event of events) {
        const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).replace(/^ /, '')).join('\n');
        if (!data) continue;
        let parsed = null;
        try { parsed = JSON.parse(data); } catch { continue; }
        if (parsed && typeof parsed === 'object') take(parsed);
      }
    }
  }

  function occupy(room, data) {
    room.participants = Array.isArray(data.participants) ? data.participants : [];
    room.viewers = Number(data.viewers) || 0;
    reconcile(room);
    presence();
  }

  const publishers = (room) => room.participants.filter((one) => one?.id && one.publishing !== false);

  /** Opens and closes sessions to match the list of publishers. */
  function reconcile(room) {
    if (room !== watching) return;
    const here = publishing && publishing.channel === room.channel;
    // Until the server has answered with the page's own id, a new publisher may be this page.
    if (here && !publishing.id && publishing.session?.state === 'connecting') return;
    const others = publishers(room).filter((one) => !ownIdentifiers.has(one.id));
    const wanted = new Map(others.map((one) => [one.id, one]));
    for (const id of [...room.peers.keys()]) if (!wanted.has(id)) drop(room, id);
    for (const [id, one] of wanted) {
      if (!room.peers.has(id)) pick(room, id, one);
      const { tile, session } = room.peers.get(id);
      tile.expect(one, session);
    }
  }

  function pick(room, id, participant) {
    const name = participant.name || `Guest ${String(id).slice(-4)}`;
    const tile = new SessionTile(name, false);
    const stream = new MediaStream();
    const session = new Session({
      kind: 'watch',
      url: pathOf('whep', room.channel, id),
      prepare(connection) {
        connection.addTransceiver('video', { direction: 'recvonly' });
        connection.addTransceiver('audio', { direction: 'recvonly' });
        stream.getTracks().forEach((track) => stream.removeTrack(track));
        connection.ontrack = ({ track }) => { stream.addTrack(track); tile.show(stream); };
      },
      changed: () => { tile.followSession(session); presence(); },
    });
    room.peers.set(id, { session, tile, name });
    session.run();
  }

  function drop(room, id) {
    const peer = room.peers.get(id);
    room.peers.delete(id);
    peer.session.end();
    peer.tile.close();
  }

  function presence() {
    const room = watching;
    ui.presence.dataset.state = room?.events ?? (publishing?.session?.state === 'live' ? 'open' : 'idle');
    const count = room ? publishers(room).length : 0;
    ui['presence-text'].textContent = !room ? (publishing ? 'Publishing' : 'Not connected')
      : room.events === 'open' ? `${room.channel} · ${count} publishing · ${room.viewers} watching`
        : room.events === 'failed' ? 'Access denied' : room.text ?? 'Connecting …';
  }

  // ---- publishing ---------------------------------------------------------------------------------------------------

  async function publish(clickedAt = Date.now()) {
    if (publishing) return;
    const channel = ui.channel.value.trim();
    const kind = ui['publish-form'].elements.source.value;
    const attempt = publishing = { channel, clickedAt, id: null };
    complain();
    lockForm(true);
    let source;
    try {
      if (kind === 'camera') say('Waiting for camera and microphone …');
      source = kind === 'camera' ? await openCamera() : openSynthetic();
    } catch (error) {
      publishing = null;
      lockForm(false);
      say('');
      complain((cameraFailures[error.name] ?? (() => `The camera could not be started: ${error.message}`))(),
        { label: 'Publish the test pattern instead', act: () => { chooseSource('synthetic'); publish(); } });
      chooseSource('synthetic');
      return;
    }
    if (publishing !== attempt) { source.close(); return; }
    attempt.source = source;
    openPublication(attempt);
  }

  function openPublication(publication) {
    const { source, channel } = publication;
    const [codec, simulcast] = [ui.codec.value, ui.simulcast.checked];
    const name = ui.name.value.trim();
    const tile = publication.tile = new SessionTile(name ? `${name} (you)` : 'You', true);
    tile.root.classList.toggle('mirrored', source.mirrored);
    tile.show(source.stream);
    const session = publication.session = new Session({
      kind: 'publish',
      url: pathOf('whip', channel) + (name ? `?name=${encodeURIComponent(name)}` : ''),
      prepare(connection) {
        for (const track of source.stream.getTracks()) {
          const layered = track.kind === 'video' && simulcast;
          const transceiver = connection.addTransceiver(track, { direction: 'sendonly', streams: [source.stream],
            sendEncodings: layered ? layers() : [track.kind === 'video' ? { maxBitrate: bitrateMax() } : {}] });
          if (track.kind === 'video') preferCodec(transceiver, codec);
        }
        publication.id = null;
      },
      answered(response) {
        publication.id = response.headers.get('Nagare-Participant') ?? 'unknown';
        ownIdentifiers.add(publication.id);
        if (watching) reconcile(watching);
      },
      changed() {
        tile.followSession(session);
        presence();
        if (session.state === 'live') { say(`You are live in “${channel}”.`); complain(); } else say('');
        if (session.state === 'waiting') complain(session.text);
        if (session.state === 'failed') { stop(); complain(session.text); }
        if (watching && session.state !== 'connecting') reconcile(watching);
      },
    });
    session.run();
    watch(channel);
  }

  /** The maximum bit rate of the selected size, in bit/s. */
  const bitrateMax = () => ({ 1920: 4_500_000, 1280: 2_500_000 })[pictureSize()[0]] ?? 1_200_000;
  const layers = () => [
    { rid: 'q', scaleResolutionDownBy: 4, maxBitrate: 150_000 },
    { rid: 'h', scaleResolutionDownBy: 2, maxBitrate: 500_000 },
    { rid: 'f', maxBitrate: bitrateMax() },
  ];

  function stop() {
    const past = publishing;
    if (!past) return;
    publishing = null;
    past.session?.end();
    past.tile?.close();
    past.source?.close();
    lockForm(false);
    say('');
    presence();
    if (watching) reconcile(watching);
  }

  function lockForm(live) {
    ui.publish.toggleAttribute('data-live', live);
    ui.publish.textContent = live ? 'Stop publishing' : 'Publish';
    ui['live-controls'].hidden = !live;
    for (const control of ui['publish-form'].querySelectorAll('input, select')) control.disabled = live;
    for (const button of [ui.mute, ui['camera-off']]) button.setAttribute('aria-pressed', 'false');
    ui.mute.textContent = 'Mute';
    ui['camera-off'].textContent = 'Camera off';
  }

  function chooseSource(value, note = '') {
    for (const radio of ui['publish-form'].elements.source) radio.checked = radio.value === value;
    ui['source-note'].textContent = note;
    ui['source-note'].hidden = !note;
  }

  function toggleTracks(button, kind, [off, on]) {
    const muted = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(muted));
    button.textContent = muted ? on : off;
    for (const track of publishing?.source?.stream.getTracks() ?? []) if (track.kind === kind) track.enabled = !muted;
  }

  // ---- the form -----------------------------------------------------------------------------------------------------

  ui['channel-form'].addEventListener('submit', (event) => {
    event.preventDefault();
    complain();
    if (watching && watching.channel === ui.channel.value.trim()) leave();
    else watch(ui.channel.value.trim());
  });
  ui['publish-form'].addEventListener('submit', (event) => {
    event.preventDefault();
    if (publishing) { stop(); return; }
    if (!ui.channel.reportValidity()) return;
    publish();
  });
  ui.channel.addEventListener('input', () => {
    ui.watch.textContent = watching && watching.channel === ui.channel.value.trim() ? 'Leave' : 'Watch';
  });
  ui.mute.addEventListener('click', () => toggleTracks(ui.mute, 'audio', ['Mute', 'Unmute']));
  ui['camera-off'].addEventListener('click', () =>
    toggleTracks(ui['camera-off'], 'video', ['Camera off', 'Camera on']));
  ui.unmute.addEventListener('click', () => {
    soundWanted = true;
    ui.unmute.hidden = true;
    for (const tile of tiles()) tile.play();
  });
  addEventListener('pagehide', () => { stop(); leave(); });

  setInterval(async () => {
    await Promise.all(sessions().map((session) => measure(session, session.kind === 'publish').catch(() => {})));
    for (const session of sessions()) if (session.kind === 'watch') askSending(session).catch(() => {});
    for (const { tile, session } of everyone()) tile.drawSession(session);
  }, 1000);

  // ---- the hook for tests and the console ---------------------------------------------------------------------------

  const describe = (session, tile) => ({
    state: session.state, text: session.text, lacking: tile.lacking ?? null, connections: session.connections, connectedAt: session.connectedAt,
    firstFrameAt: tile.firstFrameAt, sending: session.sending, why: words.sending(session.sending), ...session.numbers,
  });

  window.nagare = {
    /** The latest numbers of all open sessions. */
    stats: () => ({
      channel: watching?.channel, events: watching?.events, viewers: watching?.viewers,
      participants: watching?.participants ?? [],
      publish: publishing?.session ? { id: publishing.id, clickedAt: publishing.clickedAt,
        ...describe(publishing.session, publishing.tile) } : null,
      watch: Object.fromEntries([...(watching?.peers ?? [])].map(([id, one]) =>
        [id, { name: one.name, ...describe(one.session, one.tile) }])),
    }),
    /** Measures now instead of waiting for the next second. */
    async sample() {
      await Promise.all(sessions().map((session) => measure(session, session.kind === 'publish')));
      return window.nagare.stats();
    },
    /** Fills the form in and publishes: { source: 'camera' | 'synthetic', codec, size, simulcast, name, channel }. */
    publish({ source = 'synthetic', codec = '', size, simulcast = false, name, channel } = {}) {
      if (channel) ui.channel.value = channel;
      if (name !== undefined) ui.name.value = name;
      if (size) ui.size.value = size;
      ui.codec.value = codec;
      ui.simulcast.checked = simulcast;
      chooseSource(source);
      return publish();
    },
    stop,
    watch(channel = ui.channel.value.trim()) { ui.channel.value = channel; watch(channel); },
    leave,
    /** The open sessions themselves. */
    sessions,
    /** Restarts ICE of every open session, as a network change does. */
    restartIce: () => Promise.all(sessions().map((session) => session.restart())),
  };

  presence();
})()
