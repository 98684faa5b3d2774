-- One ask: applies its settlements, then grants as many copies of the call as its limits allow.
--
-- KEYS: the group's mark, the lane's latest answer, the members, then one hash for each key of the ask, in which each
-- limit is a field. ask.go packs ARGV[1], and reply.go reads the answer. The rest of ARGV are the names of the fields.
-- Numbers are doubles that hold whole numbers; instants are microseconds of the server's clock. The arithmetic is that
-- of fleet.Cell and fleet.Ask. A test compares the two implementations. x - x % 1 is x rounded down, at a third of the
-- cost of math.floor.
local u, p, call = struct.unpack, struct.pack, redis.call
local BUCKET, ROLLING, FIXED = 0, 1, 2
local DEBT = 16           -- longestDebt of package limit
local AHEAD = 10000000    -- a timestamp further in the future was written by a wrong clock
local LINGER = 60         -- seconds for which a key is kept longer than necessary, so that its expiry is seldom renewed
local FREE = 2 ^ 49        -- from this value on, the units that may be granted after a loss of data are unbounded
local REMEMBER = 60000000 -- the shortest time for which answers are kept; the longest is twice that

local now, id, copies, nkeys, nclaims, nsettle, usual, size, pos = u('<dc8dHHHBH', ARGV[1])
if now == 0 then -- otherwise it is the time of a test's clock
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

-- A stored answer: from byte 1 the id, from 9 when the key expires, from 17 the answer, then possibly the rest of an
-- earlier, longer one.
local last = call('GET', KEYS[2])
if last and last:sub(1, 8) == id then
  return p('<Bd', 250, now) .. last:sub(17, 16 + size)
end

-- The supply: z is the clock by which buckets drain, and out is the part that the store cannot grant until soon. See
-- members.lua for the fields of the mark.
local v = call('GET', KEYS[1])
local since, z, out, soon, falls, unknown, lib, head = 0, now, 0, NEVER, 0, 0, nil, nil
if v ~= '0' then
  local at, lag, frac, _
  if v and v:byte() == HEADED then
    since, at, lag, frac, out, soon, _, _, unknown = u('<ddddddddd', v, 2)
    falls = v:byte(HEADLEN + 1)
  end
  if not at or now >= soon or at > now + AHEAD then
    lib = membersOf(u, p, call, now, KEYS[1], KEYS[3])
    head = lib.read(v)
    lib.turn(head, lib.rows())
    lib.write(head)
    since, at, lag, frac, out, soon, unknown, falls = head[1], head[2], head[3], head[4], head[5], head[6], head[9], #head[16]
  elseif out > 0 and now > at then
    local s = (now - at) / WHOLE
    s = s - s % 1
    local rest = out * (now - at - s * WHOLE) + frac
    local more = rest / WHOLE
    more = more - more % 1
    lag, frac, at = lag + out * s + more, rest - more * WHOLE, now
  end
  z = (now > at and now or at) - lag - (frac > 0 and 1 or 0)
  out = out < WHOLE and out or WHOLE
end

-- whole returns the complete head. It is decoded only if needed.
local function whole()
  if not head and v ~= '0' then
    lib = membersOf(u, p, call, now, KEYS[1], KEYS[3])
    head = lib.read(v)
    lib.pass(head)
  end
  return head
end

-- share returns a part of n, rounded up.
local function share(n, part)
  part = WHOLE - part
  local q = n / WHOLE
  q = q - q % 1
  local rest = part * (n - q * WHOLE) / WHOLE
  return n - part * q - (rest - rest % 1)
end

-- lift returns the least weight of a bucket: the tokens that have accrued in parts that are out, or may have been spent
-- lately. No more tokens have accrued in a part than came since it is out.
local function lift(cap, drain)
  if out == 0 and falls == 0 then
    return 0
  end
  local h = whole()
  local w, saved = share(cap, out), lib.saved(h) * drain
  w = saved > 0 and saved < w and saved or w
  for _, f in ipairs(h[16]) do
    local top = share(cap, f[1] < WHOLE and f[1] or WHOLE) - (z > f[2] and (z - f[2]) * drain or 0)
    local most = (f[3] - z) * drain
    top = most < top and most or top
    w = top > w and top or w
  end
  return w
end

-- Claims: 1 cell, 2 shape, 3 to 6 the rule, 7 cost, 8 extra, 9 seen, 10 seen to have been returned, 11 how many units
-- may be granted although the data was lost; 0 if it was not lost.
-- Rules: of a bucket unit, drain, cap, hold; of a rolling limit amount, grain, whether it is a tally, hold; of a calendar
-- limit amount, and the window's start, end, and the end of the next window.
local claims = {}
for i = 1, nclaims do
  local o = {u('<HBddddddddd', ARGV[1], pos)}
  claims[i], pos = o, o[12]
  o[11] = since ~= 0 and o[11] or 0
  if o[2] == FIXED and (now < o[4] or now >= o[6]) then
    return p('<Bd', 249, now)
  end
