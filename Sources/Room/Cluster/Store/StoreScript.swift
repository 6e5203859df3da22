import Base

/// A request as the store runs it: a script, its keys, all in one hash slot, and its arguments.
struct StoreCall: Hashable, Sendable {
    var script: StoreScript
    var keys: [String]
    var arguments: [String]

    /// With the whole script, for a store that does not know it.
    var eval: RESPCommand { command("EVAL", script.text) }
    var evalSHA: RESPCommand { command("EVALSHA", script.digest) }

    private func command(_ name: String, _ script: String) -> RESPCommand {
        RESPCommand(([name, script, String(keys.count)] + keys + arguments).map { Array($0.utf8) })
    }
}

/// A Lua script that runs in the store without interruption. Repeating one changes nothing more.
///
/// The clock is the store's. Scripts of two versions run side by side: an argument or a field of an answer may be added
/// at the end, and nothing else may change.
enum StoreScript: CaseIterable, Hashable, Sendable {
    case enlist, beat, attach, detach, sweep

    var text: String {
        switch self {
        case .enlist: Self.now + Self.enlistText
        case .beat: Self.now + Self.beatText
        case .attach: Self.now + Self.roomText + Self.attachText
        case .detach: Self.roomText + Self.detachText
        case .sweep: Self.roomText + Self.sweepText
        }
    }

    /// The name of the script for `EVALSHA`: 40 hexadecimal digits.
    var digest: String { Self.digests[self] ?? "" }

    private static let digests = Dictionary(uniqueKeysWithValues: allCases.map { ($0, sha1($0.text)) })

    private static func sha1(_ text: String) -> String {
        var sha1 = SHA1()
        let bytes = Array(text.utf8)
        unsafe sha1.update(bytes.span.bytes)
        let digest = sha1.finalize()
        return digest.indices.map { index in
            let digits = String(digest[index], radix: 16)
            return digest[index] < 16 ? "0" + digits : digits
        }.joined()
    }

    private static let now = """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local function incarnation(text) return tonumber(string.match(text or '', '^%d+')) or 0 end

        """

    /// KEYS meta, node. ARGV: node, generation candidate, silence in ms, highest incarnation, step after silence.
    private static let enlistText = """
        local silent, most, step = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
        redis.call('HSETNX', KEYS[1], 'gen', ARGV[2])
        local meta = redis.call('HMGET', KEYS[1], 'inc', 'beat', 'grace')
        local highest, last, grace = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
        local own = incarnation(redis.call('HGET', KEYS[2], ARGV[1]))
        if own > highest then highest = own end
        -- While nodes may be there that have not been heard since, their incarnations are not known.
        if now - last > silent or now < math.max(last, grace) then highest = highest + step else highest = highest + 1 end
        if highest > most then return redis.error_reply('EXHAUSTED no incarnation is left') end
        redis.call('HSET', KEYS[1], 'inc', highest)
        return highest
        """

