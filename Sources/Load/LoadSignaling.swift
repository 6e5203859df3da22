/// A session that the server accepted.
package struct AcceptedSession: Sendable {
    /// The SDP answer.
    package var answer: String
    /// What ends the session: its URL.
    package var location: String?
    /// The publisher's name, for subscribers that want this one of several.
    package var participant: String?

    package init(answer: String, location: String? = nil, participant: String? = nil) {
        self.answer = answer
        self.location = location
        self.participant = participant
    }
}

/// How a client's offer gets to the server.
package protocol LoadSignaling: Sendable {
    /// - Parameter number: the publisher's, from 1.
    func publish(offer: String, number: Int) async throws(LoadError) -> AcceptedSession
    /// - Parameters:
    ///   - number: the publisher's that is to be watched, from 1.
    ///   - participant: its name, when the server gave one and there are several.
    func watch(offer: String, number: Int, participant: String?) async throws(LoadError) -> AcceptedSession
    /// Ends a session; that it is gone already is no error.
    func end(_ session: AcceptedSession) async
}