end

-- raw is the stored text of each cell. ends is the last cell of each key.
local raw, ends, ncells, at = {}, {}, 0, #ARGV[1] - 2 * nkeys + 1
for k = 1, nkeys do
  local n
  n, at = u('<H', ARGV[1], at)
  local v = call('HMGET', KEYS[k + 3], unpack(ARGV, ncells + 2, ncells + n + 1))
  for i = 1, n do
    raw[ncells + i] = v[i]
  end
  ncells = ncells + n
  ends[k] = ncells
end

-- Cells: 1 shape, 2 when its key expires, in seconds, 3 timestamp, 4 paused, 5 weight or count, 6 unit, start or grain,
-- 7 drain or end, 8 last, 9 since or returned, 10 whether to write it, 11 slots, 12 where the first slot begins, 13 how
-- much of a rolling limit is out, 14 the guess, 15 hold, 16 when a process with that hold last got a grant. Slots:
-- number, count, grain. text is what to write, by cell, and keeps is how long its key must then be kept at least.
--
-- Hold and its time follow the fields of a bucket, and are fields 8 and 9 of a rolling limit. Cells of earlier versions
-- lack them. See hold.go of package fleet. The history of a bucket follows: see history.go of that package.
--
-- The guess is what a cell counts, in units or weight, only because nothing was known of the group when the cell was
-- first written. It is taken out again if the group is declared new. In a rolling limit it is in the first slot. If
-- there is a guess, it comes last in the stored text.
local CELL, CELLLEN = '<BI4ddddddd', 61
local HELD, HELDLEN = '<BI4ddddddddd', 77
local text, keeps, answer = {}, {}, nil

-- slotGrain returns the length of a new slot in a bucket's history.
local function slotGrain(cap, drain)
  local grain = cap / (drain * 128)
  return grain < 1 and 1 or grain - grain % 1
end

-- joins reports whether units granted at z belong to the slot that ends at last.
local function joins(last, z, grain)
  if last >= z then
    return true
  end
  local a, b = last / grain, z / grain
  return a - a % 1 == b - b % 1
end

-- rested returns the weight of an empty bucket, which becomes negative with time. See fleet.Rule.Most.
local function rested(weight, most)
  return weight > -most and weight or -most
end

-- large reports whether a claim costs more than a full bucket has. It may use the negative weight, unless parts are out.
local function large(o, least)
  return o[7] * o[3] > o[5] and least == 0
end

-- seen returns the weight of a bucket as far as it concerns a claim.
local function seen(o, weight, least)
  return large(o, least) and weight or math.max(0, weight)
end

-- noted returns the slot that ends at last with a weight added at z.
local function noted(last, count, floor, z, base, weight, drain)
  if z > last then
    floor = floor - (z - last) * drain
    last = z
  end
  return last, count + weight, floor > base and floor or base
end

-- The usual ask: it settles nothing, and its limits are buckets stored with the same rule. The code after it handles
-- every ask, at twice the cost.
if usual == 1 then
  local cells, granted = {}, copies
  for i = 1, nclaims do
    local o = claims[i]
    local v, unit, drain, cost = raw[o[1]], o[3], o[4], o[7]
    local c = v and #v >= HELDLEN and (#v - HELDLEN) % 24 == 0 and {u(HELD, v)}
    if not c or o[11] > 0 or c[1] ~= BUCKET or c[6] ~= unit or c[7] ~= drain or c[10] ~= o[6] or c[3] > z + AHEAD then
      cells = nil
      break
    end
    local slots = #v > HELDLEN and v:sub(HELDLEN + 1) or ''
    if z > c[3] then
      local weight = c[5] - (z - c[3]) * drain
      c[3] = z
      c[5] = weight
      if weight <= 0 then
        c[5], c[9], slots = rested(weight, o[6] * drain), z, ''
      end
    end
    -- The other path handles a history that is missing or must be compacted.
    local n, grain = #slots, slotGrain(o[5], drain)
    if n == 0 and c[5] > 0 then
      cells = nil
      break
    elseif n > 0 and not joins(u('<d', slots, n - 23), c[3], grain) and ((n + 24) % 384 == 0 or (c[3] - u('<d', slots)) * drain > 2 ^ 50) then
      cells = nil
      break
    end
    c[12], c[13] = slots, grain
    cells[i] = c
    c[10] = lift(o[5], drain)
    c[11] = c[5] > c[10] and c[5] or c[10]
    if c[4] > now then
      granted = 0
    elseif cost > 0 then
      local left = (o[5] - (large(o, c[10]) and c[5] or c[11])) / unit
      left = left > 0 and (left - left % 1) / cost or 0
      if left < granted then
        granted = left - left % 1
      end
    end
  end
  if cells then
    answer = p('<ddddd', granted, z, out, soon, unknown)
    for i = 1, nclaims do
      local o, c = claims[i], cells[i]
      local n, extra, paused, unit = granted * o[7], 0, c[4] - now, o[3]
      paused = paused > 0 and paused or 0
      if o[8] > 0 and granted == copies and paused == 0 then
        local left = (o[5] - c[11] - n * unit) / unit
        if left > 3 then
          left = (left - left % 1) / 4
          extra = left - left % 1
          extra = o[8] < extra and o[8] or extra
          n = n + extra
        end
      end
      if n > 0 then
        local slots, at, drain, weight = c[12], c[3], o[4], n * unit
        local len = #slots
        local before = c[11] -- without a history, base and before are the same
        if len > 0 then
          local last, count, floor = u('<ddd', slots, len - 23)
          if joins(last, at, c[13]) then
            slots = slots:sub(1, len - 24) .. p('<ddd', noted(last, count, floor, at, c[10], weight, drain))
          else
            slots = slots .. p('<ddd', at, weight, c[10])
          end
        else
          slots = p('<ddd', at, weight, before)
        end
        c[5] = before + weight
        local cell = o[1]
        local need = (now + o[6] + 2 * (c[3] - z + c[5] / o[4])) / 1000000
        need = need > c[4] / 1000000 and need or c[4] / 1000000
        if need >= c[2] then
          need = need + LINGER
          c[2] = need < 4294967295 and need - need % 1 or 4294967295
          keeps[cell] = need
        end
        text[cell] = p(HELD, BUCKET, c[2], c[3], c[4], c[5], unit, o[4], 0, c[9], o[6], z) .. slots
      end
      answer = answer .. p('<ddddd', extra, paused, seen(o, c[5], c[10]), c[3], c[10])
    end
  end
