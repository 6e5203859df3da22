import AccessTestSupport
import Base
import ChannelTypes
import JSON
import Logging
import Synchronization
import Testing

@testable import Access

/// A login service with keys, its outages, and the clock of who asks it.
private final class LoginService: Sendable {
    struct State {
        var now = Instant(nanoseconds: 0)
        var keys: [JSONValue] = []
        var body: [UInt8]?
        var maxAge: Int?
        var isDown = false
        var fetches = 0
        var sleeps: [Interval] = []
    }
    let state = Mutex(State())

    init(_ keys: [JSONValue]) { state.withLock { $0.keys = keys } }

    var fetches: Int { state.withLock { $0.fetches } }
    func change(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }
    func pass(_ interval: Interval) { state.withLock { $0.now += interval } }

    func keySet(sleep: @escaping @Sendable (Interval) async -> Void = { _ in }) -> RemoteKeySet {
        RemoteKeySet(
            url: "https://login.example.org/jwks",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { [self] in state.withLock { $0.now } },
            sleep: sleep,
            fetch: { [self] () throws(KeySetFailure) in try fetch() }
        )
    }

    private func fetch() throws(KeySetFailure) -> FetchedKeySet {
        let answer = state.withLock { state -> FetchedKeySet? in
            state.fetches += 1
            let body = state.body ?? JSONValue.keySet(state.keys).bytes
            return state.isDown ? nil : FetchedKeySet(body: body, maxAge: state.maxAge)
        }
        guard let answer else { throw KeySetFailure(message: "The server did not answer in time.") }
        return answer
    }
}

@Suite(.timeLimit(.minutes(5)))
struct RemoteKeySetTests {
    private func authorizer(_ remote: RemoteKeySet, jwt: [JWTKey] = []) -> SignatureAuthorizer {
        SignatureAuthorizer(
            keys: AccessKeys(jwt: jwt, remote: remote),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { 1_500_000_000 }
        )
    }

    @Test func `a key that is published later is fetched at once for its first token`() async throws {
        let service = LoginService([.edKey])
        let remote = service.keySet()
        let authorizer = authorizer(remote)
        #expect(await remote.refresh() == nil)
        #expect(await authorizer.admit(.newcomer(TokenVectors.edDSAToken)).grants != nil)
        service.change { $0.keys = [.rsaKey] }
        service.pass(.seconds(10))
        // In metadata, in the Authorization header, and as a viewer.
        #expect(await authorizer.admit(.newcomer(TokenVectors.rs256Token)).grants != nil)
        #expect(service.fetches == 2)
        let credential = await authorizer.verify(TokenVectors.rs256Token)
        #expect(credential.expiry != nil)
        #expect(await authorizer.authorize(.watch(ChannelName("lobby")!), credential) == .allowed)
        #expect(service.fetches == 2)
        // The old key is not in the set any more.
        #expect(await authorizer.admit(.newcomer(TokenVectors.edDSAToken)).isDenied)
    }

