package import Base
package import Wire

extension PacketDescription {
    /// Reads what forwarding needs of a decrypted packet: the one parse that it gets.
    /// - Parameter templates: the stream's dependency structure, which a key frame replaces; without it only the mandatory
    ///   fields of a dependency descriptor are read.
    /// - Returns: `nil` when the packet is too long to be described, which no datagram's is.
    package init?(
        _ packet: borrowing RTPPacketView,
        sequence: ExtendedSequenceNumber,
        codec: CodecName,
        extensions: HeaderExtensionMap,
        templates: Unretained<DependencyTemplates>? = nil,
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
        var isScreenContent = false
        var cursor = packet.makeExtensionCursor()
        while let element = cursor.next() {
            switch extensions.kind(of: element.id) {
            case .audioLevel: audioLevel = Field(element.range)
            case .videoOrientation: videoOrientation = Field(element.range)
            case .playoutDelay: playoutDelay = Field(element.range)
            case .videoContentType:
                isScreenContent = VideoContentType(packet.bytes.extracting(element.range)) == .screenshare
            case .dependencyDescriptor:
                dependencyDescriptor = Field(element.range)
                guard hasFrameNumber else { continue }
                if let templates {
                    templates.object.read(packet.bytes.extracting(element.range), into: &self)
                } else {
                    let place = element.range.lowerBound + DependencyDescriptorHeader.frameNumberOffset
                    frameNumber = packet.bytes.bigEndianUInt16(at: place)
                }
            default: break
            }
        }
        guard codec.kind == .video, payloadLength > 0 else { return }
        readPayload(packet, codec: codec)
        guard isScreenContent else { return }
        frame.insert(.isScreenContent)
        isPlain = false
    }

    private mutating func readPayload(_ packet: borrowing RTPPacketView, codec: CodecName) {
        switch codec {
        case .vp8:
            guard let descriptor = VP8PayloadDescriptor(packet.payload) else { return }
            read(descriptor)
        case .vp9:
            guard let descriptor = VP9PayloadDescriptor(packet.payload) else { return }
            read(descriptor)
        default:
            let head =
                dependencyDescriptor.isPresent
                ? DependencyDescriptorHeader(packet.bytes.extracting(dependencyDescriptor.range)) : nil
            startsKeyFrame = isKeyFrameStart(codec: codec, payload: packet.payload, descriptor: head)
            // The descriptor is there for payloads that a forwarder cannot read.
            if head == nil { readFrame(packet.payload, codec: codec) }
        }
    }

    private mutating func read(_ descriptor: VP8PayloadDescriptor) {
        startsKeyFrame = descriptor.isKeyFrameStart
        temporalID = descriptor.temporalID ?? 0
        var facts: FrameFacts = .closesPictureIDs
        if descriptor.startsPartition, descriptor.partition == 0 { facts.insert(.startsFrame) }
        if marker { facts.insert(.endsFrame) }
        if descriptor.layerSync { facts.insert(.switchesUp) }
        if descriptor.nonReference { facts.insert(.isDiscardable) }
        frame = facts
        note(descriptor.pictureID, descriptor.tl0PictureIndex)
    }

    private mutating func read(_ descriptor: VP9PayloadDescriptor) {
        startsKeyFrame = descriptor.isKeyFrameStart
        spatialID = descriptor.spatialID ?? 0
        temporalID = descriptor.temporalID ?? 0
        var facts: FrameFacts = []
        if descriptor.beginsFrame { facts.insert(.startsFrame) }
        if descriptor.endsFrame { facts.insert(.endsFrame) }
        if descriptor.switchingUp { facts.insert(.switchesUp) }
        if descriptor.interPicturePredicted { facts.insert(.refersToEarlier) }
        if descriptor.interLayerDependency { facts.insert(.refersToLowerLayer) }
        if descriptor.notReferencedByUpperLayers { facts.insert(.isUnusedAbove) }
        if descriptor.isFlexible { facts.insert(.isFlexible) }
        frame = facts
        note(descriptor.pictureID, descriptor.tl0PictureIndex)
    }

    private mutating func readFrame(_ payload: RawSpan, codec: CodecName) {
        if marker { frame.insert(.endsFrame) }
        let unit: NALUnitHeader?
        switch codec {
        case .h264: unit = NALUnitHeader(h264: payload)
        case .h265: unit = NALUnitHeader(h265: payload)
        default:
            // Without a descriptor an AV1 payload shows the start of a coded video sequence only.
            if startsKeyFrame { frame.insert(.startsFrame) }
            return
        }
        guard let unit else { return }
        temporalID = unit.temporalID
        if unit.startsFrame { frame.insert(.startsFrame) }
        if unit.isDiscardable { frame.insert(.isDiscardable) }
        if unit.switchesUp { frame.insert(.switchesUp) }
    }

    private mutating func note(_ pictureID: PictureIDField?, _ tl0: TL0PictureIndexField?) {
        if let pictureID {
            self.pictureID = pictureID.value
            pictureIDBits = UInt8(truncatingIfNeeded: pictureID.bits)
            pictureIDOffset = UInt8(truncatingIfNeeded: pictureID.offset)
        }
        if let tl0 {
            tl0Offset = UInt8(truncatingIfNeeded: tl0.offset)
            self.tl0 = tl0.value
        }
    }
}
