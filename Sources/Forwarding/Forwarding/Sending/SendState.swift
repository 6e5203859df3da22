import MediaTypes
import SRTP
import Wire

/// What one slot's packets are made with: plain memory beside that of the track's other slots, so that a fan-out walks
/// through memory in order and counts no references.
@safe
struct SlotState {
    /// The state of the peer's ``Egress``.
    let egress: UnsafeMutablePointer<EgressState>
    let ssrc: SSRC
    let extensions: SentExtensions
    /// MID goes on every packet until a report shows that the receiver knows the SSRC (RFC 8843 §9.2).
    var sendsMID = true
    /// The stream whose packets go out; 0 until one began since the source was connected.
    var playing: UInt64 = 0
    /// The stream that is to play, from its next key frame on; 0 for none. Packets of any other are skipped.
    var wanted: UInt64 = 0
    /// The source's payload type that goes out unchanged but for its number; above 127 while there is none.
    var sourcePayloadType = UInt8.max
    var outgoingPayloadType: UInt8 = 0
    /// Packets that are not plain may have to tell of the slot's ``PlayoutDelayHint``.
    var tellsPlayoutDelay = false
    /// The SRTP stream of `ssrc`; `nil` until the peer is connected.
    var stream: SRTPOutboundStream?
    var rewriter: RTPRewriter
    /// Decides which layers of the stream go out; `nil` while all do. With it no packet is plain.
    var filter: UnsafeMutablePointer<LayerFilter>?
    var packetsSent: UInt32 = 0
    var octetsSent: UInt32 = 0
    var bytesSent: UInt64 = 0
    /// The slot itself, for whatever is not a plain packet. It outlives its state.
    var owner: Unretained<SendSlot>?
}

/// What the peers of one core send with: the engine that encrypts and decrypts for all of them, and the memory of their
/// slots' and egresses' states.
struct SendResources {
    let engine: SRTPEngine
    let slotStates = StateSlab<SlotState>()
    let egressStates = StateSlab<EgressState>()

    /// Bytes that the states hold of the machine's memory.
    var footprintBytes: Int { slotStates.footprintBytes + egressStates.footprintBytes }
}

/// How a peer's feedback names packets.
enum PacketNumbering: UInt8, BitwiseCopyable, Sendable {
    /// No packet is reported.
    case none
    /// By the transport-wide sequence number in the header.
    case transportWide
    /// By stream and RTP sequence number (RFC 8888).
    case perStream
    /// The same of a slot that sends a packet again as it is, under its first number.
    case transportWideRepeated, perStreamRepeated

    init(_ parameters: SendTrackParameters, retransmitsWithoutRTX: Bool) {
        self.init(parameters)
        guard retransmitsWithoutRTX else { return }
        switch self {
        case .transportWide: self = .transportWideRepeated
        case .perStream: self = .perStreamRepeated
        case .none, .transportWideRepeated, .perStreamRepeated: break
        }
    }

    /// - Returns: how the peer's reports name the packets of a track, whichever way its slot sends them again.
    init(_ parameters: SendTrackParameters) {
        if parameters.codecs.contains(where: { $0.feedback.contains(.congestionControlFeedback) }) {
            self = .perStream
        } else {
            self = parameters.extensions[.transportSequenceNumber] != nil ? .transportWide : .none
        }
    }
}

/// The header extensions that a slot sends, each with its identifier, or 0: resolved once for a slot.
struct SentExtensions: Sendable {
    var mid: UInt8
    var absoluteSendTime: UInt8
    var transportSequenceNumber: UInt8
    var audioLevel: UInt8
    var videoOrientation: UInt8
    var playoutDelay: UInt8
    var dependencyDescriptor: UInt8
    var numbering: PacketNumbering
    var videoContentType: UInt8
    /// The MID's bytes, in memory order; meaningful up to `midLength`.
    var midBytes: (UInt64, UInt64) = (0, 0)
    var midLength = 0
    /// Every element that is written from here fits the one-byte form (RFC 8285 §4.2), as long as its data does.
    var isOneByte: Bool

