import Base

extension RTMPConnection {
    mutating func receive(_ command: RTMPCommand, at now: Instant, _ actions: inout [Action]) throws(RTMPError) {
        guard let name = command.name else { return }
        switch (name, phase) {
        case (.connect, .waiting(nil, let until)): try connect(command, until: until)
        case (.connect, _): throw .connectedTwice
        case (_, .waiting(nil, _)): throw .notConnected
        case (.releaseStream, _), (.prepareToPublish, _): writeResult(command, [.null, .undefined])
        case (.createStream, _): writeResult(command, [.null, .number(1)])
        case (.publish, .waiting(let client?, _)):
            guard let argument = command.argument else { throw .missingArgument(.publish) }
            let request = RTMPPublishRequest(client, argument: argument)
            phase = .deciding(request, stream: Self.answerStream(command), deferred: [])
            actions.append(.publish(request))
        case (.publish, .publishing(let publication)):
            let refusal = RTMPRefusal(.badName, "This connection already publishes a stream.")
            refuse(refusal, stream: publication.stream, at: now, &actions)
        case (.play, _), (.play2, _):
            let refusal = RTMPRefusal(.notPlayable, "play over HLS, FLV or WHEP")
            refuse(refusal, stream: Self.answerStream(command), at: now, &actions)
        case (.unpublish, .publishing(let publication)), (.deleteStream, .publishing(let publication)),
            (.closeStream, .publishing(let publication)):
            writeStatus("NetStream.Unpublish.Success", "The stream has ended.", stream: publication.stream)
            close(.unpublished, at: now, &actions)
        case (.publish, _), (.unpublish, _), (.deleteStream, _), (.closeStream, _): break
        }
    }

    /// The message stream of an answer. Clients that publish on stream 0 expect it on the one that they created.
    private static func answerStream(_ command: RTMPCommand) -> UInt32 { command.stream == 0 ? 1 : command.stream }

    private mutating func connect(_ command: RTMPCommand, until: Instant) throws(RTMPError) {
        guard let object = command.values.first, !object.members.isEmpty else { throw .missingArgument(.connect) }
        phase = .waiting(client: RTMPClientInfo(object), until: until)
        writer.writeControl(.windowAcknowledgementSize, RTMPAcknowledgement.windowBytesMax)
        // The limit type “dynamic” (RTMP 1.0 §5.4.5).
        writer.writeControl(.setPeerBandwidth, RTMPAcknowledgement.windowBytesMax, [2])
        writer.setChunkSize(RTMPLimits.chunkBytesMax)
        let properties: [AMF0Member] = [
            // The numbers that servers tell since Flash. Some encoders want one before they send H.264.
            AMF0Member("fmsVer", .string("FMS/3,0,1,123")), AMF0Member("capabilities", .number(31)),
        ]
        let info = Self.status("NetConnection.Connect.Success", "Connected.")
        writer.writeCommand(
            "_result",
            command.transaction,
            [
                .object(properties + settings.members),
                .object(info + [AMF0Member("objectEncoding", .number(0))]),
            ]
        )
    }

    /// Answers a command whose sender wants an answer.
    private mutating func writeResult(_ command: RTMPCommand, _ values: [AMF0Value]) {
        guard command.transaction > 0 else { return }
        writer.writeCommand("_result", command.transaction, values)
    }

    // MARK: - Status messages

    private static func status(_ code: String, _ description: String, level: String = "status") -> [AMF0Member] {
        [
            AMF0Member("level", .string(level)), AMF0Member("code", .string(code)),
            AMF0Member("description", .string(description)),
        ]
    }

    mutating func writeStatus(
        _ code: String,
        _ description: String,
        level: String = "status",
        stream: UInt32,
        _ more: [AMF0Member] = []
    ) {
        let text = String(decoding: description.utf8.prefix(RTMPLimits.descriptionBytesMax), as: UTF8.self)
        let info = Self.status(code, text, level: level) + more
        writer.writeCommand("onStatus", 0, [.null, .object(info)], stream: stream)
    }

    mutating func refuse(_ refusal: RTMPRefusal, stream: UInt32, at now: Instant, _ actions: inout [Action]) {
        writeStatus(refusal.code.rawValue, refusal.description, level: "error", stream: stream)
        close(.refused(refusal), at: now, &actions)
    }

    private mutating func close(_ end: End, at now: Instant, _ actions: inout [Action]) {
        phase = .closing(until: now + RTMPLimits.closeDelay)
        actions.append(.ended(end))
    }
}
