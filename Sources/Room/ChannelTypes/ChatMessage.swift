/// A message of a channel's chat, for those who join later.
package struct ChatMessage: Hashable, Sendable {
    package let user: String
    package let displayName: String?
    package let text: String
    package let unixSeconds: Int64

    package init(user: String, displayName: String?, text: String, unixSeconds: Int64) {
        self.user = user
        self.displayName = displayName
        self.text = text
        self.unixSeconds = unixSeconds
    }
}