end

if not answer then
  local SLOTS = 200         -- bucket.Slots
  local EXACT = 2 ^ 53      -- a double holds all whole numbers up to this one
  local WEIGHT = 2 ^ 52     -- mostWeight of package bucket
  local HISTORY = 2 ^ 50    -- longestHistory of package fleet
  local SLOTSMAX = 400      -- its maxSlots
  local MIXED = -1          -- the grain of slots with different grains
  local HOLDS = 60000000    -- holdMemory of package limit

  -- Settlements: 1 to 6 as in claims, 7 back, 8 to 10 the mark, 11 owe, 12 pause.
  local settle = {}
  for i = 1, nsettle do
    local o = {u('<HBdddddddddd', ARGV[1], pos)}
    settle[i], pos = o, o[13]
  end

  -- window returns the one of the two windows of a rule that contains the current time, if one does.
  local function window(o)
    if now >= o[5] then
      return o[5], o[6]
    end
    return o[4], o[5]
  end

  -- history returns the history of a bucket as one list of numbers: number, count and grain of each slot.
  local function history(c)
    if not c.list then
      c.list = {u('<' .. ('ddd'):rep((#c[11] - c[12] + 1) / 24), c[11], c[12])}
      c.list[#c.list] = nil -- unpack also returns the position after the last slot
    end
    return c.list
  end

  -- forget invalidates all marks that were issued until an instant.
  local function forget(c, at)
    c.list, c[9] = {}, at + 1
  end

  -- compact drops slots that no longer matter and joins old ones. If there are too many slots, it merges the oldest into
  -- the next.
  local function compact(c, at, drain, grain)
    local list = c.list
    local n, first, sum, most = #list / 3, 1, 0, 0
    for i = n, 1, -1 do
      local k = 3 * i
      sum = sum + list[k - 1]
      local v = list[k] + sum - (at - list[k - 2]) * drain
      if v > most then
        first, most = i, v
      end
    end
    if first > 1 then
      c[9] = list[3 * first - 5] + 1
    end
    local all, m = {list[3 * first - 2], list[3 * first - 1], list[3 * first]}, 3
    for i = first + 1, n do
      local number, count, floor = list[3 * i - 2], list[3 * i - 1], list[3 * i]
      local old = (at - number) / 64
      if m > 3 and i < n and number - all[m - 5] <= grain + old - old % 1 then
        local less = all[m] - (number - all[m - 2]) * drain
        all[m - 2], all[m - 1], all[m] = number, all[m - 1] + count, less > floor and less or floor
      else
        all[m + 1], all[m + 2], all[m + 3], m = number, count, floor, m + 3
      end
    end
    local i = 1
    while (m - i + 1) / 3 > SLOTSMAX or m - i > 3 and (at - all[i]) * drain > HISTORY do
      local floor = all[i + 2] + all[i + 1] - (all[i + 3] - all[i]) * drain
      all[i + 5] = floor > all[i + 5] and floor or all[i + 5]
      c[9], i = all[i] + 1, i + 3
    end
    c.list = i > 1 and {unpack(all, i, m)} or all
  end

  -- settled lowers the weight of a bucket to what its history allows, after units were returned.
  local function settled(c, o)
    if not c.returned then
      return
    end
    local list, sum, most = c.list, 0, 0
    for k = #list, 3, -3 do
      sum = sum + list[k - 1]
      local age = c[3] - list[k - 2]
      local v = list[k] + sum - (age > 0 and age or 0) * o[4]
      most = v > most and v or most
    end
    local weight = c[5] - c.returned
    weight = weight > 0 and weight or 0
    weight = most < weight and most or weight
    c[14] = math.max(0, c[14] - (c[5] - weight))
    c[5], c.returned = weight, nil
  end

  -- pour adds a weight to a bucket. It does not exceed the longest debt.
  local function pour(c, o, weight)
    settled(c, o)
    local list, at = history(c), c[3]
    if #list == 0 and c[5] > 0 then
      c[9] = math.max(c[9], at + 1)
    end
    local base = lift(o[5], o[4])
    local before = math.max(c[5], base)
    c[5], c[10] = before, true
    weight = math.max(0, math.min(weight, DEBT * o[5] - before))
    if weight == 0 then
      return
    end
    c[5] = before + weight
    local n, grain = #list, slotGrain(o[5], o[4])
    if n > 0 and joins(list[n - 2], at, grain) then
      list[n - 2], list[n - 1], list[n] = noted(list[n - 2], list[n - 1], list[n], at, base, weight, o[4])
      return
    end
    list[n + 1], list[n + 2], list[n + 3] = at, weight, n == 0 and before or base
    if (n + 3) % 48 == 0 or (at - list[1]) * o[4] > HISTORY then
      compact(c, at, o[4], grain)
    end
  end

  -- missing returns a cell that is not stored. Either it expired because the limit was full, or it was lost with all
  -- data. The group's mark states since when the group's state is known, or 0 for a group that was new: units may have
  -- been used before that. Keys are kept for twice as long as their buckets take to drain. So the bucket of an expired
  -- key can have a weight only while more than half is out, and until it has drained after that.
  local function missing(i, o)
    if o[2] == BUCKET then
      local h = whole()
      local weight, guess = 0, 0
      if h and h[11] > 0 then
        weight = math.max(0, math.min(math.ceil(h[11]) * o[4], o[5] - math.max(0, z - h[14]) * o[4]))
      end
      if since ~= 0 and z < since + o[5] / o[4] then
        guess = math.max(0, o[5] - math.max(0, z - since) * o[4] - weight)
      end
      local rest = z
      rest = h and h[11] > 0 and math.min(rest, z - h[14] - o[5] / o[4]) or rest
      rest = since ~= 0 and math.min(rest, z - since - o[5] / o[4]) or rest
      weight = weight + guess > 0 and weight or rested(-math.max(0, math.floor(rest)) * o[4], o[6] * o[4])
      return {BUCKET, 0, z, 0, weight + guess, o[3], o[4], 0, z, since == 0, '', 1, 0, guess, 0, 0}
    elseif o[2] == ROLLING then
      if since == 0 or o[5] == 1 then -- a tally
        return {ROLLING, 0, now, 0, 0, 0, 0, 0, 0, false, '', 1, 0, 0, 0, 0}
      end
      local slot = since / o[4]
      return {ROLLING, 0, now, 0, o[3], o[4], 0, 0, 0, false, p('<ddd', slot - slot % 1, o[3], o[4]), 1, 0, o[3], 0, 0}
    end
    local start, stop = window(o)
    if now < start or now >= stop then
      return {FIXED, 0, now, 0, 0, 0, 0, 0, 0, false, '', 1, 0, 0, 0, 0}
    end
    return {FIXED, 0, now, 0, 0, start, stop, 0, 0, since < start, '', 1, 0, 0, 0, 0}
  end

  -- dark reports whether a calendar window began before the group's state was known. Its earlier use is unknown, since
  -- each process knows at most its own, so nothing of it is granted.
  local function dark(c)
    return c[1] == FIXED and since ~= 0 and since >= c[6]
  end

  -- unguess takes a guess out after the group was declared new.
  local function unguess(c)
    if c[1] == ROLLING then
      local number, count, grain = u('<ddd', c[11], c[12])
      local rest = count - c[14]
      c[11] = c[11]:sub(1, c[12] - 1) .. (rest > 0 and p('<ddd', number, rest, grain) or '') .. c[11]:sub(c[12] + 24)
    end
    c[5], c[10], c[14] = math.max(0, c[5] - c[14]), true, 0
    if c[1] == BUCKET then
      forget(c, c[3])
    end
  end

  -- pull brings a cell with the timestamp of a wrong clock to the current time. Used units count as used now, and its
  -- marks become invalid. The cell must be written. Otherwise each ask would pull it again, and it would never drain.
  local function pull(c, o, ahead)
    c[2], c[3], c[4], c[10] = 0, c[1] == BUCKET and z or now, c[4] > ahead and c[4] - ahead or 0, true
    if c[1] == BUCKET then
      c[5] = math.max(0, c[5])
      forget(c, z + ahead)
    elseif c[1] == FIXED then
      c[6], c[7], c[8] = 0, c[7] - ahead, now
    else
      local all = {}
      for off = c[12], #c[11], 24 do
        local number, count, grain = u('<ddd', c[11], off)
        local slot = now / grain
        all[#all + 1] = p('<ddd', math.min(number, slot - slot % 1), count, grain)
      end
      c[11], c[12] = table.concat(all), 1
    end
  end

  -- holds records how long a process may hold what it gets. A refused process holds nothing.
  local function holds(c, o)
    if c[15] <= o[6] then
      c[15], c[16] = o[6], z
    end
  end

  -- charge takes units even if none are left, up to the longest debt.
  local function charge(c, o, n)
    c[10] = true
    if o[2] == BUCKET then
      holds(c, o)
      pour(c, o, n * o[3])
      return
    end
    local room = DEBT * o[3] - c[5]
    n = n < room and n or room
    if n <= 0 then
      return
    end
    c[5] = c[5] + n
    if o[2] == FIXED then
      c[8] = c[8] > now and c[8] or now
    else
      holds(c, o)
      local slots, slot, off = c[11], now / o[4], #c[11] - 23
      slot = slot - slot % 1
      if off >= c[12] then
        local number, count, grain = u('<ddd', slots, off)
        if number >= slot and grain == o[4] then
          c[11] = slots:sub(1, off - 1) .. p('<ddd', number, count + n, grain)
          return
        end
        c[6] = c[6] == o[4] and o[4] or MIXED
      else
        c[6] = o[4]
      end
      c[11] = slots .. p('<ddd', slot, n, o[4])
    end
  end

  -- drained returns the current weight of a bucket, at the rate that applied until now. It may be negative.
  local function drained(c, o)
    if z <= c[3] then
      return c[5]
    end
    local weight = c[5] - (z - c[3]) * c[7]
    return weight > 0 and weight or rested(weight, math.max(c[15], o[6]) * c[7])
  end

  -- units returns how many units a weight is, rounded up.
  local function units(weight, unit)
    local n = math.floor(weight / unit)
    return n * unit < weight and n + 1 or n
  end

  -- other converts a cell to another shape. The used units and the guessed ones stay the same.
  local function other(c, o)
    local gone, guess = 0, 0
    if c[1] == BUCKET then
      local weight = math.max(0, drained(c, o))
      gone = units(weight, c[6])
      guess = c[14] > 0 and gone - units(weight - c[14], c[6]) or 0
    elseif c[1] == ROLLING or now < c[7] then
      gone, guess = c[5], c[14]
    end
    if dark(c) and now < c[7] then
      local m = missing(o[1], o)
      m[2], m[4] = c[2], c[4]
      return m, gone, 0
    elseif o[2] == BUCKET then
      return {BUCKET, c[2], z, c[4], 0, o[3], o[4], 0, z, true, '', 1, 0, 0, 0, 0}, gone, guess
    end
    return {o[2], c[2], now, c[4], 0, 0, 0, 0, 0, true, '', 1, 0, 0, 0, 0}, gone, guess
  end

  -- grain returns the grain of all slots of a cell, or MIXED.
  local function grain(c)
    local all
    for off = c[12], #c[11], 24 do
      local _, _, grain = u('<ddd', c[11], off)
      if all and all ~= grain then
        return MIXED
      end
      all = grain
    end
    return all or 0
  end

  -- shorten reduces the hold of a cell to that of the requester, once the longer holds of others are over.
  local function shorten(c, o)
    local less = c[15] - o[6]
    if less <= 0 then
      return
    elseif c[1] == ROLLING then
      if c[12] >= #c[11] or (c[6] == MIXED and grain(c) or c[6]) == o[4] then
        c[10], c[15] = true, o[6]
      end
      return
    end
    local weight = less * o[4]
    if z - c[16] < HOLDS and c[16] - z < HOLDS and weight <= o[5] - o[3] then
      return
    end
    pour(c, o, weight)
    c[15], c[16] = o[6], z
  end

  -- leaves returns when a slot of a rolling limit no longer counts.
  local function leaves(c, o, number, grain)
    local at = (number + 1) * grain + SLOTS * o[4]
    return (grain == o[4] or c[15] < o[6]) and at or at + c[15] - o[6]
  end

  -- turn brings the cell of a claim or settlement to the current time and to its rule.
  local cells = {}
  local function turn(o)
    local i, shape, gone, guess = o[1], o[2], 0, 0
    local c = cells[i]
    if not c then
      if raw[i] then
        c = {u(CELL, raw[i])}
        c[10], c[11], c[12], c[13], c[14], c[15], c[16] = false, raw[i]:sub(CELLLEN + 1), 1, 0, 0, 0, 0
        if c[1] == ROLLING then
          c[15] = c[8]
        elseif c[1] == BUCKET then
          c[15], c[16] = o[6], z
          if #c[11] >= 16 then
            c[15], c[16], c[11] = u('<d', c[11]), u('<d', c[11], 9), c[11]:sub(17)
          end
        end
        if not (c[15] >= 0) then
          c[15] = 0
        end
        if #c[11] % 24 == 8 then
          c[11], c[14] = c[11]:sub(1, -9), u('<d', c[11], #c[11] - 7)
        end
        local ahead = c[3] - (c[1] == BUCKET and z or now)
        if ahead > AHEAD then
          pull(c, o, ahead)
        end
      else
        c = missing(i, o)
      end
      cells[i] = c
    end
    if c[14] > 0 then
      if c[1] == BUCKET and z > c[3] then -- the weight that is not guessed drains as if it were alone
        local rest = math.max(0, c[5] - c[14] - (z - c[3]) * c[7])
        c[5], c[3] = drained(c, o), z
        c[14] = math.max(0, c[5] - rest)
        if c[5] <= 0 then
          c.list, c[9] = {}, z
        end
      end
      if since == 0 then
        unguess(c)
      end
    end
    if c.returned and (c[1] ~= shape or c[6] ~= o[3] or c[7] ~= o[4]) then
      settled(c, c.op)
    end
    if c[1] ~= shape then
      c, gone, guess = other(c, o)
      cells[i] = c
    end
    if shape == BUCKET then
      if z > c[3] then
        c[5], c[3] = drained(c, o), z
        if c[5] <= 0 then
          c.list, c[9] = {}, z
        end
      end
      if c[6] ~= o[3] or c[7] ~= o[4] then
        c[5] = math.max(0, c[5])
        if c[5] > 0 and c[6] ~= o[3] then
          local known = math.ceil((c[5] - c[14]) / c[6] * o[3]) + 2
          local weight = math.ceil(c[5] / c[6] * o[3]) + 2
          c[5] = weight < WEIGHT and weight or WEIGHT
          c[14] = c[14] > 0 and math.max(0, c[5] - known) or 0
        end
        c[6], c[7], c[10] = o[3], o[4], true
        forget(c, c[3])
      end
      shorten(c, o)
    elseif shape == ROLLING then
      shorten(c, o)
      local slots, off = c[11], c[12]
      while off < #slots do
        local number, count, grain = u('<ddd', slots, off)
        if now < leaves(c, o, number, grain) then
          break
        end
        c[5], off = c[5] - count, off + 24
      end
      if off > c[12] then
        c[10], c[12], c[14] = true, off, 0
        c[6] = c[6] == MIXED and grain(c) or c[6]
      end
    else
      local start, stop = window(o)
      if now >= start and now < stop and stop > c[6] then
        c[10] = c[10] or start > c[6] or stop ~= c[7]
        if start > c[6] then
          c[5], c[6], c[9] = start > c[8] and 0 or c[5], start, 0
          c[14] = math.min(c[14], c[5])
        end
        c[7] = stop
      end
    end
    if gone > 0 then
      charge(c, o, gone)
    end
    if guess > 0 then -- in a bucket, the parts of unknown holders are guessed as well
      local known = gone - guess
      if shape == BUCKET then
        known = known * o[3] + (unknown < WHOLE and lift(o[5], o[4]) or 0)
      end
      c[14] = math.max(0, c[5] - known)
    end
    c.op = o
    return c
  end

  -- gap returns how long it takes until the slot at off and all earlier ones no longer count.
  local function gap(c, o, off)
    local last = now
    for at = c[6] == MIXED and c[12] or off, math.min(off, #c[11] - 1), 24 do
      local number, _, grain = u('<ddd', c[11], at)
      last = math.max(last, leaves(c, o, number, grain))
    end
    return last - now
  end

  -- back returns units, the last of which was counted at a mark.
  local function back(c, o)
    local n, at, level, step = o[7], o[8], o[9], o[10]
    if o[2] == BUCKET then
      if at < c[9] or step ~= 0 then
        return
      end
      local list = history(c)
      local low, high = 1, #list / 3 + 1 -- the first slot that ends at the mark or later
      while low < high do
        local mid = low + high
        mid = (mid - mid % 2) / 2
        if list[3 * mid - 2] < at then
          low = mid + 1
        else
          high = mid
        end
      end
      local k = 3 * low
      if k > #list then
        return
      end
      local rest = n * o[3]
      c[10], c.returned = true, c.returned or 0
      if k == #list and list[k - 2] == at then -- nothing was granted since
        c.returned = c.returned + math.min(rest, list[k - 1])
      end
      while k > 0 and rest > 0 do
        local weight = list[k - 1] < rest and list[k - 1] or rest
        list[k - 1], rest, k = list[k - 1] - weight, rest - weight, k - 3
      end
    elseif o[2] == FIXED then
      if at == c[6] then
        n = math.min(c[5], n)
        c[5], c[9], c[10] = c[5] - n, c[9] + n, true
      end
    else
      for off = c[12], #c[11], 24 do
        local number, count, grain = u('<ddd', c[11], off)
        if number == at and grain == level then
          n = math.min(n, count)
          local rest = count > n and p('<ddd', number, count - n, grain) or ''
          c[11] = c[11]:sub(1, off - 1) .. rest .. c[11]:sub(off + 24)
          c[5], c[10] = c[5] - n, true
          if off == c[12] then
            c[14] = math.max(0, c[14] - n)
          end
          return
        end
      end
    end
  end

  for i = 1, nsettle do
    local o = settle[i]
    local c = turn(o)
    if o[7] > 0 and (o[8] ~= 0 or o[9] ~= 0 or o[10] ~= 0) then
      back(c, o)
    end
    if o[11] > 0 then
      charge(c, o, o[11])
    end
    if o[12] > 0 then
      c[4], c[10] = math.max(c[4], math.min(now + o[12], EXACT)), true
    end
  end

  for _, c in pairs(cells) do
    settled(c, c.op)
  end

  -- surely returns how many units the store can grant without exceeding the limit.
  local function surely(c, o)
    if o[2] == BUCKET then
      local least = lift(o[5], o[4])
      local weight = large(o, least) and c[5] or math.max(c[5], least)
      return (o[5] - weight - math.max(0, c[15] - o[6]) * o[4]) / o[3]
    elseif o[2] == ROLLING then
      return o[3] - c[13] - c[5]
    end
    return dark(c) and 0 or o[3] - c[5]
  end

  -- known returns how many units are left if only the known use counts. Units that may have been used before the data
  -- was lost do not count, nor do parts that no process has claimed.
  local function known(c, o)
    if o[2] == FIXED then
      return o[3] - c[5]
    end
    local h = whole()
    local shown = math.max(0, math.min(out, h[5]) - h[9])
    if o[2] == BUCKET then
      local weight = math.max(c[5] - c[14], share(o[5], shown))
      return (o[5] - weight - math.max(0, c[15] - o[6]) * o[4]) / o[3]
    end
    for _, s in ipairs(h[17]) do
      if now < s[3] and now < s[2] + SLOTS * o[4] then
        shown = shown + (s[2] == h[21] and math.max(0, s[1] - h[19]) or s[1])
      end
    end
    return o[3] - (shown > 0 and share(o[3], math.min(shown, WHOLE)) or 0) - (c[5] - c[14])
  end

  -- left returns how many units the store may grant.
  local function left(c, o)
    local n = surely(c, o)
    if o[11] > 0 then
      return math.max(n, math.min(o[11], known(c, o)))
    end
    return n
  end

  -- away returns how many units of a rolling limit are out, or were within its window, which may have become longer.
  local function away(o)
    if o[5] == 1 then -- a tally
      return 0
    end
    local part = out
    if v ~= '0' then
      local h = whole()
      for _, s in ipairs(h[17]) do
        if now < s[3] and now < s[2] + SLOTS * o[4] then
          part = part + s[1]
        end
      end
      if lib.lengthen(h, SLOTS * o[4]) then
        lib.write(h)
      end
    end
    return part > 0 and share(o[3], math.min(part, WHOLE)) or 0
  end

  local granted = copies
  for i = 1, nclaims do
    local o = claims[i]
    local c = turn(o)
    if o[2] == ROLLING then
      c[13] = away(o)
    end
    if o[2] == FIXED and o[4] == c[6] and not (o[11] >= FREE and dark(c)) then
      local lost = o[9] - math.max(0, c[9] - o[10]) - c[5]
      if lost > 0 then
        charge(c, o, lost)
      end
    end
    if c[4] > now then
      granted = 0
    elseif o[7] > 0 then
      local left = left(c, o)
      local can = left > 0 and (left - left % 1) / o[7] or 0
      can = can - can % 1
      granted = can < granted and can or granted
    end
  end

  answer = p('<ddddd', granted, z, out, soon, unknown)
  for i = 1, nclaims do
    local o = claims[i]
    local c, cost, extra, paused = cells[o[1]], o[7], 0, 0
    local lost = o[11] > 0
    if granted > 0 and cost > 0 then
      o[11] = math.max(0, o[11] - granted * cost)
      charge(c, o, granted * cost)
    end
    if c[4] > now then
      paused = c[4] - now
    elseif granted == copies and o[8] > 0 then
      local left = left(c, o)
      if left > 3 then
        left = (left - left % 1) / 4
        extra = math.min(o[8], left - left % 1)
        if extra > 0 then
          o[11] = math.max(0, o[11] - extra)
          charge(c, o, extra)
        end
      end
    end
    local rest = lost and math.max(0, left(c, o))
    rest = rest and rest - rest % 1
    if o[2] == BUCKET then
      local least = lift(o[5], o[4])
      local weight = seen(o, c[5], least)
      if c[15] > o[6] then -- others hold their grants for longer
        least = math.max(least, c[5]) + (c[15] - o[6]) * o[4]
      end
      if rest then
        least = o[5] - rest * o[3]
      end
      answer = answer .. p('<ddddd', extra, paused, rest and least or weight, c[3], least)
    elseif o[2] == FIXED then
      local count, back = c[5], c[9]
      if rest then
        count, back = o[3] - rest, dark(c) and o[11] < FREE and -1 or back
      elseif dark(c) then
        count, back = count > o[3] and count or o[3], -1
      end
      answer = answer .. p('<dddddd', extra, paused, count, c[6], c[7], back)
    else
      local number, grain, wait, off = 0, 0, 0, c[12]
      local need = cost - (o[3] - c[5]) + c[13]
      if cost > 0 and need > c[5] and cost <= o[3] then
        wait = 1000000 -- a process whose part is out may send a heartbeat at any time
      elseif cost > 0 and need > 0 and cost <= o[3] then
        while off < #c[11] - 24 do
          local _, count = u('<dd', c[11], off)
          need = need - count
          if need <= 0 then
            break
          end
          off = off + 24
        end
        wait = gap(c, o, off)
      end
      off = #c[11] - 23
      if off >= c[12] then
        local _
        number, _, grain = u('<ddd', c[11], off)
      end
      local reset = gap(c, o, math.max(off, c[12]))
      if reset > 0 and now + reset >= c[2] * 1000000 then -- the window has become longer
        c[10] = true
      end
      local cold = c[14] > 0 or o[5] ~= 1 and (unknown >= WHOLE or since ~= 0 and c[13] >= o[3] and now < since + LIFE + SLOTS * o[4])
      local count, gone = c[5], c[13]
      if rest then
        count, gone, cold, wait = o[3] - rest, 0, cold and o[11] < FREE, rest >= cost and 0 or wait
      end
      answer = answer .. p('<ddddddddd', extra, paused, count, gone, number, grain, wait, reset, cold and 1 or 0)
    end
  end

  for i, c in pairs(cells) do
    if c[10] then
      local o = c.op
      local full = c[7]
      if c[1] == BUCKET then
        full = now + c[15] + 2 * (c[3] - z + math.max(0, c[5]) / o[4])
      elseif c[1] == ROLLING then
        full = now + gap(c, o, math.max(c[12], #c[11] - 23))
      elseif c[6] > 0 then -- a window of another time zone or period may begin within this one
        full = 2 * c[7] - c[6]
      end
      local need = math.max(full, c[4], now) / 1000000
      if need >= c[2] then
        need = need + LINGER
        c[2] = math.min(math.floor(need), 4294967295)
        keeps[i] = need
      end
      if c[1] == BUCKET then
        text[i] = p(HELD, BUCKET, c[2], c[3], c[4], c[5], c[6], c[7], 0, c[9], c[15], c[16])
        text[i] = text[i] .. (c.list and p('<' .. ('d'):rep(#c.list), unpack(c.list)) or c[11]:sub(c[12]))
      else
        text[i] = p(CELL, c[1], c[2], now, c[4], c[5], c[6], c[7], c[1] == ROLLING and c[15] or c[8], c[9])
      end
      if c[1] == ROLLING then
        text[i] = text[i] .. c[11]:sub(c[12])
      end
      if c[14] > 0 then
        text[i] = text[i] .. p('<d', c[14])
      end
    end
  end
end

local i = 1
for k = 1, nkeys do
  local set, n, keep = {}, 0, 0
  for i = i, ends[k] do
    if text[i] then
      set[n + 1], set[n + 2], n = ARGV[i + 1], text[i], n + 2
      keep = keeps[i] and keeps[i] > keep and keeps[i] or keep
    end
  end
  i = ends[k] + 1
  if n > 0 then
    call('HSET', KEYS[k + 3], unpack(set))
  end
  if keep > 0 then
    local ms = string.format('%.0f', math.ceil(keep * 1000 - now / 1000) + 1)
    call('PEXPIRE', KEYS[k + 3], ms, 'NX')
    call('PEXPIRE', KEYS[k + 3], ms, 'GT')
  end
end

-- Store the lane's latest answer over the previous one.
local keep = last and u('<d', last, 9) or 0
if keep < now + REMEMBER then
  keep = now + 2 * REMEMBER
  call('SET', KEYS[2], id .. p('<d', keep) .. answer, 'PX', '150000')
else
  call('SETRANGE', KEYS[2], '0', id .. p('<d', keep) .. answer)
end
return p('<Bd', 248, now) .. answer