    @Test func `clients with unknown key IDs cause few fetches`() async throws {
        let service = LoginService([.edKey])
        let remote = service.keySet()
        let authorizer = authorizer(remote)
        await remote.refresh()
        for _ in 0..<50 { #expect(await authorizer.admit(.newcomer(TokenVectors.rs256Token)).isDenied) }
        #expect(service.fetches == 1)
        service.pass(.seconds(10))
        for _ in 0..<50 { #expect(await authorizer.admit(.newcomer(TokenVectors.rs256Token)).isDenied) }
        #expect(service.fetches == 2)
        // Only a token that another public key could have signed is worth a fetch.
        service.pass(.seconds(10))
        #expect(await authorizer.admit(.newcomer(TokenVectors.hs256Token)).isDenied)
        #expect(await authorizer.admit(.newcomer(TokenVectors.edDSAToken + "A")).isDenied)
        #expect(service.fetches == 2)
    }

    @Test func `clients that come together wait for one fetch`() async {
        let service = LoginService([.rsaKey])
        let authorizer = authorizer(service.keySet())
        let admitted = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<32 {
                group.addTask { await authorizer.admit(.newcomer(TokenVectors.rs256Token)).grants != nil }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(admitted == 32 && service.fetches == 1)
    }

    @Test(arguments: [nil, Array("<html>".utf8), JSONValue.keySet([]).bytes] as [[UInt8]?])
    func `in an outage the keys in hand stay in use`(body: [UInt8]?) async throws {
        let service = LoginService([.rsaKey])
        let remote = service.keySet()
        let authorizer = authorizer(remote)
        await remote.refresh()
        service.change { state in
            state.body = body
            state.isDown = body == nil
        }
        service.pass(.seconds(7_200))
        #expect(await remote.refresh() != nil)
        #expect(await authorizer.admit(.newcomer(TokenVectors.rs256Token)).grants != nil)
        #expect(await authorizer.admit(.newcomer(TokenVectors.es256Token)).isDenied)
        let counts = await remote.counts
        #expect(counts.fetched == 1 && counts.failed == 1 && counts.keys == 1 && counts.age == .seconds(7_200))
        #expect(service.fetches == 2)
        service.change { state in
            (state.isDown, state.body, state.keys) = (false, nil, [.rsaKey, .ecKey])
        }
        service.pass(.seconds(5))
        #expect(await authorizer.admit(.newcomer(TokenVectors.es256Token)).grants != nil)
        #expect(await remote.counts.age == .zero)
    }

    @Test func `keys of the settings work beside those of the URL, and without them`() async throws {
        let service = LoginService([.rsaKey])
        service.change { $0.isDown = true }
        let remote = service.keySet()
        #expect(!AccessKeys(remote: remote).isEmpty)
        let secret = try JWTKey(.hs256, text: TokenVectors.secret)
        let authorizer = authorizer(remote, jwt: [secret])
        #expect(await authorizer.admit(.newcomer(TokenVectors.hs256Token)).grants != nil)
        #expect(service.fetches == 0)
        #expect(await authorizer.admit(.newcomer(TokenVectors.rs256Token)).isDenied)
        let counts = await remote.counts
        #expect(service.fetches == 1 && counts.keys == 0 && counts.age == nil)
        #expect(await authorizer.authorize(.probe, nil) == .unauthenticated)
    }

    @Test func `a set that is stopped does not start, also when it is stopped before its start`() async {
        let service = LoginService([.edKey])
        let replaced = service.keySet { _ in for await _ in AsyncStream<Void>.makeStream().stream {} }
        await replaced.stop()
        await replaced.start()
        #expect(await !replaced.isRunning)
        let running = service.keySet { _ in for await _ in AsyncStream<Void>.makeStream().stream {} }
        await running.start()
        await running.start()
        #expect(await running.isRunning)
        await running.stop()
        await running.start()
        #expect(await !running.isRunning)
    }

    @Test func `the keys are fetched again as the answers' ages say, and sooner after a failure`() async {
        let service = LoginService([.rsaKey])
        service.change { $0.maxAge = 60 }
        let (ends, end) = AsyncStream<Void>.makeStream()
        let remote = service.keySet { interval in
            let isOver = service.state.withLock { state in
                guard state.fetches < 5 else { return true }
                state.sleeps.append(interval)
                state.now += interval
                state.isDown = state.fetches == 2
                return false
            }
            guard isOver else { return }
            end.finish()
            // As a cancelled sleep would.
            for await _ in AsyncStream<Void>.makeStream().stream {}
        }
        await remote.start()
        await remote.start()
        for await _ in ends {}
        await remote.stop()
        let (total, longest) = service.state.withLock { state in
            (state.sleeps.reduce(.zero, +), state.sleeps.max())
        }
        // Two answers that are good for a minute, a failure, and a minute again: 60 + 60 + 5 + 60.
        #expect(service.fetches == 5 && longest == .seconds(5) && total == .seconds(185))
        let counts = await remote.counts
        #expect(counts.failed == 1 && counts.fetched == 4)
    }
}
