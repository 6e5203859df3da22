internal import CSQLite

/// Why the database did not do what it was asked.
struct DatabaseError: Error, Hashable, CustomStringConvertible {
    /// SQLite's primary result code.
    let code: Int32
    /// SQLite's own sentence.
    let message: String

    var description: String { "SQLite error \(code): \(message)" }

    /// Whether the file is no database, or a damaged one.
    var isDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
    /// Whether the database may not grow any more, by its own limit or because the disk is full.
    var isFull: Bool { code == SQLITE_FULL }
}

/// A SQLite database with one connection, which one thread at a time uses.
@safe struct Database: ~Copyable {
    enum Value: Hashable {
        case null
        case integer(Int64)
        case text(String)
    }

    private let handle: OpaquePointer

    /// Opens a file, or makes it.
    /// - Parameter path: `:memory:` for a database without a file.
    init(path: String) throws(DatabaseError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = unsafe sqlite3_open_v2(path, &opened, flags, nil)
        guard let connection = unsafe opened else {
            throw DatabaseError(code: SQLITE_NOMEM, message: "There is no memory for the database.")
        }
        guard code == SQLITE_OK else {
            let error = unsafe Self.error(of: connection)
            _ = unsafe sqlite3_close_v2(connection)
            throw error
        }
        unsafe handle = connection
    }

    deinit { _ = unsafe sqlite3_close_v2(handle) }

    /// The number of rows that the last statement inserted, changed or deleted.
    var changes: Int { Int(unsafe sqlite3_changes(handle)) }

    /// Performs one statement.
    /// - Parameters:
    ///   - values: of the statement's parameters, in their order.
    ///   - row: called with the columns of each row.
    func run(_ sql: String, _ values: [Value] = [], row: ([Value]) -> Void = { _ in }) throws(DatabaseError) {
        var prepared: OpaquePointer?
        guard unsafe sqlite3_prepare_v2(handle, sql, -1, &prepared, nil) == SQLITE_OK,
            let statement = unsafe prepared
        else { throw unsafe Self.error(of: handle) }
        defer { _ = unsafe sqlite3_finalize(statement) }
        for (index, value) in values.enumerated() {
            let position = Int32(truncatingIfNeeded: index + 1)
            let code =
                switch value {
                case .null: unsafe sqlite3_bind_null(statement, position)
                case .integer(let integer): unsafe sqlite3_bind_int64(statement, position, integer)
                case .text(let text):
                    unsafe nagare_sqlite_bind_text(
                        statement,
                        position,
                        text,
                        Int32(truncatingIfNeeded: text.utf8.count)
                    )
                }
            guard code == SQLITE_OK else { throw unsafe Self.error(of: handle) }
        }
        while true {
            switch unsafe sqlite3_step(statement) {
            case SQLITE_DONE: return
            case SQLITE_ROW: row(unsafe Self.columns(of: statement))
            default: throw unsafe Self.error(of: handle)
            }
        }
    }

    private static func columns(of statement: OpaquePointer) -> [Value] {
        let count = unsafe sqlite3_column_count(statement)
        return (0..<max(count, 0)).map { index in
            switch unsafe sqlite3_column_type(statement, index) {
            case SQLITE_INTEGER: return .integer(unsafe sqlite3_column_int64(statement, index))
            case SQLITE_TEXT:
                guard let text = unsafe sqlite3_column_text(statement, index) else { return .null }
                let count = Int(unsafe sqlite3_column_bytes(statement, index))
                return .text(unsafe String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self))
            default: return .null
            }
        }
    }

    private static func error(of connection: OpaquePointer) -> DatabaseError {
        DatabaseError(
            code: unsafe sqlite3_errcode(connection),
            message: unsafe sqlite3_errmsg(connection).map { unsafe String(cString: $0) } ?? ""
        )
    }
}
