-- The processes that share the limits of a group, as in fleet.Members. take.lua and beat.lua contain this file. A test
-- compares the two implementations.
--
-- A group's mark is "0" if the group was declared new and got no heartbeat since. Otherwise it is a head, followed by
-- the falls (part, at) and the stale parts (part, at, until). Fields that later versions added are encoded as empty,
-- expired stale parts, which earlier versions ignore: (0, -1 - head 22, -1), and for each fall (0, -1 - ends, -2 - at).
-- Members are the fields of a hash, by client. All numbers are doubles that hold whole numbers; instants are
-- microseconds.
local HEAD = '<Bddddddddddddddddddd'
local HEADED, HEADLEN = 252, 153
local ROW = '<ddddddddddBdddd'
local LONGEST = 400 * 24 * 3600 * 1000000
local WHOLE, LIFE, TRIAL, FALLS, STALE, BACK = 1000000, 10000000, 1000000, 4, 16, 10000000
local NEVER = 2 ^ 60

-- Head: 1 since when the state of the group is known, 2 up to when the lag is counted, 3 the lag, 4 its millionths,
-- 5 the parts that are out, 6 until when that stays the same, 7 gen, 8 when the data was lost, as long as processes may
-- hold parts of before, 9 the parts of unknown holders, 10 when they expire, 11 the strain, 12 the window, 13 the time
-- of the latest heartbeat, 14 the supply's clock when more than half was out last, 15 when heartbeats resumed after an
-- interruption, 16 the falls, 17 the stale parts, 18 the supply's clock when the data was lost, 19 the part of unknown
-- holders that nobody claimed in time, 20 the supply's clock and 21 the instant at which it expired, 22 the lag when
-- nothing was out last plus 1, or 0 if tokens may have accrued in parts for longer. The strain is the largest amount,
-- over all starting times, by which the lag has grown faster than half of the time.
-- Row: 1 part, 2 until, 3 seq, 4 no, 5 last, 6 ack, 7 silence, 8 window, 9 joined, 10 wish, 11 flags, 12 to 15 no, gen,
-- part and until of the latest response, 16 client.
local function membersOf(u, p, call, now, mark, hash)
  local lib = {}

  local function silent(r)
    return r[11] % 2 == 1 and 0 or r[6] + r[7]
  end
  lib.silent = silent

  function lib.rows()
    local all, list = {}, call('HGETALL', hash)
    for i = 1, #list, 2 do
      local r = {u(ROW, list[i + 1])}
      r[16] = list[i]
      all[list[i]] = r
    end
    return all
  end

  -- keep stores a member.
  function lib.keep(id, r)
    call('HSET', hash, id, p(ROW, r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14], r[15]))
  end

  -- look computes how much is out, and until when that stays the same.
  local function look(h, rows)
    h[5], h[6] = h[9], NEVER
    if h[9] > 0 then
      h[6] = h[10]
    end
    for _, r in pairs(rows) do
      local at = silent(r)
      if now >= at then
        h[5] = h[5] + r[1]
      elseif r[1] > 0 and at < h[6] then
        h[6] = at
      end
      if r[2] < h[6] then
        h[6] = r[2]
      end
    end
  end
  lib.look = look

  -- z returns the supply's clock.
  function lib.z(h)
    return h[2] - h[3] - (h[4] > 0 and 1 or 0)
  end

  -- forget handles the loss of the data: all parts are out until their holders claim them.
  local function forget(h, rows)
    h[7], h[8] = math.max(now, h[7] + 1), now
    h[9], h[10] = WHOLE, now + LIFE
    h[18], h[19], h[20], h[21], h[22] = lib.z(h), 0, 0, 0, 0
    for id in pairs(rows) do
      call('HDEL', hash, id)
      rows[id] = nil
    end
    look(h, rows)
  end
  lib.forget = forget

  -- saved returns for how long tokens have accrued for the parts that are out; 0 means unknown.
  local function saved(h)
    if h[22] == 0 then
      return 0
    end
    return math.max(1, h[3] + (h[4] > 0 and 2 or 1) - h[22])
  end
  lib.saved = saved

  -- change executes act, which may reduce how much is out. If it does, a fall is recorded, and falls that were not
  -- larger and end no later are dropped.
  local function change(h, rows, act)
    look(h, rows)
    local before, ended, save = h[5], h[20], saved(h)
    act()
    look(h, rows)
    if h[9] > 0 then
      h[22] = 0
    elseif before == 0 then
      h[22] = h[3] + 1
    end
    if h[5] >= before then
      return
    end
    if h[20] == ended and ended == lib.z(h) then -- it cannot be distinguished from the part of unknown holders that expired at the same time
      h[19] = 0
    end
    local kept, z = {}, lib.z(h)
    local ends = save > 0 and z + save or NEVER
    for _, f in ipairs(h[16]) do
      if f[1] > before or f[3] > ends then
        kept[#kept + 1] = f
      end
    end
    kept[#kept + 1] = {before, z, ends}
    if #kept > FALLS then
      local a, b = kept[FALLS], kept[FALLS + 1]
      kept[FALLS] = {math.max(a[1], b[1]), b[2], math.max(a[3], b[3])}
      kept[FALLS + 1] = nil
    end
    h[16] = kept
  end
  lib.change = change

  local function lags(h, d, whole, rest)
    rest = rest + h[4]
    local more = rest / WHOLE
    more = more - more % 1
    h[4] = rest - more * WHOLE
    whole = whole + more
    h[3] = h[3] + whole
    if h[4] > 0 then
      whole = whole + 1
    end
    local strain = h[11] + whole - d / 2
    if h[5] * 2 > WHOLE then
      strain = whole > strain and whole or strain
      h[14] = h[2] + d - h[3]
    end
    h[11] = strain > 0 and strain or 0
  end

  local function stale(h, part, at, window)
    if part == 0 or window == 0 then
      return
    end
    local all = h[17]
    all[#all + 1] = {part, at, at + window}
    table.sort(all, function(a, b)
      if a[2] ~= b[2] then
        return a[2] < b[2]
      elseif a[1] ~= b[1] then
        return a[1] < b[1]
      end
      return a[3] < b[3]
    end)
    if #all > STALE then
      all[2][1], all[2][3] = math.min(WHOLE, all[1][1] + all[2][1]), math.max(all[1][3], all[2][3])
      table.remove(all, 1)
    end
  end

  lib.stale = stale

  -- lengthen makes expired parts count for a window that has become longer. It reports whether anything changed.
  function lib.lengthen(h, window)
    local longer = false
    for _, s in ipairs(h[17]) do
      if now < s[3] and s[3] < s[2] + window then
        s[3], longer = s[2] + window, true
      end
    end
    return longer
  end

  -- returned records that the store came back now, if no member sent a heartbeat for longer than live members need. It
  -- does so once until the next heartbeat.
  function lib.returned(h, silence)
    if now - h[13] > 3 * silence and h[15] <= h[13] then
      h[15] = now
    end
  end

  -- expire frees expired parts. Members that use their parts for longer keep them until a lifetime after the store came
  -- back.
  local function expire(h, rows)
    if h[9] > 0 and now >= h[10] then
      stale(h, h[9], h[10], h[13] == 0 and LONGEST or h[12]) -- or no process has reported its limits yet
      if h[8] > 0 then
        h[19], h[20], h[21] = h[9], lib.z(h), h[10]
      end
      h[8], h[9] = 0, 0
    end
    -- The result must not depend on the order of the members, which differs between stores.
    for _, r in pairs(rows) do
      if now >= r[2] and r[1] > 0 and r[11] >= 2 then
        lib.returned(h, r[7])
      end
    end
    local gone = {}
    for id, r in pairs(rows) do
      if now >= r[2] and r[1] > 0 and r[11] >= 2 then
        local till = h[15] + r[15] - r[5]
        if r[5] < h[15] and till > r[2] then
          r[2] = till
          lib.keep(id, r)
        end
      end
      if now >= r[2] then
        gone[#gone + 1] = {r[1], r[2]}
        call('HDEL', hash, id)
        rows[id] = nil
      end
    end
    table.sort(gone, function(a, b)
      if a[2] ~= b[2] then
        return a[2] < b[2]
      end
      return a[1] < b[1]
    end)
    for _, g in ipairs(gone) do
      stale(h, g[1], g[2], h[12])
    end
    local kept = {}
    for _, s in ipairs(h[17]) do
      if now < s[3] then
        kept[#kept + 1] = s
      end
    end
    h[17] = kept
  end

  -- turn brings the members to the current time.
  function lib.turn(h, rows)
    local d = now - h[2]
    if d <= 0 then
      if -d > BACK then -- a wrong clock stamped all this
        h[1], h[2], h[13], h[15] = math.min(h[1], now), now, 0, 0
        for _, o in ipairs(h[17]) do
          o[2], o[3] = o[2] + d, o[3] + d
        end
        forget(h, rows)
      end
      return
    end
    if h[5] == 0 then
      h[22] = h[3] + 1
    end
    local whole, rest = 0, 0
    local function count(part, d)
      local s = d / WHOLE
      s = s - s % 1
      whole, rest = whole + part * s, rest + part * (d - s * WHOLE)
    end
    count(h[9], d)
    for _, r in pairs(rows) do
      local from = math.max(h[2], silent(r))
      if now > from then
        count(r[1], now - from)
      end
    end
    look(h, rows)
    lags(h, d, whole, rest)
    h[2] = now
    change(h, rows, function()
      expire(h, rows)
    end)
  end

  -- pass does the same as turn at a time when nothing changes.
  function lib.pass(h)
    local d = now - h[2]
    if d > 0 then
      local s = d / WHOLE
      s = s - s % 1
      lags(h, d, h[5] * s, h[5] * (d - s * WHOLE))
      h[2] = now
    end
  end

  -- read decodes a mark. If the mark is missing or of an older format, the data was lost.
  function lib.read(v)
    if v and v:byte() == HEADED then
      local h, pos = {u(HEAD, v)}, HEADLEN + 1
      table.remove(h, 1)
      h[18], h[19], h[20], h[21] = h[16], h[17], h[18], h[19]
      local falls, old = {}, {}
      local n = v:byte(pos)
      pos = pos + 1
      for i = 1, n do
        falls[i] = {u('<dd', v, pos)}
        pos = pos + 16
      end
      h[16], h[17], h[22] = falls, old, 0
      local ends = {}
      while pos <= #v do
        local s = {u('<ddd', v, pos)}
        pos = pos + 24
        if s[3] >= 0 then
          old[#old + 1] = s
        elseif s[3] == -1 then
          h[22] = -1 - s[2]
        else
          ends[-2 - s[3]] = math.max(ends[-2 - s[3]] or 0, -1 - s[2])
        end
      end
      for _, f in ipairs(falls) do
        f[3] = ends[f[2]] or NEVER
      end
      return h
    end
    local h = {0, now, 0, 0, 0, NEVER, now, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}, 0, 0, 0, 0, 0}
    if v ~= '0' then
      local since = tonumber(v or nil)
      if not since or since > now then
        since = now
      end
      h[1] = since
      forget(h, {})
    end
    return h
  end

  function lib.write(h)
    local text = p(HEAD, HEADED, h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9], h[10], h[11], h[12], h[13], h[14], h[15],
      h[18], h[19], h[20], h[21])
    text = text .. string.char(#h[16])
    for _, f in ipairs(h[16]) do
      text = text .. p('<dd', f[1], f[2])
    end
    if h[22] > 0 then
      text = text .. p('<ddd', 0, -1 - h[22], -1)
    end
    for _, f in ipairs(h[16]) do
      text = text .. p('<ddd', 0, -1 - f[3], -2 - f[2])
    end
    for _, s in ipairs(h[17]) do
      text = text .. p('<ddd', s[1], s[2], s[3])
    end
    call('SET', mark, text)
  end

  return lib
end
