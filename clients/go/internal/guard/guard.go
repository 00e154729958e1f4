// Package guard calls the code of users: handlers, hooks, codecs, loggers and the texts of errors. That may do anything
// except end the process: its caller continues.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

const (
	TextBytes = 1024
	mostTexts = 1000 // that are made at the same time: an error that holds itself would make ever more
	mostLinks = 100  // errors that wrap each other, perhaps in a circle
)

// Panicked makes the error of a panic, and RaisedBy returns the panic's value: the error's type is the library's.
var (
	Panicked func(raised any, stack []byte) error
	RaisedBy func(err error) (raised any, hasPanicked bool)
)

var errExited = errors.New("it ended its goroutine")

// Run calls f, then next with f's error: also after a panic, and after [runtime.Goexit], which ends this goroutine.
// It is a variable, so that a test can show that it is needed.
var Run = func(f func() error, next func(error)) {
	err := errExited
	defer func() {
		if raised := recover(); raised != nil {
			err = Panicked(raised, debug.Stack())
		}
		next(err)
	}()
	err = f()
}

// Call is [Run] for callers whose goroutine must not end.
func Call(f func() error) error {
	ended := make(chan error, 1)
	go Run(f, func(err error) { ended <- err })
	return <-ended
}

// Log logs. Its attributes must be texts, never values of users.
func Log(logger *slog.Logger, level slog.Level, said string, attributes ...any) {
	_ = Call(func() error { logger.Log(context.Background(), level, said, attributes...); return nil })
}

var texts atomic.Int64 // that are being made

// Text returns the text of an error or of a panic's value; its type, if it has no text.
func Text(value any) string {
	defer texts.Add(-1)
	if texts.Add(1) > mostTexts {
		return fmt.Sprintf("%T", value)
	}
	var text string
	var err error
	switch value := value.(type) {
	case error:
		err = Call(func() error { text = value.Error(); return nil })
	case fmt.Stringer:
		err = Call(func() error { text = value.String(); return nil })
	default:
		text = Plain(value)
	}
	if err != nil {
		text = fmt.Sprintf("%T (no text: %v)", value, briefly(err))
	}
	return Clip(text, TextBytes)
}

// briefly returns the text of an error without asking the value of a panic for its text again.
func briefly(err error) string {
	value, hasPanicked := RaisedBy(err)
	if !hasPanicked {
		return err.Error()
	}
	text := Plain(value)
	if said, ok := value.(runtime.Error); ok {
		_ = Call(func() error { text = said.Error(); return nil })
	}
	return "panic: " + text
}

// Plain prints no structures: one may contain itself.
func Plain(value any) string {
	switch v := reflect.ValueOf(value); {
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprintf("%T", value)
}

// Clip makes valid UTF-8 of at most size bytes.
func Clip(text string, size int) string {
	if len(text) > size {
		cut := size
		for cut > size-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return strings.ToValidUTF8(text, "?")
}

// Chain returns an error and those that it wraps, the outermost first.
func Chain(err error) (found []error) {
	_ = Call(func() error {
		pending := []error{err}
		for len(pending) > 0 && len(found) < mostLinks {
			next := pending[0]
			pending = pending[1:]
			if next == nil {
				continue
			}
			found = append(found, next)
			switch wrapping := next.(type) {
			case interface{ Unwrap() error }:
				pending = append(pending, wrapping.Unwrap())
			case interface{ Unwrap() []error }:
				pending = append(pending, wrapping.Unwrap()...)
			}
		}
		return nil
	})
	return found
}
