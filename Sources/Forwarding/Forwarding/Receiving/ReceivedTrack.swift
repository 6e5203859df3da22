package import Base
package import MediaTypes
package import Wire

/// What a peer publishes in one m-section: one stream, or one for each simulcast layer, and the slots that play it.
///
/// A track of another loop's peer is one too, a mirror: its packets come over a link instead of a socket.
@safe
package final class ReceivedTrack {
    package let id: TrackID
    package let parameters: ReceiveTrackParameters
    package private(set) var streams: [ReceivedStream] {
        @inline(__always) _read { yield unsafe trackStreams }
        @inline(__always) _modify { yield unsafe &trackStreams }
    }
    /// Every packet of a mirror reads both, each in one step, so accesses are not checked.
    @exclusivity(unchecked) private var trackStreams: [ReceivedStream] = []
    @exclusivity(unchecked) private var trackSlots: ContiguousArray<SendSlot> = []
    /// In no order that means anything.
    package private(set) var slots: ContiguousArray<SendSlot> {
        @inline(__always) _read { yield unsafe trackSlots }
        @inline(__always) _modify { yield unsafe &trackSlots }
    }
    /// The slots' states in the order of `slots`: what a fan-out walks through.
    private(set) var states: ContiguousArray<UnsafeMutablePointer<SlotState>> = unsafe []
    /// Other loops that play the track, each through a mirror.
    var exports: ContiguousArray<TrackExport> = []
    /// Where the track comes from when it is another loop's.
    let origin: (any TrackOrigin)?
    /// What the track was last announced to carry; `nil` before its first packet and while it is paused.
    package var announcedCodec: CodecName?
    private var lastAnnouncedAt: Instant?
    private var selector: LayerSelector
    /// Which stream each choice names while the rate has no limit: decided here, or by its origin for a mirror.
    private(set) var resolution = LayerResolution()
    /// What the track has to send, by the newest measurement: made here, or told by its origin for a mirror.
    private(set) var encodings: [LayerTable.Encoding] = []
    /// The publisher shares a screen, as the content type of its newest key frame says: decided here, or told by its origin
    /// for a mirror.
    private(set) var isScreen = false
    /// The slots of each choice, by its place.
    private var slotCounts: [5 of Int] = .init(repeating: 0)
    private var speech: SpeechDetector?
    /// Which layers the publisher is to pause; `nil` where it cannot be asked to.
    var unusedLayers: UnusedLayers?
    /// The publisher's clock against ours: shared by all of its tracks.
    package let clockOffset: PeerClock
    /// In the client's role: sees every packet once, in order of arrival, recovered ones included.
    package var tap: ((RawSpan, PacketDescription, Instant) -> Void)?

    /// This turn's packets that wait to be sent on; `backlogMax` places once it was needed.
    private(set) var backlog: UnsafeMutablePointer<PendingPacket>?
    private(set) var backlogCount = 0

    package convenience init(id: TrackID, parameters: ReceiveTrackParameters, clockOffset: PeerClock) {
        self.init(id: id, parameters: parameters, clockOffset: clockOffset, origin: nil)
    }

    init(
        id: TrackID,
        parameters: ReceiveTrackParameters,
        clockOffset: PeerClock,
        origin: (any TrackOrigin)?
    ) {
        self.id = id
        self.clockOffset = clockOffset
        self.parameters = parameters
        self.origin = origin
        selector = LayerSelector(ridCount: parameters.rids.count, ascends: parameters.layersAscend)
        if parameters.kind == .audio, parameters.extensions[.audioLevel] != nil { speech = SpeechDetector() }
    }

    deinit { unsafe backlog?.deallocate() }

    /// Simulcast layers beyond this are not a browser's.
    static let streamsMax = 4
    /// A layer that is silent for this long while another of the same pictures is not has stopped.
    private static let layerSilenceMax = Interval.seconds(1)
    /// Packets of one turn that are sent on together: a GSO message takes no more.
    static let backlogMax = 64

    /// Adds a stream. Without simulcast a further SSRC is the restarted source, and plays at once.
    package func add(_ stream: ReceivedStream, at now: Instant) {
        streams.append(stream)
        if origin == nil, parameters.kind == .video { measureEncodings(at: now) }
        // Which streams of a mirror play is its origin's decision.
        guard origin == nil else { return }
        if stream.rid == nil {
            selector.choose(only: stream.id.rawValue)
            adopt(selector.resolution, at: now)
        } else {
            selectLayers(at: now)
        }
    }

    /// Makes room for another stream by evicting a silent one.
    /// - Returns: the evicted stream; `nil` when all are in use.
    package func evictSilentStream(at now: Instant) -> ReceivedStream? {
        func isSilent(_ stream: ReceivedStream) -> Bool {
            stream !== target && !stream.isFlowing(at: now) && !waits(stream)
        }
        guard
            let index = streams.firstIndex(where: { isSilent($0) && resolution.choices(of: $0.id.rawValue).isEmpty })
                ?? streams.firstIndex(where: isSilent)
        else { return nil }
        let evicted = streams.remove(at: index)
        selector.remove(evicted.id.rawValue)
        for place in 0..<LayerChoice.placesMax where resolution[place] == evicted.id.rawValue { resolution[place] = 0 }
        return evicted
    }

    /// Whether a packet of a stream waits to be sent on, which lies in the stream's history. Padding does not make it flow.
    private func waits(_ stream: ReceivedStream) -> Bool {
        guard let backlog = unsafe backlog else { return false }
        return (0..<backlogCount).contains { unsafe backlog[$0].stream.refers(to: stream) }
    }

    /// The stream that the richest choice names.
    package var target: ReceivedStream? { stream(StreamID(rawValue: resolution[0])) }

    /// Measures the layers and resolves each choice again.
    package func selectLayers(at now: Instant) {
        guard origin == nil else { return }
        measureEncodings(at: now)
        selector.update(encodings)
        adopt(selector.resolution, at: now)
    }

    /// What the track has to send now.
    var table: LayerTable { LayerTable(encodings: encodings, resolution: resolution, isScreen: isScreen) }

    /// Brings the table's bit rates up to date, after those of the streams.
    func measureLayers(at now: Instant) {
        guard origin == nil, parameters.kind == .video else { return }
        measureEncodings(at: now)
    }

    /// Of a mirror: takes the layers of the track from a message of its origin, which names streams by their numbers there.
    /// - Parameter stream: finds the mirror's stream of a number and a place among the rids, or makes it.
    func receiveEncodings(
        _ bytes: RawSpan,
        at now: Instant,
        stream: (UInt64, Int) -> Unretained<ReceivedStream>?
    ) {
        guard origin != nil, let isScreen = LayerTable.decode(bytes, into: &encodings) else { return }
        var index = 0
        while index < encodings.count {
            guard let stream = stream(encodings[index].stream, encodings[index].place) else {
                encodings.remove(at: index)
                continue
            }
            stream.with {
                $0.noteBitrate(encodings[index].isFlowing ? encodings[index].bitrate : 0)
                $0.noteKeyFrameBytes(encodings[index].keyFrameBytes)
                encodings[index].stream = $0.id.rawValue
            }
            index += 1
        }
        if !encodings.isEmpty { setScreen(isScreen, at: now) }
    }

    /// Appends the layers of the track to a message for its mirrors.
    func appendEncodings(to bytes: inout [UInt8]) { LayerTable.encode(encodings, isScreen: isScreen, to: &bytes) }

    /// Replaces the encodings, within the array's capacity.
    private func measureEncodings(at now: Instant) {
        let newest = streams.lazy.map(\.lastPacketAt).max() ?? now
        encodings.removeAll(keepingCapacity: true)
        for stream in streams {
            encodings.append(
                LayerTable.Encoding(
                    stream: stream.id.rawValue,
                    place: Int(stream.layer),
                    bitrate: stream.expectedBitrate,
                    isFlowing: now - stream.lastPacketAt < ReceivedStream.silenceMax
                        && newest - stream.lastPacketAt < Self.layerSilenceMax && !stream.shedding.isActive,
                    layers: stream.layers,
                    keyFrameBytes: stream.keyFrameBytes
                )
            )
        }
    }

    // MARK: - Content

    /// A packet of a key frame says that the track shows a screen.
    /// - Returns: whether that is new.
    func noteScreenContent(_ description: PacketDescription, of stream: ReceivedStream, at now: Instant) -> Bool {
        stream.noteScreenContent(description)
        return setScreen(true, at: now)
    }

    /// A camera's key frame after those of a screen has no content type.
    func measureContent(at now: Instant) {
        guard isScreen, origin == nil else { return }
        guard let newest = streams.lazy.compactMap(\.newestKeyFrameContent).max(by: { $0.at < $1.at }),
            now - newest.at >= ReceivedStream.keyFrameTimeMax, !newest.isScreen
        else { return }
        setScreen(false, at: now)
    }

    @discardableResult
    private func setScreen(_ isScreen: Bool, at now: Instant) -> Bool {
        guard isScreen != self.isScreen, parameters.kind == .video else { return false }
        self.isScreen = isScreen
        for slot in slots { slot.peer.allocateLayers(to: slot, at: now) }
        return true
    }

    // MARK: - Choices

    /// Puts a new resolution in force.
    private func adopt(_ decided: LayerResolution, at now: Instant) {
        let before = resolution
        resolution = decided
        var isChanged = false
        for place in 0..<LayerChoice.placesMax where decided[place] != before[place] {
            isChanged = true
            guard let next = stream(StreamID(rawValue: decided[place])) else { continue }
            let previous = stream(StreamID(rawValue: before[place]))
            for index in exports.indices where exports[index].choices.contains(LayerChoices(place: place)) {
                // It plays there until the next stream's key frame. The mirror reports the end.
                if let previous { exports[index].layers.insert(LayerSet(layer: previous.layer)) }
                next.wantKeyFrame(at: now)
            }
            guard slotCounts[place] > 0 else { continue }
            for slot in slots where slot.layer.place == place { slot.peer.allocateLayers(to: slot, at: now) }
        }
        if isChanged { origin?.subscribe(self) }
    }

    /// Of a mirror: takes what its origin says of a stream.
    /// - Parameter choices: those that name the stream.
    func noteResolution(_ choices: LayerChoices, exact: LayerChoices, of stream: ReceivedStream, at now: Instant) {
        guard choices != resolution.choices(of: stream.id.rawValue) || exact != resolution.exact else { return }
        var decided = resolution
        decided.exact = exact
        for place in 0..<LayerChoice.placesMax {
            if choices.contains(LayerChoices(place: place)) {
                decided[place] = stream.id.rawValue
            } else if decided[place] == stream.id.rawValue, !isChosen(place) {
                // Nobody made the choice, so packets of the stream that it names now do not come.
                decided[place] = 0
            }
        }
        adopt(decided, at: now)
    }

    /// Whether the stream of a choice is the layer that it names, and not the nearest to it.
    func isExact(_ choice: LayerChoice) -> Bool {
        choice.place.map { resolution.exact.contains(LayerChoices(place: $0)) } ?? true
    }

    /// Whether a slot made the choice, here or on a loop that the track goes on to.
    private func isChosen(_ place: Int) -> Bool {
        if slotCounts[place] > 0 { return true }
        return exports.contains { $0.choices.contains(LayerChoices(place: place)) }
    }

    /// Of a mirror: forgets what the choices name that nobody makes any more, because the origin does not update those.
    func forgetUnusedChoices() {
        guard origin != nil else { return }
        for place in 0..<LayerChoice.placesMax where !isChosen(place) { resolution[place] = 0 }
    }

    /// The choices by which slots get what they play, those of loops that the track goes on to included. A slot that is
    /// allocated layers needs those and no choice.
    var choices: LayerChoices {
        var choices: LayerChoices = []
        for export in exports { choices.formUnion(export.choices) }
        for slot in slots where !slot.hasAllocation {
            if let place = slot.layer.place { choices.insert(LayerChoices(place: place)) }
        }
        return choices
    }

    /// Layers that slots are allocated or play, those of loops that the track goes on to included. What plays by a choice is among
    /// them: the origin may resolve the choice to another stream, and this one is to play until that begins here.
    var neededLayers: LayerSet {
        var layers: LayerSet = []
        for export in exports { layers.formUnion(export.layers) }
        for slot in slots {
            if let playing = slot.playingStream, let stream = stream(playing) {
                layers.insert(LayerSet(layer: stream.layer))
            }
            if slot.hasAllocation, let allocated = slot.wantedStream, let stream = stream(allocated) {
                layers.insert(LayerSet(layer: stream.layer))
            }
        }
        return layers
    }

    /// Asks the publisher for key frames of the streams that some choices name.
    func wantKeyFrames(of choices: LayerChoices, at now: Instant) {
        guard parameters.kind == .video else { return }
        for stream in streams where !choices.isDisjoint(with: resolution.choices(of: stream.id.rawValue)) {
            stream.wantKeyFrame(at: now)
        }
    }

    /// A slot of the track chose another layer.
    func noteChoice(_ choice: LayerChoice?, before: LayerChoice?) {
        if let place = before?.place {
            slotCounts[place] -= 1
            // The origin does not update a choice that nobody makes.
            if origin != nil, !isChosen(place) { resolution[place] = 0 }
        }
        if let place = choice?.place { slotCounts[place] += 1 }
    }

    /// Slots here that play a stream of the track.
    func playingCount(of stream: ReceivedStream) -> Int {
        unsafe states.count { unsafe $0.pointee.playing == stream.id.rawValue }
    }

    /// Whether anybody plays the track, here or on another loop.
    var isPlayed: Bool { !slots.isEmpty || !exports.isEmpty }

    /// A publisher that changes its codec with every packet does not make an event of each.
    package func mayAnnounce(at now: Instant) -> Bool {
        if let lastAnnouncedAt, now - lastAnnouncedAt < .milliseconds(250) { return false }
        lastAnnouncedAt = now
        return true
    }

    package func codec(of payloadType: PayloadType) -> CodecParameters? {
        parameters.codecs.first { $0.payloadType == payloadType }
    }

    package func stream(_ id: StreamID) -> ReceivedStream? { streams.first { $0.id == id } }

    /// A stream as packets find it: an index instead of an iterator retains nothing.
    @inline(__always)
    func unretainedStream(where matches: (ReceivedStream) -> Bool) -> Unretained<ReceivedStream>? {
        var index = 0
        while index < streams.count {
            if matches(streams[index]) { return Unretained(streams[index]) }
            index += 1
        }
        return nil
    }

    package func attach(_ slot: SendSlot) {
        slot.place = slots.count
        slots.append(slot)
        unsafe states.append(slot.state)
        noteChoice(slot.layer, before: nil)
    }

    package func detach(_ slot: SendSlot) {
        let place = slot.place
        guard place < slots.count, slots[place] === slot else { return }
        // The last one takes its place: a peer that leaves does not search or move all the others.
        slots.swapAt(place, slots.count - 1)
        slots.removeLast()
        unsafe states.swapAt(place, states.count - 1)
        unsafe states.removeLast()
        if place < slots.count { slots[place].place = place }
        noteChoice(nil, before: slot.layer)
    }

    // MARK: - Speech

    /// Whether speech is detected by the packets' audio levels.
    var detectsSpeech: Bool { speech != nil }

    /// Takes the audio level of one packet.
    /// - Returns: whether somebody speaks from now on; `nil` when nothing changed.
    func noteAudioLevel(_ value: UInt8, at now: Instant) -> Bool? { speech?.received(value, at: now) }

    /// Detects the end of speech. Returns `false` then, else `nil`.
    func noteSilence(at now: Instant) -> Bool? { speech?.timePassed(at: now) }

    // MARK: - Backlog

    /// Keeps a packet of one of the track's streams and, if anybody plays the track, notes it for the turn's fan-out.
    /// - Returns: `false` when the packet is a duplicate or older than what is remembered.
    @inline(__always)
    func take(
        _ packet: RawSpan,
        _ description: PacketDescription,
        of stream: ReceivedStream,
        core: Forwarder,
        into batch: DatagramBatch
    ) -> Bool {
        let history = stream.history
        guard history.keepsPackets else { return history.note(description.sequence) }
        // Waiting packets lie in the ring and are sent before they may be overwritten.
        if backlogCount > 0, backlogCount == Self.backlogMax || history.disturbs(adding: packet.byteCount) {
            core.fanOut(self, at: description.receivedAt, into: batch)
        }
        guard let bytes = unsafe history.keep(packet, description) else { return false }
        guard isPlayed else { return true }
        let place = unsafe allocatedBacklog()
        unsafe (place + backlogCount).initialize(
            to: PendingPacket(
                description: description,
                bytes: bytes,
                length: packet.byteCount,
                stream: Unretained(stream),
                streamID: stream.id.rawValue
            )
        )
        backlogCount += 1
        if backlogCount == 1 { core.notePending(self) }
        return true
    }

    /// Forgets the waiting packets: they were sent or are dropped.
    func clearBacklog() { backlogCount = 0 }

    private func allocatedBacklog() -> UnsafeMutablePointer<PendingPacket> {
        if let backlog = unsafe backlog { return unsafe backlog }
        let made = UnsafeMutablePointer<PendingPacket>.allocate(capacity: Self.backlogMax)
        unsafe backlog = made
        return unsafe made
    }
}
