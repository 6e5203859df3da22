import ArgumentParser
import Impairment
import ImpairmentProxy
import Testing
import Wire

@testable import ToolCommands

struct ImpairCommandTests {
    private func plan(_ arguments: String...) throws -> ImpairCommand.Plan {
        try ImpairCommand.parse(arguments).plan
    }

    @Test func `without options it stands before a development node`() throws {
        let plan = try plan()
        #expect(plan.target == .http(SignalingProxy.Target(host: "127.0.0.1", port: 8_080)))
        #expect(plan.listen == TransportAddress("127.0.0.1:8088"))
        #expect(plan.down == LinkConditions())
    }

    @Test func `a node has a URL, or a media address`() throws {
        #expect(try plan("--to", "http://[::1]/").target == .http(SignalingProxy.Target(host: "::1", port: 80)))
        #expect(try plan("--to", "localhost:7000").target == .media(try #require(TransportAddress("127.0.0.1:7000"))))
        #expect(try plan("--down", "rate=1M,delay=50ms").down == LinkConditions(parsing: "rate=1M,delay=50ms"))
        #expect(try plan("--up", "loss=5%").up.loss == 0.05)
    }

    @Test(arguments: [
        (["--to", "nowhere"], "--to is \"nowhere\": write the node's URL"),
        (["--to", "https://127.0.0.1"], "does not connect with TLS"),
        (["--to", "http://127.0.0.1/whep/x"], "write the node's URL"),
        (["--to", "127.0.0.1:0"], "write the address and port of the node's media"),
        (["--listen", "8088"], "--listen is \"8088\": write an IP address and a port"),
        (["--down", "fast"], "--down: \"fast\" is not NAME=VALUE"),
        (["--up", "rate=1"], "--up: rate=1 cannot be read: write rate=1M"),
    ])
    func `a wrong option is named with what to write`(arguments: [String], message: String) throws {
        let error = #expect(throws: CommandError.self) { try ImpairCommand.parse(arguments).plan }
        #expect(try #require(error).message.contains(message))
        #expect(error?.exitStatus == 64)
    }
}
