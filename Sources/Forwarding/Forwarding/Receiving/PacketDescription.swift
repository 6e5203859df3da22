package import Base
package import Wire

/// What the payload descriptor and the dependency descriptor say of a packet's frame. A fact that the format does not state
/// is absent.
package struct FrameFacts: OptionSet, BitwiseCopyable, Hashable, Sendable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The first packet of a frame: VP8 S with partition 0, VP9 B, the first NAL unit of a picture, or the dependency
    /// descriptor's bit. A frame is one spatial layer of a picture.
    package static let startsFrame = Self(rawValue: 1)
    /// The last packet of a frame: VP9 E, the dependency descriptor's bit, otherwise the marker.
    package static let endsFrame = Self(rawValue: 1 << 1)
    /// A receiver of lower temporal layers can switch up to the frame's temporal layer here: VP8 Y, VP9 U, H.265 TSA and
    /// STSA. With a dependency descriptor the indication of each decode target says it.
    package static let switchesUp = Self(rawValue: 1 << 2)
    /// No other frame refers to the frame: VP8 N, H.264 nal_ref_idc 0, or no decode target needs it for another one.
    package static let isDiscardable = Self(rawValue: 1 << 3)
    /// VP9 P: the frame refers to earlier pictures.
    package static let refersToEarlier = Self(rawValue: 1 << 4)
    /// VP9 D: the frame refers to the next lower spatial layer of its picture.
    package static let refersToLowerLayer = Self(rawValue: 1 << 5)
    /// VP9 Z: no higher spatial layer of the picture refers to the frame.
    package static let isUnusedAbove = Self(rawValue: 1 << 6)
    /// VP9 F: references are listed as differences of picture ids.
    package static let isFlexible = Self(rawValue: 1 << 7)
    /// VP8: a receiver takes a missing picture id for a lost frame, so ids close over frames that are left out. VP9 places
    /// pictures by the distance of their ids, which therefore stays as it is.
    package static let closesPictureIDs = Self(rawValue: 1 << 8)
    /// The video content type of the packet is screenshare. libwebrtc names it in the last packet of each key frame.
    package static let isScreenContent = Self(rawValue: 1 << 9)
}

/// What forwarding needs to know of a packet, found by the one parse that it gets.
///
/// One is copied for every packet kept and for every packet that waits: it fills one cache line and no more.
package struct PacketDescription: BitwiseCopyable, Sendable {
    /// A range of at most 255 bytes inside the packet; length 0 is "not there".
    package struct Field: BitwiseCopyable, Sendable {
        package var offset: UInt16 = 0
        package var length: UInt8 = 0
        package var range: Range<Int> { Int(offset)..<Int(offset) + Int(length) }
        package var isPresent: Bool { length != 0 }
        package init() {}
        /// Absent when the range does not fit the field, which no header extension's does.
        package init(_ range: Range<Int>) {
            guard let offset = UInt16(exactly: range.lowerBound), let length = UInt8(exactly: range.count) else {
                return
            }
            self.offset = offset
            self.length = length
        }
    }

    package var sequence: ExtendedSequenceNumber
    package var timestamp: RTPTimestamp
    package var payloadType: PayloadType
    package var marker: Bool
    package var payloadOffset: UInt16
    package var payloadLength: UInt16
    /// The packet begins a frame that decodes without any other.
    package var startsKeyFrame = false
    /// It came as a retransmission (RFC 4588), so its late arrival is no reordering.
    package var isRTXRecovered = false
    package var frame: FrameFacts = []
    /// The frame's layers within its stream; 0 where the format does not name them.
    package var spatialID: UInt8 = 0
    package var temporalID: UInt8 = 0
    package var receivedAt: Instant

    // The fields below are ordered so that single bytes fill the padding behind each `Field`.

    package var audioLevel = Field()
    /// VP8 and VP9: the picture id's width, 7 or 15 bits; 0 when absent.
    package var pictureIDBits: UInt8 = 0
    package var videoOrientation = Field()
    /// VP8 and VP9: where the picture id stands in the payload.
    package var pictureIDOffset: UInt8 = 0
    package var playoutDelay = Field()
    /// VP8 and VP9: where TL0PICIDX stands in the payload; 0 when absent.
    package var tl0Offset: UInt8 = 0
    package var dependencyDescriptor = Field()
    /// VP8 and VP9: TL0PICIDX.
    package var tl0: UInt8 = 0
    /// The dependency descriptor's; 0 without one.
    package var frameNumber: UInt16 = 0
    /// VP8 and VP9: the picture id.
    package var pictureID: UInt16 = 0
    /// What the frame is to the decode targets and chains of the stream's dependency structure; nothing while that is not
    /// known.
    package var dependencies = FrameDependencies()
    /// The packet has a payload and no content type, and its timestamp continues its stream's. Any other one takes the slow
    /// path of every slot.
    package var isPlain: Bool

    package init(
        sequence: ExtendedSequenceNumber,
        timestamp: RTPTimestamp,
        payloadType: PayloadType,
        marker: Bool,
        payloadOffset: UInt16,
        payloadLength: UInt16,
        receivedAt: Instant
    ) {
        self.sequence = sequence
        self.timestamp = timestamp
        self.payloadType = payloadType
        self.marker = marker
        self.payloadOffset = payloadOffset
        self.payloadLength = payloadLength
        self.receivedAt = receivedAt
        isPlain = payloadLength != 0
    }

    /// No forwarded extension is too long for the one-byte form (RFC 8285 §4.2).
    @inline(__always)
    var fitsOneByteForm: Bool {
        max(audioLevel.length, videoOrientation.length, max(playoutDelay.length, dependencyDescriptor.length)) <= 16
    }

    /// There is a dependency descriptor, and it is long enough for its frame number.
    @inline(__always)
    package var hasFrameNumber: Bool { dependencyDescriptor.length >= 3 }

    package var payloadRange: Range<Int> { Int(payloadOffset)..<Int(payloadOffset) + Int(payloadLength) }
}
