import ArgumentParser

/// The flags of `nagare serve` for one group of settings, made from their declarations.
///
/// The parser finds options by reflection and decodes them by name. This type provides both from the declarations, so that
/// settings need no properties.
struct SettingOptions<let group: Int>: ParsableArguments, CustomReflectable {
    /// The settings on the command line, each with its values.
    let values: [Setting: [String]]

    init() { values = [:] }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        var values: [Setting: [String]] = [:]
        for setting in Self.settings {
            let key = Key(setting)
            switch setting.declaration.kind {
            case .flag:
                let flag = try container.decode(Flag<Bool?>.self, forKey: key).wrappedValue
                values[setting] = flag.map { ["\($0)"] }
            case .value:
                values[setting] = try container.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] }
            case .list:
                let list = try container.decode(Option<[String]>.self, forKey: key).wrappedValue
                values[setting] = list.isEmpty ? nil : list
            }
        }
        self.values = values
    }

    /// The options for the parser's reflection.
    var customMirror: Mirror {
        let children: [Mirror.Child] = Self.settings.map { (label: $0.rawValue, value: Self.option($0)) }
        return Mirror(self, children: children)
    }

    private static var settings: [Setting] { SettingDeclaration.Group(rawValue: group)?.settings ?? [] }

    private static func option(_ setting: Setting) -> Any {
        let name = NameSpecification.customLong(setting.rawValue)
        let declaration = setting.declaration
        let help = ArgumentHelp(setting.helpText, valueName: declaration.placeholder)
        switch declaration.kind {
        case .flag:
            return Flag<Bool?>(name: name, inversion: .prefixedNo, help: ArgumentHelp(setting.helpText))
        case .value: return Option<String?>(name: name, help: help)
        case .list: return Option<[String]>(wrappedValue: [], name: name, help: help)
        }
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ setting: Setting) { stringValue = setting.rawValue }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
