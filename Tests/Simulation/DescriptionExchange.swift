import MediaTypes
import Negotiation

/// Both ends of the offers that a node makes to one client.
struct DescriptionExchange {
    private(set) var node: OfferedDescription
    private(set) var client: ClientAnswerer

    init(
        node transport: LocalTransport,
        client clientTransport: LocalTransport,
        sending media: OfferedDescription.ClientMedia,
        using generator: inout some RandomNumberGenerator
    ) {
        node = OfferedDescription(local: transport, clientMedia: media, receivesMedia: true, using: &generator)
        client = ClientAnswerer(transport: clientTransport, using: &generator)
    }

    /// The node offers these streams, and the client answers.
    mutating func offer(
        _ streams: [OfferedDescription.RemoteStream],
        using generator: inout some RandomNumberGenerator
    ) throws -> (offer: String, applied: ClientAnswerer.AppliedOffer, outcome: OfferedDescription.Outcome) {
        let offer = node.makeOffer(streams, using: &generator)
        let sent = [node.clientMIDs.audio, node.clientMIDs.video].compactMap { $0 }
        let applied = try client.answer(offer: offer, sending: Set(sent), using: &generator)
        return (offer, applied, try node.apply(answer: applied.answer))
    }
}
