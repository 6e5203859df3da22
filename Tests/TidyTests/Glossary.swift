/// Words that a type's name has in the modules that own them only, so that a name says one thing.
enum Glossary {
    struct Word: Sendable {
        /// In the name of a type.
        let word: String
        let meaning: String
        /// The modules, or single types of other modules, that may have it.
        let owners: Set<String>
    }

    static let words = [
        Word(word: "Relay", meaning: "a TURN relay (RFC 8656)", owners: ["TURN"]),
        Word(
            word: "Turn",
            meaning: "a turn among several; the protocol is spelled TURN",
            owners: ["SendTurn", "DeliveryTurns", "FairTurns", "OwnedFairTurns", "LoopTurns", "Turn"]
        ),
        Word(
            word: "Room",
            meaning: "the module and what it stands on, and a call of two in Ayame's protocol",
            owners: [
                "Room", "ChannelTypes", "AyameRooms", "RoomsService", "RoomEntry", "RoomSession", "RoomCounts",
            ]
        ),
        Word(
            word: "Link",
            meaning: "a connection between two nodes, or an emulated network",
            owners: [
                "Cluster", "Forwarding", "Media", "MediaTypes", "SRTP", "Impairment", "ImpairmentProxy", "LinkState",
                "ViewerLink",
            ]
        ),
    ]
}
