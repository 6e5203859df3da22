package import Wire

extension PacketDescription {
    /// Reads what forwarding needs of a decrypted packet: the one parse that it gets.
    /// - Returns: `nil` when the packet is too long to be described, which no datagram's is.
    package init?(
        _ packet: borrowing RTPPacketView,
        sequence: ExtendedSequenceNumber,
        codec: CodecName,
        extensions: HeaderExtensionMap,
        at now: Instant
    ) {
        guard let payloadOffset = UInt16(exactly: packet.headerLength),
            let payloadLength = UInt16(exactly: packet.payloadRange.count)
        else { return nil }
        self.init(
            sequence: sequence,
            timestamp: packet.timestamp,
            payloadType: packet.payloadType,
            marker: packet.marker,
            payloadOffset: payloadOffset,
            payloadLength: payloadLength,
            receivedAt: now
        )
        var cursor = packet.makeExtensionCursor()
        while let element = cursor.next() {
            switch extensions.kind(of: element.id) {
            case .audioLevel: audioLevel = Field(element.range)
            case .videoOrientation: videoOrientation = Field(element.range)
            case .playoutDelay: playoutDelay = Field(element.range)
            case .dependencyDescriptor:
                dependencyDescriptor = Field(element.range)
                guard hasFrameNumber else { continue }
                let place = element.range.lowerBound + DependencyDescriptorHead.frameNumberOffset
                frameNumber = packet.bytes.bigEndianUInt16(at: place)
            default: break
            }
        }
        guard codec.kind == .video, payloadLength > 0 else { return }
        readPayload(packet, codec: codec)
    }

    private mutating func readPayload(_ packet: borrowing RTPPacketView, codec: CodecName) {
        switch codec {
        case .vp8:
            guard let descriptor = VP8PayloadDescriptor(packet.payload) else { return }
            startsKeyFrame = descriptor.isKeyFrameStart
            if let id = descriptor.pictureID {
                notePictureID(id.value, bits: UInt8(id.bits), offset: id.offset)
            }
            if let tl0 = descriptor.tl0PictureIndex {
                tl0Offset = payloadOffset &+ UInt16(truncatingIfNeeded: tl0.offset)
                self.tl0 = tl0.value
            }
        case .vp9:
            guard let descriptor = VP9PayloadDescriptor(packet.payload) else { return }
            startsKeyFrame = descriptor.isKeyFrameStart
            if let id = descriptor.pictureID {
                notePictureID(id.value, bits: UInt8(id.bits), offset: id.offset)
            }
            if let tl0 = descriptor.tl0PictureIndex {
                tl0Offset = payloadOffset &+ UInt16(truncatingIfNeeded: tl0.offset)
                self.tl0 = tl0.value
            }
        default:
            let head =
                dependencyDescriptor.isPresent
                ? DependencyDescriptorHead(packet.bytes.extracting(dependencyDescriptor.range)) : nil
            startsKeyFrame = isKeyFrameStart(codec: codec, payload: packet.payload, descriptor: head)
        }
    }

    private mutating func notePictureID(_ value: UInt16, bits: UInt8, offset: Int) {
        pictureID = value
        pictureIDBits = bits
        pictureIDOffset = payloadOffset &+ UInt16(truncatingIfNeeded: offset)
    }
}