    /// - Parameter retransmitsWithoutRTX: the slot sends packets again under their first SRTP index, so nothing that
    ///   changes from one sending to the next may be in them: not the time, and of the transport-wide numbers the first.
    init(_ parameters: SendTrackParameters, retransmitsWithoutRTX: Bool) {
        let map = parameters.extensions
        func id(_ kind: HeaderExtension) -> UInt8 { map[kind]?.rawValue ?? 0 }
        mid = id(.mid)
        absoluteSendTime = retransmitsWithoutRTX ? 0 : id(.absoluteSendTime)
        transportSequenceNumber = id(.transportSequenceNumber)
        audioLevel = id(.audioLevel)
        videoOrientation = id(.videoOrientation)
        playoutDelay = id(.playoutDelay)
        dependencyDescriptor = id(.dependencyDescriptor)
        numbering = PacketNumbering(parameters, retransmitsWithoutRTX: retransmitsWithoutRTX)
        videoContentType = id(.videoContentType)
        let bytes = Array(parameters.mid.value.utf8)
        let ids = [
            mid, absoluteSendTime, transportSequenceNumber, audioLevel, videoOrientation, playoutDelay,
            dependencyDescriptor, videoContentType,
        ]
        isOneByte = bytes.count <= 16 && ids.allSatisfy { $0 <= 14 }
        midLength = min(bytes.count, 16)
        unsafe withUnsafeMutableBytes(of: &midBytes) { unsafe $0.copyBytes(from: bytes.prefix(16)) }
    }
}

/// States of one kind in steps of contiguous memory. Addresses stay as they are, and a step whose last state is given
/// back is given back too.
@safe
final class StateSlab<State> {
    @safe
    private struct Step {
        let base: UnsafeMutablePointer<State>
        /// Where in the step there is no state.
        var free: [Int]
    }
    private static var statesPerStep: Int { 64 }
    private static var stepBytes: Int { statesPerStep * MemoryLayout<State>.stride }
    /// Steps begin at multiples of this, so that the address of a state tells its step.
    private static var alignment: Int { 1 << (Int.bitWidth - (stepBytes - 1).leadingZeroBitCount) }

    /// By the address of their beginning.
    private var steps: [UInt: Step] = [:]
    /// Those that have a free place.
    private var open: [UInt] = []

    deinit { for step in steps.values { unsafe step.base.deallocate() } }

    /// Bytes that the slab holds of the machine's memory.
    var footprintBytes: Int { steps.count * Self.stepBytes }

    /// A place for one state, initialised with `state`.
    func make(_ state: consuming State) -> UnsafeMutablePointer<State> {
        let address = open.last ?? addStep()
        guard let step = steps[address], let index = steps[address]?.free.removeLast() else {
            preconditionFailure("an open step has a free place")
        }
        if step.free.count == 1 { open.removeLast() }
        let place = unsafe step.base + index
        unsafe place.initialize(to: state)
        return unsafe place
    }

    /// Takes a place of this slab back.
    func free(_ place: UnsafeMutablePointer<State>) {
        let address = UInt(bitPattern: place) & ~UInt(Self.alignment - 1)
        guard let base = unsafe steps[address]?.base else { preconditionFailure("the place is of this slab") }
        unsafe place.deinitialize(count: 1)
        steps[address]?.free.append(unsafe place - base)
        switch steps[address]?.free.count {
        case 1: open.append(address)
        case Self.statesPerStep:
            steps[address] = nil
            open.removeAll { $0 == address }
            unsafe base.deallocate()
        default: break
        }
    }

    private func addStep() -> UInt {
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.stepBytes, alignment: Self.alignment)
        let address = UInt(bitPattern: memory)
        unsafe steps[address] = Step(
            base: memory.bindMemory(to: State.self, capacity: Self.statesPerStep),
            free: Array((0..<Self.statesPerStep).reversed())
        )
        open.append(address)
        return address
    }
}
