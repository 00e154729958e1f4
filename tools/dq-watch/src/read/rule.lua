-- Gives a recurring job another rule. KEYS: its queue. ARGV: its id, `do` or `tell`, then the words of the rule. Returns 1 if it has it
-- now; to `tell` the command that would do so, which is not carried out; nor told if it is too long to be read.
local job = read(ARGV[1])
if not job or not (job['every'] or job['cron']) then return 0 end
if job['next'] or (job['steps'] and #job['steps'] > 0) then return 0 end
local words = {'XX', unpack(ARGV, 3)}
for _, name in ipairs({'until', 'times', 'grace', 'jitter'}) do
    if job[name] then words[#words + 1], words[#words + 2] = string.upper(name), job[name] end
end
-- A TTL counts from the due the occurrence began with.
if job['expires'] then words[#words + 1], words[#words + 2] = 'TTL', job['expires'] - job['occurrence'] end
local add = again(KEYS[1], ARGV[1], job, words)
if ARGV[2] == 'tell' then
    local bytes = 0
    for _, word in ipairs(add) do bytes = bytes + #tostring(word) end
    return bytes <= 65536 and add or 0
end
local added = redis.pcall(unpack(add))
if type(added) == 'table' and added.err then return added end
return added and 1 or 0
