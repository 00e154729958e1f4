package dq

import "strconv"

// allScript executes commands up to the first that is refused. A MULTI would go on, and give a job back although there
// was no room for its step.
const allScript = `
local at, reply = 1, nil
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then return reply end
  at = last + 1
end
return reply
`

// allOrRefused returns one command that executes these; its reply is the last one's, or the error of the first that is
// refused.
func allOrRefused(key string, commands [][]string) []string {
	words := []string{"EVAL", allScript, "1", key}
	for _, each := range commands {
		words = append(append(words, strconv.Itoa(len(each))), each...)
	}
	return words
}
