import SRTP
import Testing
import ToolCommands

@testable import nagare

@Suite struct LimitTests {
    private static let machine = Machine(cores: 4, addresses: [], srtpBackends: [.libsrtp2])

    private func limits(_ texts: String...) throws -> NodeLimits {
        var flags: [Setting: [String]] = [.dev: ["true"]]
        if !texts.isEmpty { flags[.limit] = texts }
        let layer = ConfigurationLayer.commandLine(flags)
        return try NodeConfiguration.resolve([layer], machine: Self.machine).limits
    }

    private func refusal(_ texts: String...) throws -> String {
        let layer = ConfigurationLayer.commandLine([.dev: ["true"], .limit: texts])
        let error = #expect(throws: CommandError.self) {
            try NodeConfiguration.resolve([layer], machine: Self.machine)
        }
        return "\(try #require(error))"
    }

    @Test func `every limit is set by its name and changes nothing else`() throws {
        #expect(try limits() == NodeLimits())
        for limit in Limit.all {
            let other = limit.defaultValue == limit.range.lowerBound ? limit.defaultValue + 1 : limit.defaultValue - 1
            let changed = try limits("\(limit.name)=\(other)")
            #expect(limit.value(changed) == other, "\(limit.name)")
            var expected = NodeLimits()
            limit.set(&expected, other)
            #expect(changed == expected && changed != NodeLimits(), "\(limit.name)")
        }
    }

    @Test func `names are unique and defaults are in their ranges`() {
        #expect(Set(Limit.all.map(\.name)).count == Limit.all.count)
        for limit in Limit.all { #expect(limit.range.contains(limit.defaultValue), "\(limit.name)") }
    }

    @Test func `an invalid limit is one sentence with the expected syntax`() throws {
        #expect(try refusal("channels") == "--limit is \"channels\": write a limit as channels=1000.")
        #expect(try refusal("chanels=5").contains("unknown limit \"chanels\" (do you mean \"channels\"?)"))
        #expect(try refusal("channels=many").hasSuffix("write a whole number from 1 to 10000000."))
        #expect(try refusal("channels=0").hasSuffix("write a whole number from 1 to 10000000."))
        #expect(try refusal("channels=5", "channels=6") == "--limit sets \"channels\" twice.")
    }
}
