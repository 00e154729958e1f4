-- Adds a job once more, with all its options: to another queue, or with another rule.
-- KEYS: its queue, the target queue. ARGV: its id, then the words of another rule. Returns 1 if it was added.
local reply = redis.call('DQ.GET', KEYS[1], ARGV[1])
if not reply then return 0 end
local job = {}
for at = 1, #reply, 2 do job[reply[at]] = reply[at + 1] end
local moves = KEYS[1] ~= KEYS[2]
local recurs = job['every'] or job['cron']
if job['next'] or (job['steps'] and #job['steps'] > 0) then return 0 end
if moves and (recurs or (job['state'] ~= 'delayed' and job['state'] ~= 'ready' and job['state'] ~= 'dead')) then return 0 end
if not moves and not recurs then return 0 end

local add = {'DQ.ADD', KEYS[2], ARGV[1], job['payload'], moves and 'NX' or 'XX'}
local function give(...)
    for _, word in ipairs({...}) do
        add[#add + 1] = type(word) == 'number' and string.format('%.0f', word) or word
    end
end
give('PRIORITY', job['priority'], 'TTR', job['ttr'], 'ATTEMPTS', job['max-attempts'], 'BACKOFF', #job['backoff'], unpack(job['backoff']))
if job['group'] then give('GROUP', job['group']) end
if job['keep'] then give('KEEP', job['keep']) end
if job['cost'] and job['cost'] ~= 1 then give('COST', job['cost']) end
if moves and job['state'] == 'delayed' then give('AT', job['due']) end
if moves and job['expires'] then
    local now = redis.call('TIME')
    local left = job['expires'] - now[1] * 1000 - math.floor(now[2] / 1000)
    if left < 1 then return 0 end
    give('TTL', left)
end
if not moves then
    for at = 2, #ARGV do give(ARGV[at]) end
    for _, name in ipairs({'until', 'times', 'grace', 'jitter'}) do
        if job[name] then give(string.upper(name), job[name]) end
    end
end
if not redis.call(unpack(add)) then return 0 end
if moves then redis.call('DQ.DEL', KEYS[1], ARGV[1]) end
return 1