    /// KEYS meta, node, seen, changes. ARGV: node, incarnation, record, generation, cursor, generation candidate, absence,
    /// silence, grace and oblivion in ms, the most changes, the most nodes to forget, the time of the last answer, by how much the
    /// clock may go back in ms.
    private static let beatText = """
        local meta, nodes, seen, changes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
        local id, inc, record, cursor = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[5])
        local absent, silent, most = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[11])
        redis.call('HSETNX', meta, 'gen', ARGV[6])
        local known = redis.call('HMGET', meta, 'gen', 'inc', 'rev', 'beat', 'grace')
        local gen, highest, rev = known[1], tonumber(known[2] or 0), tonumber(known[3] or 0)
        local last, grace = tonumber(known[4] or 0), tonumber(known[5] or 0)
        -- An older copy of the store has not seen all changes that the node has, or not all heartbeats. Rooms are lost with both.
        local answered, tolerance = tonumber(ARGV[13] or 0), tonumber(ARGV[14] or 0)
        local older = ARGV[4] == gen and (cursor > rev or (answered > last + tolerance and answered <= now))
        if older then gen = ARGV[6]; redis.call('HSET', meta, 'gen', gen) end
        if ARGV[4] ~= gen then cursor = 0 end
        if older or now - last > silent or now < last then grace = now + tonumber(ARGV[9]) end
        if now < last then
            -- The clock went back. A time that is to come would keep a node present.
            for _, other in ipairs(redis.call('ZRANGEBYSCORE', seen, '(' .. now, '+inf')) do
                redis.call('ZADD', seen, now, other)
            end
        end
        redis.call('HSET', meta, 'beat', now, 'grace', grace)
        local stored = redis.call('HGET', nodes, id)
        local owner = incarnation(stored)
        local fenced = owner > inc
        local has = owner == inc
        if not fenced then
            if inc > highest then redis.call('HSET', meta, 'inc', inc) end
            local changed = false
            if record ~= '' then
                local value = ARGV[2] .. ' ' .. record
                has = true
                if value ~= stored then
                    redis.call('HSET', nodes, id, value)
                    changed = true
                end
            end
            if has then
                local before = tonumber(redis.call('ZSCORE', seen, id) or 0)
                -- Who forgot an absent node learns of its return.
                if changed or now - before > absent then
                    rev = redis.call('HINCRBY', meta, 'rev', 1)
                    redis.call('ZADD', changes, rev, id)
                end
                redis.call('ZADD', seen, now, id)
            end
        end
        local missing = {}
        if now >= grace then
            local forgotten = '(' .. (now - tonumber(ARGV[10]))
            local old = redis.call('ZRANGEBYSCORE', seen, '-inf', forgotten, 'LIMIT', 0, ARGV[12])
            for _, other in ipairs(old) do
                redis.call('HDEL', nodes, other)
                redis.call('ZREM', seen, other)
                redis.call('ZREM', changes, other)
            end
            missing = redis.call('ZRANGEBYSCORE', seen, '-inf', '(' .. (now - absent))
        end
        local found = redis.call('ZRANGEBYSCORE', changes, '(' .. cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
        local list = {}
        local reached = rev
        for i = 1, #found, 2 do
            list[#list + 1] = found[i]
            list[#list + 1] = redis.call('HGET', nodes, found[i]) or ''
            if #found == most * 2 then reached = tonumber(found[i + 1]) end
        end
        return { gen, rev, reached, now, grace, fenced and 1 or 0, has and 1 or 0, list, missing }
        """

    private static let roomText = """
        local function number(text) return tonumber(string.match(text or '', '^%d+')) or 0 end
        local function finish(room, life)
            for _, field in ipairs(redis.call('HKEYS', room)) do
                if string.sub(field, 1, 2) == 'n:' then
                    if life then redis.call('PEXPIRE', room, life) end
                    return
                end
            end
            redis.call('DEL', room)
        end
        local function join(room, id, inc)
            local field = 'n:' .. id
            local own = number(redis.call('HGET', room, field))
            if own < inc then
                redis.call('HSET', room, field, string.format('%d:%d', inc, redis.call('HINCRBY', room, 'r', 1)))
            end
        end

        """

    /// KEYS room. ARGV: node, incarnation, session, life in ms.
    private static let attachText = """
        local room, id, inc = KEYS[1], ARGV[1], tonumber(ARGV[2])
        local fenced = number(redis.call('HGET', room, 'n:' .. id)) > inc
        if not fenced then
            if redis.call('HSETNX', room, 's', ARGV[3]) == 1 then
                -- Nodes of earlier versions do not read a room without `e` and `a`.
                redis.call('HSET', room, 'c', now, 'e', 1, 'a', id .. ':' .. ARGV[2])
            end
            join(room, id, inc)
            redis.call('PEXPIRE', room, ARGV[4])
        end
        return { fenced and 1 or 0, redis.call('HGETALL', room) }
        """

    /// KEYS room. ARGV: node, incarnation.
    private static let detachText = """
        local field = 'n:' .. ARGV[1]
        local own = number(redis.call('HGET', KEYS[1], field))
        if own == 0 or own > tonumber(ARGV[2]) then return 0 end
        redis.call('HDEL', KEYS[1], field)
        finish(KEYS[1], nil)
        return 1
        """

    /// KEYS rooms. ARGV: life in ms, then pairs of a node and its highest incarnation that is gone.
    private static let sweepText = """
        local removed = 0
        for _, room in ipairs(KEYS) do
            if redis.call('EXISTS', room) == 1 then
                for i = 2, #ARGV, 2 do
                    local field = 'n:' .. ARGV[i]
                    local own = number(redis.call('HGET', room, field))
                    if own > 0 and own <= tonumber(ARGV[i + 1]) then
                        removed = removed + redis.call('HDEL', room, field)
                    end
                end
                finish(room, ARGV[1])
            end
        end
        return removed
        """
}
