package dq

import "strconv"

// allScript carries commands out up to the first that is refused: a MULTI would give a job back whose step there was no
// room for.
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

// allOrRefused is one command that carries these out; its answer is the last one's, or the error of the first that is
// refused.
func allOrRefused(key string, commands [][]string) []string {
	words := []string{"EVAL", allScript, "1", key}
	for _, each := range commands {
		words = append(append(words, strconv.Itoa(len(each))), each...)
	}
	return words
}
