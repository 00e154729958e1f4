package dq

import (
	"strings"
	"time"
)

const (
	firstTrouble   = 50 * time.Millisecond
	longestTrouble = 5 * time.Second
)

// troubleWait is how long to wait when the server is away, the first, second, ... time.
func troubleWait(times int) time.Duration { return exponential(times, firstTrouble, longestTrouble) }

// What waiting does not mend, by what the server's error says, and what to do.
var fatalities = []struct {
	isStart bool // whether the error begins with it
	said    string
	what    string
}{
	{false, "NOPERM", "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands"},
	{false, "NOAUTH", "the server requires a password: set user name and password in the URL, redis://user:password@host"},
	{false, "WRONGPASS", "the server refuses user name or password: set the right ones in the URL, redis://user:password@host"},
	{false, "without any password configured", "the server has no password for this user: take it out of the URL"},
	{false, "unknown command", "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration"},
	{true, "WRONGTYPE", "a queue's key holds a value of another type: choose another name for the queue, or delete that key"},
	{true, "syntax error", "the server's dq module is older than this library: upgrade the module"},
	{true, "wrong number of arguments", "the server's dq module is older than this library: upgrade the module"},
	{true, "timeout is not a float", "the server's dq module is older than this library: upgrade the module"},
	{false, "DB index", "the server does not have this database: choose another number in the URL"},
	{false, "invalid DB", "the server does not have this database: choose another number in the URL"},
}

// fatal is what cannot become right by waiting; nil for all else.
func fatal(err error) *ConfigurationError {
	if already, ok := err.(*ConfigurationError); ok {
		return already
	}
	if !isServerError(err) {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "ERR ")
	for _, each := range fatalities {
		if each.isStart && strings.HasPrefix(text, each.said) || !each.isStart && strings.Contains(text, each.said) {
			return &ConfigurationError{each.what, err}
		}
	}
	return nil
}
