import Testing

@testable import RTMP

@Suite struct ErrorTests {
    static let sentences: [(RTMPError, String)] = [
        (.missingHeader(chunkStream: 9), "Chunk stream 9 refers to a message header that it never had."),
        (.brokenMessage(chunkStream: 4), "Chunk stream 4 begins a message before the last one is complete."),
        (.tooManyChunkStreams, "The client uses more than 16 chunk streams."),
        (.chunkSize(65_537), "The client sets a chunk size of 65537; it must be between 1 and 65536 bytes."),
        (.messageTooLong(4_097, max: 4_096), "A message has 4097 bytes; 4096 are allowed."),
        (.tooMuchIncomplete(max: 16_384), "Incomplete messages have more than 16384 bytes."),
        (
            .tooMuchDeferred,
            "The client sent more than 81920 bytes before its request to publish was answered."
        ),
        (.shortControlMessage(type: 4), "A control message of type 4 is too short."),
        (.amf(.truncated), "A message in AMF0 ends inside a value."),
        (.amf(.unknownMarker(17)), "A message in AMF0 has a value of the unknown type 17."),
        (.amf(.tooDeep), "A message in AMF0 has values within each other deeper than 8."),
        (.amf(.tooManyMembers), "A message in AMF0 has an object of more than 64 members."),
        (.amf(.tooManyValues), "A message in AMF0 has more than 512 values."),
        (.amf(.missingName), "A message in AMF0 does not begin with a name."),
        (.missingArgument(.publish), "The command publish lacks an argument."),
        (.notConnected, "The client sent another command before connect."),
        (.connectedTwice, "The client sent a second connect."),
        (.mediaBeforePublish, "The client sent sound or pictures before publish was accepted."),
        (.brokenAggregate, "An aggregate message contradicts its length, or has more than 512 messages."),
        (.handshakeTimeout, "The handshake was not complete in 5 s."),
        (.publishTimeout, "The client did not publish within 10 s."),
        (.silence, "The publisher sent nothing for 10 s."),
    ]

    @Test(arguments: sentences)
    func `an error says what is wrong`(error: RTMPError, sentence: String) {
        #expect("\(error)" == sentence)
    }
}
