// Package resp writes commands and reads replies, in RESP2 and as go-redis gives them.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const deepest = 16

// Error is an error reply of the server. It implements go-redis' interface of errors.
type Error string

func (e Error) Error() string { return string(e) }
func (Error) RedisError()     {}

// IsForGood says whether the server would refuse the command again. Errors that pass have a word of their own, as
// LOADING. MAXLEN and MAXBYTES count as final: an acknowledgement that a full queue has no room for would have to wait
// for others.
func (e Error) IsForGood() bool {
	return strings.HasPrefix(string(e), "ERR ") || strings.HasPrefix(string(e), "MAX")
}

// FirstError returns the first error among the replies, or nil.
func FirstError(replies []any) error {
	for _, reply := range replies {
		if said, isError := reply.(Error); isError {
			return said
		}
	}
	return nil
}

func IsError(err error) bool { return Said(err) != "" }

// Said returns the server's words, of an error that is or wraps them; else "".
func Said(err error) string {
	var said redis.Error
	if err == nil || !errors.As(err, &said) || errors.Is(err, redis.Nil) {
		return ""
	}
	return said.Error()
}

func Append(out []byte, words []string) []byte {
	out = appendCount(out, '*', len(words))
	for _, word := range words {
		out = appendCount(out, '$', len(word))
		out = append(out, word...)
		out = append(out, '\r', '\n')
	}
	return out
}

func appendCount(out []byte, kind byte, count int) []byte {
	out = append(out, kind)
	out = strconv.AppendInt(out, int64(count), 10)
	return append(out, '\r', '\n')
}

// Read reads one reply of RESP2: nil, int64, []byte, []any or a Error, which is not returned as the error.
func Read(in *bufio.Reader, depth int) (any, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || depth > deepest {
		return nil, fmt.Errorf("dq: no answer of a server: %q", line)
	}
	rest := line[1 : len(line)-2]
	switch line[0] {
	case '+':
		return append([]byte(nil), rest...), nil
	case '-':
		return Error(rest), nil
	case ':':
		return strconv.ParseInt(string(rest), 10, 64)
	case '$', '*':
		size, err := strconv.Atoi(string(rest))
		if err != nil || size < 0 {
			return nil, err
		}
		switch {
		case line[0] == '$':
			return readBulk(in, size)
		case size == 0:
			return nothing, nil
		}
		return readArray(in, size, depth)
	}
	return nil, fmt.Errorf("dq: no answer of a server: %q", line)
}

var nothing any = []any{} // shared, as it takes no room

func readBulk(in *bufio.Reader, size int) (any, error) {
	bulk := make([]byte, size+2)
	if _, err := io.ReadFull(in, bulk); err != nil {
		return nil, err
	}
	return bulk[:size:size], nil
}

func readArray(in *bufio.Reader, size, depth int) (any, error) {
	items := make([]any, size)
	for at := range items {
		item, err := Read(in, depth+1)
		if err != nil {
			return nil, err
		}
		items[at] = item
	}
	return items, nil
}

// --- Values of replies: those of go-redis (strings) and those of Read (bytes)

func Text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []byte:
		return string(value)
	}
	return ""
}

func Bytes(value any) []byte {
	if raw, ok := value.([]byte); ok {
		return raw
	}
	return []byte(Text(value))
}

func Int(value any) int64 {
	number, _ := value.(int64)
	return number
}

func List(value any) []any {
	list, _ := value.([]any)
	return list
}

// Map reads a map of RESP3, or the list that stands for it in RESP2.
func Map(value any) map[string]any {
	switch value := value.(type) {
	case map[any]any:
		fields := make(map[string]any, len(value))
		for name, each := range value {
			fields[Text(name)] = each
		}
		return fields
	case []any:
		fields := make(map[string]any, len(value)/2)
		for at := 0; at+1 < len(value); at += 2 {
			fields[Text(value[at])] = value[at+1]
		}
		return fields
	}
	return nil
}

func Time(value any) time.Time {
	if number, ok := value.(int64); ok {
		return time.UnixMilli(number)
	}
	return time.Time{}
}

func Duration(value any) time.Duration { return time.Duration(Int(value)) * time.Millisecond }

func MaybeDuration(value any) *time.Duration {
	if value == nil {
		return nil
	}
	duration := Duration(value)
	return &duration
}

func Texts(value any) []string {
	var ids []string
	for _, id := range List(value) {
		ids = append(ids, Text(id))
	}
	return ids
}

func Durations(value any) []time.Duration {
	steps := []time.Duration{}
	for _, each := range List(value) {
		steps = append(steps, Duration(each))
	}
	return steps
}

// Value returns nil for a missing value, and an empty slice for an empty one.
func Value(value any) []byte {
	if value == nil {
		return nil
	}
	return Bytes(value)
}

// --- Durations and instants in commands

// MsText formats whole milliseconds, rounded up: no wait is shorter than asked for.
func MsText(d time.Duration) string { return strconv.FormatInt(Ms(d), 10) }

func Ms(d time.Duration) int64 {
	whole := d.Milliseconds()
	if d > time.Duration(whole)*time.Millisecond {
		whole++
	}
	return whole
}

// InstantMs rounds up, so nothing comes too early.
func InstantMs(at time.Time) int64 {
	whole := at.UnixMilli()
	if at.After(time.UnixMilli(whole)) {
		whole++
	}
	return whole
}
