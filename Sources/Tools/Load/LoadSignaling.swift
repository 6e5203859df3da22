/// A WHIP or WHEP resource that the server created.
package struct CreatedResource: Sendable {
    /// The SDP answer.
    package var answer: String
    /// The resource's URL, for its deletion.
    package var location: String?
    /// The publisher's identifier on the server, for subscribers of one publisher of several.
    package var participant: String?

    package init(answer: String, location: String? = nil, participant: String? = nil) {
        self.answer = answer
        self.location = location
        self.participant = participant
    }
}

/// The signaling of WHIP and WHEP.
package protocol LoadSignaling: Sendable {
    /// - Parameter number: the publisher's number, from 1.
    func publish(offer: String, number: Int) async throws(LoadError) -> CreatedResource
    /// - Parameters:
    ///   - number: the number of the publisher to watch, from 1.
    ///   - participant: its identifier, if the server gave one and there are several.
    func watch(offer: String, number: Int, participant: String?) async throws(LoadError) -> CreatedResource
    /// Deletes a resource. Does nothing if it was deleted already.
    func end(_ resource: CreatedResource) async
}
