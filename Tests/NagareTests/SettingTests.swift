import ArgumentParser
import SRTP
import Testing

@testable import nagare

/// The declarations of settings, and the documents generated from them.
@Suite struct SettingTests {
    private static let machine = Machine(cores: 4, addresses: [], srtpBackends: [.openssl, .libsrtp2])

    /// Further settings that a setting needs to be valid.
    private static let announced: [Setting: [String]] = [.announce: ["203.0.113.7"]]

    @Test(arguments: Setting.allCases)
    func `every setting is a flag, a variable and a key of the file`(setting: Setting) throws {
        let arguments: [String]
        let expected: [String]
        switch setting.declaration.kind {
        case .flag: (arguments, expected) = ([setting.flag], ["true"])
        case .value: (arguments, expected) = ([setting.flag, "a"], ["a"])
        case .list: (arguments, expected) = ([setting.flag, "a", setting.flag, "b"], ["a", "b"])
        }
        #expect(try ServeCommand.parse(arguments).flags == [setting: expected])
        let environment = ConfigurationLayer.environment([
            setting.environmentVariable: expected.joined(separator: ",")
        ])
        #expect(try environment.entry(for: setting)?.values == expected)
        let text = "\(setting.rawValue): \(setting.isList ? "[a, b]" : expected[0])"
        let file = try ConfigurationLayer.file(path: "f", contents: Array(text.utf8))
        #expect(try file.entry(for: setting)?.values == expected)
    }

    @Test func `a flag that is repeated counts once, the last one, unless it is a list`() throws {
        #expect(try ServeCommand.parse(["--grace", "1", "--grace", "2"]).flags == [.grace: ["2"]])
        #expect(try ServeCommand.parse(["--no-dev"]).flags == [.dev: ["false"]])
        #expect(try ServeCommand.parse([]).flags.isEmpty)
    }

    private static let defaults = Setting.allCases.compactMap { setting -> (Setting, String)? in
        guard case .value(let value) = setting.declaration.defaultValue else { return nil }
        return (setting, value)
    }

    @Test(arguments: defaults)
    func `a declared default applies without the setting`(setting: Setting, value: String) throws {
        var flags = Self.announced
        // These settings are valid only with another one.
        if setting == .proxyHeader { flags[.trustedProxy] = ["10.0.0.1"] }
        if setting == .otlpSampleRatio { flags[.otlpEndpoint] = ["http://127.0.0.1:4318"] }
        if setting == .urlValidity || setting == .urlExpiry { flags[.urlKey] = ["primary:k"] }
        if setting == .appToken { flags[.app] = ["a:k"] }
        if setting == .clusterName || setting == .clusterUnsignedRecords {
            flags[.clusterStore] = ["redis://127.0.0.1"]
            flags[.clusterLink] = ["127.0.0.1:7400"]
            flags[.clusterSecret] = ["@secret"]
        }
        let without = try NodeConfiguration.resolve([.commandLine(flags)], machine: Self.machine)
        flags[setting] = [value]
        let with = try NodeConfiguration.resolve([.commandLine(flags)], machine: Self.machine)
        #expect(with == without)
    }

    @Test(arguments: Setting.allCases)
    func `a declaration is complete`(setting: Setting) {
        let declaration = setting.declaration
        #expect(declaration.help.hasSuffix(".") && declaration.notes?.hasSuffix(".") ?? true)
        #expect(declaration.placeholder.isEmpty == (declaration.kind == .flag))
        var showsSomething = !declaration.examples.isEmpty
        if case .value = declaration.defaultValue { showsSomething = true }
        #expect(showsSomething, "the example file has to show a value")
        #expect(declaration.kind == .list || declaration.examples.count <= 1)
        #expect(!declaration.isSecret || declaration.defaultValue == .none)
    }

    @Test func `help names every setting under its group`() {
        let help = NagareCommand.helpMessage(for: ServeCommand.self, columns: 400)
        for group in SettingDeclaration.Group.allCases {
            #expect(help.contains("\n\(group.title.uppercased()):\n"))
            #expect(!group.settings.isEmpty)
        }
        for setting in Setting.allCases {
            let declaration = setting.declaration
            let value = declaration.placeholder.isEmpty ? "" : " <\(declaration.placeholder)>"
            #expect(help.contains("  \(setting.flag)\(value)") || declaration.kind == .flag, "\(setting)")
            #expect(help.contains(setting.helpText), "\(setting)")
        }
    }

    @Test func `the table has every setting with its meaning`() {
        let rows = SettingDocuments.table
        #expect(rows.count == Setting.allCases.count + 1, "the file besides")
        for setting in Setting.allCases {
            let row = rows.first { $0.hasPrefix("| `\(setting.flag)`") || $0.hasPrefix("| `\(setting.flag) ") }
            #expect(row?.contains(setting.declaration.help) == true, "\(setting)")
        }
    }
}
