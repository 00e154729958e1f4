package dq

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const deepest = 16

// serverError is an error reply of the server. It implements go-redis' interface of errors.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// isForGood says whether the server would refuse the command again. Errors that pass have a word of their own, as
// LOADING. MAXLEN and MAXBYTES count as final: an acknowledgement that a full queue has no room for would have to wait
// for others.
func (e serverError) isForGood() bool {
	return strings.HasPrefix(string(e), "ERR ") || strings.HasPrefix(string(e), "MAX")
}

// firstError returns the first error among the replies, or nil.
func firstError(replies []any) error {
	for _, reply := range replies {
		if said, isError := reply.(serverError); isError {
			return said
		}
	}
	return nil
}

func isServerError(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && !errors.Is(err, redis.Nil)
}

func appendCommand(out []byte, words []string) []byte {
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

// readReply reads one reply of RESP2: nil, int64, []byte, []any or a serverError, which is not returned as the error.
func readReply(in *bufio.Reader, depth int) (any, error) {
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
		return serverError(rest), nil
	case ':':
		return strconv.ParseInt(string(rest), 10, 64)
	case '$', '*':
		size, err := strconv.Atoi(string(rest))
		if err != nil || size < 0 {
			return nil, err
		}
		if line[0] == '$' {
			return readBulk(in, size)
		}
		return readArray(in, size, depth)
	}
	return nil, fmt.Errorf("dq: no answer of a server: %q", line)
}

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
		item, err := readReply(in, depth+1)
		if err != nil {
			return nil, err
		}
		items[at] = item
	}
	return items, nil
}

// --- Values of replies: those of go-redis (strings) and those of readReply (bytes)

func asText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []byte:
		return string(value)
	}
	return ""
}

func asBytes(value any) []byte {
	if raw, ok := value.([]byte); ok {
		return raw
	}
	return []byte(asText(value))
}

func asInt(value any) int64 {
	number, _ := value.(int64)
	return number
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// asMap reads a map of RESP3, or the list that stands for it in RESP2.
func asMap(value any) map[string]any {
	switch value := value.(type) {
	case map[any]any:
		fields := make(map[string]any, len(value))
		for name, each := range value {
			fields[asText(name)] = each
		}
		return fields
	case []any:
		fields := make(map[string]any, len(value)/2)
		for at := 0; at+1 < len(value); at += 2 {
			fields[asText(value[at])] = value[at+1]
		}
		return fields
	}
	return nil
}
