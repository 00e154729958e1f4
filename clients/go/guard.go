package dq

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

// All code of users is called through this file, and what it returns is read here: handlers, hooks, codecs, loggers and
// the texts of errors. It may do anything except end the process: its caller continues.

const (
	textBytes = 1024
	mostTexts = 1000 // that are made at the same time: an error that holds itself would make ever more
	mostLinks = 100  // errors that wrap each other, perhaps in a circle
)

var errExited = errors.New("it ended its goroutine")

// through calls f, then next with f's error: also after a panic, and after [runtime.Goexit], which ends this goroutine.
// It is a variable, so that a test can show that it is needed.
var through = func(f func() error, next func(error)) {
	err := errExited
	defer func() {
		if raised := recover(); raised != nil {
			err = &PanicError{raised, debug.Stack()}
		}
		next(err)
	}()
	err = f()
}

// door is [through] for callers whose goroutine must not end.
func door(f func() error) error {
	ended := make(chan error, 1)
	go through(f, func(err error) { ended <- err })
	return <-ended
}

// report logs. Its attributes must be texts, never values of users.
func report(logger *slog.Logger, level slog.Level, said string, attributes ...any) {
	_ = door(func() error { logger.Log(context.Background(), level, said, attributes...); return nil })
}

var texts atomic.Int64 // that are being made

// textOf returns the text of an error or of a panic's value; its type, if it has no text.
func textOf(value any) string {
	defer texts.Add(-1)
	if texts.Add(1) > mostTexts {
		return fmt.Sprintf("%T", value)
	}
	var text string
	var err error
	switch value := value.(type) {
	case error:
		err = door(func() error { text = value.Error(); return nil })
	case fmt.Stringer:
		err = door(func() error { text = value.String(); return nil })
	default:
		text = plainText(value)
	}
	if err != nil {
		text = fmt.Sprintf("%T (no text: %v)", value, briefly(err))
	}
	return clean(text, textBytes)
}

// briefly returns the text of an error without asking the value of a panic for its text again.
func briefly(err error) string {
	var panicked *PanicError
	if !errors.As(err, &panicked) {
		return err.Error()
	}
	text := plainText(panicked.Value)
	if said, ok := panicked.Value.(runtime.Error); ok {
		_ = door(func() error { text = said.Error(); return nil })
	}
	return "panic: " + text
}

// plainText prints no structures: one may contain itself.
func plainText(value any) string {
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

// clean makes valid UTF-8 of at most size bytes.
func clean(text string, size int) string {
	if len(text) > size {
		cut := size
		for cut > size-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return strings.ToValidUTF8(text, "?")
}

// links returns an error and those that it wraps, the outermost first.
func links(err error) (found []error) {
	_ = door(func() error {
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
