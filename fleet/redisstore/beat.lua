-- A heartbeat: reports the state of a process and returns the part that it gets, as fleet.Members.Beat does. KEYS: the
-- group's mark and the members. ARGV[1]: the time of a test's clock or 0, seq, ack, gen, part, until, silence, life,
-- window, wish, need, flags, and the client. Flags: 1 alone, 2 goes on without the store, 4 takes no part, 8 leaves, 16
-- died (with 8), 32 died without having used its part (with 8).
local u, p, call = struct.unpack, struct.pack, redis.call
local now, seq, ack, gen, part, till, silence, life, window, wish, need, flags, pos = u('<dddddddddddB', ARGV[1])
local client = ARGV[1]:sub(pos)
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local lib = membersOf(u, p, call, now, KEYS[1], KEYS[2])
local v = call('GET', KEYS[1])
local h, rows = lib.read(v), lib.rows()
lib.turn(h, rows)
now = math.max(now, h[2])
if flags < 8 then -- a process that ends, or is reported dead, does not show that others can reach the store
  lib.returned(h, silence)
  h[13] = now
end
h[12] = math.max(h[12], window)
lib.lengthen(h, h[12])
local r = rows[client]

local function heard(o)
  return now - o[5] < 3 * o[7]
end

local function answer(no, g, granted, til)
  local alive = 0
  for _, o in pairs(rows) do
    if heard(o) then
      alive = alive + 1
    end
  end
  lib.write(h)
  return p('<dddddddddd', no, g, granted, til, math.min(h[5], WHOLE), h[9], h[10], h[1], alive, now)
end

-- divided returns the quotient of two whole numbers, rounded down.
local function divided(a, b)
  local q = a / b
  q = q - q % 1
  return q * b > a and q - 1 or q
end

if flags >= 8 then
  local function leave()
    if r and flags % 32 >= 16 and now >= lib.silent(r) then -- it has not reported what it spent of its part
      lib.stale(h, r[1], now, h[12])
    end
    rows[client] = nil
    call('HDEL', KEYS[2], client)
  end
  if flags >= 32 and r and r[11] % 2 == 0 then -- it spent none of the tokens that accrued in its part
    leave()
    lib.look(h, rows)
  else
    lib.change(h, rows, leave)
  end
  return answer(0, 0, 0, 0)
elseif r and seq < r[3] then
  return answer(0, 0, 0, 0)
elseif r and seq == r[3] then
  return answer(r[12], r[13], r[14], r[15])
elseif r and gen == h[7] and r[4] > 0 and ack > r[4] then
  lib.forget(h, rows) -- the server has lost its latest writes
  r = nil
end

lib.change(h, rows, function()
  if not r then
    r = {0, 0, 0, 0, 0, 0, 0, 0, now, 0, 0, 0, 0, 0, 0, client}
    local shown = math.min(part, h[9])
    if shown > 0 and (flags % 4 >= 2 or now < till) then -- another process may hold an expired part now
      h[9], r[1], r[9] = h[9] - shown, shown, now - TRIAL
    end
    if h[8] > 0 then
      if next(rows) == nil and h[10] == h[8] + LIFE then
        h[10] = h[8]
      end
      h[10] = math.max(h[10], h[8] + life)
    end
    rows[client] = r
  end
  if r[4] > 0 and ack == r[4] then
    r[6] = r[5]
  end
  if r[11] % 2 == 1 and part < r[1] then -- it may have spent of the part that it held before
    lib.stale(h, r[1] - part, now, h[12])
  end
  r[3], r[7], r[8], r[10], r[11] = seq, silence, window, math.min(wish, 1000000000), flags % 4
  r[1] = math.min(r[1], part)
  r[5], r[2] = now, now + life

  local n, wishes = 0, 0
  for _, o in pairs(rows) do
    if heard(o) then
      n, wishes = n + 1, wishes + o[10]
    end
  end
  local grant = divided(WHOLE, n)
  if wishes > 0 then
    grant = divided(grant, 4) + divided(WHOLE * 3 / 4 * r[10], wishes)
  end
  if flags % 2 == 1 and window > 0 and grant < r[1] and grant > divided(r[1] * 3, 4) then -- the difference would be of no use to other processes for a window
    grant = r[1]
  end
  grant = math.max(grant, math.min(need, WHOLE))
  if grant > r[1] then
    local held = h[9]
    for _, o in pairs(rows) do
      held = held + o[1]
    end
    grant = math.min(grant, r[1] + math.max(0, WHOLE - held))
  end
  if flags % 8 >= 4 or grant < need or r[1] == 0 and now - r[9] < TRIAL then
    grant = 0
  end
  r[1], r[4] = math.max(r[1], grant), math.max(r[4] + 1, now)
  r[12], r[13], r[14], r[15] = r[4], h[7], grant, r[2]
end)
-- The hash is kept for longer than any of its entries counts.
lib.keep(client, r)
call('PEXPIRE', KEYS[2], string.format('%.0f', LONGEST / 1000))
return answer(r[12], r[13], r[14], r[15])
