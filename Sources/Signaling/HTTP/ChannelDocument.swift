import NIOCore
import Room
import Wire

/// A channel's membership as the HTTP API shows it.
struct ChannelDocument: Encodable {
    struct Participant: Encodable {
        let id: String
        let name: String?
        /// Whether its transport is up, so that it can be watched.
        let publishing: Bool
        let tracks: [Track]
    }
    struct Track: Encodable {
        let mid: String
        let kind: String
        /// Absent until media arrived.
        let codec: String?
        let active: Bool
        let simulcast: Bool
    }
    let channel: String
    let revision: UInt64
    /// Whom viewers of the channel see.
    let current: String?
    let viewers: Int
    let participants: [Participant]

    init(_ snapshot: ChannelSnapshot) {
        channel = snapshot.channel.value
        revision = snapshot.revision
        current = snapshot.current?.value
        viewers = snapshot.viewerCount
        participants = snapshot.participants.map { participant in
            Participant(
                id: participant.id.value,
                name: participant.displayName,
                publishing: participant.isLive,
                tracks: participant.publications.map { publication in
                    Track(
                        mid: publication.mid.value,
                        kind: publication.kind.rawValue,
                        codec: publication.codec?.rawValue,
                        active: publication.isActive,
                        simulcast: publication.isSimulcast
                    )
                }
            )
        }
    }

    /// A channel that nobody uses is an empty one: it comes into being with its first participant.
    init(empty channel: ChannelName) {
        self.channel = channel.value
        revision = 0
        current = nil
        viewers = 0
        participants = []
    }

    var json: ByteBuffer { encodedJSON(self) }
}
