// A member of a channel in a browser that behaves like Sora's JavaScript SDK: it sends a temporary offer in `connect`, passes
// the offer's `config` to the browser unchanged, sends its tracks on the media sections in `mid`, and identifies senders by
// stream id.
(() => {
  class Member {
    constructor(url, channel, role, options) {
      Object.assign(this, { url, channel, role, options, notifications: [], responses: [], remote: new Map(), state: "new", pings: 0 });
    }

    async connect() {
      if (this.role !== "recvonly") await this.capture();
      const probe = new RTCPeerConnection();
      for (const kind of ["audio", "video"]) probe.addTransceiver(kind, { direction: "recvonly" });
      const sdp = (await probe.createOffer()).sdp;
      probe.close();
      this.socket = new WebSocket(this.url);
      this.socket.onmessage = (event) => {
        this.queue = (this.queue ?? Promise.resolve()).then(() => this.received(JSON.parse(event.data))).catch((e) => {
          this.error = String(e);
        });
      };
      this.socket.onclose = (event) => {
        this.state = "closed";
        this.closed = [event.code, event.reason];
        this.connection?.close();
      };
      await new Promise((resolve, reject) => {
        this.socket.onopen = resolve;
        this.socket.onerror = () => reject(new Error("the WebSocket could not be opened"));
      });
      this.send({
        type: "connect", role: this.role, channel_id: this.channel, sdp, audio: true,
        sora_client: "Sora JavaScript SDK 2026.1.0", environment: navigator.userAgent, ...this.options,
      });
    }

    send(message) {
      this.socket.send(JSON.stringify(message));
    }

    // A moving picture and a tone.
    async capture() {
      const [width, height] = this.options.size ?? [640, 360];
      delete this.options.size;
      const canvas = Object.assign(document.createElement("canvas"), { width, height });
      const pen = canvas.getContext("2d");
      let count = 0;
      this.painter = setInterval(() => {
        pen.fillStyle = `hsl(${(count * 3) % 360} 80% 40%)`;
        pen.fillRect(0, 0, width, height);
        pen.fillStyle = "white";
        pen.fillRect((count++ * 7) % width, 0, 40, height);
      }, 33);
      const sound = new AudioContext();
      const tone = sound.createOscillator();
      const out = sound.createMediaStreamDestination();
      tone.connect(out);
      tone.start();
      this.local = new MediaStream([...canvas.captureStream(30).getVideoTracks(), ...out.stream.getAudioTracks()]);
    }

    async received(message) {
      switch (message.type) {
        case "offer": return this.offered(message);
        case "re-offer": return this.answer("re-answer", message.sdp);
        case "ping": {
          this.pings += 1;
          const stats = message.stats ? [...(await this.connection.getStats()).values()] : undefined;
          return this.send(stats ? { type: "pong", stats } : { type: "pong" });
        }
        case "notify":
          if (message.event_type === "connection.created" && message.connection_id === this.offer.connection_id) {
            this.state = "connected";
          }
          this.notifications.push(message);
          return;
        case "response": return void this.responses.push(message);
        case "push": return void (this.pushed = message.data);
        default: throw new Error(`a ${message.type} message`);
      }
    }

    async offered(offer) {
      this.offer = offer;
      this.connection = new RTCPeerConnection(offer.config ?? {});
      this.connection.onicecandidate = ({ candidate }) => {
        if (candidate) this.send({ type: "candidate", ...candidate.toJSON() });
      };
      this.connection.ontrack = ({ track, streams, transceiver }) => {
        const id = streams[0]?.id;
        if (!id || id === "default" || id === offer.connection_id) {
          this.error = `a ${track.kind} track of the stream ${id}`;
          return;
        }
        // Browsers decode audio only while it is played.
        if (track.kind === "audio") Object.assign(new Audio(), { srcObject: new MediaStream([track]) }).play();
        const entry = this.remote.get(id) ?? {};
        entry[track.kind] = transceiver;
        this.remote.set(id, entry);
      };
      await this.answer("answer", offer.sdp, async () => {
        for (const [kind, mid] of Object.entries(offer.mid ?? {})) {
          const transceiver = this.connection.getTransceivers().find((one) => one.mid === mid);
          const track = this.local.getTracks().find((one) => one.kind === kind);
          transceiver.direction = "sendonly";
          await transceiver.sender.replaceTrack(track);
          if (kind === "video" && offer.simulcast) {
            const parameters = transceiver.sender.getParameters();
            if (parameters.encodings.length !== offer.encodings.length) throw new Error("encodings and rids differ");
            parameters.encodings = offer.encodings;
            await transceiver.sender.setParameters(parameters);
          }
        }
      });
    }

    async answer(type, sdp, prepare = async () => {}) {
      await this.connection.setRemoteDescription({ type: "offer", sdp });
      await prepare();
      await this.connection.setLocalDescription(await this.connection.createAnswer());
      this.send({ type, sdp: this.connection.localDescription.sdp });
    }

    // A request of the channel extension; its response.
    async request(method, params) {
      const id = `${method} ${this.responses.length}`;
      this.send({ type: "request", id, method, params });
      while (!this.responses.some((one) => one.id === id)) await new Promise((resolve) => setTimeout(resolve, 20));
      return this.responses.find((one) => one.id === id);
    }

    disconnect() {
      clearInterval(this.painter);
      this.send({ type: "disconnect", reason: "NO-ERROR" });
    }

    // Statistics of the received streams, by the sender's stream id, and of the layers that are sent.
    async sample() {
      const streams = {};
      for (const [id, entry] of this.remote) {
        const figures = { frames: 0, width: 0, energy: 0, freezes: 0 };
        for (const [kind, transceiver] of Object.entries(entry)) {
          if (transceiver.currentDirection !== "recvonly") continue;
          for (const stat of (await transceiver.receiver.getStats()).values()) {
            if (stat.type !== "inbound-rtp") continue;
            if (kind === "audio") figures.energy = stat.totalAudioEnergy ?? 0;
            else Object.assign(figures, { frames: stat.framesDecoded ?? 0, width: stat.frameWidth ?? 0, freezes: stat.freezeCount ?? 0 });
          }
        }
        streams[id] = figures;
      }
      const layers = {};
      for (const sender of this.connection?.getSenders() ?? []) {
        for (const stat of (await sender.getStats()).values()) {
          if (stat.type === "outbound-rtp" && stat.rid) layers[stat.rid] = { frames: stat.framesSent ?? 0, active: stat.active };
        }
      }
      const { state, error, closed, pings, notifications, pushed, offer } = this;
      return {
        state, error, closed, pings, notifications, pushed, streams, layers,
        id: offer?.connection_id, sections: this.connection?.getTransceivers().length ?? 0,
      };
    }
  }
  window.Member = Member;
})();
