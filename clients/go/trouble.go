package dq

import (
	"strings"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

const (
	firstTrouble   = 50 * time.Millisecond
	longestTrouble = 5 * time.Second
)

// mayNot says whether the server forbids this user the command.
func mayNot(err error) bool { return resp.IsError(err) && strings.HasPrefix(err.Error(), "NOPERM") }

// troubleWait returns how long to wait after the first, second, ... failure to reach the server.
func troubleWait(times int) time.Duration { return exponential(times, firstTrouble, longestTrouble) }

// fatality is an error that waiting does not fix: what the server says, and what to do.
type fatality struct {
	said    string
	isFirst bool // whether the error begins with it
	what    string
}

// fatal returns the error if waiting does not fix it, else nil.
func fatal(err error) *ConfigurationError {
	if already, ok := err.(*ConfigurationError); ok {
		return already
	}
	if !resp.IsError(err) {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "ERR ")
	for _, each := range fatalities {
		if at := strings.Index(text, each.said); at == 0 || at > 0 && !each.isFirst {
			return &ConfigurationError{each.what, err}
		}
	}
	return nil
}
